"""The share coordinators of the broker: one per partition of `__share_group_state`, found by share-partition."""

from __future__ import annotations

import asyncio

from groupkeeper.broker.coordination.partitioning import partition_of_group
from groupkeeper.broker.coordination.shard_host import ShardHost
from groupkeeper.broker.meters import ShareMeters
from groupkeeper.broker.settings.topic import segment_size
from groupkeeper.protocol.errors import KafkaError, NotCoordinator
from groupkeeper.protocol.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from groupkeeper.broker.log.partition_log import PartitionLog
    from groupkeeper.broker.log.topics import Topic
    from groupkeeper.broker.node import Node
    from groupkeeper.broker.shares.state_shard import ShareStateShard
    from groupkeeper.coordinator.kernel.result import Work
    from groupkeeper.coordinator.share.work import ShareErrors
    from groupkeeper.coordinator.share_state.coordinator import ShareStateResult, ShareStateWrite
    from groupkeeper.coordinator.share_state.state import SharePartitionKey, ShareState

SHARE_STATE_TOPIC = "__share_group_state"
_PATIENCE_S = 5.0
_PATIENCE_AT_START_S = 0.2


class ShareStateRuntime:
    """Starts and stops share coordinators with their partitions, and brings operations to them.

    Operations answer at once and raise `CoordinatorLoadInProgress` or `NotCoordinator` when they can't; `ready` waits
    for loading.

    Attributes:
        meters: what all partitions record.
    """

    def __init__(self, broker: Node) -> None:
        self.meters = ShareMeters()
        self._broker = broker
        self._host = ShardHost(self._new_shard)
        self._sweeps: dict[str, asyncio.TimerHandle] = {}
        self._on_begun_anew: list[Callable[[SharePartitionKey], None]] = []

    async def start(self) -> None:
        """Loads what the log holds; a long log goes on loading in the background."""
        topics = self._broker.topics
        topics.on_created(self._topic_created)
        topics.on_changed(self._topic_changed)
        topics.on_deleted(self._topic_deleted)
        topic = topics.get(SHARE_STATE_TOPIC)
        if topic is not None:
            self._start_shards(topic)
        await self._host.wait(_PATIENCE_AT_START_S)

    async def stop(self) -> None:
        """Stops every coordinator."""
        self._cancel_sweeps()
        await self._host.stop()

    @property
    def shards(self) -> Sequence[ShareStateShard]:
        """The coordinators by partition; empty before the topic exists."""
        return self._host.shards

    def ensure_topic(self) -> bool:
        """Creates the topic of share state unless it is there; returns whether it was there."""
        if self.shards:
            return True
        config = self._broker.config
        self._broker.topics.create(
            SHARE_STATE_TOPIC,
            config.share_coordinator_state_topic_num_partitions,
            {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": str(config.share_coordinator_state_topic_min_isr),
                "retention.ms": "-1",
                **segment_size(config.share_coordinator_state_topic_segment_bytes),
            },
        )
        return False

    async def ready(self, key: SharePartitionKey) -> None:
        """Makes the topic if there is none, and waits a while for the share-partition's coordinator to be loaded."""
        self.ensure_topic()
        shard = self._shard_of(key)
        if not shard.loaded.is_set():
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    await shard.loaded.wait()
            except TimeoutError:
                return  # the operation itself says so

    def on_begun_anew(self, listener: Callable[[SharePartitionKey], None]) -> None:
        """Registers for each share-partition whose state is replaced or forgotten: what leaders know is void then."""
        self._on_begun_anew.append(listener)

    # ------------------------------------------------------------------ operations

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        """Starts again at an offset. Raises as `ShareStateCoordinator.initialize`."""
        shard, count, now_ms = self._at(key)
        shard.settle(shard.coordinator.initialize(key, state_epoch, start_offset, count, now_ms), now_ms)
        self._begun_anew(key)

    def write(self, key: SharePartitionKey, written: ShareStateWrite) -> None:
        """Takes over what a leader says. Raises as `ShareStateCoordinator.write`."""
        shard, count, now_ms = self._at(key)
        shard.settle(shard.coordinator.write(key, written, count, now_ms), now_ms)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareState:
        """What a new leader begins with. Raises as `ShareStateCoordinator.read`."""
        shard, count, now_ms = self._at(key)
        result: ShareStateResult = shard.coordinator.read(key, leader_epoch, count, now_ms)
        shard.settle(result, now_ms)
        assert result.state is not None
        return result.state

    def summary(self, key: SharePartitionKey) -> ShareState:
        """The state for those who only look. Raises as `ShareStateCoordinator.summary`."""
        shard, count, _ = self._at(key)
        return shard.coordinator.summary(key, count)

    def delete(self, key: SharePartitionKey) -> None:
        """Forgets a share-partition. Raises as `ShareStateCoordinator.delete`."""
        shard, count, now_ms = self._at(key)
        shard.settle(shard.coordinator.delete(key, count), now_ms)
        self._begun_anew(key)

    def _begun_anew(self, key: SharePartitionKey) -> None:
        for listener in self._on_begun_anew:
            listener(key)

    async def perform(self, work: Work) -> ShareErrors:
        """Does what a group's coordinator asks for; returns what failed."""
        from groupkeeper.coordinator.share.work import DeleteShares, InitializeShares

        assert isinstance(work, InitializeShares | DeleteShares)
        errors = {}
        for key in work.share_partitions():
            try:
                await self.ready(key)
                if isinstance(work, InitializeShares):
                    self.initialize(key, work.state_epoch, work.start_offsets[key.topic_id][key.partition])
                else:
                    self.delete(key)
            except KafkaError as error:
                errors[key] = error
        return errors

    def _at(self, key: SharePartitionKey) -> tuple[ShareStateShard, int, int]:
        shard = self._shard_of(key)
        shard.require_active()
        topic = self._broker.topics.by_id(key.topic_id)
        return shard, 0 if topic is None else len(topic.partitions), self._broker.now_ms()

    def _shard_of(self, key: SharePartitionKey) -> ShareStateShard:
        if not self.shards:
            raise NotCoordinator
        return self.shards[partition_of_group(coordinator_key(key), len(self.shards))]

    # ------------------------------------------------------------------ time passes

    def _sweep_in(self, name: str, interval_ms: int) -> None:
        loop = asyncio.get_running_loop()
        self._sweeps[name] = loop.call_later(interval_ms / 1000, self._sweep, name, interval_ms)

    def _sweep(self, name: str, interval_ms: int) -> None:
        self._sweep_in(name, interval_ms)
        if name == "prune":
            # Not `any`: it would stop at the first.
            if sum([shard.prune() for shard in self.shards]):
                self._broker.topics.write_start_offsets()
            return
        now_ms = self._broker.now_ms()
        for shard in self.shards:
            shard.snapshot_cold(now_ms)

    # ------------------------------------------------------------------ partitions come and go

    def _topic_created(self, topic: Topic) -> None:
        if topic.name == SHARE_STATE_TOPIC:
            self._start_shards(topic)

    def _topic_changed(self, topic: Topic) -> None:
        if topic.name == SHARE_STATE_TOPIC and len(topic.partitions) != len(self.shards):
            # Share-partitions change their place with the number of partitions: all are looked up again.
            self._unload()
            self._start_shards(topic)

    def _topic_deleted(self, topic: Topic) -> None:
        if topic.name == SHARE_STATE_TOPIC:
            self._unload()
            return
        for shard in self.shards:
            shard.remove_topics({topic.name: topic.topic_id})

    def _start_shards(self, topic: Topic) -> None:
        self._host.start(topic.partitions)
        config = self._broker.config
        self._sweep_in("prune", config.share_coordinator_state_topic_prune_interval_ms)
        self._sweep_in("snapshot", config.share_coordinator_cold_partition_snapshot_interval_ms)

    def _new_shard(self, log: PartitionLog) -> ShareStateShard:
        # Imported late: a broker without share groups starts without them.
        from groupkeeper.broker.shares.state_shard import ShareStateShard
        from groupkeeper.coordinator.share_state.coordinator import ShareStateSettings

        config = self._broker.config
        settings = ShareStateSettings(
            config.share_coordinator_snapshot_update_records_per_snapshot,
            config.share_coordinator_cold_partition_snapshot_interval_ms,
        )
        codec = config.share_coordinator_state_topic_compression_codec
        return ShareStateShard(log, settings, self._broker.now_ms, codec, self.meters)

    def _unload(self) -> None:
        self._cancel_sweeps()
        self._host.unload()

    def _cancel_sweeps(self) -> None:
        for sweep in self._sweeps.values():
            sweep.cancel()
        self.meters.last_pruned.clear()


def coordinator_key(key: SharePartitionKey) -> str:
    """The key by which FindCoordinator asks: `group:topic id:partition`."""
    return f"{key.group_id}:{uuid_text(key.topic_id)}:{key.partition}"
