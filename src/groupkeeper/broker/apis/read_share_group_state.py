"""ReadShareGroupState (84): the leader of share-partitions reads their state from the share coordinator."""

from __future__ import annotations

from groupkeeper.broker.apis._share_groups import ask_share_coordinator, fail_all
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.read_share_group_state_request import PartitionData
from groupkeeper.protocol.messages.read_share_group_state_response import PartitionResult, StateBatch
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.ReadShareGroupStateRequest)

    def operate(key: SharePartitionKey, data: PartitionData) -> PartitionResult:
        state = broker.share_states.read(key, data.leader_epoch)
        return PartitionResult(
            data.partition,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=[StateBatch(*batch) for batch in state.batches],
        )

    answers = await ask_share_coordinator(broker, call, request, operate, PartitionResult)
    return m.ReadShareGroupStateResponse(results=[m.ReadStateResult(*answer) for answer in answers])


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, m.ReadShareGroupStateRequest)
    answers = fail_all(call.message, error, PartitionResult)
    return m.ReadShareGroupStateResponse(results=[m.ReadStateResult(*answer) for answer in answers])
