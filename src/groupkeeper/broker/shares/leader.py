"""Share-partitions led by this broker: their states in memory, stored by the share coordinator, and the locks' timers.

A share-partition is loaded when a member first fetches from it, and unloaded with the last session of its group, so
that offsets altered in between are loaded. The rules are in `groupkeeper.coordinator.share_partition.partition`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from logging import getLogger
from typing import Any, TypeVar

from groupkeeper.broker.base import BrokerBase
from groupkeeper.broker.coordination.shard_host import pause_s
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.waiter import Waiter
from groupkeeper.broker.placement.placement import NO_LEADER
from groupkeeper.broker.settings.group_overrides import GroupConfig
from groupkeeper.broker.shares.dead_letters import bury, has_dead_letter_queues
from groupkeeper.broker.shares.state_host import ShareStateHost
from groupkeeper.coordinator.share_partition.acquire import Acquired, Limits, Span, acquire, archive_acquired
from groupkeeper.coordinator.share_partition.batch import DeliveryLimit, RecordState
from groupkeeper.coordinator.share_partition.partition import Acknowledgement, SharePartition, Transition
from groupkeeper.coordinator.share_state.coordinator import ShareStateWrite
from groupkeeper.coordinator.share_state.state import UNKNOWN_OFFSET, SharePartitionKey
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import KafkaError

_log = getLogger("groupkeeper.broker")

T = TypeVar("T")
_PATIENCE_AT_END_S = 1.0
_RETRY_S = 0.5
"""Pause between attempts, as of the coordinator's timers (`TimerTable`)."""
_LONGEST_RETRY_S = 10.0


