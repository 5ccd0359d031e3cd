"""ListPartitionReassignments (46): those that are in progress, because replicas that are added do not run."""

from __future__ import annotations

from groupkeeper.broker.apis._access import require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    require_cluster(broker, call, Operation.DESCRIBE)
    request = call.message
    assert isinstance(request, m.ListPartitionReassignmentsRequest)
    wanted = None if request.topics is None else {one.name: set(one.partition_indexes) for one in request.topics}
    found: dict[str, list[m.OngoingPartitionReassignment]] = {}
    for log in broker.topics.logs():
        at = log.placement
        if at.is_moving and (wanted is None or log.index in wanted.get(log.topic, ())):
            row = m.OngoingPartitionReassignment(log.index, at.replicas, at.adding, at.removing)
            found.setdefault(log.topic, []).append(row)
    topics = [m.OngoingTopicReassignment(name, rows) for name, rows in found.items()]
    return m.ListPartitionReassignmentsResponse(error_message=None, topics=topics)
