"""Settings of a broker (DescribeConfigs)."""

from __future__ import annotations

from collections.abc import Iterable

from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import MissingResult
from groupkeeper.protocol.errors import error_for
from groupkeeper.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from groupkeeper.protocol.messages.describe_configs_response import DescribeConfigsResponse

_BROKER = 4


async def broker_settings(cluster: Cluster, names: Iterable[str], timeout_ms: int | None) -> dict[str, str]:
    """Admin.broker_settings."""
    deadline = cluster.deadline("describeConfigs", timeout_ms)
    await cluster.refresh(deadline)
    node_id = min(cluster.nodes, default=-1)
    peer = cluster.peer_by_id(node_id)
    if peer is None:
        raise MissingResult("describeConfigs: the cluster names no broker")
    request = DescribeConfigsRequest([DescribeConfigsResource(_BROKER, str(node_id), list(names))])
    answer = await peer.ask(DescribeConfigsRequest, DescribeConfigsResponse, lambda version: request, deadline)
    if not answer.results:
        raise MissingResult("describeConfigs: the answer is empty")
    [result] = answer.results
    if result.error_code:
        raise error_for(result.error_code, result.error_message)
    return {each.name: each.value for each in result.configs if each.value is not None}
