"""The common part of all coordinators' drivers: loading from a partition's log, and stopping on failures.

A coordinator whose state may differ from its log must stop. Any exception while the log is replayed, or between an
append and the change of the state, stops it: it replies NOT_COORDINATOR until a new instance replaces it. The new
instance replies COORDINATOR_LOAD_IN_PROGRESS while it loads, and continues from the log.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from logging import getLogger
from time import perf_counter_ns
from types import TracebackType
from typing import Any, ClassVar, Final, Generic, TypeVar

from groupkeeper.broker.coordination.shard_log import append_pairs, map_log_error
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.topics import Topic, Topics
from groupkeeper.broker.log.waiter import wait_until
from groupkeeper.broker.placement.placement import NO_LEADER
from groupkeeper.coordinator.kernel.result import ProducerEpoch
from groupkeeper.native import mypyc_attr
from groupkeeper.protocol import errors
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.java_hash import partition_of_group, partition_of_one
from groupkeeper.protocol.record_batch import BatchHeader
from groupkeeper.protocol.record_batch import Record as LogRecord

_log = getLogger("groupkeeper.broker")

_FIRST_RELOAD_S = 0.1
_LONGEST_RELOAD_S = 30.0
_RETRY_S = 1.0
_PATIENCE_AT_START_S = 0.2
_LONGEST_RECORD = 500
_MOST_DOUBLINGS = 30
_RECORDS_PER_BATCH: Final = 5_000
_TOLD_EVERY_S = 10.0
R = TypeVar("R")
"""The decoded records of a coordinator's log."""
_EXPECTED = (MalformedMessage, KafkaError, OSError)
"""Exceptions of damaged logs and disks; any other is a bug, and is logged with its traceback."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Shard(Generic[R]):
    """Base of coordinators' drivers: ties the coordinator of one partition to its log."""

    RECORDS_PER_TURN: ClassVar[int] = 500

    def __init__(self, log: PartitionLog, compression: str = "none") -> None:
        self.log = log
        self.node = log.placement.leader
        """The coordinator's."""
        self._compression = compression
        self.is_loading = True
        """Whether the log is still being replayed."""
        self.failure: str | None = None
        """Why the coordinator stopped, and replies NOT_COORDINATOR; None: it has not."""
        self.has_resigned = False
        """Whether it resigned; the partition then has no coordinator until `ShardHost.elect`."""
        self.on_failed: Callable[[], None] = lambda: None
        """Called once when the coordinator fails."""
        self.record: object = None
        """The record that is being replayed, for the broker's log messages."""
        self.fail_stop = FailStop(self)
        self._told_until = 0.0
        self._removed_topics: list[Mapping[str, bytes]] = []
        self._removal: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------------ what each kind of coordinator does its own way

    def _replay(self, header: BatchHeader, records: Iterable[LogRecord]) -> None:
        """Applies a batch of the log to the state; `record` is the current record."""
        raise NotImplementedError

    def _encode(self, record: R) -> tuple[bytes, bytes | None]:
        raise NotImplementedError

    def _apply(self, record: R, offset: int, producer_id: int) -> None:
        """Applies a record that was just appended to the state; `producer_id` is −1 outside transactions."""
        raise NotImplementedError

    def _appended(self, since_ns: int, now_ns: int) -> None:
        """Called after an append that began at `since_ns` (`perf_counter_ns`)."""

    def _resume(self) -> None:
        """Starts the coordinator after its log is replayed."""

    def _forget_topics(self, topic_ids: Mapping[str, bytes]) -> None:
        """Removes the state of deleted topics. Raises `KafkaError` when the records can't be written."""

    # ------------------------------------------------------------------ life

    async def load(self) -> None:
        """Replays the log, then begins."""
        with self.fail_stop:
            since_turn = 0
            end_offset = self.log.log_end_offset
            for header, records in self.log.records(self.log.log_start_offset):
                if header.base_offset >= end_offset:
                    break
                self._replay(header, records)
                since_turn += len(records)
                if since_turn >= self.RECORDS_PER_TURN:
                    since_turn = 0
                    await asyncio.sleep(0)
                    if self.failure is not None:
                        return  # unloaded meanwhile: another instance may serve the partition already
            self.record = None
            self.begin()

    def begin(self) -> None:
        """Starts serving, after the log is replayed."""
        self.is_loading = False
        with self.fail_stop:
            self._resume()
        self._remove_topics()

    @property
    def is_active(self) -> bool:
        """Whether the coordinator serves requests: it is loaded, and has not stopped."""
        return self.failure is None and not self.is_loading

    def require_active(self) -> None:
        """Raises `CoordinatorLoadInProgress` or `NotCoordinator`."""
        if self.failure is not None:
            raise errors.NotCoordinator
        if self.is_loading:
            raise errors.CoordinatorLoadInProgress

    def unload(self) -> None:
        """Stops."""
        self.failure = self.failure or "unloaded"
        self.log.tell_waiters(None)
        if self._removal is not None:
            self._removal.cancel()
            self._removal = None

    def resign(self) -> None:
        """Stops, as if another broker became the coordinator."""
        self.unload()
        self.has_resigned = True

    def fail(self, error: Exception) -> None:
        """Stops because its state may differ from its log."""
        if self.failure is not None:
            return
        doing = "load" if self.is_loading else "go on with"
        at = "" if self.record is None else f", at {str(self.record)[:_LONGEST_RECORD]}"
        self.failure = f"{type(error).__name__}: {error}"
        _log.error(
            "%r: cannot %s its coordinator, which will be loaded again: %s%s",
            self.log,
            doing,
            self.failure,
            at,
            exc_info=None if isinstance(error, _EXPECTED) else error,
        )
        self.on_failed()
        self.unload()

    def log_refusal(self, refusal: KafkaError) -> None:
        """Logs that a change could not be appended, once in 10 s, as on a full disk every request fails."""
        now = asyncio.get_running_loop().time()
        if now >= self._told_until:
            self._told_until = now + _TOLD_EVERY_S
            _log.warning("%r: cannot append: %s", self.log, refusal.__cause__ or refusal)

    def write(
        self, records: Sequence[R], now_ms: int, *, transaction: ProducerEpoch | None = None, is_atomic: bool = True
    ) -> None:
        """Appends records and makes them part of the state.

        Raises `KafkaError` in the form for clients: then no record was written, or, if the records may be in several
        batches, only some. After `UnknownServerError` the coordinator may have failed.
        """
        if not records:
            return  # a batch without records has no last offset, and would block readers of the log
        if not is_atomic and len(records) > _RECORDS_PER_BATCH:
            self._write_halves(records, now_ms, transaction)
            return
        refusal: KafkaError | None = None
        try:  # inlined FailStop, which costs each commit 1 µs
            pairs = []
            for record in records:
                pairs.append(self._encode(record))
            began_ns = perf_counter_ns()
            try:
                first = append_pairs(self.log, pairs, now_ms, compression=self._compression, transaction=transaction)
            except KafkaError as error:
                refusal = error
            else:
                self._appended(began_ns, perf_counter_ns())
                producer_id = -1 if transaction is None else transaction.producer_id
                for offset, self.record in enumerate(records, first):
                    self._apply(self.record, offset, producer_id)
                self.record = None
        except Exception as error:
            self.fail(error)
        if self.failure is not None:
            raise errors.UnknownServerError
        if refusal is not None:
            if isinstance(refusal, errors.RecordListTooLarge) and len(records) > 1 and not is_atomic:
                self._write_halves(records, now_ms, transaction)
                return
            raise map_log_error(refusal) from refusal

    async def replicated(self, end_offset: int, patience_ms: int) -> None:
        """Waits until all in-sync replicas have the log up to `end_offset`. Raises `CoordinatorNotAvailable` after
        `patience_ms`, and `NotCoordinator` when the coordinator stops; the records may stay in the log nevertheless.
        """

        def is_decided() -> bool:
            return self.failure is not None or self.log.high_watermark >= end_offset

        await wait_until(self.log, is_decided, asyncio.get_running_loop().time() + patience_ms / 1000)
        if self.failure is not None:
            raise errors.NotCoordinator
        if not is_decided():
            raise errors.CoordinatorNotAvailable

    def _write_halves(self, records: Sequence[R], now_ms: int, transaction: ProducerEpoch | None) -> None:
        middle = len(records) // 2
        for half in (records[:middle], records[middle:]):
            self.write(half, now_ms, transaction=transaction, is_atomic=False)

    # ------------------------------------------------------------------ topics that were deleted

    def remove_topics(self, topic_ids: Mapping[str, bytes]) -> None:
        """Called after topics (name → id) were deleted: removes their state as soon as the records can be written."""
        self._removed_topics.append(topic_ids)
        self._remove_topics()

    def _remove_topics(self) -> None:
        self._removal = None
        if not self.is_active:
            return  # done when the coordinator is loaded, or by its successor
        while self._removed_topics:
            try:
                self._forget_topics(self._removed_topics[0])
            except KafkaError as error:
                names = ", ".join(self._removed_topics[0])
                _log.warning("%r: cannot remove the state of deleted topics %s yet: %s", self.log, names, error)
                if self.failure is None:
                    self._removal = asyncio.get_running_loop().call_later(_RETRY_S, self._remove_topics)
                return
            del self._removed_topics[0]

    def take_over(self, other: Shard[R]) -> None:
        """Takes over the unfinished work of an earlier instance for the partition."""
        self._removed_topics += other._removed_topics
        self._remove_topics()


