"""DeleteGroups (42), and OffsetDelete (47, KIP-496)."""

from __future__ import annotations

from copy import copy

from groupkeeper.broker.apis._access import require_group
from groupkeeper.broker.apis._commits import Refused, known_topics
from groupkeeper.broker.apis._groups import ask_each
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from groupkeeper.protocol.primitives import RootMessage


async def handle_groups(broker: Broker, call: Call, request: DeleteGroupsRequest) -> RootMessage:
    once = copy(request)
    once.groups_names = list(dict.fromkeys(request.groups_names))
    response: RootMessage = await ask_each(broker, call, Operation.DELETE, once, "groups_names", _refused, parks=True)
    return response


def refuse_groups(call: Call, request: DeleteGroupsRequest, error: KafkaError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[_refused(group_id, error) for group_id in request.groups_names])


def _refused(group_id: str, error: KafkaError) -> DeletableGroupResult:
    return DeletableGroupResult(group_id, error.code)


async def handle_offsets(broker: Broker, call: Call, request: m.OffsetDeleteRequest) -> m.OffsetDeleteResponse:
    require_group(broker, call, Operation.DELETE, request.group_id)
    refused = Refused(m.OffsetDeleteResponseTopic, m.OffsetDeleteResponsePartition, has_ids=False)
    # Call the coordinator even if no topic is left: an error of the group comes first.
    request.topics = known_topics(broker, call, request.topics, refused)
    response = await broker.groups.ask(request.group_id, request, call)
    assert isinstance(response, m.OffsetDeleteResponse)
    if not response.error_code:
        response.topics = refused.topics(response.topics)
    return response
