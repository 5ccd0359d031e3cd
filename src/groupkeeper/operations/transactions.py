"""Transactions: those that are open, what they hold back, and how one is aborted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.resources.types import ProducerState, TransactionDescription, TransactionState
from groupkeeper.client.admin.types import Batch, Failure, OffsetSpec, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.errors import OperationRefused
from groupkeeper.operations.plans.journal import ApplyResult, Lost
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan
from groupkeeper.operations.plans.recording import UNANSWERED, Recorder, known_cluster_id
from groupkeeper.operations.problems import error_name
from groupkeeper.operations.topics import describe_topics, listed, offsets_of, unreachable
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.rules.transactions import LONGEST_MS, Standing, standing_of_known, standing_of_unknown
from groupkeeper.rules.words import duration

OPEN_STATES = (
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.PREPARE_EPOCH_FENCE,
)
_LONGEST = "transaction.max.timeout.ms"
AGAIN_S = 2.0
"""How long after the first look at a transaction without a coordinator the second one is, before its abort."""


class NothingToAbort(OperationRefused):
    """There is no open transaction of that name or at that place."""


class MayStillEnd(OperationRefused):
    """The transaction is not one that has to be aborted, or not in this way."""


class OpenTransaction(NamedTuple):
    """A transaction that is open in a partition. ``description``: by its coordinator; None: no coordinator shows a
    transaction of this producer here, or not all of them could be asked (``is_asked`` False). ``longest_ms``: the
    longest timeout that brokers allow; None: they do not tell.
    """

    place: TopicPartition
    producer: ProducerState
    transactional_id: str | None
    description: TransactionDescription | None
    is_asked: bool
    longest_ms: int | None = LONGEST_MS

    @property
    def name(self) -> str:
        return self.transactional_id or f"producer {self.producer.producer_id}"

    @property
    def began_ms(self) -> int | None:
        """When it began, or, where no coordinator tells, the time that its last record has from its producer; None:
        not known.
        """
        if self.description is not None:
            return self.description.started_ms
        return None if self.producer.last_timestamp < 0 else self.producer.last_timestamp

    def open_ms(self, now_ms: int) -> int | None:
        """For how long it is open, at the least; None: not known."""
        return None if self.began_ms is None else max(0, now_ms - self.began_ms)

    def standing(self, now_ms: int) -> Standing:
        """See groupkeeper.rules.transactions."""
        known, open_ms = self.description, self.open_ms(now_ms)
        if known is None:
            return standing_of_unknown(open_ms, self.longest_ms, is_asked=self.is_asked)
        return standing_of_known(known.state, open_ms, known.timeout_ms)


class Open(NamedTuple):
    """The open transactions in some partitions, the oldest first, and those of all coordinators by transactional id.
    ``failed``: partitions that did not tell; ``silent``: coordinators.
    """

    transactions: list[OpenTransaction]
    failed: Mapping[TopicPartition, Failure]
    silent: Sequence[Failure] = ()
    described: Mapping[str, TransactionDescription] = {}


async def open_in(admin: Admin, places: Sequence[TopicPartition], *, timeout_ms: int | None = None) -> Open:
    """The transactions that are open in partitions; without partitions, nobody is asked."""
    return await open_anywhere(admin, places, timeout_ms=timeout_ms) if places else Open([], {})


async def open_anywhere(
    admin: Admin,
    places: Sequence[TopicPartition],
    *,
    states: Iterable[TransactionState] = OPEN_STATES,
    timeout_ms: int | None = None,
) -> Open:
    """The same, and those that coordinators have in these states (none: in any)."""
    producers = await admin.describe_producers(places, timeout_ms=timeout_ms) if places else Batch()
    # Coordinators afterwards: by then they have what was open in a partition, unless it ended in between.
    described, silent = await _described(admin, states, timeout_ms=timeout_ms)
    found = [
        _of(place, state, described, is_asked=not silent)
        for place, states in producers.done.items()
        for state in states
        if state.transaction_start is not None
    ]
    if any(one.description is None for one in found):
        longest_ms = await _longest_timeout_ms(admin, timeout_ms=timeout_ms)
        found = [one._replace(longest_ms=longest_ms) for one in found]
    return Open(sorted(found, key=lambda one: (one.began_ms or 0, one.place)), producers.failed, silent, described)


def _of(
    place: TopicPartition, state: ProducerState, described: Mapping[str, TransactionDescription], *, is_asked: bool
) -> OpenTransaction:
    for transactional_id, each in described.items():
        if each.producer_id == state.producer_id and place in each.partitions:
            return OpenTransaction(place, state, transactional_id, each, is_asked)
    return OpenTransaction(place, state, None, None, is_asked)


async def _described(
    admin: Admin, states: Iterable[TransactionState], *, timeout_ms: int | None
) -> tuple[dict[str, TransactionDescription], list[Failure]]:
    """The transactions of all coordinators by transactional id; and the failures of coordinators that did not tell."""
    try:
        found = await admin.list_transactions(states=states, timeout_ms=timeout_ms)
        ids = list(found.transactions)
        described = await admin.describe_transactions(ids, timeout_ms=timeout_ms) if ids else Batch()
    except (ClientError, KafkaError) as failure:
        return {}, [failure]
    return described.done, [*found.failed.values(), *described.failed.values()]


async def held_partitions(
    admin: Admin, topics: Iterable[str] | None = None, *, timeout_ms: int | None = None
) -> tuple[dict[TopicPartition, int], Mapping[TopicPartition, Failure]]:
    """Partitions whose last stable offset is before the end of the log, with the number of offsets between them.
    ``topics`` None: all, internal ones too.
    """
    if topics is None:
        topics = [one.name for one in await admin.list_topics(include_internal=True, timeout_ms=timeout_ms)]
    described = await describe_topics(admin, topics, timeout_ms=timeout_ms)
    places = [TopicPartition(name, each.partition) for name, one in described.done.items() for each in one.partitions]
    failed = dict(unreachable(places, described)) | {
        TopicPartition(name, -1): failure for name, failure in described.failed.items()
    }
    reachable = [place for place in places if place not in failed]
    if not reachable:
        return {}, failed
    stable = await admin.list_offsets(
        dict.fromkeys(reachable, OffsetSpec.latest()), read_committed=True, timeout_ms=timeout_ms
    )
    ends = await listed(admin, reachable, OffsetSpec.latest(), timeout_ms=timeout_ms)
    first, last = offsets_of(stable.done), offsets_of(ends.done)
    held = {place: last[place] - first[place] for place in first if last.get(place, 0) > first[place]}
    return held, failed | stable.failed | ends.failed


async def _longest_timeout_ms(admin: Admin, *, timeout_ms: int | None) -> int | None:
    """The longest timeout of a transaction that brokers allow; None: they do not tell."""
    try:
        settings = await admin.broker_settings([_LONGEST], timeout_ms=timeout_ms)
        return int(settings[_LONGEST])
    except (ClientError, KafkaError, KeyError, ValueError):
        return None


class Abort(NamedTuple):
    """A transaction to abort. With a ``transactional_id``, its coordinator fences the producer and ends it in all
    partitions. Without, no coordinator has it, and a marker is written to its one partition. ``is_forced``: although
    it may still end by itself.
    """

    transactional_id: str | None
    places: dict[TopicPartition, ProducerState | None]
    is_forced: bool = False

    @property
    def name(self) -> str:
        if self.transactional_id is not None:
            return self.transactional_id
        place, state = next(iter(self.places.items()))
        return f"producer {state.producer_id if state else '?'} in {place.topic}-{place.partition}"


async def plan_of_known(admin: Admin, transactional_id: str) -> Abort:
    """The abort of a transaction that its coordinator has. Raises NothingToAbort, MayStillEnd, and what it answers."""
    described = (await admin.describe_transactions([transactional_id])).result(transactional_id)
    if standing_of_known(described.state, None, described.timeout_ms) is Standing.ENDED:
        raise NothingToAbort(f"{transactional_id} has no open transaction (its state is {described.state})")
    if described.state is not TransactionState.ONGOING:
        raise MayStillEnd(
            f"the coordinator of {transactional_id} is ending the transaction already ({described.state}); if that "
            "takes long, see whether each of its partitions has a leader: 'groupkeeper transactions describe'"
        )
    producers = (await admin.describe_producers(described.partitions)).done if described.partitions else {}
    places: dict[TopicPartition, ProducerState | None] = {}
    for place in sorted(described.partitions):
        own = (one for one in producers.get(place, ()) if one.producer_id == described.producer_id)
        places[place] = next(own, None)
    return Abort(transactional_id, places)


async def plan_of_hanging(
    admin: Admin, place: TopicPartition, producer_id: int | None, now_ms: int, *, is_forced: bool
) -> Abort:
    """The abort of a transaction in a partition that no coordinator has. ``producer_id`` None: there is only one.
    ``is_forced``: also one that is too young to be sure. Raises NothingToAbort, MayStillEnd.
    """
    found = await open_in(admin, [place])
    if place in found.failed:
        raise found.failed[place]
    own = [one for one in found.transactions if producer_id in (None, one.producer.producer_id)]
    where = f"{place.topic}-{place.partition}"
    if not own:
        of = "" if producer_id is None else f" of producer {producer_id}"
        raise NothingToAbort(f"no transaction{of} is open in {where}")
    if len(own) > 1:
        ids = ", ".join(str(one.producer.producer_id) for one in own)
        raise MayStillEnd(f"several transactions are open in {where}: name one with --producer-id ({ids})")
    (one,) = own
    if one.transactional_id is not None:
        raise MayStillEnd(
            f"the transaction in {where} has a coordinator, which ends it: abort it by its transactional id, "
            f"{one.transactional_id}"
        )
    standing = one.standing(now_ms)
    if standing is not Standing.HANGING and not is_forced:
        silent = next(iter(found.silent), None)
        limit = "do not tell for how long one may be open" if one.longest_ms is None else (
            f"allow transactions of {duration(one.longest_ms)}"
        )  # fmt: skip
        why = f"not all coordinators replied ({silent})" if standing is Standing.UNKNOWN else (
            f"its last record is {duration(one.open_ms(now_ms))} old, and brokers {limit}: "
            "a coordinator may have it under a transactional id that you may not describe"
        )  # fmt: skip
        raise MayStillEnd(f"the transaction of {one.name} in {where} may still end by itself: {why}; --force aborts it")
    return Abort(None, {place: one.producer}, is_forced)


async def _look_again(admin: Admin, planned: Abort) -> None:
    """Raises MayStillEnd where the transaction that no coordinator had is another by now, or its producer goes on."""
    await asyncio.sleep(AGAIN_S)
    found = (await open_in(admin, list(planned.places))).transactions
    for place, state in planned.places.items():
        there = [one.producer for one in found if one.place == place and one.description is None]
        if planned.is_forced and state is not None:  # it may write
            written = {"last_sequence": state.last_sequence, "last_timestamp": state.last_timestamp}
            there = [each._replace(**written) for each in there]
        if state not in there:
            raise MayStillEnd(
                f"the transaction of {planned.name} has ended, goes on, or has a coordinator by now, so nothing was "
                "written: see 'groupkeeper transactions list'"
            )


async def abort(admin: Admin, planned: Abort, recorder: Recorder | None) -> None:
    """Abort it, journalled before and after. Raises MayStillEnd, what the brokers answer, and JournalUnwritable."""
    if planned.transactional_id is None:
        await _look_again(admin, planned)
    cluster_id = await known_cluster_id(admin)
    changes = dict.fromkeys(planned.places, Change(None, None))
    plan = Plan(cluster_id, (GroupPlan(planned.name, changes),), Kind.ABORT_TRANSACTION)
    begun = None if recorder is None else recorder.begin(plan, admin.principal)
    try:
        if planned.transactional_id is not None:
            (await admin.fence_producers([planned.transactional_id])).result(planned.transactional_id)
        for place, state in planned.places.items():
            if planned.transactional_id is None and state is not None:
                await admin.abort_transaction(place, state)
    except (ClientError, KafkaError) as failure:
        if recorder is not None:
            result = ApplyResult.PARTLY if isinstance(failure, UNANSWERED) else ApplyResult.REFUSED
            recorder.end(begun, result, [Lost(planned.name, None, None, error_name(failure), str(failure))])
        raise
    if recorder is not None:
        recorder.end(begun, ApplyResult.APPLIED)
