"""Share groups as the coordinator sees all groups."""

from __future__ import annotations

from collections.abc import Callable

from groupkeeper.coordinator.kernel.group_state import GroupType
from groupkeeper.coordinator.kernel.result import Call, Record, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import Arm, ShareSession
from groupkeeper.coordinator.rows import Row
from groupkeeper.coordinator.share import heartbeat, offsets, requests
from groupkeeper.coordinator.share import replay as replaying
from groupkeeper.coordinator.share.group import ShareGroup
from groupkeeper.coordinator.share.records import group_tombstones
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.delete_groups_request import DeleteGroupsRequest
from groupkeeper.protocol.messages.share_group_metadata_key import ShareGroupMetadataKey
from groupkeeper.protocol.primitives import Message


class ShareRow(Row[ShareGroup]):
    """They have share-partitions instead of committed offsets, and give no other type room."""

    group_type = GroupType.SHARE
    head = ShareGroupMetadataKey

    def new(self, group_id: str) -> ShareGroup:
        return ShareGroup(group_id)

    def replay(self, group: ShareGroup, record: Record) -> ShareGroup:
        replaying.replay(group, record)
        return group

    def handle(self, state: StateView, settings_of: Callable[[str], Settings], call: Call, now_ms: int) -> Result:
        return requests.handle(state, settings_of, call, now_ms)

    def refuse(self, request: Message, error: KafkaError) -> Message:
        return requests.refuse(request, error)

    def makes_room(self, group: ShareGroup) -> bool:
        return False

    def members(self, group: ShareGroup) -> dict[str, tuple[str | None, str]]:
        return {one.member_id: (None, one.client_id) for one in group.members.values()}

    def resume(self, group: ShareGroup, settings: Settings, now_ms: int) -> tuple[Result, ...]:
        return (heartbeat.resume_group(group, settings),)

    def expire(self, state: StateView, settings: Settings, timer: ShareSession, now_ms: int) -> Result:
        return heartbeat.session_expired(state, settings, timer, now_ms)

    def retry(self, timer: ShareSession) -> Arm:
        return heartbeat.retry_timer(timer)

    def removal(self, group: ShareGroup) -> list[Record]:
        return group_tombstones(group)

    def before_removal(self, state: StateView, call: Call, request: DeleteGroupsRequest) -> Result | None:
        return offsets.begin_deletion(state, call, request)

    def remove_topics(self, state: StateView, topic_ids: frozenset[bytes]) -> list[Record]:
        return offsets.remove_topics(state, topic_ids)


ROW = ShareRow()