class LedPartition:
    """One share-partition and its lock timer.

    Attributes:
        log: the partition that is read.
        states: the records' states.
        is_fenced: whether this leader has been fenced; then every call raises `NotLeaderOrFollower`, and nothing is
            stored.
        waiters: fetches that wait for released records.
    """

    def __init__(
        self, owner: SharePartitions, key: SharePartitionKey, log: PartitionLog, states: SharePartition, epoch: int
    ) -> None:
        self.log = log
        self.states = states
        self.is_fenced = False
        self.waiters: set[Waiter] = set()
        self._owner = owner
        self._key = key
        self._state_epoch = epoch
        self._timer: asyncio.TimerHandle | None = None
        self._is_unstored = self._is_storing = False
        """Whether locks have ended without being stored, and whether a task stores it."""
        self._is_burying = False

    @property
    def config(self) -> GroupConfig:
        """The group's current settings."""
        return self._owner.broker.group_configs.at(self._key.group_id, self.log.placement.leader)

    def acquire(
        self,
        member_id: str,
        spans: Sequence[Span],
        fetch_offset: int,
        *,
        aborted: Sequence[Span],
        max_records: int,
        batch_size: int,
        is_strict: bool,
    ) -> list[Acquired]:
        """Acquires records from those read; archives records of `aborted` transactions instead."""
        self._require_leadership()
        config = self.config
        limits = Limits(
            max_records=max_records,
            is_strict=is_strict,
            batch_size=batch_size,
            max_in_flight=config.effective.group_share_partition_max_record_locks,
            max_delivery_count=config.effective.group_share_delivery_count_limit,
            deadline_ms=self._owner.lock_time_ms() + config.effective.group_share_record_lock_duration_ms,
        )
        acquired = acquire(self.states, member_id, spans, fetch_offset, limits)
        if aborted:
            acquired = archive_acquired(self.states, acquired, aborted)
        if acquired:
            self._arm()
        return acquired

    async def acknowledge(self, member_id: str, acknowledgements: Sequence[Acknowledgement]) -> None:
        """Stores acknowledgements; they are durable when it returns. Raises `KafkaError`: then the member keeps the
        records, unless its locks expired meanwhile, or the share-partition must be loaded again. If only replicas of
        the share coordinator were late, the acknowledgements may be stored nevertheless.
        """
        self._require_leadership()
        config = self.config
        renewed_until_ms = self._owner.lock_time_ms() + config.effective.group_share_record_lock_duration_ms
        transition = self.states.acknowledge(
            member_id,
            acknowledgements,
            limit=self._delivery_limit,
            renewed_until_ms=renewed_until_ms if config.share_renew_acknowledge_enable else None,
        )
        await self._store(transition)

    async def release(self, member_id: str) -> None:
        """Releases the records that a member has acquired. Raises as `acknowledge`; then they stay locked until the
        locks expire.
        """
        if not self.is_fenced:
            await self._store(self.states.release_member(member_id, self._delivery_limit))

    async def _store(self, transition: Transition) -> None:
        is_stored = False
        try:
            if transition.needs_storing:
                await self._write(transition)
            is_stored = True
        finally:  # even if the connection ends while the share coordinator loads
            if is_stored:
                self.states.complete(transition)
                self.bury_dead()
            else:
                now_ms = self._owner.lock_time_ms()
                self._changed_alone(self.states.roll_back(transition, now_ms, self._delivery_limit))
                self._arm()  # records that waited to be stored needed no timer
            self.wake()

    async def _write(self, transition: Transition) -> None:
        try:
            node = self.log.placement.leader
            stored = await self._owner.coordinators.write_state(self._key, lambda: self._written(transition), node)
        except KafkaError as error:
            if self.is_fenced:
                raise errors.NotLeaderOrFollower from error
            replied = _as_replied(error)
            if not isinstance(
                replied, errors.CoordinatorNotAvailable
            ):  # another leader's state is valid, or none exists
                self._owner.drop(self._key)
            raise replied from error
        self.states.stored(stored.start_offset)

    def _written(self, transition: Transition) -> ShareStateWrite:
        """The change in its stored form, with the current start offset."""
        # The share coordinator could not detect this: the next leader has the same epochs, even after an alteration.
        self._require_leadership()
        complete = self.states.delivery_complete_count
        epoch = self.log.placement.epoch
        return ShareStateWrite(self._state_epoch, epoch, self.states.start_offset, complete, transition.batches)

    # ------------------------------------------------------------------ locks

    def _arm(self) -> None:
        """Arms the timer for the first lock that expires, unless a timer is armed, which then fires earlier."""
        deadline_ms = self.states.next_deadline_ms() if self._timer is None else None
        if deadline_ms is not None and not self.is_fenced:
            delay_s = max(deadline_ms - self._owner.lock_time_ms(), 0) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._ring)

    def _ring(self) -> None:
        self._timer = None
        try:
            expired = self.states.expire(self._owner.lock_time_ms(), self._delivery_limit)
        except Exception:
            self._timer = asyncio.get_running_loop().call_later(_RETRY_S, self._ring)
            raise
        self._changed_alone(expired)
        self._arm()

    def _changed_alone(self, ended: Transition) -> None:
        """Stores a change that no member waits for as soon as possible."""
        if not ended.batches or self._owner.is_stopped:
            return
        self.wake()
        self.bury_dead()
        self._is_unstored = True
        if not self._is_storing:
            self._is_storing = True
            self._owner.spawn(self._store_ended(ended), self._key.group_id)

    async def _store_ended(self, ended: Transition) -> None:
        """Stores expired locks, including locks that expire meanwhile. Retries while this is the leader: otherwise the
        next leader would deliver records once more that have reached the delivery limit.
        """
        failures = 0
        try:
            while self._is_unstored and not self.is_fenced:
                self._is_unstored = False
                try:
                    await self._write(ended)
                except Exception as error:
                    self._is_unstored = True
                    if self.is_fenced:
                        return
                    if not failures:
                        unexpected = None if isinstance(error, KafkaError) else error
                        text = "locks of %s expired, but this cannot be stored yet: %s"
                        _log.warning(text, self._key, error, exc_info=unexpected)
                    await asyncio.sleep(pause_s(_RETRY_S, failures, _LONGEST_RETRY_S))
                    failures += 1
                ended = self.states.at_rest()
        finally:
            self._is_storing = False

    # ------------------------------------------------------------------ dead letters

    @property
    def _delivery_limit(self) -> DeliveryLimit:
        broker, config = self._owner.broker, self.config
        goes_to_queue = config.errors_deadletterqueue_topic_name and has_dead_letter_queues(broker.config)
        last_state = RecordState.ARCHIVING if goes_to_queue else RecordState.ARCHIVED
        return DeliveryLimit(config.effective.group_share_delivery_count_limit, last_state)

    def bury_dead(self) -> None:
        """Writes archiving records to the group's dead-letter queue, in the background."""
        if not (self._is_burying or self.is_fenced or self._owner.is_stopped) and self.states.dead():
            self._is_burying = True
            self._owner.spawn(self._bury(), self._key.group_id)

    async def _bury(self) -> None:
        try:
            while not self.is_fenced and (dead := self.states.dead()):
                await bury(self._owner.broker, self._key.group_id, self.log, dead, self._owner.meters)
                if not self.is_fenced:
                    self._changed_alone(self.states.archive(dead))
        finally:
            self._is_burying = False

    # ------------------------------------------------------------------ life

    def move_start(self) -> None:
        """Moves the start offset to the log start."""
        self.states.move_start(self.log.log_start_offset)

    def wake(self) -> None:
        """Lets waiting fetches look again."""
        for waiter in tuple(self.waiters):
            waiter.wake()

    def fence(self) -> None:
        """Ends the leadership."""
        self.is_fenced = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.wake()

    def _require_leadership(self) -> None:
        if self.is_fenced:
            raise errors.NotLeaderOrFollower


