"""Groups as a whole: listing (ListGroups, KIP-518) and deleting them, removing members, and finding coordinators."""

from __future__ import annotations

from collections.abc import Iterable

from groupkeeper.client.admin.arguments import one_group, several
from groupkeeper.client.admin.coordinators import KEYS_PER_REQUEST, coordinator_at, of_one_group, routed
from groupkeeper.client.admin.group_descriptions import DescriptionCalls, member_identities
from groupkeeper.client.admin.resources.controller import ask_every_broker
from groupkeeper.client.admin.types import (
    All,
    Batch,
    Failure,
    GroupListing,
    GroupListings,
    GroupState,
    GroupType,
    MemberToRemove,
    Node,
)
from groupkeeper.client.batch import batch_of, failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import UnsupportedVersion
from groupkeeper.client.peer import Peer
from groupkeeper.client.router import one_by_one
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import error_for

_GROUPS_PER_REQUEST = 100

_REASON = "member was removed by an admin"
_MAX_REASON_CHARACTERS = 255


class GroupCalls(DescriptionCalls):
    """Calls of Admin about groups as a whole."""

    _cluster: Cluster

    async def list_groups(
        self,
        *,
        states: Iterable[GroupState | str] = (),
        types: Iterable[GroupType | str] = (),
        protocol_types: Iterable[str] | None = None,
        timeout_ms: int | None = None,
    ) -> GroupListings:
        """The groups of all brokers (KIP-518). Empty `states` or `types`, None `protocol_types`: all of them.

        Consumer groups are types Classic and Consumer with protocol types "" and "consumer", share groups are type
        Share. A broker that fails is in `failed` of the result: UnsupportedVersion when it is too old for a filter. A
        state given as a text is sent unchanged: brokers expect `not_ready` for NotReady.
        """
        deadline = self._cluster.deadline("listGroups", timeout_ms)
        state_names = [name for state in several(states, "states") for name in _names(state)]
        type_names = [str(each) for each in several(types, "types")]
        wanted = None if protocol_types is None else frozenset(several(protocol_types, "protocol_types"))
        responses = await ask_every_broker(
            self._cluster,
            m.ListGroupsResponse,
            lambda version: _request(version, state_names, type_names),
            deadline,
            lambda response: response.error_code,
        )
        listings = GroupListings({}, {})
        for node, response in responses.items():
            if isinstance(response, m.ListGroupsResponse):
                _merge(self._cluster, listings.groups, node, response, wanted)
            else:
                listings.failed[node] = response
        is_filtered = _request(m.ListGroupsRequest.MAX_VERSION, state_names, type_names) != m.ListGroupsRequest()
        if not is_filtered and not listings.failed:
            # Forget deleted groups, which would accumulate in a client that runs for weeks.
            for gone in self._cluster.coordinators.keys() - listings.groups.keys():
                del self._cluster.coordinators[gone]
            self._cluster.classic_groups &= listings.groups.keys()
        return listings

    async def delete_consumer_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Delete groups with their offsets: NonEmptyGroup, GroupIdNotFound … per group."""
        return await self._delete("deleteConsumerGroups", group_ids, timeout_ms)

    async def delete_share_groups(self, group_ids: Iterable[str], *, timeout_ms: int | None = None) -> Batch[str, None]:
        """Delete share groups with their offsets: NonEmptyGroup, GroupIdNotFound … per group.

        The brokers delete groups of other types by the same request, so name share groups only.
        """
        return await self._delete("deleteShareGroups", group_ids, timeout_ms)

    async def _delete(self, call: str, group_ids: Iterable[str], timeout_ms: int | None) -> Batch[str, None]:
        async def ask(peer: Peer, keys: list[str]) -> dict[str, Failure | None]:
            response = await peer.ask(m.DeleteGroupsResponse, m.DeleteGroupsRequest(keys), deadline)
            return {each.group_id: failure_of(each.error_code, each.error_message) for each in response.results}

        deadline = self._cluster.deadline(call, timeout_ms)
        wanted = several(group_ids, "group_ids")
        return await routed(self._cluster, deadline, ask, chunk=_GROUPS_PER_REQUEST).run(wanted)

    async def remove_members(
        self,
        group_id: str,
        members: Iterable[MemberToRemove] | All,
        *,
        reason: str | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[MemberToRemove, None]:
        """Remove members from their group: the given ones, or with `ALL` all members.

        `reason` is sent to brokers from 3.2 on, cut to 255 characters. Removing a static member by its instance id
        needs a broker from 2.4 on.
        """
        deadline = self._cluster.deadline("removeMembersFromConsumerGroup", timeout_ms)
        one_group(group_id)
        if isinstance(members, All):
            described = await self.describe_consumer_groups([group_id], timeout_ms=deadline.left_ms())
            members = [MemberToRemove(*each) for each in member_identities(described.result(group_id).members)]
        wanted = list(dict.fromkeys(several(members, "members")))
        if not wanted:
            return Batch()
        text = f"{_REASON}: {reason}" if reason else _REASON

        async def ask(peer: Peer) -> Batch[MemberToRemove, None] | Failure:
            return await _leave(peer, group_id, wanted, text[:_MAX_REASON_CHARACTERS], deadline)

        return await of_one_group(self._cluster, deadline, group_id, ask)

    async def find_coordinators(self, group_ids: Iterable[str], *, timeout_ms: int | None = None) -> Batch[str, Node]:
        """The coordinator of each group, always from a new lookup."""
        deadline = self._cluster.deadline("findCoordinators", timeout_ms)

        async def answer_from_lookup(peer: Peer, keys: list[str]) -> dict[str, Node | Failure]:
            return dict.fromkeys(keys, coordinator_at(peer))

        wanted = several(group_ids, "group_ids")
        for group_id in wanted:
            self._cluster.coordinators.pop(group_id, None)
        return await routed(self._cluster, deadline, answer_from_lookup, chunk=KEYS_PER_REQUEST).run(wanted)


def _names(state: GroupState | str) -> tuple[str, ...]:
    """The name of a state in a request. Apache Kafka's brokers expect another name for NotReady than they reply
    with.
    """
    return (str(state), "not_ready") if state is GroupState.NOT_READY else (str(state),)


def _request(version: int, states: list[str], types: list[str]) -> m.ListGroupsRequest:
    if states and version < 4:
        raise UnsupportedVersion(
            f"The broker only supports ListGroups v{version}, but we need v4 or newer to request groups by states."
        )
    if types and version < 5:
        # Brokers before 3.8 have only classic groups, and no filter by type.
        if {name.lower() for name in types} not in ({"classic"}, {"classic", "consumer"}):
            raise UnsupportedVersion(
                f"The broker only supports ListGroups v{version}, but we need v5 or newer to request groups by type. "
                f"Requested group types: [{', '.join(types)}]."
            )
        types = []
    return m.ListGroupsRequest(states, types)


def _merge(
    cluster: Cluster,
    groups: dict[str, GroupListing],
    node: Node,
    response: m.ListGroupsResponse,
    protocol_types: frozenset[str] | None,
) -> None:
    coordinators = cluster.coordinators
    states: dict[str, GroupState | None] = {"": None}
    types: dict[str, GroupType | None] = {"": None}
    for group in response.groups:
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
        # Only the coordinator lists a group, so no lookup is needed later.
        coordinators[group_id] = node.id
        if kind is GroupType.CLASSIC:
            cluster.classic_groups.add(group_id)


async def _leave(
    peer: Peer, group_id: str, members: list[MemberToRemove], reason: str, deadline: Deadline
) -> Batch[MemberToRemove, None] | Failure:
    try:
        response = await peer.ask(
            m.LeaveGroupResponse, lambda version: _batch_request(version, group_id, members, reason), deadline
        )
    except _OneMemberPerRequest:
        return await _leave_one_by_one(peer, group_id, members, deadline)
    if response.error_code:
        return error_for(response.error_code)
    results = {
        MemberToRemove(each.group_instance_id, each.member_id): failure_of(each.error_code) for each in response.members
    }
    return batch_of(members, results, "the reply has no result for {}")


class _OneMemberPerRequest(UnsupportedVersion):
    """The broker supports only LeaveGroup < 3."""


def _batch_request(version: int, group_id: str, members: list[MemberToRemove], reason: str) -> m.LeaveGroupRequest:
    if version < 3:
        raise _OneMemberPerRequest(
            f"Version {version} leave group request only supports single member instance than {len(members)} members"
        )
    identities = [m.MemberIdentity(member.member_id, member.instance_id, reason) for member in members]
    return m.LeaveGroupRequest(group_id=group_id, members=identities)


async def _leave_one_by_one(
    peer: Peer, group_id: str, members: list[MemberToRemove], deadline: Deadline
) -> Batch[MemberToRemove, None]:
    async def ask_one(member: MemberToRemove) -> None:
        if member.instance_id is not None:
            raise UnsupportedVersion(
                "The broker only supports LeaveGroup v2 or older, but we need v3 or newer to remove a static member "
                "by its instance id."
            )
        request = m.LeaveGroupRequest(group_id=group_id, member_id=member.member_id)  # of version 2 or older
        response = await peer.ask(m.LeaveGroupResponse, request, deadline)
        if response.error_code:
            raise error_for(response.error_code)

    return batch_of(members, await one_by_one(members, ask_one), "")
