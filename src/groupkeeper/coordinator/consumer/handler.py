"""The coordinator's interface to consumer groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from groupkeeper.coordinator.consumer import classic_protocol
from groupkeeper.coordinator.consumer.conversion import remove_or_downgrade
from groupkeeper.coordinator.consumer.describe import describe_consumer_groups
from groupkeeper.coordinator.consumer.group import ConsumerGroup
from groupkeeper.coordinator.consumer.heartbeat import heartbeat
from groupkeeper.coordinator.consumer.step import Step
from groupkeeper.coordinator.epochs.handler import EpochHandler
from groupkeeper.coordinator.handlers import ClassicRequest
from groupkeeper.coordinator.kernel.group import GroupType
from groupkeeper.coordinator.kernel.result import GroupCall, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.offsets import member_epochs
from groupkeeper.coordinator.refusals import failure_of, own_message
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.consumer_group_describe_response import DescribedGroup
from groupkeeper.protocol.primitives import Message


class ConsumerHandler(EpochHandler[ConsumerGroup]):
    group_type = GroupType.CONSUMER
    head = m.ConsumerGroupMetadataKey
    offsets: ClassVar = member_epochs
    group = ConsumerGroup
    step = Step

    def handle(self, state: StateView, settings_of: Callable[[str], Settings], call: GroupCall, now_ms: int) -> Result:
        request = call.request
        if isinstance(request, m.ConsumerGroupHeartbeatRequest):
            return heartbeat(state, settings_of(request.group_id), call, request, now_ms)
        assert isinstance(request, m.ConsumerGroupDescribeRequest)
        return describe_consumer_groups(state, settings_of, request)

    def refuse(self, request: Message, error: KafkaError) -> Message:
        if isinstance(request, m.ConsumerGroupHeartbeatRequest):
            return m.ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=own_message(error))
        assert isinstance(request, m.ConsumerGroupDescribeRequest)
        groups = [failure_of(DescribedGroup, group_id, error) for group_id in request.group_ids]
        return m.ConsumerGroupDescribeResponse(groups=groups)

    def handle_classic(
        self,
        group: ConsumerGroup | None,
        state: StateView,
        settings: Settings,
        call: GroupCall,
        request: ClassicRequest,
        now_ms: int,
    ) -> Result:
        if group is None or not group.members:
            return super().handle_classic(group, state, settings, call, request, now_ms)
        return classic_protocol.handle(Step(group, settings, state.topics, now_ms), call, request)

    def remove(self, step: Step, member_id: str) -> Result:  # type: ignore[override]
        """Removes a member; if only classic members remain, the group may become a classic group."""
        return remove_or_downgrade(step, (member_id,), None)


HANDLER = ConsumerHandler()