class SharePartitions:
    """The share-partitions that are led, by group, topic and partition.

    Attributes:
        broker: the leader. coordinators: store the states. meters: their measurements. is_stopped: whether new work is
        refused.
    """

    def __init__(self, broker: BrokerBase, states: ShareStateHost) -> None:
        self.broker = broker
        self.coordinators = states
        self.meters = states.meters
        self.is_stopped = False
        self._led: dict[SharePartitionKey, LedPartition] = {}
        self._loading: dict[SharePartitionKey, asyncio.Task[LedPartition]] = {}
        """Running loads, without those of share-partitions dropped meanwhile."""
        self._tasks: dict[asyncio.Task[Any], str] = {}
        broker.topics.on_deleted.append(lambda topic: self._drop_all(lambda key: key.topic_id == topic.topic_id))
        broker.group_configs.on_changed.append(self._group_changed)
        states.on_begun_anew.append(self.drop)

    @staticmethod
    def lock_time_ms() -> int:
        """The time for lock deadlines, in milliseconds: that of the event loop, which clock changes don't affect."""
        return int(asyncio.get_running_loop().time() * 1000)

    def get(self, group_id: str, topic_id: bytes, index: int) -> LedPartition | None:
        """A share-partition that is loaded, or None."""
        return self._led.get(SharePartitionKey(group_id, topic_id, index))

    def load(self, group_id: str, topic_id: bytes, index: int) -> asyncio.Task[LedPartition]:
        """Loads a share-partition that is not loaded, for all who wait for it. Raises the `KafkaError` that Apache
        Kafka's leader returns.
        """
        key = SharePartitionKey(group_id, topic_id, index)
        if key not in self._loading:
            self._loading[key] = self.spawn(self._load(key))
        return self._loading[key]

    async def _load(self, key: SharePartitionKey) -> LedPartition:
        topic = self.broker.topics.by_id(key.topic_id)
        log = None if topic is None else topic.partition(key.partition)
        try:
            try:
                epoch, node = (0, NO_LEADER) if log is None else (log.placement.epoch, log.placement.leader)
                state = await self.coordinators.read_state(key, epoch, node)
            except KafkaError as error:
                raise _as_replied(error) from error
            if log is None or self.broker.topics.by_id(key.topic_id) is None:
                raise errors.UnknownTopicOrPartition
            start_offset = state.start_offset
            if start_offset == UNKNOWN_OFFSET:
                start_offset = await self._reset_offset(key.group_id, log)
        finally:
            is_dropped = self._loading.get(key) is not asyncio.current_task()
            if not is_dropped:
                del self._loading[key]
        if is_dropped:  # the loaded state is no longer valid
            raise errors.NotLeaderOrFollower
        limit = self.broker.group_configs.at(key.group_id, node).effective.group_share_delivery_count_limit
        states = SharePartition(start_offset, state.batches, max_delivery_count=limit)
        led = self._led[key] = LedPartition(self, key, log, states, state.state_epoch)
        led.move_start()
        led.bury_dead()
        return led

    async def _reset_offset(self, group_id: str, log: PartitionLog) -> int:
        """The start offset for a group that has never read the partition (`share.auto.offset.reset`)."""
        reset = self.broker.group_configs.of(group_id).offset_reset
        if reset.strategy == "earliest":
            return log.log_start_offset
        if reset.strategy == "latest":
            return log.high_watermark
        wanted = self.broker.now_ms() - reset.duration_ms
        found = await log.offset_for_timestamp(wanted, self.broker.topics.long_reads)
        return log.high_watermark if found is None else found[1]

    def drop(self, key: SharePartitionKey) -> None:
        """Forgets a share-partition; the next fetch loads it again."""
        self._loading.pop(key, None)
        led = self._led.pop(key, None)
        if led is not None:
            led.fence()

    def _drop_all(self, is_meant: Callable[[SharePartitionKey], bool]) -> None:
        for key in [key for key in (*self._led, *self._loading) if is_meant(key)]:
            self.drop(key)

    def drop_partition(self, topic_id: bytes, index: int) -> None:
        """Forgets a partition in all groups, for example when another node leads it."""
        self._drop_all(lambda key: (key.topic_id, key.partition) == (topic_id, index))

    def drop_group(self, group_id: str) -> None:
        """Unloads a group's share-partitions."""
        self._drop_all(lambda key: key.group_id == group_id)

    async def settle(self, group_id: str) -> None:
        """Waits, within a time limit, until a group's dead letters are written and its changes stored."""
        pending: set[asyncio.Task[Any]] = set()
        while not pending and (work := [task for task, of_group in self._tasks.items() if of_group == group_id]):
            _, pending = await asyncio.wait(work, timeout=_PATIENCE_AT_END_S)

    def spawn(self, work: Coroutine[Any, Any, T], group_id: str = "") -> asyncio.Task[T]:
        """Runs `work` in the background, until the broker stops; `settle(group_id)` waits for the group's work."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = group_id
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        del self._tasks[task]
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, KafkaError):  # a fetch gets the errors of its loads
            _log.error("work for share groups failed", exc_info=error)

    async def stop(self) -> None:
        """Ends all leaderships, after releasing the records of members whose connections ended."""
        self.is_stopped = True
        for load in self._loading.values():
            load.cancel()
        if self._tasks:
            _, pending = await asyncio.wait(self._tasks, timeout=_PATIENCE_AT_END_S)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
        self._drop_all(lambda _: True)

    def _group_changed(self, group_id: str) -> None:
        for key, led in self._led.items():
            if key.group_id == group_id:
                led.wake()


def _as_replied(error: KafkaError) -> KafkaError:
    """The error for members when the share coordinator raised `error`."""
    match error:
        case errors.CoordinatorLoadInProgress() | errors.CoordinatorNotAvailable() | errors.NotCoordinator():
            return errors.CoordinatorNotAvailable(error.message)
        case errors.GroupIdNotFound() | errors.UnknownTopicOrPartition():
            return errors.UnknownTopicOrPartition(error.message)
        case errors.FencedLeaderEpoch() | errors.FencedStateEpoch():
            return errors.NotLeaderOrFollower(error.message)
        case _:
            return errors.UnknownServerError(error.message)
