"""The leader's view of one partition for one share group: which records are acquired by which member, and which are
done (KIP-932).

    start offset                                                end offset
    |  acknowledged, acquired, available, archived: in flight   |  never acquired yet

A record is available, acquired by one member until a deadline, acknowledged, or archived. A record that is given up is
archiving until it is in the dead-letter queue, if the group has one. Every record before the start
offset is done. Offsets in between that are in no batch were acquired by an earlier leader, which ended before it could
store their state: they are available, and count as never delivered.

A change that must survive the leader is a `Transition`: its records have their new state at once, but no other member
gets them before the state is stored. The caller writes its batches together with the start offset and the count of
completed deliveries of that moment (changes may overtake each other). Then it calls `stored` and `complete`, or
`roll_back` if the write failed. Time is a parameter; locks expire when the caller calls `expire`. [Kafka 4.4.0
SharePartition]
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from groupkeeper.coordinator.share_partition.batch import (
    NO_MEMBER,
    AcknowledgeType,
    Before,
    DeliveryLimit,
    InFlightBatch,
    RecordRun,
    RecordState,
)
from groupkeeper.coordinator.share_state.state import StateBatch
from groupkeeper.protocol.errors import InvalidRecordState, InvalidRequest


class Acknowledgement(NamedTuple):
    """A member's acknowledgement of the records of a range, last offset inclusive.

    `types` has one entry for all records, or one for each.
    """

    first_offset: int
    last_offset: int
    types: Sequence[int]


class DeadRecords(NamedTuple):
    """Records that are delivered no more, last offset inclusive: a member rejected them, or they were delivered too
    often.
    """

    first_offset: int
    last_offset: int
    delivery_count: int
    is_rejected: bool


class Transition(NamedTuple):
    """A change of records, and the part of it that must be stored.

    Attributes:
        runs: the records that wait for it.
        batches: the changed batches, to be stored.
        is_owed: whether the start offset must be stored in any case: a member acknowledges records before it, the
            response reports them as done, but that is not stored yet.
    """

    runs: tuple[RecordRun, ...]
    batches: tuple[StateBatch, ...]
    is_owed: bool = False

    @property
    def needs_storing(self) -> bool:
        return self.is_owed or bool(self.batches)


_STATE_AFTER = {AcknowledgeType.GAP: RecordState.ARCHIVED, AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED}
_NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."


class SharePartition:
    """The states of one share-partition's records.

    Attributes:
        start_offset: everything before it is done; it only grows.
        end_offset: the first offset that was never acquired.
        batches: the records in flight, in order.
        may_have_available: whether there may be records to acquire before the end offset.
    """

    def __init__(self, start_offset: int, stored: Iterable[StateBatch] = (), *, max_delivery_count: int = 0) -> None:
        """`stored`: the batches of an earlier leader, sorted and disjoint. It is not stored why records were given up:
        members have rejected those that were delivered less than `max_delivery_count` times.
        """
        self.start_offset = start_offset
        self.end_offset = start_offset
        self._stored_start = start_offset
        self.batches: list[InFlightBatch] = []
        for batch in stored:
            first = max(batch.first_offset, start_offset)
            if first <= batch.last_offset:
                state = RecordState(batch.delivery_state)
                run = RecordRun(first, batch.last_offset, state, batch.delivery_count)
                run.is_rejected = batch.delivery_count < max_delivery_count
                self.batches.append(InFlightBatch([run]))
                self.end_offset = batch.last_offset + 1
        self.may_have_available = bool(self.batches)
        self.advance_start()

    # ------------------------------------------------------------------ looking

    @property
    def in_flight(self) -> int:
        """Offsets from the start offset to the end offset, in any state."""
        return self.end_offset - self.start_offset

    @property
    def delivery_complete_count(self) -> int:
        """Number of records at or after the start offset that need no further delivery."""
        return sum(run.size for run in self.runs() if run.state.is_terminal)

    def runs(self) -> Iterator[RecordRun]:
        """All runs in flight, in order."""
        for batch in self.batches:
            yield from batch.runs

    def next_fetch_offset(self) -> int:
        """The first offset that could be acquired."""
        if self.may_have_available:
            offset = self.start_offset
            for run in self.runs():
                if run.first > offset or run.can_be_acquired:
                    return offset
                offset = run.last + 1
            self.may_have_available = False
        return self.end_offset

    def can_acquire(self, max_in_flight: int) -> bool:
        """Whether a fetch can get records: some were released, or fewer than `max_in_flight` are in flight."""
        return self.next_fetch_offset() < self.end_offset or self.in_flight < max_in_flight

    def next_deadline_ms(self) -> int | None:
        """When the first lock expires; None when no record is locked."""
        return min((run.deadline_ms for run in self._settled(RecordState.ACQUIRED)), default=None)

    def _settled(self, state: RecordState) -> Iterator[RecordRun]:
        """The runs in flight of a state, without those that wait for a change to be stored."""
        return (run for run in self.runs() if run.state is state and run.before is None)

    def index_of(self, offset: int) -> int:
        """Index of the first batch that ends at or after an offset."""
        return bisect_left(self.batches, offset, key=lambda batch: batch.last)

    def overlapping(self, first: int, last: int) -> Iterator[InFlightBatch]:
        """The batches that have a record in a range."""
        for index in range(self.index_of(first), len(self.batches)):
            if self.batches[index].first > last:
                return
            yield self.batches[index]

    # ------------------------------------------------------------------ changes by members and by time

    def acknowledge(
        self,
        member_id: str,
        acknowledgements: Sequence[Acknowledgement],
        *,
        limit: DeliveryLimit,
        renewed_until_ms: int | None = None,
    ) -> Transition:
        """Acknowledges acquired records of a member, all or none. Records before the start offset are ignored.

        Renewing is not a change to be stored: it extends the lock until `renewed_until_ms`; None forbids renewing.
        Raises `InvalidRequest` for offsets that were never acquired, unordered or unknown types; `InvalidRecordState`
        for records that this member has not acquired.
        """
        changes = list(self._checked(member_id, acknowledgements, may_renew=renewed_until_ms is not None))
        changed: list[RecordRun] = []
        for batch, first, last, kind in changes:
            for run in batch.split(first, last):
                if kind is AcknowledgeType.RENEW:
                    assert renewed_until_ms is not None
                    run.deadline_ms = renewed_until_ms
                else:
                    is_rejected = kind is AcknowledgeType.REJECT
                    self._begin(run, limit.last_state if is_rejected else _STATE_AFTER.get(kind), limit)
                    run.is_rejected = is_rejected
                    changed.append(run)
        is_late = any(acknowledgement.first_offset < self.start_offset for acknowledgement in acknowledgements)
        is_owed = is_late and self._stored_start < self.start_offset
        return Transition(tuple(changed), merged(changed), is_owed)

    def _checked(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], *, may_renew: bool
    ) -> Iterator[tuple[InFlightBatch, int, int, AcknowledgeType]]:
        """The acknowledged parts of batches, (batch, first offset, last offset, type)."""
        behind = -1
        for acknowledgement in acknowledgements:
            if not behind < acknowledgement.first_offset <= acknowledgement.last_offset:
                raise InvalidRequest("Acknowledged offsets overlap or are out of order.")
            behind = acknowledgement.last_offset
            pieces = _pieces(acknowledgement)
            if acknowledgement.last_offset < self.start_offset:
                continue
            self._check_range(acknowledgement)
            for first, last, kind in pieces:
                position = max(first, self.start_offset)
                for batch in self.overlapping(position, last):
                    if batch.first > position:
                        raise InvalidRecordState(_NOT_FOUND)
                    for run in batch.overlapping(position, last):
                        _check_owner(run, member_id)
                    if kind is AcknowledgeType.RENEW and not may_renew:
                        raise InvalidRecordState("Renewing acquisition locks is not enabled for the group.")
                    yield batch, position, min(last, batch.last), kind
                    position = batch.last + 1
                if position <= last:  # the offset is in no batch: this leader has not acquired it
                    raise InvalidRecordState(_NOT_FOUND)

    def _check_range(self, acknowledgement: Acknowledgement) -> None:
        if not self.batches or max(acknowledgement.first_offset, self.start_offset) < self.batches[0].first:
            raise InvalidRecordState(_NOT_FOUND)
        last = self.batches[-1].last
        if acknowledgement.first_offset > last:
            raise InvalidRequest("Batch record not found. The first offset in request is past acquired records.")
        if acknowledgement.last_offset > last:
            raise InvalidRequest("Batch record not found. The last offset in request is past acquired records.")

    def release_member(self, member_id: str, limit: DeliveryLimit) -> Transition:
        """Releases all records that a member has acquired, for example when its session ends. Deliveries stay
        counted.
        """
        owned = [run for run in self._settled(RecordState.ACQUIRED) if run.member_id == member_id]
        for run in owned:
            self._begin(run, None, limit)
        return Transition(tuple(owned), merged(owned))

    def expire(self, now_ms: int, limit: DeliveryLimit) -> Transition:
        """Ends the expired acquisition locks, with immediate effect. The caller stores the returned change; if that
        fails, it stores `at_rest` later.
        """
        return self._end_locks([one for one in self._settled(RecordState.ACQUIRED) if one.deadline_ms <= now_ms], limit)

    def _end_locks(self, expired: Sequence[RecordRun], limit: DeliveryLimit) -> Transition:
        """Releases these runs, and returns a change that no caller waits for."""
        for run in expired:
            run.release(limit)
            self.may_have_available |= run.state is RecordState.AVAILABLE
        ended = Transition((), merged(expired))
        self.advance_start()
        return ended

    def at_rest(self) -> Transition:
        """A transition that stores again all records in flight that are neither acquired nor waiting to be stored."""
        resting = (run for run in self.runs() if run.state is not RecordState.ACQUIRED and run.before is None)
        return Transition((), merged(resting))

    def dead(self) -> list[DeadRecords]:
        """The archiving records to write to the dead-letter queue, in order, without those whose state is not stored
        yet.
        """
        dying = self._settled(RecordState.ARCHIVING)
        return [DeadRecords(run.first, run.last, run.delivery_count, run.is_rejected) for run in dying]

    def archive(self, dead: Iterable[DeadRecords]) -> Transition:
        """Archives records after an attempt to write them to the dead-letter queue. Like `expire`, with immediate
        effect.
        """
        buried = [
            run
            for one in dead
            for batch in self.overlapping(one.first_offset, one.last_offset)
            for run in batch.overlapping(one.first_offset, one.last_offset)
            if run.state is RecordState.ARCHIVING and run.before is None
        ]
        for run in buried:
            run.state = RecordState.ARCHIVED
        archived = Transition((), merged(buried))
        self.advance_start()
        return archived

    def _begin(self, run: RecordRun, state: RecordState | None, limit: DeliveryLimit) -> None:
        """Gives a run its new state (None: the state after a release) until it is stored or the write fails."""
        run.before = Before(run.state, run.member_id)
        if state is None:
            run.release(limit)
        else:
            run.state = state
            run.member_id = NO_MEMBER

    # ------------------------------------------------------------------ changes by storing and by the log

    def stored(self, start_offset: int) -> None:
        """Called when a start offset is stored: the records before it are stored as done."""
        self._stored_start = max(self._stored_start, start_offset)

    def complete(self, transition: Transition) -> None:
        """Called when the change is stored; moves the start offset on."""
        for run in transition.runs:
            run.before = None
            self.may_have_available |= run.state is RecordState.AVAILABLE
        self.advance_start()

    def roll_back(self, transition: Transition, now_ms: int, limit: DeliveryLimit) -> Transition:
        """Called when the change could not be stored: records return to their earlier state. Records whose lock expired
        meanwhile are released; returns that change, as `expire` does.
        """
        for run in transition.runs:
            assert run.before is not None
            run.state, run.member_id = run.before
            run.before = None
        return self._end_locks([run for run in transition.runs if run.deadline_ms <= now_ms], limit)

    def advance_start(self) -> None:
        """Removes records at the start that are done and stored as done."""
        done = 0
        for batch in self.batches:
            if batch.first > self.start_offset:
                break
            first_open = next((run for run in batch.runs if not run.is_done), None)
            if first_open is not None:
                self.start_offset = first_open.first
                batch.drop_before(first_open.first)
                break
            self.start_offset = batch.last + 1
            done += 1
        del self.batches[:done]

    def move_start(self, offset: int) -> None:
        """Called when the log starts at `offset`: every earlier record is done, even if it was acquired."""
        if offset <= self.start_offset:
            return
        del self.batches[: self.index_of(offset)]
        if self.batches and self.batches[0].first < offset:
            self.batches[0].drop_before(offset)
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset)
        self.may_have_available = bool(self.batches)
        self.advance_start()


def _pieces(acknowledgement: Acknowledgement) -> list[tuple[int, int, AcknowledgeType]]:
    """Ranges of adjacent records with the same type. Raises `InvalidRequest` for unknown types or a wrong number of
    types.
    """
    try:
        kinds = [AcknowledgeType(kind) for kind in acknowledgement.types]
    except ValueError:
        raise InvalidRequest(f"Invalid acknowledge type: {list(acknowledgement.types)}") from None
    if len(kinds) == 1:
        return [(acknowledgement.first_offset, acknowledgement.last_offset, kinds[0])]
    if len(kinds) != acknowledgement.last_offset - acknowledgement.first_offset + 1:
        raise InvalidRequest("There must be one acknowledge type for all records, or one for each.")
    pieces: list[tuple[int, int, AcknowledgeType]] = []
    for offset, kind in enumerate(kinds, acknowledgement.first_offset):
        if pieces and pieces[-1][2] is kind:
            pieces[-1] = (pieces[-1][0], offset, kind)
        else:
            pieces.append((offset, offset, kind))
    return pieces


def _check_owner(run: RecordRun, member_id: str) -> None:
    if run.state is not RecordState.ACQUIRED:
        raise InvalidRecordState("The record cannot be acknowledged. The record is not in the acquired state.")
    if run.member_id != member_id:
        raise InvalidRecordState("Member is not the owner of batch record")


def merged(runs: Iterable[RecordRun]) -> tuple[StateBatch, ...]:
    """Runs, in order, as batches to be stored: adjacent runs with equal fields are merged."""
    batches: list[StateBatch] = []
    for run in runs:
        if batches and batches[-1][1:] == (run.first - 1, run.state, run.delivery_count):
            batches[-1] = batches[-1]._replace(last_offset=run.last)
        else:
            batches.append(StateBatch(run.first, run.last, int(run.state), run.delivery_count))
    return tuple(batches)
