"""ListGroups (16), KIP-518."""

from __future__ import annotations

from asyncio import sleep

from groupkeeper.broker.apis._access import may_cluster, may_group
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.network.long_requests import in_turns
from groupkeeper.coordinator.kernel.group import GroupType
from groupkeeper.coordinator.views import LOOKED_FOR
from groupkeeper.protocol.errors import CoordinatorLoadInProgress
from groupkeeper.protocol.messages import ListedGroup, ListGroupsRequest, ListGroupsResponse

_STATES = frozenset(LOOKED_FOR.values())
_TYPES = frozenset(each.value for each in GroupType)
_TURN = 100
"""After a coordinator with more groups, other clients get a turn before the next one is asked."""


async def handle(broker: Broker, call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    whole, groups = ListGroupsResponse(), list[ListedGroup]()
    known = await _known_filters(request)
    for shard in broker.groups.shards_on(call.node):
        response = await shard.ask(known, call.api_version)
        assert isinstance(response, ListGroupsResponse)
        if response.error_code == CoordinatorLoadInProgress.code:
            return response
        # Any other error means that the partition isn't led here, so its groups are listed elsewhere.
        groups.extend(response.groups)
        whole = whole if response.error_code else response
        if len(response.groups) > _TURN:
            await sleep(0)
    if not may_cluster(broker, call, Operation.DESCRIBE):
        groups = [group for group in groups if may_group(broker, call, Operation.DESCRIBE, group.group_id)]
    whole.groups = groups
    return whole


async def _known_filters(request: ListGroupsRequest) -> ListGroupsRequest:
    """The request with each valid filter once, so that coordinators do not process millions. If none is valid, an empty
    text stays as a filter that matches nothing.
    """
    states = {text.strip().lower() async for text in in_turns(request.states_filter)} & _STATES
    types = {text.lower() async for text in in_turns(request.types_filter)} & _TYPES
    request.states_filter = sorted(states) or [""] * bool(request.states_filter)
    request.types_filter = sorted(types) or [""] * bool(request.types_filter)
    return request
