"""What operators see of groups: list, describe; and the removal of whole groups."""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.coordinator.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup, Member
from groupkeeper.coordinator.classic.record import group_tombstone
from groupkeeper.coordinator.consumer.group import ConsumerGroup
from groupkeeper.coordinator.consumer.records import group_tombstones
from groupkeeper.coordinator.kernel.failures import describe_failure
from groupkeeper.coordinator.kernel.group_state import GroupState, GroupType
from groupkeeper.coordinator.kernel.hash_order import in_hash_order
from groupkeeper.coordinator.kernel.result import Call, Record, Result
from groupkeeper.coordinator.kernel.timers import Disarm, JoinPhase, MemberSession, StreamsDelay, SyncPhase, TimerKey
from groupkeeper.coordinator.offsets.commit import all_offset_tombstones
from groupkeeper.coordinator.share.group import SHARE_PROTOCOL_TYPE, ShareGroup
from groupkeeper.coordinator.state import Group, StateView
from groupkeeper.coordinator.streams.group import STREAMS_PROTOCOL_TYPE, StreamsGroup
from groupkeeper.protocol.errors import NONE, GroupIdNotFound, NonEmptyGroup
from groupkeeper.protocol.messages.delete_groups_request import DeleteGroupsRequest
from groupkeeper.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from groupkeeper.protocol.messages.describe_groups_request import DescribeGroupsRequest
from groupkeeper.protocol.messages.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from groupkeeper.protocol.messages.list_groups_request import ListGroupsRequest
from groupkeeper.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse

FIRST_DESCRIBE_VERSION_WITH_NOT_FOUND = 6


def list_groups(state: StateView, request: ListGroupsRequest) -> Result:
    """All groups that match both filters; an empty filter matches all, an unknown name none."""
    states = {text.strip().lower() for text in request.states_filter}
    types = {text.lower() for text in request.types_filter}
    listed = (_list(state.groups[group_id]) for group_id in in_hash_order(state.groups))
    return Result(
        ListGroupsResponse(
            groups=[
                group
                for group in listed
                if (not states or group.group_state.lower() in states) and (not types or group.group_type in types)
            ]
        )
    )


def _list(group: Group) -> ListedGroup:
    if isinstance(group, ConsumerGroup):
        return ListedGroup(group.group_id, CONSUMER_PROTOCOL_TYPE, group.state.value, GroupType.CONSUMER.value)
    if isinstance(group, ShareGroup):
        return ListedGroup(group.group_id, SHARE_PROTOCOL_TYPE, group.state.value, GroupType.SHARE.value)
    if isinstance(group, StreamsGroup):
        return ListedGroup(group.group_id, STREAMS_PROTOCOL_TYPE, group.state.value, GroupType.STREAMS.value)
    return ListedGroup(group.group_id, group.roster.protocol_type or "", group.state.value, GroupType.CLASSIC.value)


def describe_groups(state: StateView, call: Call, request: DescribeGroupsRequest) -> Result:
    """Describes classic and simple groups."""
    return Result(
        DescribeGroupsResponse(groups=[_describe(state, call.version, group_id) for group_id in request.groups])
    )


def _describe(state: StateView, version: int, group_id: str) -> DescribedGroup:
    group = state.classic_group(group_id)
    if group is None:
        if version >= FIRST_DESCRIBE_VERSION_WITH_NOT_FOUND:
            trouble = "is not a classic group" if group_id in state.groups else "not found"
            return describe_failure(group_id, GroupIdNotFound(f"Group {group_id} {trouble}."), GroupState.DEAD)
        return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
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


def _describe_member(member: Member, protocol_name: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol_name is None else member.metadata(protocol_name),
        member_assignment=member.assignment,
    )


def delete_groups(state: StateView, call: Call, request: DeleteGroupsRequest) -> Result:
    """Removes empty groups with all their offsets; each group has its own outcome. Share-partitions
    go before their groups.
    """
    if any(isinstance(state.groups.get(group_id), ShareGroup) for group_id in request.groups_names):
        from groupkeeper.coordinator.share.offsets import begin_deletion

        begun = begin_deletion(state, call, request)
        if begun is not None:
            return begun
    return remove_groups(state, request, {})


def remove_groups(state: StateView, request: DeleteGroupsRequest, failures: Mapping[str, int]) -> Result:
    """The removal itself. `failures` has the error codes of groups that must stay."""
    records: list[Record] = []
    timers: list[Disarm] = []
    results = []
    for group_id in request.groups_names:
        group = state.groups.get(group_id)
        error_code = failures.get(group_id, NONE)
        if error_code:
            pass
        elif group is None:
            error_code = GroupIdNotFound.code
        elif group.state is not GroupState.EMPTY:
            error_code = NonEmptyGroup.code
        else:
            records.extend(all_offset_tombstones(state, group_id))
            records.extend(removal_of(group))
            if isinstance(group, ClassicGroup):
                timers.extend(Disarm(timer) for timer in timers_of(group))
            elif isinstance(group, StreamsGroup):
                timers.append(Disarm(StreamsDelay(group_id)))
        results.append(DeletableGroupResult(group_id, error_code))
    return Result(DeleteGroupsResponse(results=results), records=tuple(records), timers=tuple(timers))


def removal_of(group: Group) -> list[Record]:
    """The records that remove a group itself, whatever its type."""
    if isinstance(group, ShareGroup):
        from groupkeeper.coordinator.share import records as share_group_records

        return share_group_records.group_tombstones(group)
    if isinstance(group, StreamsGroup):
        from groupkeeper.coordinator.streams import records as streams_group_records

        return streams_group_records.group_tombstones(group)
    return group_tombstones(group) if isinstance(group, ConsumerGroup) else [group_tombstone(group.group_id)]


def timers_of(group: ClassicGroup) -> list[TimerKey]:
    """Every timer that may be armed for a group."""
    timers: list[TimerKey] = [JoinPhase(group.group_id), SyncPhase(group.group_id)]
    timers.extend(MemberSession(group.group_id, member_id) for member_id in group.roster.members)
    timers.extend(MemberSession(group.group_id, member_id) for member_id in group.soft.pending)
    return timers
