"""ReadShareGroupStateSummary (87): the start offsets of share-partitions, without fencing their leader."""

from __future__ import annotations

from groupkeeper.broker.apis._share_groups import ask_share_coordinator, fail_all
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.read_share_group_state_summary_request import PartitionData
from groupkeeper.protocol.messages.read_share_group_state_summary_response import PartitionResult
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.ReadShareGroupStateSummaryRequest)

    def operate(key: SharePartitionKey, data: PartitionData) -> PartitionResult:
        state = broker.share_states.summary(key)
        return PartitionResult(
            data.partition,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )

    answers = await ask_share_coordinator(broker, call, request, operate, PartitionResult)
    return m.ReadShareGroupStateSummaryResponse(results=[m.ReadStateSummaryResult(*answer) for answer in answers])


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, m.ReadShareGroupStateSummaryRequest)
    answers = fail_all(call.message, error, PartitionResult)
    return m.ReadShareGroupStateSummaryResponse(results=[m.ReadStateSummaryResult(*answer) for answer in answers])
