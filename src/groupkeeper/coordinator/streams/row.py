"""Streams groups as the coordinator sees all groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from groupkeeper.coordinator.kernel.group_state import GroupType
from groupkeeper.coordinator.kernel.result import Call, Record, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import Arm, StreamsDelay, StreamsTimer, TimerKey
from groupkeeper.coordinator.offsets import member_epochs
from groupkeeper.coordinator.rows import Row
from groupkeeper.coordinator.state import StateView
from groupkeeper.coordinator.streams import heartbeat, requests
from groupkeeper.coordinator.streams import replay as replaying
from groupkeeper.coordinator.streams.group import StreamsGroup
from groupkeeper.coordinator.streams.records import group_tombstones
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from groupkeeper.protocol.primitives import Message


class StreamsRow(Row[StreamsGroup]):
    group_type = GroupType.STREAMS
    head = StreamsGroupMetadataKey
    offsets: ClassVar = member_epochs

    def new(self, group_id: str) -> StreamsGroup:
        return StreamsGroup(group_id)

    def replay(self, group: StreamsGroup, record: Record) -> StreamsGroup:
        replaying.replay(group, record)
        return group

    def handle(self, state: StateView, settings_of: Callable[[str], Settings], call: Call, now_ms: int) -> Result:
        return requests.handle(state, settings_of, call, now_ms)

    def refuse(self, request: Message, error: KafkaError) -> Message:
        return requests.refuse(request, error)

    def members(self, group: StreamsGroup) -> dict[str, tuple[str | None, str]]:
        return {one.member_id: (one.instance_id, one.client_id) for one in group.members.values()}

    def resume(self, group: StreamsGroup, settings: Settings, now_ms: int) -> tuple[Result, ...]:
        return (heartbeat.resume_group(group, settings),)

    def expire(self, state: StateView, settings: Settings, timer: StreamsTimer, now_ms: int) -> Result:
        return heartbeat.timer_expired(state, settings, timer, now_ms)

    def retry(self, timer: StreamsTimer) -> Arm:
        return heartbeat.retry_timer(timer)

    def removal(self, group: StreamsGroup) -> list[Record]:
        return group_tombstones(group)

    def timers(self, group: StreamsGroup) -> list[TimerKey]:
        return [StreamsDelay(group.group_id)]


ROW = StreamsRow()
