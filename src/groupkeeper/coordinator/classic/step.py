"""The transitions of a classic group's state machine, made on a working copy.

A `Step` starts from a group. Handlers make transitions one after the other, and the step ends as one `Result`: the
records, the new soft state, the responses that are due, and the timers. The group itself is not changed.

From one result to the next, by a request, a timer or the start of the coordinator (`tests/scenarios` compares):

    no group            > Empty                JoinGroup, OffsetCommit, TxnOffsetCommit
    no group            > PreparingRebalance   JoinGroup
    Empty               > no group             DeleteGroups, OffsetExpiration
    Empty               > PreparingRebalance   JoinGroup
    PreparingRebalance  > CompletingRebalance  JoinGroup, JoinPhase, LeaveGroup, MemberSession
    PreparingRebalance  > Empty                JoinPhase, LeaveGroup, MemberSession
    CompletingRebalance > Stable               SyncGroup
    CompletingRebalance > PreparingRebalance   JoinGroup, LeaveGroup, MemberSession, SyncGroup, SyncPhase
    CompletingRebalance > Empty                LeaveGroup, MemberSession, SyncPhase
    Stable              > PreparingRebalance   JoinGroup, LeaveGroup, MemberSession, SyncPhase, start
    Stable              > CompletingRebalance  JoinGroup
    Stable              > Empty                LeaveGroup, MemberSession

How a group becomes one of another type, and back, is in `consumer/conversion.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from groupkeeper.coordinator.classic.group import (
    ClassicGroup,
    InitialDelay,
    Joining,
    Member,
    Rebalance,
    Roster,
    Soft,
    Syncing,
    state_of,
)
from groupkeeper.coordinator.classic.record import group_record
from groupkeeper.coordinator.kernel.group import GroupState, GroupType
from groupkeeper.coordinator.kernel.result import (
    PARKED,
    Arm,
    Disarm,
    Immediate,
    Meter,
    Parked,
    Record,
    Released,
    Result,
)
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.soft import GroupChange
from groupkeeper.coordinator.kernel.timers import JoinPhase, MemberSession, SyncPhase, TimerKey
from groupkeeper.coordinator.kernel.value_map import ValueMap
from groupkeeper.protocol.errors import (
    NONE,
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from groupkeeper.protocol.messages import (
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupRequest,
    SyncGroupResponse,
)
from groupkeeper.protocol.primitives import Message

_new_tuple: Final = tuple.__new__
"""Makes a session's timer key in half the time: each commit and heartbeat needs one."""


