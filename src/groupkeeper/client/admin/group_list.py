"""The groups of a cluster (ListGroups, KIP-518)."""

from __future__ import annotations

from collections.abc import Iterable

from groupkeeper.client.admin.resources.controller import ask_every_broker
from groupkeeper.client.admin.types import GroupListing, GroupListings, GroupState, GroupType, Node
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import UnsupportedVersion
from groupkeeper.protocol.messages import ListGroupsRequest, ListGroupsResponse


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
    answers = await ask_every_broker(
        cluster,
        ListGroupsResponse,
        lambda version: _request(version, state_names, type_names),
        deadline,
        lambda answer: answer.error_code,
    )
    listings = GroupListings({}, {})
    for node, answer in answers.items():
        if isinstance(answer, ListGroupsResponse):
            _merge(cluster, listings.groups, node, answer, wanted)
        else:
            listings.failed[node] = answer
    if not state_names and not type_names and not listings.failed:
        # Deleted groups are dropped: a client that runs for weeks lists very many.
        for gone in cluster.coordinators.keys() - listings.groups.keys():
            del cluster.coordinators[gone]
        cluster.classic_groups &= listings.groups.keys()
    return listings


def _names(state: GroupState | str) -> tuple[str, ...]:
    """The name of a state in a request. Apache Kafka's brokers expect another name for NotReady than they reply
    with.
    """
    return (str(state), "not_ready") if state is GroupState.NOT_READY else (str(state),)


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
        groups[group_id] = GroupListing(group_id, protocol_type, state, kind)
        # Only the coordinator lists a group: no need to look it up later.
        coordinators[group_id] = node.id
        if kind is GroupType.CLASSIC:
            cluster.classic_groups.add(group_id)
