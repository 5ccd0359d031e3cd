"""Open transactions, the offsets that they hold back, and how to abort one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.resources.types import ProducerState, TransactionDescription, TransactionState
from groupkeeper.client.admin.types import Batch, Failure, OffsetSpec, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.errors import OperationRefused
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan
from groupkeeper.operations.plans.recorder import Recorder, begin_part, end_part, known_cluster_id
from groupkeeper.operations.topics import describe_topics, listed, offsets_of, unreachable
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.rules.transactions import LONGEST_MS, Standing, standing_of_known, standing_of_unknown
from groupkeeper.rules.words import duration
from groupkeeper.shell import option

OPEN_STATES = (
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.PREPARE_EPOCH_FENCE,
)
_LONGEST = "transaction.max.timeout.ms"


class NothingToAbort(OperationRefused):
    """No open transaction has that name or is in that partition."""


class MayStillEnd(OperationRefused):
    """The transaction need not be aborted, or not in this way."""


class OpenTransaction(NamedTuple):
    """An open transaction in a partition."""

    tp: TopicPartition
    producer: ProducerState
    transactional_id: str | None
    """None where `description` is."""
    description: TransactionDescription | None
    """From its coordinator; None: none has a transaction of this producer here, or not all could be asked."""
    is_asked: bool
    """Whether all coordinators could be asked."""
    longest_ms: int | None = LONGEST_MS
    """The longest timeout that brokers allow; None: they do not tell."""

    @property
    def name(self) -> str:
        return self.transactional_id or f"producer {self.producer.producer_id}"

    @property
    def began_ms(self) -> int | None:
        """When it began, by its coordinator, otherwise the producer's time in its last record; None: unknown."""
        if self.description is not None:
            return self.description.started_ms
        return None if self.producer.last_timestamp < 0 else self.producer.last_timestamp

    def open_ms(self, now_ms: int) -> int | None:
        """For how long it has been open, at least; None: unknown."""
        return None if self.began_ms is None else max(0, now_ms - self.began_ms)

    def standing(self, now_ms: int) -> Standing:
        """The transaction's state, by groupkeeper.rules.transactions."""
        known, open_ms = self.description, self.open_ms(now_ms)
        if known is None:
            return standing_of_unknown(open_ms, self.longest_ms, is_asked=self.is_asked)
        return standing_of_known(known.state, open_ms, known.timeout_ms)

    def is_hanging(self, now_ms: int) -> bool | None:
        """Whether it hangs; None: a coordinator, its age or the longest timeout of brokers is unknown."""
        standing = self.standing(now_ms)
        is_unclear = standing is Standing.UNCLAIMED and None in (self.open_ms(now_ms), self.longest_ms)
        return None if is_unclear or standing is Standing.UNKNOWN else standing is Standing.HANGING


