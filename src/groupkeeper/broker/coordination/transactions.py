"""The transaction coordinators of the broker: one per partition of `__transaction_state`, found by transactional id."""

from __future__ import annotations

import asyncio
from logging import getLogger

from groupkeeper.broker.coordination.partitioning import partition_of_group
from groupkeeper.broker.coordination.runtime import OFFSETS_TOPIC
from groupkeeper.broker.coordination.shard_host import ShardHost
from groupkeeper.broker.features import feature_level
from groupkeeper.broker.settings.topic import segment_size
from groupkeeper.protocol.errors import InvalidProducerEpoch, InvalidRequest, KafkaError, NotCoordinator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from groupkeeper.broker.coordination.runtime import GroupRuntime
    from groupkeeper.broker.coordination.transaction_marker import Marker
    from groupkeeper.broker.coordination.transaction_shard import TransactionShard
    from groupkeeper.broker.log.partition_log import PartitionLog
    from groupkeeper.broker.log.topics import Topic
    from groupkeeper.broker.node import Node
    from groupkeeper.coordinator.transactions.result import TransactionSettings
    from groupkeeper.coordinator.transactions.transaction import TopicPartition
    from groupkeeper.protocol.primitives import Message

_log = getLogger("groupkeeper.broker")

TRANSACTIONS_TOPIC = "__transaction_state"
FEATURE = "transaction.version"
_OWN_EPOCHS_SINCE = 2
_PATIENCE_AT_START_S = 0.2


