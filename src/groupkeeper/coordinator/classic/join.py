"""JoinGroup of the classic protocol."""

from __future__ import annotations

from dataclasses import replace

from groupkeeper.coordinator.classic.group import ClassicGroup, Joining, Member, Protocols, Roster, Syncing
from groupkeeper.coordinator.classic.record import group_record
from groupkeeper.coordinator.classic.step import Step, check_member
from groupkeeper.coordinator.kernel.group import GroupState
from groupkeeper.coordinator.kernel.result import GroupCall, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import MemberSession
from groupkeeper.protocol import errors
from groupkeeper.protocol.messages import JoinGroupRequest, JoinGroupResponse

FIRST_VERSION_WITH_MEMBER_ID_REQUIRED = 4
FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9


def join(
    group: ClassicGroup | None, settings: Settings, call: GroupCall, request: JoinGroupRequest, now_ms: int
) -> Result:
    """Answers JoinGroup; mostly parked until the join phase ends."""
    if not request.group_id:
        raise errors.InvalidGroupId
    check_session_timeout(settings, request)
    if group is None and request.member_id:
        raise errors.UnknownMemberId
    step = Step(group or ClassicGroup(request.group_id), settings, now_ms)
    result = _join(step, call, request)
    if group is None and not result.records:
        # The group is stored before its first rebalance completes, even if its first member is refused.
        return replace(result, records=(group_record(request.group_id, Roster(state_since_ms=now_ms)),))
    return result


def check_session_timeout(settings: Settings, request: JoinGroupRequest) -> None:
    """Raises `InvalidSessionTimeout`."""
    shortest_ms, longest_ms = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if not shortest_ms <= request.session_timeout_ms <= longest_ms:
        raise errors.InvalidSessionTimeout


def _join(step: Step, call: GroupCall, request: JoinGroupRequest) -> Result:
    if not _has_room_for(step, request.member_id):
        if request.member_id in step.roster.members:
            step.drop_member(request.member_id)
        return step.result(_refusal("", errors.GroupMaxSizeReached.code))
    if not _accepts_protocols(step, request):
        return step.result(_refusal(request.member_id, errors.InconsistentGroupProtocol.code))
    if request.member_id:
        return _join_with_id(step, call, request)
    return _join_without_id(step, call, request)


def _join_without_id(step: Step, call: GroupCall, request: JoinGroupRequest) -> Result:
    new_id = f"{request.group_instance_id or call.client_id}-{call.fresh_id}"
    if request.group_instance_id is not None:
        old_id = step.roster.member_id_by_instance.get(request.group_instance_id)
        if old_id is not None:
            return _replace_static_member(step, call, request, old_id, new_id)
    elif call.version >= FIRST_VERSION_WITH_MEMBER_ID_REQUIRED:
        step.pending = step.pending.having({new_id: None})
        step.arm(MemberSession(step.group_id, new_id), request.session_timeout_ms)
        return step.result(_refusal(new_id, errors.MemberIdRequired.code))
    return _add_member(step, call, request, new_id)


def _join_with_id(step: Step, call: GroupCall, request: JoinGroupRequest) -> Result:
    if request.member_id in step.pending:
        if request.group_instance_id is not None:
            # The coordinator assigns ids to dynamic members only.
            return step.result(_refusal("", errors.UnknownServerError.code))
        return _add_member(step, call, request, request.member_id)
    check_member(step.roster, request.member_id, request.group_instance_id)
    member = step.roster.members[request.member_id]
    if step.state is GroupState.EMPTY:
        raise errors.UnknownMemberId
    is_unchanged = member.protocols == protocols_of(request)
    is_leader = step.roster.leader_id == member.member_id
    if is_unchanged and (isinstance(step.rebalance, Syncing) or (step.state is GroupState.STABLE and not is_leader)):
        # The member may have missed the response; nothing changed that needs a rebalance.
        step.renew_session(member)
        return step.result(step.generation_response(member.member_id))
    step.rebalance_with(_rejoined(member, request), call.call_id, is_new=False)
    return step.result(parked=call.call_id)


