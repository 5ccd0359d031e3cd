"""The coordinator's interface to streams groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from groupkeeper.coordinator.epochs.handler import EpochHandler
from groupkeeper.coordinator.kernel.group import GroupType
from groupkeeper.coordinator.kernel.result import GroupCall, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import StreamsDelay, StreamsTimer, TimerKey
from groupkeeper.coordinator.offsets import member_epochs
from groupkeeper.coordinator.refusals import failure_of, own_message
from groupkeeper.coordinator.state import StateView
from groupkeeper.coordinator.streams.describe import describe_streams_groups
from groupkeeper.coordinator.streams.description import take_description
from groupkeeper.coordinator.streams.group import StreamsGroup
from groupkeeper.coordinator.streams.heartbeat import heartbeat
from groupkeeper.coordinator.streams.step import StreamsStep
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.streams_group_describe_response import DescribedGroup, StreamsGroupDescribeResponse
from groupkeeper.protocol.primitives import Message


class StreamsHandler(EpochHandler[StreamsGroup]):
    group_type = GroupType.STREAMS
    head = m.StreamsGroupMetadataKey
    offsets: ClassVar = member_epochs
    group = StreamsGroup
    step = StreamsStep

    def handle(self, state: StateView, settings_of: Callable[[str], Settings], call: GroupCall, now_ms: int) -> Result:
        match call.request:
            case m.StreamsGroupHeartbeatRequest() as request:
                return heartbeat(state, settings_of(request.group_id), call, request, now_ms)
            case m.StreamsGroupDescribeRequest() as request:
                return describe_streams_groups(state, request)
        assert isinstance(call.request, m.StreamsGroupTopologyDescriptionUpdateRequest)
        return take_description(state, settings_of(call.request.group_id), call.request, now_ms)

    def refuse(self, request: Message, error: KafkaError) -> Message:
        match request:
            case m.StreamsGroupHeartbeatRequest():
                return m.StreamsGroupHeartbeatResponse(error_code=error.code, error_message=own_message(error))
            case m.StreamsGroupDescribeRequest():
                groups = [failure_of(DescribedGroup, group_id, error) for group_id in request.group_ids]
                return StreamsGroupDescribeResponse(groups=groups)
        assert isinstance(request, m.StreamsGroupTopologyDescriptionUpdateRequest)
        return m.StreamsGroupTopologyDescriptionUpdateResponse(0, error.code, own_message(error))

    def expire(self, state: StateView, settings: Settings, timer: StreamsTimer, now_ms: int) -> Result:
        """As for other group types; also ends the initial rebalance delay."""
        group = state.find(timer.group_id, StreamsGroup)
        if group is None or not isinstance(timer, StreamsDelay):
            return super().expire(state, settings, timer, now_ms)
        step = StreamsStep(group, settings, state.topics, now_ms)
        step.soft = replace(step.soft, is_delayed=False)
        if group.members:
            step.update_target(step.configure())
        return step.result(None)

    def timers(self, group: StreamsGroup) -> list[TimerKey]:
        return [StreamsDelay(group.group_id)]


HANDLER = StreamsHandler()