class TransactionRuntime:
    """Starts and stops transaction coordinators with their partitions, and brings requests to them.

    Attributes:
        refused_by_absence: by partition that resigned, how many requests came while it had no coordinator.
    """

    def __init__(self, broker: Node, groups: GroupRuntime) -> None:
        self._broker = broker
        self._groups = groups
        self.refused_by_absence: dict[int, int] = {}
        self._host = ShardHost(self._new_shard)
        self._sweeps: list[asyncio.TimerHandle] = []

    async def start(self) -> None:
        """Loads what the log holds; long logs go on loading in the background."""
        topics, config = self._broker.topics, self._broker.config
        topics.on_created(self._topic_created)
        topics.on_changed(self._topic_changed)
        topics.on_deleted(self._topic_deleted)
        topic = topics.get(TRANSACTIONS_TOPIC)
        if topic is not None:
            self._host.start(topic.partitions)
        await self._host.wait(_PATIENCE_AT_START_S)
        self._sweeps = [
            self._sweep_in(0, config.transaction_abort_timed_out_transaction_cleanup_interval_ms),
            self._sweep_in(1, config.transaction_remove_expired_transaction_cleanup_interval_ms),
        ]

    async def stop(self) -> None:
        """Stops every coordinator."""
        for sweep in self._sweeps:
            sweep.cancel()
        await self._host.stop()

    @property
    def shards(self) -> Sequence[TransactionShard]:
        """The coordinators by partition; empty before the topic exists."""
        return self._host.shards

    def ensure_topic(self) -> bool:
        """Creates the transactions topic unless it is there; returns whether it was there."""
        if self.shards:
            return True
        config = self._broker.config
        self._broker.topics.create(
            TRANSACTIONS_TOPIC,
            config.transaction_state_log_num_partitions,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                **segment_size(config.transaction_state_log_segment_bytes),
            },
        )
        return False

    def shard_of(self, transactional_id: str) -> TransactionShard:
        """The coordinator of a transactional id. Raises `NotCoordinator`, `InvalidRequest` for an empty id."""
        if not transactional_id:
            raise InvalidRequest
        shard = self.shards[partition := self.partition_of(transactional_id)]
        if shard.has_resigned:
            self.refused_by_absence[partition] += 1
        return shard

    def partition_of(self, transactional_id: str) -> int:
        """The partition of the transactions topic that an id belongs to. Raises `NotCoordinator`."""
        if not self.shards:
            raise NotCoordinator
        return partition_of_group(transactional_id, len(self.shards))

    def ask(self, transactional_id: str, request: Message, version: int) -> Message:
        """The answer of the coordinator of a transactional id; errors are answers too."""
        try:
            shard = self.shard_of(transactional_id)
        except KafkaError as error:
            from groupkeeper.coordinator.transactions.coordinator import TransactionCoordinator

            return TransactionCoordinator.refuse(request, error)
        return shard.ask(request, version)

    def admit(
        self, log: PartitionLog, transactional_id: str, producer_id: int, producer_epoch: int, *, adds: bool
    ) -> None:
        """Raises `KafkaError` unless the producer may write to a partition in its transaction. With `adds` the
        partition becomes part of it, as clients of transaction.version 2 expect.
        """
        if log.producers.has_open_transaction(producer_id, producer_epoch):
            return
        partition = (log.topic, log.index)
        if adds:
            self.shard_of(transactional_id).add_partitions(
                transactional_id, producer_id, producer_epoch, (partition,), client_version=2
            )
        elif self._broker.config.transaction_partition_verification_enable:
            self.shard_of(transactional_id).verify_partition(transactional_id, producer_id, producer_epoch, partition)

    # ------------------------------------------------------------------ what the coordinators need

    def now_ms(self) -> int:
        return self._broker.now_ms()

    def new_producer_id(self) -> int:
        return self._broker.new_producer_id()

    def write_marker(self, partition: TopicPartition, marker: Marker) -> None:
        """Ends a producer's transaction in a partition; one that is gone needs no marker. Raises `KafkaError`."""
        topic, index = partition
        log = self._broker.topics.partition(topic, index)
        if log is None:
            return
        if marker.transaction_version >= _OWN_EPOCHS_SINCE and log.producers.has_open_transaction(*marker[:2]):
            # It was written before, under way for long, and would end the next transaction.
            raise InvalidProducerEpoch
        now_ms = self._broker.now_ms()
        if topic == OFFSETS_TOPIC:
            self._groups.shards[index].end_transaction(marker, now_ms)
        else:
            log.append(marker.batch(now_ms), now_ms)

    # ------------------------------------------------------------------ time passes

    def _sweep_in(self, which: int, interval_ms: int) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(interval_ms / 1000, self._sweep, which, interval_ms)

    def _sweep(self, which: int, interval_ms: int) -> None:
        self._sweeps[which] = self._sweep_in(which, interval_ms)
        for shard in self.shards:
            shard.expire_ids() if which else shard.abort_timed_out()

    # ------------------------------------------------------------------ partitions come and go

    def _topic_created(self, topic: Topic) -> None:
        if topic.name == TRANSACTIONS_TOPIC:
            self._host.start(topic.partitions)

    def _topic_changed(self, topic: Topic) -> None:
        if topic.name == TRANSACTIONS_TOPIC and len(topic.partitions) != len(self.shards):
            self._host.unload()
            self._host.start(topic.partitions)

    def _topic_deleted(self, topic: Topic) -> None:
        if topic.name == TRANSACTIONS_TOPIC:
            self._host.unload()

    def resign(self, partition: int) -> None:
        """Stops coordinating the transactional ids of a partition."""
        self.refused_by_absence[partition] = 0
        self.shards[partition].resign()

    def elect(self, partition: int) -> None:
        """Coordinates a partition that resigned, as its log has it."""
        if partition < len(self.shards) and self.shards[partition].has_resigned:
            self._host.restart(partition)

    def _settings(self) -> TransactionSettings:
        from groupkeeper.coordinator.transactions.result import TransactionSettings

        config = self._broker.config
        return TransactionSettings(
            transaction_max_timeout_ms=config.transaction_max_timeout_ms,
            transactional_id_expiration_ms=config.transactional_id_expiration_ms,
            transaction_version=feature_level(config, FEATURE),
        )

    def take_settings(self) -> None:
        """The broker's settings or features changed."""
        for shard in self.shards:
            shard.take_settings(self._settings())

    def _new_shard(self, log: PartitionLog) -> TransactionShard:
        # Imported late: a broker without transactions starts without them.
        from groupkeeper.broker.coordination.transaction_shard import TransactionShard

        return TransactionShard(log, self._settings(), self)
