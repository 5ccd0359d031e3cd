"""The coordinator's interface to share groups."""

from __future__ import annotations

from collections.abc import Callable

from groupkeeper.coordinator.epochs.handler import EpochHandler
from groupkeeper.coordinator.kernel.group import GroupType
from groupkeeper.coordinator.kernel.result import GroupCall, Record, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.refusals import failure_of, own_message
from groupkeeper.coordinator.share import offsets
from groupkeeper.coordinator.share.describe import describe_share_groups
from groupkeeper.coordinator.share.group import ShareGroup
from groupkeeper.coordinator.share.heartbeat import heartbeat
from groupkeeper.coordinator.share.step import ShareStep
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.share_group_describe_response import DescribedGroup, ShareGroupDescribeResponse
from groupkeeper.protocol.primitives import Message


class ShareHandler(EpochHandler[ShareGroup]):
    """Share groups have share-partitions instead of committed offsets. No other group type replaces them."""

    group_type = GroupType.SHARE
    head = m.ShareGroupMetadataKey
    group = ShareGroup
    step = ShareStep

    def handle(self, state: StateView, settings_of: Callable[[str], Settings], call: GroupCall, now_ms: int) -> Result:
        match call.request:
            case m.ShareGroupHeartbeatRequest() as request:
                return heartbeat(state, settings_of(request.group_id), call, request, now_ms)
            case m.ShareGroupDescribeRequest() as request:
                return describe_share_groups(state, settings_of, request)
            case m.AlterShareGroupOffsetsRequest() as request:
                return offsets.alter(state, settings_of(request.group_id), call, request, now_ms)
        assert isinstance(call.request, m.DeleteShareGroupOffsetsRequest)
        return offsets.delete(state, call, call.request)

    def refuse(self, request: Message, error: KafkaError) -> Message:
        match request:
            case m.ShareGroupHeartbeatRequest():
                return m.ShareGroupHeartbeatResponse(error_code=error.code, error_message=own_message(error))
            case m.ShareGroupDescribeRequest():
                groups = [failure_of(DescribedGroup, group_id, error) for group_id in request.group_ids]
                return ShareGroupDescribeResponse(groups=groups)
            case m.AlterShareGroupOffsetsRequest():
                return m.AlterShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
        assert isinstance(request, m.DeleteShareGroupOffsetsRequest)
        return m.DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)

    def makes_room(self, group: ShareGroup) -> bool:
        return False

    def members(self, group: ShareGroup) -> dict[str, tuple[str | None, str]]:
        return {one.member_id: (None, one.client_id) for one in group.members.values()}

    def before_removal(self, state: StateView, call: GroupCall, request: m.DeleteGroupsRequest) -> Result | None:
        return offsets.begin_deletion(state, call, request)

    def remove_topics(self, state: StateView, topic_ids: frozenset[bytes]) -> list[Record]:
        return offsets.remove_topics(state, topic_ids)


HANDLER = ShareHandler()
