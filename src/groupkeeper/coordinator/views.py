"""The list of groups of all types, and the removal of whole groups."""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.coordinator.handlers import handler_of
from groupkeeper.coordinator.kernel.group import GroupState
from groupkeeper.coordinator.kernel.result import Disarm, GroupCall, Immediate, Record, Result
from groupkeeper.coordinator.offsets.commit import all_offset_tombstones
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE, GroupIdNotFound, NonEmptyGroup
from groupkeeper.protocol.java_hash import in_timeline_order

LOOKED_FOR = {each: each.value.lower() for each in GroupState} | {GroupState.NOT_READY: "not_ready"}
"""The filter text of each state. As in Apache Kafka, the filter of NotReady is not the name in responses."""


def list_groups(state: StateView, request: m.ListGroupsRequest) -> Result:
    """All groups that match both filters; an empty filter matches all, an unknown name none."""
    states = {text.strip().lower() for text in request.states_filter}
    types = {text.lower() for text in request.types_filter}
    listed = []
    for group_id in in_timeline_order(state.groups):
        group = state.groups[group_id]
        group_state, group_type = group.state, group.group_type.value
        if (not states or LOOKED_FOR[group_state] in states) and (not types or group_type in types):
            listed.append(m.ListedGroup(group_id, group.protocol_type, group_state.value, group_type))
    return Immediate(m.ListGroupsResponse(groups=listed))


def delete_groups(state: StateView, call: GroupCall, request: m.DeleteGroupsRequest) -> Result:
    """Removes empty groups with all their offsets; each group has its own outcome. Share-partitions are removed before
    their groups.
    """
    groups = (state.groups.get(group_id) for group_id in request.groups_names)
    for group_type in dict.fromkeys(group.group_type for group in groups if group is not None):
        begun = handler_of(group_type).before_removal(state, call, request)
        if begun is not None:
            return begun
    return remove_groups(state, request, {})


def remove_groups(state: StateView, request: m.DeleteGroupsRequest, failures: Mapping[str, int]) -> Result:
    """Removes the groups. `failures` has the error codes of groups that must stay."""
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
            handler = handler_of(group.group_type)
            records.extend(handler.removal(group))
            timers.extend(Disarm(timer) for timer in handler.timers(group))
        results.append(m.DeletableGroupResult(group_id, error_code))
    return Result(m.DeleteGroupsResponse(results=results), records=tuple(records), timers=tuple(timers))
