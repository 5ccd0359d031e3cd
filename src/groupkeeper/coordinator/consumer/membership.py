"""Members of consumer groups beside their heartbeats: time that runs out, and restarts."""

from __future__ import annotations

from groupkeeper.coordinator.consumer.conversion import remove_or_downgrade
from groupkeeper.coordinator.consumer.group import LEFT_STATICALLY_EPOCH, UNREVOKED_PARTITIONS, ConsumerGroup
from groupkeeper.coordinator.consumer.step import Step, session_timer
from groupkeeper.coordinator.kernel.result import Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import Arm, ConsumerTimer, Revocation
from groupkeeper.coordinator.state import StateView

_RETRY_MS = 500


def timer_expired(state: StateView, settings: Settings, timer: ConsumerTimer, now_ms: int) -> Result:
    """A member was silent too long, or kept partitions too long: it is removed."""
    group = state.find(timer.group_id, ConsumerGroup)
    if group is None or timer.member_id not in group.members:
        return Result()
    if isinstance(timer, Revocation) and group.members[timer.member_id].state != UNREVOKED_PARTITIONS:
        return Result()
    step = Step(group, settings, state.topics, now_ms)
    return remove_or_downgrade(step, settings, (timer.member_id,), None)


def retry_timer(timer: ConsumerTimer) -> Arm:
    """What the timer decided could not be stored: it runs out again soon."""
    return Arm(timer, _RETRY_MS)


def resume_group(group: ConsumerGroup, settings: Settings) -> Result:
    """After loading every member has its full time again."""
    timers = []
    for member in group.members.values():
        timers.append(session_timer(group.group_id, member, settings))
        # Who left for a while has given everything back.
        is_here = member.member_epoch != LEFT_STATICALLY_EPOCH
        if member.state == UNREVOKED_PARTITIONS and is_here and member.classic is None:
            timers.append(Arm(Revocation(group.group_id, member.member_id), member.rebalance_timeout_ms))
    return Result(timers=tuple(timers))
