"""A share-partition as its consumers see it: any order of fetches, acknowledgements, lost locks, failed writes, moves
of the log's start and new leaders.
"""

from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groupkeeper.coordinator.share_partition.acquire import Acquired, Limits, Span, acquire, archive_acquired
from groupkeeper.coordinator.share_partition.batch import AcknowledgeType, DeliveryLimit, RecordState
from groupkeeper.coordinator.share_partition.partition import Acknowledgement, SharePartition, Transition
from groupkeeper.coordinator.share_state.state import StateBatch, combine_batches
from groupkeeper.protocol.errors import InvalidRecordState

MEMBERS = ("alice", "bob", "carol")
LOCK_MS = 1000
MAX_DELIVERIES = 5
MAX_IN_FLIGHT = 40
STEPS = 200


@dataclass
class Lock:
    member_id: str
    deadline_ms: int


class ShareGroup:
    """The model: per offset, the lock that its consumer believes in, the last count it was told, and its end."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.log: list[Span] = []
        self.log_start = 0
        self.log_end = 0
        self.locks: dict[int, Lock] = {}
        self.counts: dict[int, int] = {}
        self.ends: dict[int, RecordState] = {}
        self.stored: tuple[StateBatch, ...] = ()
        self.stored_start = -1
        self.pending: list[tuple[Transition, dict[int, AcknowledgeType]]] = []
        self.partition = SharePartition(0)
        self.seen_start = 0

    def act(self, random: Random) -> None:
        """Something happens, the usual more often than the unusual."""
        member = random.choice(MEMBERS)
        fate = random.choice(("stored", "stored", "stored", "fails", "waits"))
        match random.choices(range(8), (3, 6, 8, 1, 3, 2, 0.3, 0.3))[0]:
            case 0:
                self.produce(random.randint(1, 12), random.choice((0, 0, 0, 3)))
            case 1:
                self.fetch(member, random.randint(1, 20), random.random() < 0.4, random.random() < 0.1)
            case 2:
                kinds = random.choices((0, 1, 2, 3, 4), (1, 4, 4, 1, 2), k=random.randint(1, 8))
                self.acknowledge(member, kinds, random.choice((0, 0, 1, 5)), fate)
            case 3:
                self.end_session(member, fate)
            case 4:
                self.wait(random.choice((100, 400, 1000)), random.random() < 0.7)
            case 5:
                self.settle_pending(fate)
            case 6:
                self.delete_records(random.randint(1, 4))
            case _:
                self.new_leader()
        self.the_start_only_grows()
        self.batches_are_in_order()
        self.consumers_hold_what_they_believe()

    # ------------------------------------------------------------------ the log

    def produce(self, size: int, missing: int) -> None:
        """Appends a batch; sometimes compaction has removed what was before it."""
        first = self.log_end + missing
        self.log.append(Span(first, first + size - 1))
        self.log_end = first + size

    def delete_records(self, part: int) -> None:
        self.log_start += (self.log_end - self.log_start) * part // 5
        self.log = [span for span in self.log if span.last >= self.log_start]
        self.partition.move_start(self.log_start)
        self.locks = {offset: lock for offset, lock in self.locks.items() if offset >= self.log_start}

    def read(self, offset: int) -> list[Span]:
        return [span for span in self.log if span.last >= offset][:4]

    # ------------------------------------------------------------------ members

    def fetch(self, member: str, max_records: int, is_strict: bool, is_aborted: bool) -> None:
        offset = self.partition.next_fetch_offset()
        spans = self.read(offset)
        if not self.partition.can_acquire(MAX_IN_FLIGHT) or not spans:
            return
        deadline_ms = self.now_ms + LOCK_MS
        limits = Limits(max_records, is_strict, 5, MAX_IN_FLIGHT, MAX_DELIVERIES, deadline_ms)
        acquired = acquire(self.partition, member, spans, offset, limits)
        if is_aborted:
            before, acquired = acquired, archive_acquired(self.partition, acquired, spans[:1])
            for taken in set(_offsets(before)) - set(_offsets(acquired)):
                self.ends[taken] = RecordState.ARCHIVED
        for one in acquired:
            self.deliver(member, one, deadline_ms)
        assert [one.first_offset for one in acquired] == sorted(one.first_offset for one in acquired)
        if is_strict:
            assert len(_offsets(acquired)) <= max_records

    def deliver(self, member: str, acquired: Acquired, deadline_ms: int) -> None:
        for offset in _offsets([acquired]):
            assert self.log_start <= offset < self.log_end
            assert offset not in self.ends, f"{offset} is {self.ends[offset]!r} and was delivered again"
            lock = self.locks.get(offset)
            assert lock is None, f"{offset} is locked by {lock}"
            assert acquired.delivery_count == self.counts.get(offset, 0) + 1 <= MAX_DELIVERIES
            self.counts[offset] = acquired.delivery_count
            self.locks[offset] = Lock(member, deadline_ms)

    def acknowledge(self, member: str, kinds: list[int], skip: int, fate: str) -> None:
        """What a member says of neighbouring records that it holds, in one request."""
        waiting = {offset for _, said in self.pending for offset in said}
        held = sorted(offset for offset, lock in self.locks.items() if lock.member_id == member)
        mine = [offset for offset in held if offset not in waiting][skip:]
        if not mine:
            return
        run = [
            offset for offset, place in zip(mine, range(mine[0], mine[0] + len(kinds)), strict=False) if offset == place
        ]
        said = {offset: AcknowledgeType(kind) for offset, kind in zip(run, kinds, strict=False)}
        request = [Acknowledgement(run[0], run[-1], [said[offset] for offset in run])]
        transition = self.partition.acknowledge(
            member, request, limit=DeliveryLimit(MAX_DELIVERIES), renewed_until_ms=self.now_ms + LOCK_MS
        )
        for offset in [offset for offset, kind in said.items() if kind is AcknowledgeType.RENEW]:
            self.locks[offset].deadline_ms = self.now_ms + LOCK_MS
            del said[offset]
        self.settle(transition, said, fate)

    def end_session(self, member: str, fate: str) -> None:
        waiting = {offset for _, said in self.pending for offset in said}
        said = {
            offset: AcknowledgeType.RELEASE
            for offset, lock in self.locks.items()
            if lock.member_id == member and offset not in waiting
        }
        self.settle(self.partition.release_member(member, limit=DeliveryLimit(MAX_DELIVERIES)), said, fate)

    def settle(self, transition: Transition, said: dict[int, AcknowledgeType], fate: str) -> None:
        if fate == "waits":
            self.pending.append((transition, said))
        elif fate == "fails":
            self.partition.roll_back(transition, self.now_ms, limit=DeliveryLimit(MAX_DELIVERIES))
            self.end_locks([offset for offset in said if self.lock_is_over(offset)])
        else:
            self.store(transition)
            self.partition.complete(transition)
            self.ended(said)

    def settle_pending(self, fate: str) -> None:
        if self.pending:
            self.settle(*self.pending.pop(0), fate)

    def store(self, transition: Transition) -> None:
        if transition.batches:
            self.stored_start = max(self.stored_start, self.partition.start_offset)
            self.stored = combine_batches(self.stored, transition.batches, self.stored_start)

    def ended(self, said: dict[int, AcknowledgeType]) -> None:
        for offset, kind in said.items():
            if kind is AcknowledgeType.RELEASE:
                self.end_locks([offset])
            elif self.locks.pop(offset, None) is not None:
                accepted = kind is AcknowledgeType.ACCEPT
                self.ends[offset] = RecordState.ACKNOWLEDGED if accepted else RecordState.ARCHIVED

    def lock_is_over(self, offset: int) -> bool:
        return offset in self.locks and self.locks[offset].deadline_ms <= self.now_ms

    def end_locks(self, offsets: list[int]) -> None:
        for offset in offsets:
            if self.locks.pop(offset, None) is not None and self.counts[offset] >= MAX_DELIVERIES:
                self.ends[offset] = RecordState.ARCHIVED

    # ------------------------------------------------------------------ time and leaders

    def wait(self, ms: int, is_stored: bool) -> None:
        self.now_ms += ms
        waiting = {offset for _, said in self.pending for offset in said}
        transition = self.partition.expire(self.now_ms, limit=DeliveryLimit(MAX_DELIVERIES))
        if is_stored:
            self.store(transition)
        self.end_locks([offset for offset in self.locks if self.lock_is_over(offset) and offset not in waiting])

    def new_leader(self) -> None:
        """What isn't stored is forgotten, and nothing else."""
        self.pending.clear()
        self.locks.clear()
        self.partition = SharePartition(max(self.stored_start, 0), self.stored)
        self.partition.move_start(self.log_start)
        counted = {
            offset: batch.delivery_count
            for batch in self.stored
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        done = {
            offset
            for batch in self.stored
            if RecordState(batch.delivery_state).is_terminal
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        # An acknowledged record stays acknowledged; what was archived without storing it may come again.
        lost = [
            offset
            for offset, end in self.ends.items()
            if offset not in done and offset >= max(self.stored_start, self.log_start)
        ]
        for offset in lost:
            assert self.ends[offset] is RecordState.ARCHIVED, f"{offset} was acknowledged"
            del self.ends[offset]
        self.counts = {offset: counted.get(offset, 0) for offset in self.counts}
        self.seen_start = min(self.seen_start, self.partition.start_offset)

    # ------------------------------------------------------------------ what always holds

    def the_start_only_grows(self) -> None:
        assert self.partition.start_offset >= self.seen_start
        self.seen_start = self.partition.start_offset
        assert self.partition.start_offset <= self.partition.end_offset

    def batches_are_in_order(self) -> None:
        behind = self.partition.start_offset
        for run in self.partition.runs():
            assert behind <= run.first <= run.last < self.partition.end_offset
            behind = run.last + 1

    def consumers_hold_what_they_believe(self) -> None:
        waiting = {offset for _, said in self.pending for offset in said}
        held = {
            offset: run.member_id
            for run in self.partition.runs()
            if run.state is RecordState.ACQUIRED
            for offset in range(run.first, run.last + 1)
        }
        assert held == {offset: lock.member_id for offset, lock in self.locks.items() if offset not in waiting}

    def work_off(self) -> None:
        """A consumer that accepts everything comes to the end: every record is acknowledged or archived."""
        while self.pending:
            self.settle_pending("stored")
        for _ in range(100 + self.log_end):
            self.wait(LOCK_MS, True)
            self.fetch("alice", 20, False, False)
            held = sorted(self.locks)
            if held:
                said = [Acknowledgement(offset, offset, [AcknowledgeType.ACCEPT]) for offset in held]
                transition = self.partition.acknowledge("alice", said, limit=DeliveryLimit(MAX_DELIVERIES))
                self.settle(transition, dict.fromkeys(held, AcknowledgeType.ACCEPT), "stored")
            elif not self.read(self.partition.next_fetch_offset()):
                break
        assert self.partition.start_offset == self.partition.end_offset == self.log_end
        records = {offset for span in self.log for offset in range(max(span.first, self.log_start), span.last + 1)}
        assert records <= set(self.ends)


def _offsets(acquired: list[Acquired]) -> list[int]:
    return [offset for one in acquired for offset in range(one.first_offset, one.last_offset + 1)]


@pytest.mark.timeout(300)
@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_no_record_is_lost_or_given_to_two(seed: int) -> None:
    random = Random(seed)
    group = ShareGroup()
    for _ in range(STEPS):
        group.act(random)
    group.work_off()


def test_an_unowned_record_cannot_be_acknowledged() -> None:
    partition = SharePartition(0)
    acquire(partition, "alice", [Span(0, 9)], 0, Limits(10, False, 10, 100, 5, 1000))
    with pytest.raises(InvalidRecordState):
        partition.acknowledge("bob", [Acknowledgement(0, 9, [1])], limit=DeliveryLimit(5))
    assert [run.state for run in partition.runs()] == [RecordState.ACQUIRED]
