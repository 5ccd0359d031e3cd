"""The group coordinators of the broker: one per partition of `__consumer_offsets`, found by group id."""

from __future__ import annotations

from logging import getLogger

from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.coordination.group_shard import GroupShard
from groupkeeper.broker.coordination.shard_host import ShardHost
from groupkeeper.broker.coordination.topics_view import TopicsWatch, regex_error
from groupkeeper.broker.meters import GroupMeters
from groupkeeper.broker.settings.group_settings import coordinator_settings
from groupkeeper.broker.settings.topic import segment_size
from groupkeeper.broker.storage.directory import random_uuid
from groupkeeper.coordinator.kernel.settings import SettingsChange
from groupkeeper.coordinator.refusals import refuse
from groupkeeper.native import mypyc_attr
from groupkeeper.protocol import OFFSETS_TOPIC
from groupkeeper.protocol.errors import KafkaError, NotCoordinator
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest
from groupkeeper.protocol.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from groupkeeper.broker.base import BrokerBase
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.log.partition_log import PartitionLog
    from groupkeeper.coordinator.kernel.offset_store import OffsetsByTopic
    from groupkeeper.coordinator.kernel.result import Work
    from groupkeeper.coordinator.kernel.settings import Settings
    from groupkeeper.coordinator.share.work import ShareErrors
    from groupkeeper.protocol.primitives import Message

    DoShareWork = Callable[[Work, int], Awaitable[ShareErrors]]

_log = getLogger("groupkeeper.broker")


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupHost(ShardHost[GroupShard]):
    """Routes requests to the coordinators of groups.

    Attributes:
        meters: the meters of all partitions.
        settings: the coordinators' settings, except on nodes with settings of their own.
    """

    topic_name = OFFSETS_TOPIC

    def __init__(self, broker: BrokerBase, do_share_work: DoShareWork) -> None:
        """`do_share_work(work, node)` sends work of share groups' coordinators to the share coordinator."""
        super().__init__(broker.topics)
        self.meters = GroupMeters()
        self._broker = broker
        self._do_share_work = do_share_work
        self.settings = coordinator_settings(broker.config)
        self._watch = TopicsWatch(broker.topics, broker.now_ms)

    async def start(self) -> None:
        for watched in (self._topics.on_created, self._topics.on_changed, self._topics.on_deleted):
            watched.append(lambda _: self._watch.forget())
        self._broker.group_configs.on_changed.append(lambda _: self.take_settings())
        await super().start()

    def _shape(self) -> tuple[int, dict[str, str], int]:
        config = self._broker.config
        settings = {"cleanup.policy": "compact", "compression.type": "producer"}
        settings |= segment_size(config.offsets_topic_segment_bytes)
        return config.offsets_topic_num_partitions, settings, config.offsets_topic_replication_factor

    def ask(self, group_id: str, request: Message, call: Call) -> Awaitable[Message]:
        """The response of a group's coordinator; coordinator errors are responses too."""
        if self._watch.is_stale:
            self._see_topics()
        try:
            shard = self.shard_for_request(group_id, call.node)
        except NotCoordinator as error:
            return _refused(request, error)
        return shard.ask(
            request,
            call.api_version,
            call.client_id or "",
            call.client_host,
            patience_ms=self._broker.config.of(call.node).offsets_commit_timeout_ms,
            fresh_id=_fresh_id(request),
            regex_error=regex_error(getattr(request, "subscribed_topic_regex", None)),
            may_describe=lambda topic: self._broker.authorizer.allows(
                call, Operation.DESCRIBE, ResourceType.TOPIC, topic
            ),
        )

    def reply(self, group_id: str, request: Message, call: Call) -> Message:
        """As `ask`, for requests that are never parked, and without waiting for replicas (`GroupShard.reply`)."""
        if self._watch.is_stale:
            self._see_topics()
        try:
            shard = self.shard_for_request(group_id, call.node)
        except NotCoordinator as error:
            return refuse(request, error)
        who = call.client_id or ""
        return shard.reply(request, call.api_version, who, call.client_host, received_ms=call.received_ms)

    def offsets_of(self, group_id: str, node: int) -> OffsetsByTopic:
        """Committed offsets of a group, as far as the coordinator that the node sees has loaded them."""
        if not self.shards:
            return {}
        partition = self.partition_of(group_id)
        shard = self._stale.get((node, partition), self.shards[partition])
        return shard.coordinator.state.offsets.of_group(group_id)

    def _see_topics(self) -> None:
        """Passes the topics of the cluster to the coordinators if they changed since the last request."""
        image = self._watch.image
        for shard in self.shards:
            shard.see_topics(image)

    def _new_shard(self, log: PartitionLog) -> GroupShard:
        codec = self._broker.config.offsets_topic_compression_codec
        shard = GroupShard(log, self.settings_of(log), self._broker.now_ms, self.meters, codec, self._do_share_work)
        if self._watch.is_stale:
            self._see_topics()
        shard.see_topics(self._watch.image)
        own = self._broker.group_configs.effective_by_group(log.placement.leader)
        shard.coordinator.apply(SettingsChange(own))
        return shard

    def settings_of(self, log: PartitionLog) -> Settings:
        """The settings of a log's coordinator: those of the log's leader."""
        config, node = self._broker.config, log.placement.leader
        return coordinator_settings(config.of(node)) if config.has_own(node) else self.settings

    def take_settings(self) -> None:
        """Called after settings of the broker or of a group changed."""
        self.settings = coordinator_settings(self._broker.config)
        leaders = {shard.log.placement.leader for shard in self.shards}
        own = {node: self._broker.group_configs.effective_by_group(node) for node in leaders}
        for shard in self.shards:
            shard.coordinator.apply(SettingsChange(own[shard.log.placement.leader], self.settings_of(shard.log)))


async def _refused(request: Message, error: KafkaError) -> Message:
    return refuse(request, error)


def _fresh_id(request: Message) -> str:
    if isinstance(request, JoinGroupRequest):
        from uuid import UUID

        return str(UUID(bytes=random_uuid()))
    if isinstance(request, ConsumerGroupHeartbeatRequest) and not request.member_id:
        return uuid_text(random_uuid())
    return ""