def pause_s(first_s: float, failures: int, longest_s: float) -> float:
    """Seconds to wait after a number of failures: doubled each time, up to `longest_s`."""
    return float(min(first_s * 2 ** min(failures, _MOST_DOUBLINGS), longest_s))


class FailStop:
    """Context of an operation that must complete: an exception stops the coordinator, and is not raised again."""

    __slots__ = ("_shard",)

    def __init__(self, shard: Shard[Any]) -> None:
        self._shard = shard

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._shard.fail(error)
        return True


S = TypeVar("S", bound="Shard[Any]")
T = TypeVar("T")


@mypyc_attr(allow_interpreted_subclasses=True)
class ShardHost(Generic[S]):
    """The coordinators of the partitions of one internal topic: they come and go with the topic, are loaded in the
    background, and are loaded again after a failure.

    Attributes:
        topic_name: the topic that holds their state. CONTINUES_WHEN_CUT_OFF: whether the coordinators of a cut-off node
        continue.
        shards: by partition; empty before the topic exists.
        refused_by_absence: for each resigned partition, how many requests came while it had no coordinator.
    """

    topic_name: ClassVar[str]
    CONTINUES_WHEN_CUT_OFF: ClassVar[bool] = True

    def __init__(self, topics: Topics) -> None:
        self.shards: list[S] = []
        self._stale: dict[tuple[int, int], S] = {}
        """Coordinators of cut-off nodes, by node and partition; others have replaced them."""
        self.refused_by_absence: dict[int, int] = {}
        self._topics = topics
        self._loading: set[asyncio.Task[None]] = set()
        self._reloads: set[asyncio.TimerHandle] = set()
        self._passes: dict[int, asyncio.TimerHandle] = {}

    # ------------------------------------------------------------------ what each kind of coordinator does its own way

    def _new_shard(self, log: PartitionLog) -> S:
        raise NotImplementedError

    def _shape(self) -> tuple[int, dict[str, str], int]:
        """Number of partitions, settings, and number of replicas of the topic when it is created."""
        raise NotImplementedError

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Replays the logs. Long logs are replayed in the background; meanwhile their requests are refused."""
        self._topics.on_created.append(self._topic_created)
        self._topics.on_changed.append(self._topic_changed)
        self._topics.on_deleted.append(self._topic_deleted)
        topic = self._topics.get(self.topic_name)
        if topic is not None:
            self._topic_created(topic)
        await self._wait(_PATIENCE_AT_START_S)

    async def wait_until_loaded(self) -> None:
        """Waits until all coordinators are loaded."""
        while self._loading:
            await self._wait()

    async def stop(self) -> None:
        """Ends every coordinator; parked calls are answered."""
        for handle in self._passes.values():
            handle.cancel()
        for task in self._loading:
            task.cancel()
        await self._wait()
        self.unload()

    async def _wait(self, timeout: float | None = None) -> None:
        if self._loading:
            await asyncio.wait(self._loading, timeout=timeout)

    @property
    def first_partition_count(self) -> int:
        """Number of partitions of the topic when it is created."""
        return self._shape()[0]

    def ensure_topic(self) -> bool:
        """Creates the topic if it doesn't exist; returns whether it existed."""
        if not self.shards:
            self._topics.create(self.topic_name, *self._shape())
            return False
        return True

    def every(self, interval_ms: int, do: Callable[[S], object]) -> None:
        """Calls `do` with each coordinator at an interval. An exception affects neither other coordinators nor later
        rounds.
        """
        self._pass(len(self._passes), interval_ms, do)

    def _pass(self, which: int, interval_ms: int, do: Callable[[S], object]) -> None:
        loop = asyncio.get_running_loop()
        for shard in self.shards if which in self._passes else ():
            loop.call_soon(_do_with, shard, do)
        self._passes[which] = loop.call_later(interval_ms / 1000, self._pass, which, interval_ms, do)

    # ------------------------------------------------------------------ finding a coordinator

    def partition_of(self, key: str) -> int:
        """The partition that a group or another key belongs to. Raises `NotCoordinator` when there is no topic."""
        if not self.shards:
            raise errors.NotCoordinator
        return partition_of_group(key, len(self.shards))

    def shard_of(self, key: str) -> S:
        """The coordinator of a key. Raises `NotCoordinator` when there is no topic."""
        return self.shards[self.partition_of(key)]

    def shard_for_request(self, key: str, node: int) -> S:
        """The coordinator of a key, for a request to `node`. Raises `NotCoordinator` when there is no topic, or the
        coordinator is on another node.
        """
        shard = self.shards[partition := self.partition_of(key)]
        if shard.has_resigned:
            self.refused_by_absence[partition] += 1
        if shard.log.placement.leader == node:
            return shard
        if (node, partition) not in self._stale:
            raise errors.NotCoordinator
        return self._stale[node, partition]

    def split_by_shard(self, keys: list[T], key_of: Callable[[T], str] = str) -> list[list[T]]:
        """The keys, or the objects with keys, grouped by coordinator."""
        if len(keys) == 1:
            return [keys]
        count = len(self.shards) or 1
        parts: defaultdict[int, list[T]] = defaultdict(list)
        for one in keys:
            parts[partition_of_one(key_of(one), count)].append(one)
        return list(parts.values())

    def shards_on(self, node: int) -> list[S]:
        """The coordinators on a node."""
        stale = [shard for (at, _), shard in self._stale.items() if at == node]
        return [shard for shard in self.shards if shard.log.placement.leader == node] + stale

    # ------------------------------------------------------------------ partitions come and go

    def _topic_created(self, topic: Topic) -> None:
        if topic.name == self.topic_name:
            self.shards += map(self._started, topic.partitions)

    def _topic_changed(self, topic: Topic) -> None:
        if topic.name == self.topic_name and len(topic.partitions) != len(self.shards):
            # The number of partitions determines the partition of each key, so all keys are looked up again.
            self.unload()
            self._topic_created(topic)

    def _topic_deleted(self, topic: Topic) -> None:
        if topic.name == self.topic_name:
            self.unload()
        for shard in self.shards:
            shard.remove_topics({topic.name: topic.topic_id})

    def unload(self) -> None:
        """Ends every coordinator, for example when the topic is deleted."""
        for reload in self._reloads:
            reload.cancel()
        self._reloads.clear()
        shards, self.shards = [*self.shards, *self._stale.values()], []
        self._stale.clear()
        for shard in shards:
            shard.unload()

    def move(self, partition: int) -> None:
        """Called when a partition has another leader, or none: ends its coordinator, and loads another one from the
        log. A coordinator on a cut-off node continues with the node's stale log.
        """
        if partition < len(self.shards):
            shard, log = self.shards[partition], self.shards[partition].log
            self.rejoin(log.placement.leader, partition)
            if self.CONTINUES_WHEN_CUT_OFF and shard.is_active and shard.node in log.stale:
                shard.log = log.stale[shard.node]
                self._stale[shard.node, partition] = shard
                self.shards[partition] = self._new_shard(log)
                self.shards[partition].take_over(shard)
            self.resign(partition)
            if log.placement.leader != NO_LEADER:
                self.elect(partition)

    def rejoin(self, node: int, partition: int | None = None) -> None:
        """Called when a node is no longer cut off: ends its stale coordinators, or only that of `partition`."""
        for at in [at for at in self._stale if at[0] == node and partition in (None, at[1])]:
            self._stale.pop(at).unload()

    @property
    def has_stale(self) -> bool:
        """Whether any coordinator is on a cut-off node, replaced by another."""
        return bool(self._stale)

    def resign(self, partition: int) -> None:
        """Ends a partition's coordinator until `elect`."""
        self.refused_by_absence[partition] = 0
        self.shards[partition].resign()

    def elect(self, partition: int) -> None:
        """Loads a coordinator again for a resigned partition."""
        if partition < len(self.shards) and self.shards[partition].has_resigned:
            self.restart(partition)

    def restart(self, partition: int, failures: int = 0) -> None:
        """Replaces a stopped coordinator by a new instance, which loads the log."""
        old = self.shards[partition]
        self.shards[partition] = shard = self._started(old.log, failures)
        shard.take_over(old)

    def _started(self, log: PartitionLog, failures: int = 0) -> S:
        shard = self._new_shard(log)
        loop = asyncio.get_running_loop()
        shard.on_failed = partial(self._failed, shard, failures, loop.time())
        if log.log_end_offset == log.log_start_offset:
            shard.begin()
            return shard
        task = loop.create_task(shard.load())
        self._loading.add(task)
        task.add_done_callback(self._loading.discard)
        return shard

    def _failed(self, shard: S, failures: int, since: float) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - since > _LONGEST_RELOAD_S:
            failures = 0  # it ran well for a while
        delay_s = pause_s(_FIRST_RELOAD_S, failures, _LONGEST_RELOAD_S)
        handle = loop.call_later(delay_s, lambda: self._reload(shard, failures + 1))
        self._reloads.add(handle)

    def _reload(self, shard: S, failures: int) -> None:
        now = asyncio.get_running_loop().time()
        self._reloads = {handle for handle in self._reloads if handle.when() > now}
        if shard in self.shards and not shard.has_resigned:
            self.restart(self.shards.index(shard), failures)


def _do_with(shard: S, do: Callable[[S], object]) -> None:
    if shard.is_active:
        do(shard)
