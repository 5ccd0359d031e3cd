"""Settings of topics (DescribeConfigs)."""

from __future__ import annotations

from collections.abc import Iterable

from groupkeeper.client.admin.types import Batch, Failure
from groupkeeper.client.batch import batch_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.protocol.errors import error_for
from groupkeeper.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from groupkeeper.protocol.messages.describe_configs_response import DescribeConfigsResponse

_TOPIC = 2
_TOPICS_PER_REQUEST = 1000


async def topic_settings(
    cluster: Cluster, topics: Iterable[str], names: Iterable[str], timeout_ms: int | None
) -> Batch[str, dict[str, str]]:
    """Admin.topic_settings."""
    deadline = cluster.deadline("describeConfigs", timeout_ms)
    wanted, keys = list(dict.fromkeys(topics)), list(names)
    answers: dict[str, dict[str, str] | Failure] = {}
    for start in range(0, len(wanted), _TOPICS_PER_REQUEST):
        resources = [
            DescribeConfigsResource(_TOPIC, name, keys) for name in wanted[start : start + _TOPICS_PER_REQUEST]
        ]
        request = DescribeConfigsRequest(resources)

        def build(version: int, request: DescribeConfigsRequest = request) -> DescribeConfigsRequest:
            return request

        answer = await cluster.ask_any(DescribeConfigsRequest, DescribeConfigsResponse, build, deadline)
        for result in answer.results:
            answers[result.resource_name] = (
                error_for(result.error_code, result.error_message)
                if result.error_code
                else {each.name: each.value for each in result.configs if each.value is not None}
            )
    return batch_of(wanted, answers, "describeConfigs: the answer has no topic {}")