def next_step(
    standing: Standing, transactional_id: str | None, topic: str, partition: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The command that ends a transaction if nothing else will, otherwise one that shows it: its words, and names."""
    if standing is Standing.HANGING:
        return ("transactions", "abort", *option("--partition", f"{topic}:{partition}")), ()
    if transactional_id is None:
        return ("transactions", "describe", *option("--topic", topic)), ()
    return ("transactions", "abort" if standing is Standing.LATE else "describe"), (transactional_id,)


class Open(NamedTuple):
    """The open transactions in some partitions, the oldest first, and those of all coordinators by transactional id.
    `failed`: partitions that did not answer; `silent`: failures of coordinators.
    """

    transactions: list[OpenTransaction]
    failed: Mapping[TopicPartition, Failure]
    silent: Sequence[Failure] = ()
    described: Mapping[str, TransactionDescription] = {}


async def open_in(admin: Admin, tps: Sequence[TopicPartition]) -> Open:
    """The transactions that are open in partitions; without partitions, nobody is asked."""
    return await open_anywhere(admin, tps) if tps else Open([], {})


async def open_anywhere(
    admin: Admin, tps: Sequence[TopicPartition], *, states: Iterable[TransactionState] = OPEN_STATES
) -> Open:
    """As `open_in`, and the transactions that coordinators have in these states (none given: in any)."""
    producers = await admin.describe_producers(tps) if tps else Batch()
    # Coordinators afterwards: by then they have the transactions open in a partition, unless one ended in between.
    described, silent = await _described(admin, states)
    found = [
        _of(tp, state, described, is_asked=not silent)
        for tp, states in producers.done.items()
        for state in states
        if state.transaction_start is not None
    ]
    if any(one.description is None for one in found):
        longest_ms = await _longest_timeout_ms(admin)
        found = [one._replace(longest_ms=longest_ms) for one in found]
    return Open(sorted(found, key=lambda one: (one.began_ms or 0, one.tp)), producers.failed, silent, described)


def _of(
    tp: TopicPartition, state: ProducerState, described: Mapping[str, TransactionDescription], *, is_asked: bool
) -> OpenTransaction:
    for transactional_id, each in described.items():
        if each.producer_id == state.producer_id and tp in each.partitions:
            return OpenTransaction(tp, state, transactional_id, each, is_asked)
    return OpenTransaction(tp, state, None, None, is_asked)


async def _described(
    admin: Admin, states: Iterable[TransactionState]
) -> tuple[dict[str, TransactionDescription], list[Failure]]:
    """The transactions of all coordinators by transactional id; and failures of coordinators."""
    try:
        found = await admin.list_transactions(states=states)
        ids = list(found.transactions)
        described = await admin.describe_transactions(ids) if ids else Batch()
    except (ClientError, KafkaError) as failure:
        return {}, [failure]
    return described.done, [*found.failed.values(), *described.failed.values()]


async def held_offsets(
    admin: Admin, topics: Iterable[str] | None = None
) -> tuple[dict[TopicPartition, int], Mapping[TopicPartition, Failure]]:
    """By partition, the number of offsets between the last stable one and the log's end; and failures. `topics` None:
    all, internal ones too.
    """
    if topics is None:
        topics = [one.name for one in await admin.list_topics(include_internal=True)]
    described = await describe_topics(admin, topics)
    tps = [TopicPartition(name, each.partition) for name, one in described.done.items() for each in one.partitions]
    failed = dict(unreachable(tps, described)) | {
        TopicPartition(name, -1): failure for name, failure in described.failed.items()
    }
    reachable = [tp for tp in tps if tp not in failed]
    if not reachable:
        return {}, failed
    stable = await admin.list_offsets(dict.fromkeys(reachable, OffsetSpec.latest()), read_committed=True)
    ends = await listed(admin, reachable, OffsetSpec.latest())
    first, last = offsets_of(stable.done), offsets_of(ends.done)
    held = {tp: max(0, last[tp] - first[tp]) for tp in first if tp in last}
    return held, failed | stable.failed | ends.failed


async def _longest_timeout_ms(admin: Admin) -> int | None:
    """The longest timeout of a transaction that brokers allow; None: unknown."""
    try:
        settings = await admin.broker_settings([_LONGEST])
        return int(settings[_LONGEST])
    except (ClientError, KafkaError, KeyError, ValueError):
        return None


class Abort(NamedTuple):
    """A transaction to abort. With a `transactional_id`, its coordinator fences the producer and ends it in all
    partitions. Without one, no coordinator has it, and a marker is written to its only partition. `description`: from
    its coordinator, None: none has it.
    """

    partitions: dict[TopicPartition, ProducerState | None]
    transactional_id: str | None = None
    description: TransactionDescription | None = None

    @property
    def name(self) -> str:
        if self.transactional_id is not None:
            return self.transactional_id
        tp, state = next(iter(self.partitions.items()))
        return f"producer {state.producer_id if state else '?'} in {tp.topic}-{tp.partition}"

    async def again(self, admin: Admin) -> Abort:
        """Looks again, and returns its current state. Raises NothingToAbort or MayStillEnd if it has ended, goes on or
        is another transaction, and the brokers' failures.
        """
        if self.transactional_id is not None:
            now = await plan_of_known(admin, self.transactional_id)
            is_same = _identity(now.description) == _identity(self.description)
        else:
            (tp,) = self.partitions
            found = await open_in(admin, [tp])
            if tp in found.failed:
                raise found.failed[tp]
            now = self
            is_same = self.partitions[tp] in [one.producer for one in found.transactions if one.description is None]
        if not is_same:
            raise MayStillEnd(
                f"the transaction of {self.name} has ended, goes on, or has a coordinator by now, so nothing was "
                "aborted: see 'groupkeeper transactions list'"
            )
        return now


def _identity(known: TransactionDescription | None) -> tuple[object, ...]:
    return () if known is None else (known.producer_id, known.producer_epoch, known.started_ms)


async def plan_of_known(admin: Admin, transactional_id: str) -> Abort:
    """The abort of a transaction of a coordinator. Raises NothingToAbort, MayStillEnd, and the coordinator's
    failure.
    """
    described = (await admin.describe_transactions([transactional_id])).result(transactional_id)
    if standing_of_known(described.state, None, described.timeout_ms) is Standing.ENDED:
        raise NothingToAbort(f"{transactional_id} has no open transaction (its state is {described.state})")
    if described.state is not TransactionState.ONGOING:
        raise MayStillEnd(
            f"the coordinator of {transactional_id} is ending the transaction already ({described.state}); if that "
            "takes long, see whether each of its partitions has a leader: 'groupkeeper transactions describe'"
        )
    producers = (await admin.describe_producers(described.partitions)).done if described.partitions else {}
    tps: dict[TopicPartition, ProducerState | None] = {}
    for tp in sorted(described.partitions):
        own = (one for one in producers.get(tp, ()) if one.producer_id == described.producer_id)
        tps[tp] = next(own, None)
    return Abort(tps, transactional_id, described)


async def plan_of_hanging(
    admin: Admin, tp: TopicPartition, producer_id: int | None, now_ms: int, *, is_forced: bool
) -> Abort:
    """The abort of a transaction in a partition that no coordinator has. `producer_id` None: there is only one.
    Without `is_forced` it is always refused, as nothing proves that it hangs: brokers hide ids that the user may not
    describe, and records may have any times. Raises NothingToAbort, MayStillEnd.
    """
    found = await open_in(admin, [tp])
    if tp in found.failed:
        raise found.failed[tp]
    own = [one for one in found.transactions if producer_id in (None, one.producer.producer_id)]
    where = f"{tp.topic}-{tp.partition}"
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
    if not is_forced or found.silent:  # one that did not reply may have it
        raise MayStillEnd(
            f"the transaction of {one.name} in {where} may still end by itself: {_doubt(one, found.silent, now_ms)}"
        )
    return Abort({tp: one.producer})


def _doubt(one: OpenTransaction, silent: Sequence[Failure], now_ms: int) -> str:
    """Why a transaction may still have a coordinator, and how to make sure."""
    why = (
        f"not all coordinators replied ({silent[0]})" if silent else
        f"its last record is {duration(one.open_ms(now_ms))} old by its own time, and it may have a transactional id "
        "that you may not describe"
    )  # fmt: skip
    return (
        f"{why}. To be sure, list transactions as a principal with DESCRIBE on all transactional ids. If all "
        "coordinators reply and none reports it, it hangs: abort it with --force"
    )


async def abort(admin: Admin, planned: Abort, recorder: Recorder | None) -> Abort:
    """Looks at the transaction again, aborts it, and returns its state before; journalled before and after. Raises
    NothingToAbort, MayStillEnd, the brokers' failures, and JournalUnwritable.
    """
    now = await planned.again(admin)
    changes = dict.fromkeys(now.partitions, Change(None, None))
    plan = Plan(await known_cluster_id(admin), (GroupPlan(now.name, changes),), Kind.ABORT_TRANSACTION)
    begun = await begin_part(admin, recorder, plan)
    try:
        if now.transactional_id is not None:
            (await admin.fence_producers([now.transactional_id])).result(now.transactional_id)
        for tp, state in now.partitions.items():
            if now.transactional_id is None and state is not None:
                await admin.abort_transaction(tp, state)
    except (ClientError, KafkaError) as failure:
        await end_part(recorder, begun, Batch({}, {now.name: failure}))
        raise
    await end_part(recorder, begun, Batch({now.name: Batch()}))
    return now
