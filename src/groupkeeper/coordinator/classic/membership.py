"""SyncGroup, Heartbeat and LeaveGroup of the classic protocol, and the timers of its groups."""

from __future__ import annotations

from collections.abc import Sequence

from groupkeeper.coordinator.classic.group import ClassicGroup, Joining, Syncing
from groupkeeper.coordinator.classic.step import Step, check_generation, check_member, check_protocol, session_of
from groupkeeper.coordinator.kernel.result import GroupCall, Immediate, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import NONE, KafkaError
from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest
from groupkeeper.protocol.messages.heartbeat_response import HeartbeatResponse
from groupkeeper.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from groupkeeper.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest


def sync(
    group: ClassicGroup | None, settings: Settings, call: GroupCall, request: SyncGroupRequest, now_ms: int
) -> Result:
    """Answers SyncGroup; a follower's is parked until the leader's assignment is in the log."""
    group = _joined(group, request.group_id)
    _check_sync(group, request)
    if isinstance(group.soft.rebalance, Joining):
        raise errors.RebalanceInProgress
    step = Step(group, settings, now_ms)
    member = step.roster.members[request.member_id]
    step.renew_session(member)
    step.note_sync(request.member_id)
    if not isinstance(step.rebalance, Syncing):
        return step.result(step.assignment_response(request.member_id))
    step.await_sync(request.member_id, call.call_id)
    if request.member_id == step.roster.leader_id:
        step.complete_sync_phase({one.member_id: one.assignment for one in request.assignments})
    return step.result(parked=call.call_id)


def _check_sync(group: ClassicGroup, request: SyncGroupRequest) -> None:
    roster = group.roster
    check_member(roster, request.member_id, request.group_instance_id)
    check_generation(roster, request.generation_id)
    check_protocol(request, roster.protocol_type, roster.protocol_name)


def sync_failed(group: ClassicGroup, settings: Settings, call: GroupCall, error: KafkaError, now_ms: int) -> Result:
    """The leader's assignment could not be written: every parked SyncGroup gets the error, and the group rebalances."""
    step = Step(group, settings, now_ms)
    assert isinstance(call.request, SyncGroupRequest)
    step.await_sync(call.request.member_id, call.call_id)
    step.fail_syncs(error.code)
    step.enter_join_phase()
    step.settle_join_phase()
    return step.result(parked=call.call_id)


def heartbeat(group: ClassicGroup | None, request: HeartbeatRequest) -> Result:
    """Answers Heartbeat and renews the session, even if the member must rejoin."""
    group = _joined(group, request.group_id)
    roster = group.roster
    check_member(roster, request.member_id, request.group_instance_id)
    check_generation(roster, request.generation_id)
    is_joining = isinstance(group.soft.rebalance, Joining)
    return Result(
        HeartbeatResponse(error_code=errors.RebalanceInProgress.code if is_joining else NONE),
        timers=(session_of(request.group_id, roster.members[request.member_id]),),
    )


def leave(group: ClassicGroup | None, settings: Settings, request: LeaveGroupRequest, now_ms: int) -> Result:
    """Removes the members of a LeaveGroup in its version-3 form, each with its own outcome."""
    if not request.group_id:
        raise errors.InvalidGroupId
    if group is None:
        return Immediate(
            LeaveGroupResponse(members=[_left(member, errors.UnknownMemberId.code) for member in request.members])
        )
    step = Step(group, settings, now_ms)
    responses = []
    has_anybody_left = False
    for member in request.members:
        try:
            step.drop_member(_leaving_id(step, member))
        except KafkaError as error:
            responses.append(_left(member, error.code))
        else:
            responses.append(_left(member, NONE))
            has_anybody_left = True
    if has_anybody_left:
        step.rebalance_without_dropped()
    return step.result(LeaveGroupResponse(members=responses))


def _leaving_id(step: Step, leaving: MemberIdentity) -> str:
    """The member that leaves, or the pending member id; an instance id alone names a static member."""
    member_id = leaving.member_id
    if not member_id and leaving.group_instance_id is not None:
        member_id = step.roster.member_id_by_instance.get(leaving.group_instance_id, "")
    if member_id not in step.pending:
        check_member(step.roster, member_id, leaving.group_instance_id)
    return member_id


def _left(member: MemberIdentity, error_code: int) -> MemberResponse:
    return MemberResponse(member.member_id, member.group_instance_id, error_code)


def session_expired(group: ClassicGroup, settings: Settings, member_id: str, now_ms: int) -> Result:
    """The session of a member, or of a pending member id, has expired."""
    step = Step(group, settings, now_ms)
    if member_id in step.pending:
        step.drop_member(member_id)
        step.end_join_phase_early()
    elif member_id in step.roster.members and not _is_excused(group, member_id):
        step.remove_members(member_id)
    else:
        return Result()
    return step.result()


def _is_excused(group: ClassicGroup, member_id: str) -> bool:
    """Whether a parked call keeps the member's session alive; the JoinGroup of a new member doesn't."""
    rebalance = group.soft.rebalance
    if rebalance is None or member_id not in rebalance.waiting:
        return False
    return not (isinstance(rebalance, Joining) and member_id in rebalance.newcomers)


def join_phase_expired(group: ClassicGroup, settings: Settings, now_ms: int) -> Result:
    """Continues with the members that have joined; the first rebalance of a group may wait longer."""
    if not isinstance(group.soft.rebalance, Joining):
        return Result()
    step = Step(group, settings, now_ms)
    if group.soft.rebalance.initial is None:
        step.complete_join_phase()
    else:
        step.end_initial_delay()
    return step.result()


def sync_phase_expired(group: ClassicGroup, settings: Settings, now_ms: int) -> Result:
    """Removes members that did not fetch their assignment; the others rebalance."""
    if isinstance(group.soft.rebalance, Joining) or not group.soft.unsynced:
        return Result()
    step = Step(group, settings, now_ms)
    step.remove_members(*sorted(group.soft.unsynced))
    return step.result()


def resume_group(group: ClassicGroup, settings: Settings, now_ms: int) -> Sequence[Result]:
    """After loading: restarts the sessions, and rebalances a group that is larger than now allowed."""
    members = group.roster.members.values()
    sessions = Result(timers=tuple(session_of(group.group_id, member) for member in members))
    if len(members) <= settings.group_max_size:
        return (sessions,)
    step = Step(group, settings, now_ms)
    step.enter_join_phase()
    step.settle_join_phase()
    return (sessions, step.result())


def _joined(group: ClassicGroup | None, group_id: str) -> ClassicGroup:
    """The group, if there is one that a member may be in."""
    if not group_id:
        raise errors.InvalidGroupId
    if group is None:
        raise errors.UnknownMemberId
    return group
