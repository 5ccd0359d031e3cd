"""The groups of a cluster (ListGroups, KIP-518)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from groupkeeper.client.admin.types import Failure, GroupListing, GroupListings, GroupState, GroupType, Node
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import BrokersNotFound, CallTimedOut, ClientError, ConnectionFailed, UnsupportedVersion
from groupkeeper.client.timing import Deadline
from groupkeeper.protocol.errors import KafkaError, error_for
from groupkeeper.protocol.messages.list_groups_request import ListGroupsRequest
from groupkeeper.protocol.messages.list_groups_response import ListGroupsResponse

_RETRIABLE = (14, 15)


async def list_groups(
    cluster: Cluster,
    states: Iterable[GroupState | str],
    types: Iterable[GroupType | str],
    protocol_types: Iterable[str] | None,
    timeout_ms: int | None,
) -> GroupListings:
    """Admin.list_groups."""
    deadline = cluster.deadline("listGroups", timeout_ms)
    state_names = [name for state in states for name in _names(state)]
    type_names = [str(each) for each in types]
    wanted = None if protocol_types is None else frozenset(protocol_types)
    try:
        await cluster.refresh(deadline)
    except (ClientError, KafkaError) as error:
        raise BrokersNotFound(f"Failed to find brokers to send ListGroups: {error}") from error
    nodes = list(cluster.nodes.values())
    answers = await asyncio.gather(
        *(_list_groups_of(cluster, node, state_names, type_names, deadline) for node in nodes)
    )
    listings = GroupListings({}, {})
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, ListGroupsResponse):
            _merge(cluster, listings.groups, node, answer, wanted)
        else:
            listings.failed[node] = answer
    if not state_names and not type_names and not listings.failed:
        # Groups that are gone are forgotten: a client that runs for weeks sees very many come and go.
        for gone in cluster.coordinators.keys() - listings.groups.keys():
            del cluster.coordinators[gone]
        cluster.classic_groups &= listings.groups.keys()
    return listings


def _names(state: GroupState | str) -> tuple[str, ...]:
    """What a state is asked for by. Apache Kafka's brokers look for NotReady under another name than they answer."""
    return (str(state), "not_ready") if state is GroupState.NOT_READY else (str(state),)


async def _list_groups_of(
    cluster: Cluster, node: Node, states: list[str], types: list[str], deadline: Deadline
) -> ListGroupsResponse | Failure:
    backoff = cluster.backoff()
    failure: Failure | None = None
    while True:
        try:
            answer = await cluster.peer(cluster.nodes.get(node.id, node)).ask(
                ListGroupsRequest, ListGroupsResponse, lambda version: _request(version, states, types), deadline
            )
            if answer.error_code == 0:
                return answer
            failure = error_for(answer.error_code)
            if failure.code not in _RETRIABLE:
                return failure
        except (ConnectionFailed, CallTimedOut) as error:
            if failure is None or not deadline.has_passed:
                failure = error
        except ClientError as error:
            return error
        try:
            await backoff.pause(deadline, failure)
            if isinstance(failure, ClientError):
                await cluster.refresh(deadline)  # the broker may have moved to another address
        except ClientError as error:
            return error


def _request(version: int, states: list[str], types: list[str]) -> ListGroupsRequest:
    if states and version < 4:
        raise UnsupportedVersion(
            f"The broker only supports ListGroups v{version}, but we need v4 or newer to request groups by states."
        )
    if types and version < 5:
        # Brokers before 3.8 have no groups of other types to tell apart.
        if {name.lower() for name in types} not in ({"classic"}, {"classic", "consumer"}):
            raise UnsupportedVersion(
                f"The broker only supports ListGroups v{version}, but we need v5 or newer to request groups by type. "
                f"Requested group types: [{', '.join(types)}]."
            )
        types = []
    return ListGroupsRequest(states, types)


def _merge(
    cluster: Cluster,
    groups: dict[str, GroupListing],
    node: Node,
    answer: ListGroupsResponse,
    protocol_types: frozenset[str] | None,
) -> None:
    coordinators = cluster.coordinators
    new = tuple.__new__  # the constructors of named tuples take three times as long
    states: dict[str, GroupState | None] = {"": None}
    types: dict[str, GroupType | None] = {"": None}
    for group in answer.groups:
        protocol_type = group.protocol_type
        if protocol_types is not None and protocol_type not in protocol_types:
            continue
        if group.group_state not in states:
            states[group.group_state] = GroupState.parse(group.group_state)
        if group.group_type not in types:
            types[group.group_type] = GroupType.parse(group.group_type)
        group_id = group.group_id
        state, kind = states[group.group_state], types[group.group_type]
        groups[group_id] = new(GroupListing, (group_id, protocol_type, state, kind))
        # Only the coordinator lists a group: no need to look it up later.
        coordinators[group_id] = node.id
        if kind is GroupType.CLASSIC:
            cluster.classic_groups.add(group_id)
