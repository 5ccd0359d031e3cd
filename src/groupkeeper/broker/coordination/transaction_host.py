"""The transaction coordinators of the broker: one per partition of `__transaction_state`, found by transactional id."""

from __future__ import annotations

from logging import getLogger

from groupkeeper.broker.coordination.pending_replication import PendingReplication
from groupkeeper.broker.coordination.shard_host import ShardHost
from groupkeeper.broker.settings.features import feature_level
from groupkeeper.broker.settings.topic import segment_size
from groupkeeper.protocol import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, errors
from groupkeeper.protocol.errors import KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from groupkeeper.broker.base import BrokerBase
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.coordination.group_host import GroupHost
    from groupkeeper.broker.coordination.transaction_marker import Marker
    from groupkeeper.broker.coordination.transaction_shard import TransactionShard
    from groupkeeper.broker.log.partition_log import PartitionLog
    from groupkeeper.coordinator.transactions.result import TransactionSettings
    from groupkeeper.coordinator.transactions.transaction import TopicPartition
    from groupkeeper.protocol.primitives import Message

_log = getLogger("groupkeeper.broker")

FEATURE = "transaction.version"
_OWN_EPOCHS_SINCE = 2


class TransactionHost(ShardHost["TransactionShard"]):
    """Routes requests to the transaction coordinators."""

    topic_name = TRANSACTIONS_TOPIC

    def __init__(self, broker: BrokerBase, groups: GroupHost) -> None:
        super().__init__(broker.topics)
        self._broker = broker
        self._groups = groups

    async def start(self) -> None:
        await super().start()
        config = self._broker.config
        self.every(
            config.transaction_abort_timed_out_transaction_cleanup_interval_ms, lambda shard: shard.abort_timed_out()
        )
        self.every(config.transaction_remove_expired_transaction_cleanup_interval_ms, lambda shard: shard.expire_ids())

    def _shape(self) -> tuple[int, dict[str, str], int]:
        config = self._broker.config
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.transaction_state_log_min_isr),
        }
        size = segment_size(config.transaction_state_log_segment_bytes)
        factor = config.transaction_state_log_replication_factor
        return config.transaction_state_log_num_partitions, settings | size, factor

    def shard_of(self, key: str) -> TransactionShard:
        """The coordinator of a transactional id. Raises `NotCoordinator`, `InvalidRequest` for an empty id."""
        if not key:
            raise errors.InvalidRequest
        return super().shard_of(key)

    def shard_for_request(self, key: str, node: int) -> TransactionShard:
        """The coordinator for a request to `node`. Raises also when it is on another node."""
        if not key:
            raise errors.InvalidRequest
        return super().shard_for_request(key, node)

    async def ask(self, transactional_id: str, request: Message, call: Call) -> Message:
        """The response of the coordinator of a transactional id; errors are responses too."""
        try:
            shard = self.shard_for_request(transactional_id, call.node)
            end_offset = shard.log.log_end_offset
            response = shard.ask(request, call.api_version)
            if shard.log.log_end_offset > end_offset:
                await shard.until_replicated(transactional_id)
        except KafkaError as error:
            from groupkeeper.coordinator.transactions.coordinator import TransactionCoordinator

            return TransactionCoordinator.refuse(request, error)
        return response

    async def add_partitions(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Iterable[TopicPartition], call: Call
    ) -> None:
        """Makes partitions part of a producer's transaction. Raises `KafkaError`."""
        shard = self.shard_for_request(transactional_id, call.node)
        shard.add_partitions(transactional_id, producer_id, epoch, partitions)
        await shard.until_replicated(transactional_id)

    def admit(
        self, log: PartitionLog, transactional_id: str, producer_id: int, producer_epoch: int, *, adds: bool
    ) -> bool:
        """Raises `KafkaError` unless the producer may write to a partition in its transaction. With `adds` the
        partition becomes part of it, as clients of transaction.version 2 expect.

        False if the caller must repeat the call after `until_added`: replicas of the coordinator don't have the
        partition yet, so another coordinator would never end the transaction there.
        """
        if log.producers.has_open_transaction(producer_id, producer_epoch):
            return True
        if not adds and not self._broker.config.transaction_partition_verification_enable:
            return True
        shard, tp = self.shard_of(transactional_id), (log.topic, log.index)
        if not self._reaches(log, shard.log):
            raise errors.NotCoordinator
        if adds:
            shard.add_partitions(transactional_id, producer_id, producer_epoch, (tp,), client_version=2)
        else:
            shard.verify_partition(transactional_id, producer_id, producer_epoch, tp)
        return shard.is_replicated(transactional_id)

    async def until_added(self, transactional_id: str) -> None:
        """Waits until the coordinator's replicas have what `admit` added. Raises as `until_replicated`."""
        await self.shard_of(transactional_id).until_replicated(transactional_id, self._broker.config.request_timeout_ms)

    # ------------------------------------------------------------------ what the coordinators need

    def now_ms(self) -> int:
        return self._broker.now_ms()

    def new_producer_id(self) -> int:
        return self._broker.new_producer_id()

    def _reaches(self, log: PartitionLog, other: PartitionLog) -> bool:
        """Whether a log's leader can reach the leader of another log."""
        return self._topics.placements.reaches(log.placement.leader, other.placement.leader)

    def write_marker(
        self, tp: TopicPartition, marker: Marker, sender: PartitionLog | None = None
    ) -> PendingReplication | None:
        """Writes a marker to a partition, for the coordinator with the log `sender`, or for an operator (None); a
        deleted partition needs no marker. Returns the marker if in-sync replicas still lack it. Raises `KafkaError`.
        """
        topic, index = tp
        log = self._broker.topics.partition(topic, index)
        if log is None:
            return None
        if not self._reaches(sender or log, log):
            raise errors.NotLeaderOrFollower  # retried until a leader can be reached
        if marker.transaction_version >= _OWN_EPOCHS_SINCE and log.producers.has_open_transaction(*marker[:2]):
            # A delayed copy of a marker that was already written: it would end the next transaction.
            raise errors.InvalidProducerEpoch
        now_ms = self._broker.now_ms()
        if topic == OFFSETS_TOPIC:  # a group coordinator writes even if too few replicas are in sync
            self._groups.shards[index].end_transaction(marker, now_ms)
        else:
            log.placement.require_in_sync(log.config.min_insync_replicas)
            log.append(marker.batch(now_ms), now_ms)
        return None if log.placement.held_high_watermark is None else PendingReplication(log, log.log_end_offset)

    # ------------------------------------------------------------------ their settings

    def _settings(self, log: PartitionLog) -> TransactionSettings:
        from groupkeeper.coordinator.transactions.result import TransactionSettings

        config = self._broker.config.of(log.placement.leader)
        return TransactionSettings(
            transaction_max_timeout_ms=config.transaction_max_timeout_ms,
            transactional_id_expiration_ms=config.transactional_id_expiration_ms,
            transaction_version=feature_level(self._broker.config, FEATURE),
        )

    def take_settings(self) -> None:
        """Called after the broker's settings or features changed."""
        for shard in self.shards:
            shard.take_settings(self._settings(shard.log))

    def _new_shard(self, log: PartitionLog) -> TransactionShard:
        # Imported late: a broker without transactions doesn't need them.
        from groupkeeper.broker.coordination.transaction_shard import TransactionShard

        return TransactionShard(log, self._settings(log), self)
