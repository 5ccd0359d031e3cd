"""DeleteShareGroupState (86): the group coordinator has share-partitions deleted by the share coordinator."""

from __future__ import annotations

from groupkeeper.broker.apis._share_groups import ask_share_coordinator, fail_all
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.delete_share_group_state_request import PartitionData
from groupkeeper.protocol.messages.delete_share_group_state_response import PartitionResult
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.DeleteShareGroupStateRequest)

    def operate(key: SharePartitionKey, data: PartitionData) -> PartitionResult:
        broker.share_states.delete(key)
        return PartitionResult(data.partition)

    answers = await ask_share_coordinator(broker, call, request, operate, PartitionResult)
    return m.DeleteShareGroupStateResponse(results=[m.DeleteStateResult(*answer) for answer in answers])


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, m.DeleteShareGroupStateRequest)
    answers = fail_all(call.message, error, PartitionResult)
    return m.DeleteShareGroupStateResponse(results=[m.DeleteStateResult(*answer) for answer in answers])