class Step:
    """A classic group being changed."""

    def __init__(self, group: ClassicGroup, settings: Settings, now_ms: int) -> None:
        self.group_id = group.group_id
        self.settings = settings
        self.now_ms = now_ms
        self.roster = group.roster
        self.rebalance = group.soft.rebalance
        self.pending = group.soft.pending
        self.unsynced = group.soft.unsynced
        self.began_empty = group.state is GroupState.EMPTY
        self.records: list[Record] = []
        self._released: dict[int, Message] = {}
        self._timers: list[Arm | Disarm] = []
        self._marks: list[tuple[Meter, int]] = []

    @property
    def state(self) -> GroupState:
        """The state of the working copy."""
        return state_of(self.roster, self.rebalance)

    def arm(self, timer: TimerKey, after_ms: int) -> None:
        self._timers.append(Arm(timer, after_ms))

    def disarm(self, timer: TimerKey) -> None:
        self._timers.append(Disarm(timer))

    def renew_session(self, member: Member) -> None:
        """Restarts the member's session timeout."""
        self._timers.append(session_of(self.group_id, member))

    def release(self, calls: tuple[int, ...], response: Message) -> None:
        """Answers parked calls once the step's records are in the log."""
        for call_id in calls:
            self._released[call_id] = response

    def result(self, response: Message | None = None, *, parked: int | None = None) -> Result:
        """The step's outcome, with the `response` for the caller, or with the id of the `parked` call; both None
        without a caller.
        """
        sent: Message | Parked | None = response
        if parked is not None:
            sent = self._released.pop(parked, PARKED)
        # The record of an Empty group has the whole roster.
        roster = None if self.state is GroupState.EMPTY else self.roster
        soft = Soft(roster, self.rebalance, self.pending, self.unsynced)
        is_about_nothing_written = isinstance(sent, JoinGroupResponse) and (sent.error_code or not self.records)
        kind = Immediate if is_about_nothing_written else Result
        return kind(
            response=sent,
            records=tuple(self.records),
            soft=(GroupChange(GroupType.CLASSIC, self.group_id, soft),),
            released=tuple(Released(call_id, message) for call_id, message in self._released.items()),
            timers=tuple(self._timers),
            marks=tuple(self._marks),
        )

    # --- the join phase

    def enter_join_phase(self) -> None:
        """Makes the group PreparingRebalance unless it is; parked SyncGroups get REBALANCE_IN_PROGRESS.

        `settle_join_phase` must follow once the change that caused it is made.
        """
        if isinstance(self.rebalance, Joining):
            return
        if isinstance(self.rebalance, Syncing):
            self.fail_syncs(RebalanceInProgress.code)
        self.disarm(SyncPhase(self.group_id))
        self.unsynced = ValueMap()
        delay_ms = self.settings.group_initial_rebalance_delay_ms
        # The state before this step counts: a Stable group may be losing its last members.
        self.rebalance = Joining(initial=InitialDelay(delay_ms, 0) if self.began_empty else None)

    def settle_join_phase(self) -> None:
        """Ends the join phase once every member has rejoined, or arms the timer that ends it."""
        joining = self.joining
        initial = joining.initial
        if initial is None:
            if self._has_everybody_joined(joining):
                self.complete_join_phase()
            else:
                self.arm(JoinPhase(self.group_id), self.roster.rebalance_timeout_ms())
        else:
            remaining_ms = max(self.roster.rebalance_timeout_ms() - initial.delay_ms, 0)
            self.rebalance = replace(joining, initial=replace(initial, remaining_ms=remaining_ms))
            self.arm(JoinPhase(self.group_id), initial.delay_ms)

    def end_join_phase_early(self) -> None:
        """Ends a running join phase once all members have joined; a group's first rebalance never ends early."""
        if (
            isinstance(self.rebalance, Joining)
            and self.rebalance.initial is None
            and self._has_everybody_joined(self.rebalance)
        ):
            self.complete_join_phase()

    def _has_everybody_joined(self, joining: Joining) -> bool:
        return not self.pending and len(joining.waiting) == len(self.roster.members)

    @property
    def joining(self) -> Joining:
        """The running join phase."""
        assert isinstance(self.rebalance, Joining)
        return self.rebalance

    def await_join(self, member: Member, call_id: int, *, is_new: bool) -> None:
        """Adds a member to the roster, and its call to the calls that wait for the end of the join phase."""
        joining = self.joining
        present = self.roster.members.get(member.member_id)
        if present is not None:
            # The join phase that has just begun may have cleared the assignments.
            member = replace(member, assignment=present.assignment)
        self.roster = self.roster.with_member(member)
        calls = joining.waiting.get(member.member_id, ())
        self.rebalance = replace(
            joining,
            waiting=joining.waiting.having({member.member_id: (*calls, call_id)}),
            newcomers=joining.newcomers.having({member.member_id: None}) if is_new else joining.newcomers,
        )

    def rebalance_with(self, member: Member, call_id: int, *, is_new: bool) -> None:
        """A member joins or rejoins: starts a rebalance, or takes part in the running one."""
        is_running = isinstance(self.rebalance, Joining)
        self.enter_join_phase()
        self.await_join(member, call_id, is_new=is_new)
        if is_running:
            self.end_join_phase_early()
        else:
            self.settle_join_phase()

    def end_initial_delay(self) -> None:
        """The initial rebalance delay expired: waits again if a member joined, within the rebalance timeout."""
        joining = self.joining
        initial = joining.initial
        if initial is None or not initial.has_newcomer or initial.remaining_ms == 0:
            self.complete_join_phase()
            return
        delay_ms = min(self.settings.group_initial_rebalance_delay_ms, initial.remaining_ms)
        remaining_ms = max(initial.remaining_ms - initial.delay_ms, 0)
        self.rebalance = replace(joining, initial=InitialDelay(delay_ms, remaining_ms))
        self.arm(JoinPhase(self.group_id), delay_ms)

    def complete_join_phase(self) -> None:
        """Starts the next generation with the members that have rejoined, and answers all of them."""
        joining = self.joining
        self.disarm(JoinPhase(self.group_id))
        for member in self.roster.members.values():
            if member.instance_id is None and member.member_id not in joining.waiting:
                self.roster = self.roster.without_member(member.member_id)
                self.disarm(MemberSession(self.group_id, member.member_id))
        if self.roster.members and not joining.waiting:
            # Only absent static members are left: their session timeouts decide, so the join phase starts over.
            self.arm(JoinPhase(self.group_id), self.roster.rebalance_timeout_ms())
            return
        if self.roster.leader_id not in joining.waiting:
            self.roster = replace(self.roster, leader_id=next(iter(joining.waiting), None))
        self._begin_generation(joining)

    def _begin_generation(self, joining: Joining) -> None:
        """Makes the members one generation, or the group Empty when there are none."""
        roster = replace(self.roster, generation=self.roster.generation + 1, state_since_ms=self.now_ms)
        roster = replace(roster, protocol_name=roster.select_protocol() if roster.members else None)
        self.roster = replace(roster, subscribed_topics=roster.find_subscribed_topics())
        if not self.roster.members:
            self.rebalance = None
            self.records.append(group_record(self.group_id, self.roster))
            return
        self.rebalance = Syncing()
        self.unsynced = ValueMap(dict.fromkeys(self.roster.members))
        for member in self.roster.members.values():
            self.renew_session(member)
            self.release(joining.waiting.get(member.member_id, ()), self.generation_response(member.member_id))
        self.arm(SyncPhase(self.group_id), self.roster.rebalance_timeout_ms())

    def generation_response(self, member_id: str) -> JoinGroupResponse:
        """The response to JoinGroup in the current generation: only the leader gets the members."""
        return JoinGroupResponse(
            error_code=NONE,
            generation_id=self.roster.generation,
            protocol_type=self.roster.protocol_type,
            protocol_name=self.roster.protocol_name,
            leader=self.roster.leader_id or "",
            member_id=member_id,
            members=self.member_list() if member_id == self.roster.leader_id else (),
        )

    def member_list(self) -> list[JoinGroupResponseMember]:
        """The members with their metadata for the chosen protocol."""
        return [
            JoinGroupResponseMember(member.member_id, member.instance_id, member.metadata(self.roster.protocol_name))
            for member in self.roster.members.values()
        ]

    # --- the sync phase

    def await_sync(self, member_id: str, call_id: int) -> None:
        """Adds a call of a member to those that wait for the leader's assignment."""
        assert isinstance(self.rebalance, Syncing)
        calls = self.rebalance.waiting.get(member_id, ())
        waiting = self.rebalance.waiting.having({member_id: (*calls, call_id)})
        self.rebalance = replace(self.rebalance, waiting=waiting)

    def fail_syncs(self, error_code: int) -> None:
        """Answers every parked SyncGroup with an error and clears the assignments."""
        assert isinstance(self.rebalance, Syncing)
        self.roster = self.roster.with_members([replace(one, assignment=b"") for one in self.roster.members.values()])
        for member_id, calls in self.rebalance.waiting.items():
            self.release(calls, SyncGroupResponse(error_code=error_code))
            # The member's session timer was off while its SyncGroup was parked.
            self.renew_session(self.roster.members[member_id])
        self.rebalance = replace(self.rebalance, waiting=ValueMap())

    def complete_sync_phase(self, assignments: dict[str, bytes]) -> None:
        """Stores the leader's assignment, turns Stable and answers every parked SyncGroup."""
        assert isinstance(self.rebalance, Syncing)
        self.roster = self.roster.with_members(
            [replace(one, assignment=assignments.get(one.member_id, b"")) for one in self.roster.members.values()]
        )
        self.records.append(group_record(self.group_id, self.roster))
        for member_id, calls in self.rebalance.waiting.items():
            self.release(calls, self.assignment_response(member_id))
            self.renew_session(self.roster.members[member_id])
        self.rebalance = None
        self._marks.append((Meter.GROUP_COMPLETED_REBALANCE, 1))

    def assignment_response(self, member_id: str) -> SyncGroupResponse:
        return SyncGroupResponse(
            error_code=NONE,
            protocol_type=self.roster.protocol_type,
            protocol_name=self.roster.protocol_name,
            assignment=self.roster.members[member_id].assignment,
        )

    def note_sync(self, member_id: str) -> None:
        """The member has sent its SyncGroup; the last SyncGroup of the generation ends the sync phase."""
        if member_id not in self.unsynced:
            return
        self.unsynced = self.unsynced.without(member_id)
        if not self.unsynced:
            self.disarm(SyncPhase(self.group_id))

    # --- members that leave

    def drop_member(self, member_id: str) -> None:
        """Removes a member, or a pending member id, and replies UNKNOWN_MEMBER_ID to its parked calls."""
        self._release_calls_of(
            member_id,
            JoinGroupResponse(error_code=UnknownMemberId.code, protocol_name=None),
            SyncGroupResponse(error_code=UnknownMemberId.code),
        )
        self.roster = self.roster.without_member(member_id)
        self.pending = self.pending.without(member_id)
        self.note_sync(member_id)
        self.disarm(MemberSession(self.group_id, member_id))

    def remove_members(self, *member_ids: str) -> None:
        """Members leave or expire: removes all of them first, then the others rebalance."""
        for member_id in member_ids:
            self.drop_member(member_id)
        self.rebalance_without_dropped()

    def rebalance_without_dropped(self) -> None:
        """Makes the other members rebalance after members were dropped; does nothing if the group was Empty."""
        if isinstance(self.rebalance, Joining):
            self.end_join_phase_early()
        elif not self.began_empty:
            self.enter_join_phase()
            self.settle_join_phase()

    def replace_static_member(self, old_id: str, new_member: Member) -> None:
        """Another process took over an instance id: the member id changes, assignment and leadership stay."""
        self._release_calls_of(
            old_id,
            JoinGroupResponse(error_code=FencedInstanceId.code, protocol_name=None, member_id=old_id),
            SyncGroupResponse(error_code=FencedInstanceId.code),
        )
        was_leader = self.roster.leader_id == old_id
        members = [new_member if member.member_id == old_id else member for member in self.roster.members.values()]
        leader_id = new_member.member_id if was_leader else self.roster.leader_id
        self.roster = replace(self.roster.with_members(members), leader_id=leader_id)
        if old_id in self.unsynced:
            self.unsynced = self.unsynced.without(old_id).having({new_member.member_id: None})
        self.disarm(MemberSession(self.group_id, old_id))
        self.renew_session(new_member)

    def _release_calls_of(self, member_id: str, join: JoinGroupResponse, sync: SyncGroupResponse) -> None:
        rebalance = self.rebalance
        if rebalance is None or member_id not in rebalance.waiting:
            return
        response = join if isinstance(rebalance, Joining) else sync
        self.release(rebalance.waiting[member_id], response)
        waiting = rebalance.waiting.without(member_id)
        if isinstance(rebalance, Joining):
            self.rebalance = replace(rebalance, waiting=waiting, newcomers=rebalance.newcomers.without(member_id))
        else:
            self.rebalance = replace(rebalance, waiting=waiting)


