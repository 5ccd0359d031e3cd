"""The share coordinators of the broker: one per partition of `__share_group_state`, found by share-partition."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from groupkeeper.broker.coordination.shard_host import ShardHost
from groupkeeper.broker.meters import ShareMeters
from groupkeeper.broker.settings.topic import segment_size
from groupkeeper.protocol import SHARE_STATE_TOPIC
from groupkeeper.protocol.errors import CoordinatorNotAvailable, KafkaError
from groupkeeper.protocol.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from groupkeeper.broker.base import BrokerBase
    from groupkeeper.broker.log.partition_log import PartitionLog
    from groupkeeper.broker.shares.state_shard import ShareStateShard
    from groupkeeper.coordinator.kernel.result import Work
    from groupkeeper.coordinator.share.work import ShareErrors
    from groupkeeper.coordinator.share_state.coordinator import ShareStateResult, ShareStateWrite
    from groupkeeper.coordinator.share_state.state import SharePartitionKey, ShareState

    T = TypeVar("T")

_PATIENCE_S = 5.0
_ATTEMPTS = 5
"""Attempts of Apache Kafka's persister, which calls share coordinators for leaders."""


class ShareStateHost(ShardHost["ShareStateShard"]):
    """Routes operations to the share coordinators. Operations return at once, or raise `CoordinatorLoadInProgress` or
    `NotCoordinator`; `ready` waits for loading.

    Attributes:
        meters: the measurements of all partitions.
        on_begun_anew: functions that are called with a share-partition whose state was replaced or deleted: the state
            of its leader is then invalid.
    """

    topic_name = SHARE_STATE_TOPIC
    CONTINUES_WHEN_CUT_OFF = False  # its clients cannot reach the cut-off node

    def __init__(self, broker: BrokerBase) -> None:
        super().__init__(broker.topics)
        self.meters = ShareMeters()
        self._broker = broker
        self.on_begun_anew: list[Callable[[SharePartitionKey], None]] = []

    async def start(self) -> None:
        await super().start()
        config = self._broker.config
        self.every(config.share_coordinator_state_topic_prune_interval_ms, lambda shard: shard.prune())
        self.every(
            config.share_coordinator_cold_partition_snapshot_interval_ms,
            lambda shard: shard.snapshot_cold(self._broker.now_ms()),
        )

    def _shape(self) -> tuple[int, dict[str, str], int]:
        config = self._broker.config
        settings = {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": str(config.share_coordinator_state_topic_min_isr),
            "retention.ms": "-1",
        }
        size = segment_size(config.share_coordinator_state_topic_segment_bytes)
        factor = config.share_coordinator_state_topic_replication_factor
        return config.share_coordinator_state_topic_num_partitions, settings | size, factor

    def unload(self) -> None:
        super().unload()
        self.meters.last_pruned.clear()

    async def ready(self, *keys: SharePartitionKey) -> None:
        """Creates the topic if needed, and waits for a while until the share-partitions' coordinators are loaded."""
        self.ensure_topic()
        loading = [shard for key in keys if not (shard := self.shard_of(coordinator_key(key))).loaded.is_set()]
        if loading:
            with suppress(TimeoutError):  # the operation itself raises the error
                async with asyncio.timeout(_PATIENCE_S):
                    for shard in loading:
                        await shard.loaded.wait()

    def require_reached(self, key: SharePartitionKey, node: int) -> None:
        """Raises `CoordinatorNotAvailable` if the node is cut off from the share-partition's coordinator."""
        placements = self._topics.placements
        if placements.running_by_cut_off_node and not placements.reaches(
            node, self.shard_of(coordinator_key(key)).node
        ):
            raise CoordinatorNotAvailable

    async def _replicated(self, key: SharePartitionKey) -> None:
        for error in (await self._late([self.shard_of(coordinator_key(key))], _ATTEMPTS)).values():
            raise error

    async def _late(self, shards: Iterable[ShareStateShard], attempts: int) -> dict[ShareStateShard, KafkaError]:
        """Waits until in-sync replicas have the logs of all shards; returns the errors of shards that failed."""
        held = [shard for shard in dict.fromkeys(shards) if shard.log.placement.held_high_watermark is not None]
        found = await asyncio.gather(*(self._lateness(shard, attempts) for shard in held)) if held else ()
        return {shard: error for shard, error in zip(held, found, strict=True) if error is not None}

    async def _lateness(self, shard: ShareStateShard, attempts: int) -> KafkaError | None:
        timeout_ms = self._broker.config.of(shard.log.placement.leader).share_coordinator_write_timeout_ms
        try:
            await shard.replicated(shard.log.log_end_offset, attempts * timeout_ms)
        except KafkaError as error:
            return error
        return None

    # ------------------------------------------------------------------ for leaders of share-partitions

    # In Apache Kafka these are requests (ReadShareGroupState, WriteShareGroupState). Both are for a leader on a node,
    # and yield to other tasks only while they wait. They raise `InvalidRequest` for a share-partition that its group
    # has not initialized, or has deleted; `FencedLeaderEpoch` when there was a newer leader; `UnknownTopicOrPartition`
    # when the topic or partition is gone; `CoordinatorLoadInProgress` and `NotCoordinator` when there is no share
    # coordinator (not yet, or no longer) after a wait of a few seconds, `CoordinatorNotAvailable` when replicas lag
    # (after `share.coordinator.write.timeout.ms` for each attempt), or the node is cut off: the call may be repeated.

    async def read_state(self, key: SharePartitionKey, leader_epoch: int, node: int) -> ShareState:
        """The initial state of a leader; earlier leaders are fenced from then on. A start offset of −1 was never set:
        `share.auto.offset.reset` decides.
        """
        await self.ready(key)
        self.require_reached(key, node)
        state = self.read(key, leader_epoch)
        await self._replicated(key)
        return state

    async def write_state(
        self, key: SharePartitionKey, written: Callable[[], ShareStateWrite], node: int
    ) -> ShareStateWrite:
        """Stores a change on all in-sync replicas, and returns it.

        Args:
            written: returns the change once the share coordinator is available, as changes may overtake each other
                meanwhile; its exceptions are passed on. The batches are merged with the stored batches: the higher
                delivery count wins, then the higher state. Offsets below the start offset are dropped.

        `FencedStateEpoch` is raised when the share-partition was reset since its state epoch was read: its offset was
        altered, or the group was deleted and created again. Then the leader's state is invalid.
        """
        await self.ready(key)
        self.require_reached(key, node)
        change = written()
        self.write(key, change)
        await self._replicated(key)
        return change

    # ------------------------------------------------------------------ operations

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        """Initializes a share-partition at an offset. Raises as `ShareStateCoordinator.initialize`."""
        shard, count, now_ms = self._at(key)
        shard.settle(shard.coordinator.initialize(key, state_epoch, start_offset, count, now_ms), now_ms)
        self._begun_anew(key)

    def write(self, key: SharePartitionKey, written: ShareStateWrite) -> None:
        """Stores the write of a leader. Raises as `ShareStateCoordinator.write`."""
        shard, count, now_ms = self._at(key)
        shard.settle(shard.coordinator.write(key, written, count, now_ms), now_ms)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareState:
        """The initial state of a new leader. Raises as `ShareStateCoordinator.read`."""
        shard, count, now_ms = self._at(key)
        result: ShareStateResult = shard.coordinator.read(key, leader_epoch, count, now_ms)
        shard.settle(result, now_ms)
        assert result.state is not None
        return result.state

    def summary(self, key: SharePartitionKey) -> ShareState:
        """The state, without fencing the leader. Raises as `ShareStateCoordinator.summary`."""
        shard, count, _ = self._at(key)
        return shard.coordinator.summary(key, count)

    def delete(self, key: SharePartitionKey) -> None:
        """Deletes the state of a share-partition. Raises as `ShareStateCoordinator.delete`."""
        shard, count, now_ms = self._at(key)
        shard.settle(shard.coordinator.delete(key, count), now_ms)
        self._begun_anew(key)

    def _begun_anew(self, key: SharePartitionKey) -> None:
        for listener in self.on_begun_anew:
            listener(key)

    async def perform(self, work: Work, node: int) -> ShareErrors:
        """Does the work of a group's coordinator on a node; returns the errors."""
        from groupkeeper.coordinator.share.work import DeleteShares, InitializeShares

        assert isinstance(work, InitializeShares | DeleteShares)
        keys = list(work.share_partitions())

        def operate(at: int) -> None:
            if isinstance(work, InitializeShares):
                offset = work.start_offsets[keys[at].topic_id][keys[at].partition]
                self.initialize(keys[at], work.state_epoch, offset)
            else:
                self.delete(keys[at])

        done = await self.operate_on(keys, operate, node)
        return {key: error for key, error in zip(keys, done, strict=True) if isinstance(error, KafkaError)}

    async def operate_on(
        self, keys: Sequence[SharePartitionKey], operate: Callable[[int], T], node: int, attempts: int = _ATTEMPTS
    ) -> list[T | KafkaError]:
        """Calls `operate(index in keys)` for each share-partition, for a request of `node`; returns the results, or the
        raised `KafkaError`s. Waits for all coordinators concurrently: until they are loaded, then until in-sync
        replicas have their logs.
        """
        if not keys:
            return []
        try:
            await self.ready(*keys)
            shards = [self.shard_of(coordinator_key(key)) for key in keys]
        except KafkaError as error:
            return [error for _ in keys]
        done: list[T | KafkaError] = []
        written = []
        for at, shard in enumerate(shards):
            try:
                self.require_reached(keys[at], node)
                done.append(operate(at))
            except KafkaError as error:
                done.append(error)
            else:
                written.append(shard)
        late = await self._late(written, attempts)
        if late:
            done = [one if isinstance(one, KafkaError) else late.get(shards[at], one) for at, one in enumerate(done)]
        return done

    def _at(self, key: SharePartitionKey) -> tuple[ShareStateShard, int, int]:
        shard = self.shard_of(coordinator_key(key))
        shard.require_active()
        topic = self._broker.topics.by_id(key.topic_id)
        return shard, 0 if topic is None else len(topic.partitions), self._broker.now_ms()

    def _new_shard(self, log: PartitionLog) -> ShareStateShard:
        # Imported late: a broker without share groups doesn't need them.
        from groupkeeper.broker.shares.state_shard import ShareStateShard
        from groupkeeper.coordinator.share_state.coordinator import ShareStateSettings

        config = self._broker.config
        settings = ShareStateSettings(
            config.share_coordinator_snapshot_update_records_per_snapshot,
            config.share_coordinator_cold_partition_snapshot_interval_ms,
        )
        codec = config.share_coordinator_state_topic_compression_codec
        return ShareStateShard(log, settings, self._broker.now_ms, codec, self.meters)


def coordinator_key(key: SharePartitionKey) -> str:
    """The key in FindCoordinator: `group:topic id:partition`."""
    return f"{key.group_id}:{uuid_text(key.topic_id)}:{key.partition}"
