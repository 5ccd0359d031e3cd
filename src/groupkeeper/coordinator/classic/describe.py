"""DescribeGroups: classic and simple groups with their members."""

from __future__ import annotations

from groupkeeper.coordinator.classic.group import ClassicGroup, Member
from groupkeeper.coordinator.kernel.group import GroupState
from groupkeeper.coordinator.kernel.result import GroupCall, Immediate, Result
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE, GroupIdNotFound
from groupkeeper.protocol.messages.describe_groups_response import DescribedGroup

FIRST_DESCRIBE_VERSION_WITH_NOT_FOUND = 6
_DEAD = GroupState.DEAD.value


def describe_groups(state: StateView, call: GroupCall, request: m.DescribeGroupsRequest) -> Result:
    """Describes classic and simple groups."""
    return Immediate(
        m.DescribeGroupsResponse(groups=[_describe(state, call.version, group_id) for group_id in request.groups])
    )


def _describe(state: StateView, version: int, group_id: str) -> DescribedGroup:
    group = state.find(group_id, ClassicGroup)
    if group is None:
        if version >= FIRST_DESCRIBE_VERSION_WITH_NOT_FOUND:
            return DescribedGroup(GroupIdNotFound.code, state.why_missing(group_id, ClassicGroup), group_id, _DEAD)
        return DescribedGroup(NONE, None, group_id, _DEAD)
    is_stable = group.state is GroupState.STABLE
    protocol_name = group.roster.protocol_name if is_stable else None
    return DescribedGroup(
        error_code=NONE,
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.roster.protocol_type or "",
        protocol_data=protocol_name or "",
        members=[_describe_member(member, protocol_name) for member in group.roster.members.values()],
    )


def _describe_member(member: Member, protocol_name: str | None) -> m.DescribedGroupMember:
    return m.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol_name is None else member.metadata(protocol_name),
        member_assignment=member.assignment,
    )
