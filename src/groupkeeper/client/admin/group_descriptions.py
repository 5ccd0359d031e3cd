"""Describing groups: ConsumerGroupDescribe (KIP-848, KIP-1099) and DescribeGroups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from groupkeeper.client.admin.arguments import several
from groupkeeper.client.admin.coordinators import by_group, coordinator_at, routed
from groupkeeper.client.admin.types import (
    Batch,
    ClassicGroupDescription,
    ConsumerGroupDescription,
    Failure,
    GroupState,
    GroupType,
    MemberDescription,
    Node,
    TopicPartition,
    operation_names,
)
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import IllegalArgument, UnsupportedVersion
from groupkeeper.client.peer import Peer
from groupkeeper.protocol import consumer_protocol
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.errors import GroupIdNotFound, error_for

if TYPE_CHECKING:
    from groupkeeper.protocol.messages.consumer_group_describe_response import Assignment, Member
    from groupkeeper.protocol.messages.consumer_group_describe_response import DescribedGroup as DescribedConsumerGroup
    from groupkeeper.protocol.messages.describe_groups_response import DescribedGroup
    from groupkeeper.protocol.messages.share_group_describe_response import Assignment as ShareAssignment

D = TypeVar("D")

_GROUPS_PER_REQUEST = 400
"""A request costs as much as describing ten empty groups; 400 groups with 50 members make a response of about 10 MB."""

_NOT_OF_CONSUMER_TYPE = (69, 35, 24)
"""Error codes GROUP_ID_NOT_FOUND, UNSUPPORTED_VERSION, INVALID_GROUP_ID (the group ''): the group may be classic."""

_UPGRADED = {0: False, 1: True}

_PROTOCOL_TYPES = (consumer_protocol.PROTOCOL_TYPE, "")


class DescriptionCalls:
    """Calls of Admin that describe groups of consumers, and others of the classic protocol."""

    _cluster: Cluster

    async def describe_consumer_groups(
        self, group_ids: Iterable[str], *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, ConsumerGroupDescription]:
        """Describe groups of consumers, of type Consumer or (by falling back to DescribeGroups) Classic. Fails per
        group: GroupIdNotFound (with ConsumerGroupDescribe's message), IllegalArgument for a classic group of another
        protocol type, GroupAuthorizationFailed, TopicAuthorizationFailed.
        """
        deadline = self._cluster.deadline("describeConsumerGroups", timeout_ms)

        async def ask(peer: Peer, keys: list[str]) -> dict[str, ConsumerGroupDescription | Failure]:
            known = await ask_classic(peer, [key for key in keys if key in self._cluster.classic_groups])
            # A group may have changed its type since it was listed: describe groups without a result in both ways.
            found = {key: one for key, one in known.items() if _is_there(one)}
            unknown = [key for key in keys if key not in found]
            if unknown:
                found |= await ask_both(peer, unknown)
            return found

        async def ask_classic(peer: Peer, keys: list[str]) -> dict[str, ConsumerGroupDescription | Failure]:
            if not keys:
                return {}
            return await _describe_classic(peer, keys, include_authorized_operations, deadline, _as_consumer_group)

        async def ask_both(peer: Peer, keys: list[str]) -> dict[str, ConsumerGroupDescription | Failure]:
            found: dict[str, ConsumerGroupDescription | Failure]
            try:
                request = m.ConsumerGroupDescribeRequest(keys, include_authorized_operations)
                response = await peer.ask(m.ConsumerGroupDescribeResponse, request, deadline)
                found = by_group(response.groups, lambda group: _consumer_group(group, coordinator_at(peer)))
            except UnsupportedVersion as error:
                found = dict.fromkeys(keys, error)
            firsts = {key: failure for key in keys if (failure := _may_be_classic(found.get(key))) is not None}
            for key, one in (await ask_classic(peer, list(firsts))).items():
                is_unknown_to_both = isinstance(one, GroupIdNotFound) and isinstance(firsts[key], GroupIdNotFound)
                found[key] = firsts[key] if is_unknown_to_both else one
            return found

        wanted = several(group_ids, "group_ids")
        return await routed(self._cluster, deadline, ask, chunk=_GROUPS_PER_REQUEST).run(wanted)

    async def describe_classic_groups(
        self, group_ids: Iterable[str], *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, ClassicGroupDescription]:
        """Describe groups of the classic protocol, of any protocol type.

        A group that doesn't exist fails with GroupIdNotFound, or is described as Dead by a broker before 4.0.
        """
        deadline = self._cluster.deadline("describeClassicGroups", timeout_ms)

        async def ask(peer: Peer, keys: list[str]) -> dict[str, ClassicGroupDescription | Failure]:
            return await _describe_classic(peer, keys, include_authorized_operations, deadline, _as_classic_group)

        wanted = several(group_ids, "group_ids")
        return await routed(self._cluster, deadline, ask, chunk=_GROUPS_PER_REQUEST).run(wanted)


def _is_there(described: ConsumerGroupDescription | Failure) -> bool:
    return isinstance(described, ConsumerGroupDescription) and described.group_state is not GroupState.DEAD


def _may_be_classic(described: ConsumerGroupDescription | Failure | None) -> Failure | None:
    if isinstance(described, UnsupportedVersion):
        return described
    if isinstance(described, Exception) and getattr(described, "code", None) in _NOT_OF_CONSUMER_TYPE:
        return described
    return None


def _consumer_group(group: DescribedConsumerGroup, coordinator: Node) -> ConsumerGroupDescription:
    return ConsumerGroupDescription(
        group_id=group.group_id,
        group_type=GroupType.CONSUMER,
        group_state=GroupState.parse(group.group_state),
        is_simple=False,
        partition_assignor=group.assignor_name,
        members=tuple(_consumer_member(member) for member in group.members),
        coordinator=coordinator,
        group_epoch=group.group_epoch,
        target_assignment_epoch=group.assignment_epoch,
        authorized_operations=operation_names(group.authorized_operations),
    )


def _consumer_member(member: Member) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=partitions_of(member.assignment),
        target_assignment=partitions_of(member.target_assignment),
        member_epoch=member.member_epoch,
        upgraded=_UPGRADED.get(member.member_type),
        rack_id=member.rack_id,
        subscribed_topics=tuple(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex or None,
    )


def partitions_of(assignment: Assignment | ShareAssignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions
    )


async def _describe_classic(
    peer: Peer,
    keys: list[str],
    include_authorized_operations: bool,
    deadline: Deadline,
    convert: Callable[[DescribedGroup, Node], D],
) -> dict[str, D | Failure]:
    def build(version: int) -> m.DescribeGroupsRequest:
        # Brokers before 2.3 don't return the authorized operations: the description then has None.
        return m.DescribeGroupsRequest(keys, include_authorized_operations and version >= 3)

    response = await peer.ask(m.DescribeGroupsResponse, build, deadline)
    results: dict[str, D | Failure] = {}
    for group in response.groups:
        if group.error_code:
            results[group.group_id] = error_for(group.error_code, group.error_message)
        else:
            try:
                results[group.group_id] = convert(group, coordinator_at(peer))
            except IllegalArgument as error:
                results[group.group_id] = error
    return results


def _as_consumer_group(group: DescribedGroup, coordinator: Node) -> ConsumerGroupDescription:
    if group.protocol_type not in _PROTOCOL_TYPES:
        raise IllegalArgument(f"GroupId {group.group_id} is not a consumer group ({group.protocol_type}).")
    return ConsumerGroupDescription(
        group.group_id,
        GroupType.CLASSIC,
        GroupState.parse(group.group_state),
        group.protocol_type == "",
        group.protocol_data,
        _classic_members(group) if group.members else (),
        coordinator,
        group_epoch=None,
        target_assignment_epoch=None,
        authorized_operations=operation_names(group.authorized_operations),
    )


def _as_classic_group(group: DescribedGroup, coordinator: Node) -> ClassicGroupDescription:
    return ClassicGroupDescription(
        group_id=group.group_id,
        protocol_type=group.protocol_type,
        protocol=group.protocol_data,
        group_state=GroupState.parse(group.group_state),
        members=_classic_members(group),
        coordinator=coordinator,
        authorized_operations=operation_names(group.authorized_operations),
    )


def _classic_members(group: DescribedGroup) -> tuple[MemberDescription, ...]:
    # Other protocol types (Connect …) have blobs of other forms.
    are_consumers = group.protocol_type in _PROTOCOL_TYPES
    return tuple(_classic_member(member, are_consumers) for member in group.members)


def _classic_member(member: m.DescribedGroupMember, is_consumer: bool) -> MemberDescription:
    assignment = _assignment(member.member_assignment) if is_consumer else ()
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=assignment or (),
        subscribed_topics=_subscribed_topics(member.member_metadata) if is_consumer else None,
        metadata=member.member_metadata,
        assignment_blob=member.member_assignment,
        is_assignment_readable=assignment is not None,
    )


def _assignment(blob: bytes) -> tuple[TopicPartition, ...] | None:
    """The partitions of an assignment blob; None if it is malformed, as one member's blob must not hide its group."""
    try:
        topics = consumer_protocol.decode_assignment(blob).assigned_partitions if blob else ()
    except MalformedMessage:
        return None
    return tuple(TopicPartition(topic.topic, index) for topic in topics for index in topic.partitions)


def _subscribed_topics(blob: bytes) -> tuple[str, ...] | None:
    """The topics of a subscription blob; None when it is empty or malformed."""
    try:
        return tuple(consumer_protocol.decode_subscribed_topics(blob)) if blob else None
    except MalformedMessage:
        return None


def member_identities(members: Sequence[MemberDescription]) -> list[tuple[str | None, str]]:
    """The members' ids for LeaveGroup: (instance id, ""), or (None, member id) for a dynamic member."""
    return [(None, member.member_id) if member.instance_id is None else (member.instance_id, "") for member in members]
