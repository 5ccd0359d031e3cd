"""ShareGroupHeartbeat (76): joining, staying in, and leaving a share group (KIP-932)."""

from __future__ import annotations

from dataclasses import replace

from groupkeeper.coordinator.epochs.checks import check_epoch, check_size, check_texts, known_or_new, require_member
from groupkeeper.coordinator.epochs.group import LEFT_EPOCH
from groupkeeper.coordinator.epochs.log import by_topic
from groupkeeper.coordinator.kernel.group import GroupType
from groupkeeper.coordinator.kernel.result import GroupCall, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.share import records as share_group_records
from groupkeeper.coordinator.share.group import ShareGroup, ShareMember
from groupkeeper.coordinator.share.step import ShareStep
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol.errors import InvalidRequest
from groupkeeper.protocol.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from groupkeeper.protocol.messages import share_group_heartbeat_response as response_message


def heartbeat(
    state: StateView, settings: Settings, call: GroupCall, request: ShareGroupHeartbeatRequest, now_ms: int
) -> Result:
    """Answers a heartbeat. Raises an error for an invalid request, member or epoch."""
    _check_request(request)
    if request.member_epoch == LEFT_EPOCH:
        return _leave(state, settings, request, now_ms)
    group = known_or_new(state, ShareGroup, request.group_id, request.member_epoch)
    check_size(group, settings.group_share_max_size, request.member_id)
    if request.member_epoch != 0:
        _check_epoch(require_member(group, request.member_id), request.member_epoch)
    return _go_on(ShareStep(group, settings, state.topics, now_ms), call, request)


# --- checks


def _check_request(request: ShareGroupHeartbeatRequest) -> None:
    check_texts(MemberId=request.member_id, GroupId=request.group_id, RackId=request.rack_id)
    if request.member_epoch == 0 and not request.subscribed_topic_names:
        raise InvalidRequest("SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEFT_EPOCH:
        raise InvalidRequest("MemberEpoch is invalid.")


def _check_epoch(member: ShareMember, received: int) -> None:
    detail = f", and it does not match the previous member epoch ({member.previous_member_epoch})"
    check_epoch(GroupType.SHARE, member, received, lambda _: True, detail)


# --- staying in


def _go_on(step: ShareStep, call: GroupCall, request: ShareGroupHeartbeatRequest) -> Result:
    known = step.group.members.get(request.member_id)
    member = known or ShareMember(request.member_id)
    names = request.subscribed_topic_names
    updated = replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        subscribed_topic_names=member.subscribed_topic_names if names is None else tuple(sorted(set(names))),
        client_id=call.client_id,
        client_host=call.client_host,
    )
    if updated != known:
        step.write(share_group_records.member_record(request.group_id, updated))
    has_new_names = updated.subscribed_topic_names != member.subscribed_topic_names
    is_settled = step.is_settled and updated == known
    has_bumped = not is_settled and step.refresh(must_bump=has_new_names)
    if not is_settled:
        step.update_target()
    reconciled = step.reconcile(request.member_id, has_bumped=has_bumped)
    step.arm_session(reconciled)
    if not is_settled:
        step.initialize_subscribed()
        step.settle()
    has_assignment = request.member_epoch == 0 or names is not None or member.assigned != reconciled.assigned
    return step.result(
        ShareGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=reconciled.member_epoch,
            heartbeat_interval_ms=step.settings.group_share_heartbeat_interval_ms,
            assignment=response_message.Assignment(by_topic(reconciled.assigned, response_message.TopicPartitions))
            if has_assignment
            else None,
        )
    )


# --- leaving


def _leave(state: StateView, settings: Settings, request: ShareGroupHeartbeatRequest, now_ms: int) -> Result:
    group = state.require(request.group_id, ShareGroup)
    step = ShareStep(group, settings, state.topics, now_ms)
    step.remove_members((require_member(group, request.member_id).member_id,))
    return step.result(ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch))