def _rejoined(member: Member, request: JoinGroupRequest) -> Member:
    """The member with the values of its request."""
    return replace(
        member,
        rebalance_timeout_ms=rebalance_timeout_ms(request),
        session_timeout_ms=request.session_timeout_ms,
        protocols=protocols_of(request),
    )


def _add_member(step: Step, call: GroupCall, request: JoinGroupRequest, member_id: str) -> Result:
    member = Member(
        member_id=member_id,
        instance_id=request.group_instance_id,
        client_id=call.client_id,
        client_host=call.client_host,
        rebalance_timeout_ms=rebalance_timeout_ms(request),
        session_timeout_ms=request.session_timeout_ms,
        protocols=protocols_of(request),
    )
    step.pending = step.pending.without(member_id)
    if not step.roster.members:
        step.roster = replace(step.roster, protocol_type=request.protocol_type)
    if isinstance(step.rebalance, Joining) and step.rebalance.initial is not None:
        step.rebalance = replace(step.rebalance, initial=replace(step.rebalance.initial, has_newcomer=True))
    # A member without an id can't send heartbeats, so only its parked call shows that it is alive.
    step.arm(MemberSession(step.group_id, member_id), step.settings.new_member_join_timeout_ms)
    step.rebalance_with(member, call.call_id, is_new=True)
    return step.result(parked=call.call_id)


def _replace_static_member(step: Step, call: GroupCall, request: JoinGroupRequest, old_id: str, new_id: str) -> Result:
    """A new process joins with the instance id of a member."""
    old_leader = step.roster.leader_id or ""
    member = _rejoined(replace(step.roster.members[old_id], member_id=new_id), request)
    step.replace_static_member(old_id, member)
    if step.rebalance is not None or step.roster.select_protocol() != step.roster.protocol_name:
        # The leader may be assigning partitions to the old id, or the members must agree on another protocol.
        step.rebalance_with(member, call.call_id, is_new=False)
        return step.result(parked=call.call_id)
    # Subscriptions may have changed without a rebalance; the record brings the new ones to a replay.
    step.roster = replace(step.roster, subscribed_topics=step.roster.find_subscribed_topics())
    step.records.append(group_record(step.group_id, step.roster))
    response = step.generation_response(new_id)
    if call.version < FIRST_VERSION_WITH_SKIP_ASSIGNMENT:
        # As the leader it would compute an assignment for which no SyncGroup waits, so it joins as a follower.
        response.leader = old_leader
        response.members = ()
    elif step.roster.leader_id == new_id:
        response.skip_assignment = True
        response.members = step.member_list()
    return step.result(response)


def _has_room_for(step: Step, member_id: str) -> bool:
    """Whether the group may have one more member; existing members may always stay."""
    if step.state is GroupState.EMPTY:
        return True
    if isinstance(step.rebalance, Joining):
        waiting = step.joining.waiting
        return member_id in waiting or len(waiting) < step.settings.group_max_size
    return member_id in step.roster.members or len(step.roster.members) < step.settings.group_max_size


def _accepts_protocols(step: Step, request: JoinGroupRequest) -> bool:
    """Whether the member has the group's protocol type, and at least one protocol that all other members have."""
    if step.state is GroupState.EMPTY:
        return bool(request.protocol_type) and bool(request.protocols)
    if request.protocol_type != step.roster.protocol_type:
        return False
    if not step.roster.members:
        return bool(request.protocols)
    return any(step.roster.is_common(protocol.name) for protocol in request.protocols)


def protocols_of(request: JoinGroupRequest) -> Protocols:
    """The protocols that the member offers."""
    return tuple((protocol.name, protocol.metadata) for protocol in request.protocols)


def rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """The rebalance timeout in ms; for version 0, which lacks this field, the session timeout."""
    return request.session_timeout_ms if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms


def require_member_id(member_id: str) -> JoinGroupResponse:
    """Refuses a dynamic member without an id; the response has the id with which it must rejoin (KIP-394)."""
    return _refusal(member_id, errors.MemberIdRequired.code)


def _refusal(member_id: str, error_code: int) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error_code, protocol_name=None, member_id=member_id)
