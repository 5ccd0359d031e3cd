"""The coordinator's interface to groups with member epochs."""

from __future__ import annotations

from typing import Any, ClassVar

from groupkeeper.coordinator.epochs.group import G
from groupkeeper.coordinator.epochs.step import EpochStep
from groupkeeper.coordinator.handlers import TypeHandler
from groupkeeper.coordinator.kernel.result import Arm, Record, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.state import StateView


class EpochHandler(TypeHandler[G]):
    """Attributes:
    group: the class of groups. step: the class of operations on a group.
    """

    group: ClassVar[type[Any]]
    step: ClassVar[type[EpochStep[Any]]]

    def new(self, group_id: str) -> G:
        made: G = self.group(group_id)
        return made

    def replay(self, group: G, record: Record) -> G:
        self.step.log.replay(group, record)
        return group

    def members(self, group: G) -> dict[str, tuple[str | None, str]]:
        return {one.member_id: (one.instance_id, one.client_id) for one in group.members.values()}

    def resume(self, group: G, settings: Settings, now_ms: int) -> tuple[Result, ...]:
        """After loading, the session of every member restarts."""
        timers, step = [], self.step
        for member in group.members.values():
            timers.append(step.session_timer(group.group_id, member, settings))
            if step.is_revoking(member):
                assert step.revocation is not None
                revocation = step.revocation(group.group_id, member.member_id)
                timers.append(Arm(revocation, member.rebalance_timeout_ms))
        return (Result(timers=tuple(timers)),)

    def expire(self, state: StateView, settings: Settings, timer: Any, now_ms: int) -> Result:
        """A member's session or its rebalance timeout has expired: removes the member."""
        group = state.find(timer.group_id, self.group)
        member = None if group is None else group.members.get(timer.member_id)
        if member is None or (type(timer) is self.step.revocation and member.state != self.step.revoking):
            return Result()
        return self.remove(self.step(group, settings, state.topics, now_ms), timer.member_id)

    def remove(self, step: EpochStep[Any], member_id: str) -> Result:
        """Removes a member whose timer has expired."""
        step.remove_members((member_id,))
        return step.result(None)

    def removal(self, group: G) -> list[Record]:
        return self.step.log.group_tombstones(group)
