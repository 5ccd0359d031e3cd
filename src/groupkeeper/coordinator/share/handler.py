"""The coordinator's interface to share groups."""

from __future__ import annotations

from collections.abc import Callable

from groupkeeper.coordinator.epochs.handler import EpochHandler
from groupkeeper.coordinator.kernel.group import GroupType
from groupkeeper.coordinator.kernel.result import GroupCall, Record, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.share import offsets, requests
from groupkeeper.coordinator.share.group import ShareGroup
from groupkeeper.coordinator.share.step import ShareStep
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import DeleteGroupsRequest, ShareGroupMetadataKey
from groupkeeper.protocol.primitives import Message


class ShareHandler(EpochHandler[ShareGroup]):
    """Share groups have share-partitions instead of committed offsets. No other group type replaces them."""

    group_type = GroupType.SHARE
    head = ShareGroupMetadataKey
    group = ShareGroup
    step = ShareStep

    def handle(self, state: StateView, settings_of: Callable[[str], Settings], call: GroupCall, now_ms: int) -> Result:
        return requests.handle(state, settings_of, call, now_ms)

    def refuse(self, request: Message, error: KafkaError) -> Message:
        return requests.refuse(request, error)

    def makes_room(self, group: ShareGroup) -> bool:
        return False

    def members(self, group: ShareGroup) -> dict[str, tuple[str | None, str]]:
        return {one.member_id: (None, one.client_id) for one in group.members.values()}

    def before_removal(self, state: StateView, call: GroupCall, request: DeleteGroupsRequest) -> Result | None:
        return offsets.begin_deletion(state, call, request)

    def remove_topics(self, state: StateView, topic_ids: frozenset[bytes]) -> list[Record]:
        return offsets.remove_topics(state, topic_ids)


HANDLER = ShareHandler()
