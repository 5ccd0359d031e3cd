"""Requests to the coordinator that concern streams groups, and its refusals of them."""

from __future__ import annotations

from collections.abc import Callable

from groupkeeper.coordinator.kernel.result import GroupCall, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.refusals import failure_of, own_message
from groupkeeper.coordinator.state import StateView
from groupkeeper.coordinator.streams.describe import describe_streams_groups
from groupkeeper.coordinator.streams.description import take_description
from groupkeeper.coordinator.streams.heartbeat import heartbeat
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.streams_group_describe_response import DescribedGroup, StreamsGroupDescribeResponse
from groupkeeper.protocol.primitives import Message


def handle(state: StateView, settings_of: Callable[[str], Settings], call: GroupCall, now_ms: int) -> Result:
    """Answers a request; raises `KafkaError` to refuse it."""
    match call.request:
        case m.StreamsGroupHeartbeatRequest() as request:
            return heartbeat(state, settings_of(request.group_id), call, request, now_ms)
        case m.StreamsGroupDescribeRequest() as request:
            return describe_streams_groups(state, request)
        case m.StreamsGroupTopologyDescriptionUpdateRequest() as request:
            return take_description(state, settings_of(request.group_id), request, now_ms)
    raise AssertionError(f"no group request: {type(call.request).__name__}")


def refuse(request: Message, error: KafkaError) -> Message:
    """The response to a request that failed as a whole."""
    match request:
        case m.StreamsGroupHeartbeatRequest():
            return m.StreamsGroupHeartbeatResponse(error_code=error.code, error_message=own_message(error))
        case m.StreamsGroupDescribeRequest():
            groups = [failure_of(DescribedGroup, group_id, error) for group_id in request.group_ids]
            return StreamsGroupDescribeResponse(groups=groups)
        case m.StreamsGroupTopologyDescriptionUpdateRequest():
            return m.StreamsGroupTopologyDescriptionUpdateResponse(0, error.code, own_message(error))
    raise AssertionError(f"no group request: {type(request).__name__}")
