"""Requests to the coordinator that concern share groups, and its refusals of them."""

from __future__ import annotations

from collections.abc import Callable

from groupkeeper.coordinator.kernel.result import GroupCall, Released, Result, Work
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.refusals import failure_of, own_message
from groupkeeper.coordinator.share import offsets as share_group_offsets
from groupkeeper.coordinator.share.describe import describe_share_groups
from groupkeeper.coordinator.share.group import ShareGroup
from groupkeeper.coordinator.share.heartbeat import heartbeat
from groupkeeper.coordinator.share.work import DeleteShares, InitializeShares, ShareErrors
from groupkeeper.coordinator.state import StateView
from groupkeeper.coordinator.views import remove_groups
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import CoordinatorLoadInProgress, KafkaError, NonEmptyGroup
from groupkeeper.protocol.messages.share_group_describe_response import DescribedGroup, ShareGroupDescribeResponse
from groupkeeper.protocol.primitives import Message


def handle(state: StateView, settings_of: Callable[[str], Settings], call: GroupCall, now_ms: int) -> Result:
    """Answers a request; raises `KafkaError` to refuse it."""
    match call.request:
        case m.ShareGroupHeartbeatRequest() as request:
            return heartbeat(state, settings_of(request.group_id), call, request, now_ms)
        case m.ShareGroupDescribeRequest() as request:
            return describe_share_groups(state, settings_of, request)
        case m.AlterShareGroupOffsetsRequest() as request:
            return share_group_offsets.alter(state, settings_of(request.group_id), call, request, now_ms)
        case m.DeleteShareGroupOffsetsRequest() as request:
            return share_group_offsets.delete(state, call, request)
    raise AssertionError(f"no group request: {type(call.request).__name__}")


def work_due(state: StateView, work: Work) -> tuple[Work, Result]:
    """The part of the work that is still needed, and the result that must be in the log before the work is done."""
    assert isinstance(work, InitializeShares | DeleteShares)
    return share_group_offsets.due(state, work)


def work_done(state: StateView, work: Work, errors: ShareErrors) -> Result:
    """The result after the share coordinator has done its work."""
    if isinstance(work, InitializeShares):
        return share_group_offsets.initialized(state, work, errors)
    assert isinstance(work, DeleteShares)
    request = work.call.request
    if isinstance(request, m.DeleteShareGroupOffsetsRequest):
        return share_group_offsets.offsets_deleted(state, work.call, request, work, errors)
    assert isinstance(request, m.DeleteGroupsRequest)
    return _groups_cleared(state, work, request, errors)


def _groups_cleared(
    state: StateView, work: DeleteShares, request: m.DeleteGroupsRequest, errors: ShareErrors
) -> Result:
    """Deletes groups after the state of their share-partitions was deleted. A group with an error stays, and its
    deletion may be requested again. A group whose offsets other requests alter or delete meanwhile stays too: the state
    of its share-partitions would be orphaned if their work came later or failed.
    """
    codes = {key.group_id: error.code for key, error in errors.items()}
    for group_id, changes in work.changes.items():
        group = state.find(group_id, ShareGroup)
        if group is not None and work.in_use.get(group_id):
            codes[group_id] = NonEmptyGroup.code
        elif group is not None and not group.members and group.partition_changes != changes:
            codes.setdefault(group_id, CoordinatorLoadInProgress.code)
    result = remove_groups(state, request, codes)
    assert isinstance(result.response, Message)
    released = (Released(work.call.call_id, result.response),)
    return Result(records=result.records, timers=result.timers, released=released)


def refuse(request: Message, error: KafkaError) -> Message:
    """The response to a request that failed as a whole."""
    match request:
        case m.ShareGroupHeartbeatRequest():
            return m.ShareGroupHeartbeatResponse(error_code=error.code, error_message=own_message(error))
        case m.ShareGroupDescribeRequest():
            groups = [failure_of(DescribedGroup, group_id, error) for group_id in request.group_ids]
            return ShareGroupDescribeResponse(groups=groups)
        case m.AlterShareGroupOffsetsRequest():
            return m.AlterShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
        case m.DeleteShareGroupOffsetsRequest():
            return m.DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
    raise AssertionError(f"no group request: {type(request).__name__}")
