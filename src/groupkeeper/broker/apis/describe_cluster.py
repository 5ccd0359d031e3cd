"""DescribeCluster (60)."""

from __future__ import annotations

from groupkeeper.broker.apis._access import cluster_operations
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import MismatchedEndpointType, UnsupportedEndpointType
from groupkeeper.protocol.messages import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from groupkeeper.protocol.primitives import RootMessage

_BROKERS = 1
_CONTROLLERS = 2


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, DescribeClusterRequest)
    if request.endpoint_type == _CONTROLLERS:
        raise MismatchedEndpointType(
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        )
    if request.endpoint_type != _BROKERS:
        raise UnsupportedEndpointType(f"Unsupported endpoint type {request.endpoint_type}")
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.controller_known_to(call.node),
        brokers=[DescribeClusterBroker(*one) for one in broker.endpoints(call)],
        cluster_authorized_operations=cluster_operations(
            broker, call, wanted=request.include_cluster_authorized_operations
        ),
    )
