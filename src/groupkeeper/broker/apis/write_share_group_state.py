"""WriteShareGroupState (85): the leader of share-partitions writes their state to the share coordinator."""

from __future__ import annotations

from groupkeeper.broker.apis._share_groups import ask_share_coordinator, fail_all
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.share_state.coordinator import ShareStateWrite
from groupkeeper.coordinator.share_state.state import SharePartitionKey, StateBatch
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.write_share_group_state_request import PartitionData
from groupkeeper.protocol.messages.write_share_group_state_response import PartitionResult
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.WriteShareGroupStateRequest)

    def operate(key: SharePartitionKey, data: PartitionData) -> PartitionResult:
        batches = tuple(
            StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
            for one in data.state_batches
        )
        written = ShareStateWrite(
            data.state_epoch, data.leader_epoch, data.start_offset, data.delivery_complete_count, batches
        )
        broker.share_states.write(key, written)
        return PartitionResult(data.partition)

    answers = await ask_share_coordinator(broker, call, request, operate, PartitionResult)
    return m.WriteShareGroupStateResponse(results=[m.WriteStateResult(*answer) for answer in answers])


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, m.WriteShareGroupStateRequest)
    answers = fail_all(call.message, error, PartitionResult)
    return m.WriteShareGroupStateResponse(results=[m.WriteStateResult(*answer) for answer in answers])
