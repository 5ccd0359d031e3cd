"""Consumer groups as the coordinator sees all groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from groupkeeper.coordinator.consumer import classic_protocol, membership
from groupkeeper.coordinator.consumer import replay as replaying
from groupkeeper.coordinator.consumer.describe import describe_consumer_groups
from groupkeeper.coordinator.consumer.group import ConsumerGroup
from groupkeeper.coordinator.consumer.heartbeat import heartbeat
from groupkeeper.coordinator.consumer.records import group_tombstones
from groupkeeper.coordinator.kernel.failures import consumer_describe_failure
from groupkeeper.coordinator.kernel.group_state import GroupType
from groupkeeper.coordinator.kernel.result import Call, Record, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import Arm, ConsumerTimer
from groupkeeper.coordinator.offsets import member_epochs
from groupkeeper.coordinator.rows import ClassicRequest, Row
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from groupkeeper.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from groupkeeper.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from groupkeeper.protocol.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from groupkeeper.protocol.primitives import Message


class ConsumerRow(Row[ConsumerGroup]):
    group_type = GroupType.CONSUMER
    head = ConsumerGroupMetadataKey
    offsets: ClassVar = member_epochs

    def new(self, group_id: str) -> ConsumerGroup:
        return ConsumerGroup(group_id)

    def replay(self, group: ConsumerGroup, record: Record) -> ConsumerGroup:
        replaying.replay(group, record)
        return group

    def handle(self, state: StateView, settings_of: Callable[[str], Settings], call: Call, now_ms: int) -> Result:
        match call.request:
            case ConsumerGroupHeartbeatRequest() as request:
                return heartbeat(state, settings_of(request.group_id), call, request, now_ms)
            case ConsumerGroupDescribeRequest() as request:
                return describe_consumer_groups(state, settings_of, request)
        raise AssertionError(f"no request of consumer groups: {type(call.request).__name__}")

    def refuse(self, request: Message, error: KafkaError) -> Message:
        match request:
            case ConsumerGroupHeartbeatRequest():
                message = error.message if error.message != error.text else None
                return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=message)
            case ConsumerGroupDescribeRequest():
                groups = [consumer_describe_failure(group_id, error) for group_id in request.group_ids]
                return ConsumerGroupDescribeResponse(groups=groups)
        raise AssertionError(f"no request of consumer groups: {type(request).__name__}")

    def handle_classic(
        self,
        group: ConsumerGroup | None,
        state: StateView,
        settings: Settings,
        call: Call,
        request: ClassicRequest,
        now_ms: int,
    ) -> Result:
        if group is None or not group.members:
            return super().handle_classic(group, state, settings, call, request, now_ms)
        return classic_protocol.handle(group, settings, state.topics, call, request, now_ms)

    def members(self, group: ConsumerGroup) -> dict[str, tuple[str | None, str]]:
        return {one.member_id: (one.instance_id, one.client_id) for one in group.members.values()}

    def resume(self, group: ConsumerGroup, settings: Settings, now_ms: int) -> tuple[Result, ...]:
        return (membership.resume_group(group, settings),)

    def expire(self, state: StateView, settings: Settings, timer: ConsumerTimer, now_ms: int) -> Result:
        return membership.timer_expired(state, settings, timer, now_ms)

    def retry(self, timer: ConsumerTimer) -> Arm:
        return membership.retry_timer(timer)

    def removal(self, group: ConsumerGroup) -> list[Record]:
        return group_tombstones(group)


ROW = ConsumerRow()
