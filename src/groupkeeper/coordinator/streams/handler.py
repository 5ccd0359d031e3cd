"""The coordinator's interface to streams groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from groupkeeper.coordinator.epochs.handler import EpochHandler
from groupkeeper.coordinator.kernel.group import GroupType
from groupkeeper.coordinator.kernel.result import GroupCall, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import StreamsDelay, StreamsTimer, TimerKey
from groupkeeper.coordinator.offsets import member_epochs
from groupkeeper.coordinator.state import StateView
from groupkeeper.coordinator.streams import requests
from groupkeeper.coordinator.streams.group import StreamsGroup
from groupkeeper.coordinator.streams.step import StreamsStep
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from groupkeeper.protocol.primitives import Message


class StreamsHandler(EpochHandler[StreamsGroup]):
    group_type = GroupType.STREAMS
    head = StreamsGroupMetadataKey
    offsets: ClassVar = member_epochs
    group = StreamsGroup
    step = StreamsStep

    def handle(self, state: StateView, settings_of: Callable[[str], Settings], call: GroupCall, now_ms: int) -> Result:
        return requests.handle(state, settings_of, call, now_ms)

    def refuse(self, request: Message, error: KafkaError) -> Message:
        return requests.refuse(request, error)

    def expire(self, state: StateView, settings: Settings, timer: StreamsTimer, now_ms: int) -> Result:
        """As for other group types; also ends the initial rebalance delay."""
        group = state.find(timer.group_id, StreamsGroup)
        if group is None or not isinstance(timer, StreamsDelay):
            return super().expire(state, settings, timer, now_ms)
        step = StreamsStep(group, settings, state.topics, now_ms)
        step.end_delay()
        if group.members:
            step.update_target(step.configure())
        return step.result(None)

    def timers(self, group: StreamsGroup) -> list[TimerKey]:
        return [StreamsDelay(group.group_id)]


HANDLER = StreamsHandler()
