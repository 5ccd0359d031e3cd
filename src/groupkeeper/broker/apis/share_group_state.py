"""Initialize-, Read-, Write- and DeleteShareGroupState and ReadShareGroupStateSummary (83 to 87): requests of group
coordinators and of leaders of share-partitions to the share coordinator (KIP-932).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from groupkeeper.broker.apis._access import require_cluster
from groupkeeper.broker.apis._groups import require_served
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.shares.state_host import ShareStateHost, coordinator_key
from groupkeeper.coordinator.share_state.coordinator import ShareStateWrite
from groupkeeper.coordinator.share_state.state import SharePartitionKey, StateBatch
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import delete_share_group_state_response as deleted
from groupkeeper.protocol.messages import initialize_share_group_state_response as initialized
from groupkeeper.protocol.messages import read_share_group_state_response as read
from groupkeeper.protocol.messages import read_share_group_state_summary_response as summary
from groupkeeper.protocol.messages import write_share_group_state_response as written
from groupkeeper.protocol.primitives import RootMessage


class StateApi(NamedTuple):
    """The classes of a response, and the operation on a share-partition's state, which returns the fields of its
    result, and raises `KafkaError`.
    """

    response: Callable[..., RootMessage]
    topic: Callable[..., Any]
    partition: Callable[..., Any]
    operate: Callable[[ShareStateHost, SharePartitionKey, Any], dict[str, Any]]


async def handle(broker: Broker, call: Call, request: Any) -> RootMessage:
    require_cluster(broker, call, Operation.CLUSTER_ACTION)
    require_served(broker, "share")
    api, states = _APIS[type(request)], broker.share_states
    topics = request.topics if request.group_id else ()
    asked = [(topic.topic_id, one) for topic in topics for one in topic.partitions]
    keys = [SharePartitionKey(request.group_id, topic_id, one.partition) for topic_id, one in asked]
    refusals = [_refusal(states, key, call.node) for key in keys]
    here = [at for at, refusal in enumerate(refusals) if refusal is None]
    operated = await states.operate_on(
        [keys[at] for at in here], lambda at: api.operate(states, keys[here[at]], asked[here[at]][1]), call.node, 1
    )
    responses = iter(operated)
    done = iter([refusal or next(responses) for refusal in refusals])
    results = []
    for topic in topics:
        partitions = [_result(api, one.partition, next(done)) for one in topic.partitions]
        if partitions:
            results.append(api.topic(topic.topic_id, partitions))
    return api.response(results)


def _refusal(states: ShareStateHost, key: SharePartitionKey, node: int) -> errors.KafkaError | None:
    try:
        states.shard_for_request(coordinator_key(key), node)  # FindCoordinator creates the topic
    except errors.KafkaError as error:
        return error
    return None


def refuse(call: Call, request: Any, error: errors.KafkaError) -> RootMessage:
    api = _APIS[type(request)]
    return api.response(
        [
            api.topic(topic.topic_id, [_result(api, one.partition, error) for one in topic.partitions])
            for topic in request.topics
        ]
    )


def _result(api: StateApi, partition: int, done: dict[str, Any] | errors.KafkaError) -> Any:
    if isinstance(done, errors.KafkaError):
        return api.partition(partition, done.code, done.message)
    return api.partition(partition, **done)


def _initialize(states: ShareStateHost, key: SharePartitionKey, data: Any) -> dict[str, Any]:
    states.initialize(key, data.state_epoch, data.start_offset)
    return {}


def _read(states: ShareStateHost, key: SharePartitionKey, data: Any) -> dict[str, Any]:
    state = states.read(key, data.leader_epoch)
    return {
        "state_epoch": state.state_epoch,
        "start_offset": state.start_offset,
        "state_batches": [read.StateBatch(*batch) for batch in state.batches],
    }


def _write(states: ShareStateHost, key: SharePartitionKey, data: Any) -> dict[str, Any]:
    batches = tuple(
        StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
        for one in data.state_batches
    )
    counts = data.start_offset, data.delivery_complete_count
    states.write(key, ShareStateWrite(data.state_epoch, data.leader_epoch, *counts, batches))
    return {}


def _delete(states: ShareStateHost, key: SharePartitionKey, _: Any) -> dict[str, Any]:
    states.delete(key)
    return {}


def _summarize(states: ShareStateHost, key: SharePartitionKey, _: Any) -> dict[str, Any]:
    """The state's summary, without fencing the leader."""
    state = states.summary(key)
    return {
        "state_epoch": state.state_epoch,
        "leader_epoch": state.leader_epoch,
        "start_offset": state.start_offset,
        "delivery_complete_count": state.delivery_complete_count,
    }


_APIS: dict[type[RootMessage], StateApi] = {
    m.InitializeShareGroupStateRequest: StateApi(
        m.InitializeShareGroupStateResponse, m.InitializeStateResult, initialized.PartitionResult, _initialize
    ),
    m.ReadShareGroupStateRequest: StateApi(
        m.ReadShareGroupStateResponse, m.ReadStateResult, read.PartitionResult, _read
    ),
    m.WriteShareGroupStateRequest: StateApi(
        m.WriteShareGroupStateResponse, m.WriteStateResult, written.PartitionResult, _write
    ),
    m.DeleteShareGroupStateRequest: StateApi(
        m.DeleteShareGroupStateResponse, m.DeleteStateResult, deleted.PartitionResult, _delete
    ),
    m.ReadShareGroupStateSummaryRequest: StateApi(
        m.ReadShareGroupStateSummaryResponse, m.ReadStateSummaryResult, summary.PartitionResult, _summarize
    ),
}
