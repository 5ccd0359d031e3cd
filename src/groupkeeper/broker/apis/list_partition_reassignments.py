"""ListPartitionReassignments (46): with one node there are none."""

from __future__ import annotations

from groupkeeper.broker.apis._access import require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.messages.list_partition_reassignments_response import ListPartitionReassignmentsResponse
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    require_cluster(broker, call, Operation.DESCRIBE)
    return ListPartitionReassignmentsResponse(error_message=None)
