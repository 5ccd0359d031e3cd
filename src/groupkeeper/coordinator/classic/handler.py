"""The coordinator's interface to classic groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from groupkeeper.coordinator.classic import join, membership
from groupkeeper.coordinator.classic import offsets as offset_rules
from groupkeeper.coordinator.classic.group import ClassicGroup
from groupkeeper.coordinator.classic.record import group_tombstone, read_roster
from groupkeeper.coordinator.classic.step import refuse_parked
from groupkeeper.coordinator.handlers import ClassicRequest, TypeHandler
from groupkeeper.coordinator.kernel.group import GroupType
from groupkeeper.coordinator.kernel.result import GroupCall, Record, Released, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import JoinPhase, MemberSession, SyncPhase, TimerKey
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol.errors import NotCoordinator
from groupkeeper.protocol.messages.group_metadata_key import GroupMetadataKey
from groupkeeper.protocol.messages.group_metadata_value import GroupMetadataValue
from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest
from groupkeeper.protocol.messages.leave_group_request import LeaveGroupRequest
from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest
from groupkeeper.protocol.offsets_topic import Tombstone


class ClassicHandler(TypeHandler[ClassicGroup]):
    group_type = GroupType.CLASSIC
    head = GroupMetadataKey
    offsets: ClassVar = offset_rules
    retry_ms = 1_000

    def new(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(group_id)

    def replay(self, group: ClassicGroup, record: Record) -> ClassicGroup:
        if isinstance(record, Tombstone):
            return group
        assert isinstance(record.value, GroupMetadataValue)
        return ClassicGroup(group.group_id, read_roster(record.value))

    def handle_classic(
        self,
        group: ClassicGroup | None,
        state: StateView,
        settings: Settings,
        call: GroupCall,
        request: ClassicRequest,
        now_ms: int,
    ) -> Result:
        match request:
            case HeartbeatRequest():
                return membership.heartbeat(group, request)
            case SyncGroupRequest():
                return membership.sync(group, settings, call, request, now_ms)
            case JoinGroupRequest():
                return join.join(group, settings, call, request, now_ms)
            case LeaveGroupRequest():
                return membership.leave(group, settings, request, now_ms)

    def members(self, group: ClassicGroup) -> dict[str, tuple[str | None, str]]:
        return {one.member_id: (one.instance_id, one.client_id) for one in group.roster.members.values()}

    def resume(self, group: ClassicGroup, settings: Settings, now_ms: int) -> Sequence[Result]:
        return membership.resume_group(group, settings, now_ms)

    def expire(
        self, state: StateView, settings: Settings, timer: MemberSession | JoinPhase | SyncPhase, now_ms: int
    ) -> Result:
        group = state.find(timer.group_id, ClassicGroup)
        if group is None:
            return Result()
        match timer:
            case MemberSession(member_id=member_id):
                return membership.session_expired(group, settings, member_id, now_ms)
            case JoinPhase():
                return membership.join_phase_expired(group, settings, now_ms)
            case SyncPhase():
                return membership.sync_phase_expired(group, settings, now_ms)

    def removal(self, group: ClassicGroup) -> list[Record]:
        return [group_tombstone(group.group_id)]

    def timers(self, group: ClassicGroup) -> list[TimerKey]:
        found: list[TimerKey] = [JoinPhase(group.group_id), SyncPhase(group.group_id)]
        found.extend(MemberSession(group.group_id, member_id) for member_id in group.roster.members)
        found.extend(MemberSession(group.group_id, member_id) for member_id in group.soft.pending)
        return found

    def unload(self, group: ClassicGroup) -> list[Released]:
        return refuse_parked(group.soft.rebalance, NotCoordinator.code)


HANDLER = ClassicHandler()