def refuse_parked(rebalance: Rebalance | None, error_code: int) -> list[Released]:
    """Answers every parked JoinGroup and SyncGroup with an error."""
    released: list[Released] = []
    for member_id, calls in () if rebalance is None else rebalance.waiting.items():
        response: Message = SyncGroupResponse(error_code=error_code)
        if isinstance(rebalance, Joining):
            response = JoinGroupResponse(error_code=error_code, protocol_name=None, member_id=member_id)
        released += [Released(call_id, response) for call_id in calls]
    return released


def session_of(group_id: str, member: Member) -> Arm:
    """Restarts the member's session timeout."""
    return Arm(_new_tuple(MemberSession, (group_id, member.member_id)), member.session_timeout_ms)


def check_member(roster: Roster, member_id: str, instance_id: str | None) -> None:
    """Raises `UnknownMemberId` or `FencedInstanceId` unless the group has the member under that instance id."""
    if instance_id is not None:
        owner_id = roster.member_id_by_instance.get(instance_id)
        if owner_id is None:
            raise UnknownMemberId
        if owner_id != member_id:
            raise FencedInstanceId
    if member_id not in roster.members:
        raise UnknownMemberId


def check_protocol(request: SyncGroupRequest, protocol_type: str | None, protocol_name: str | None) -> None:
    """Raises `InconsistentGroupProtocol` if the request names another one than the group's."""
    if request.protocol_type not in (None, protocol_type) or request.protocol_name not in (None, protocol_name):
        raise InconsistentGroupProtocol


def check_generation(roster: Roster, generation: int) -> None:
    """Raises `IllegalGeneration`."""
    if generation != roster.generation:
        raise IllegalGeneration
