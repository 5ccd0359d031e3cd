"""Apply a plan: compare, wait for groups to become empty when asked to, journal, commit, read back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Batch, OffsetAndMetadata, TopicPartition
from groupkeeper.operations.errors import GroupIsActive, NotAsCommitted, NotOfConsumers
from groupkeeper.operations.plans.cluster_state import describe
from groupkeeper.operations.plans.fit import PlanFit, check, refuse_other_cluster
from groupkeeper.operations.plans.model import Change, GroupPlan, Plan, PlanTrouble, is_same
from groupkeeper.operations.plans.recorder import Outcome, Recorder, commit
from groupkeeper.operations.plans.reset import INACTIVE
from groupkeeper.protocol.errors import GroupIdNotFound

_LOOK_EVERY_S = 0.5


class Applied(NamedTuple):
    """The result of applying a plan. `done`: changes made and read back; `already`: partitions as planned before.

    `troubles`: everything else; empty if the whole plan is in effect.
    """

    done: tuple[GroupPlan, ...]
    already: tuple[tuple[str, TopicPartition], ...]
    troubles: tuple[PlanTrouble, ...]


async def apply_plan(
    admin: Admin,
    plan: Plan,
    recorder: Recorder | None,
    *,
    fit: PlanFit | None = None,
    skips_refused: bool = False,
    tell: Callable[[int], None] | None = None,
) -> Applied:
    """Applies the changes that still fit. Unless `skips_refused`, nothing at all is applied if one doesn't.

    `fit`: how the plan fits, if just checked; None: it is checked here. A plan that was interrupted may be
    applied again: changes that are already made are left out. `tell`: as in `recorder.commit`.

    Raises WrongCluster, JournalUnwritable (nothing is changed then), and the failure of the whole cluster.
    """
    if fit is None:
        fit = await check(admin, plan)
    if plan.settles and recorder is not None and not fit.ready and not fit.troubles:
        await asyncio.to_thread(recorder.settle, plan, admin.principal)
    if not fit.ready or (fit.troubles and not skips_refused):
        return Applied((), fit.already, fit.troubles)
    done, troubles = await carry_out(admin, plan._replace(groups=fit.ready), recorder, tell=tell)
    return Applied(done, fit.already, (*fit.troubles, *troubles))


async def carry_out(
    admin: Admin, plan: Plan, recorder: Recorder | None, *, tell: Callable[[int], None] | None = None
) -> tuple[tuple[GroupPlan, ...], tuple[PlanTrouble, ...]]:
    """Commits a plan that was already compared, and reads back; returns the changes made, and troubles."""
    outcome = await commit(admin, plan, recorder, tell=tell)
    reached = [group.group_id for group in plan.groups if group.group_id in outcome.done]
    offsets = await admin.list_consumer_group_offsets(dict.fromkeys(reached)) if reached else Batch()
    done: list[GroupPlan] = []
    troubles: list[PlanTrouble] = []
    for group in plan.groups:
        failure = outcome.failed.get(group.group_id)
        if failure is not None:
            troubles.append(PlanTrouble(group.group_id, None, failure))
            continue
        failure = offsets.failed.get(group.group_id)
        if failure is not None:
            unread = NotAsCommitted(f"accepted, but could not be read back: {failure}")
            troubles.append(PlanTrouble(group.group_id, None, unread))
            continue
        made, amiss = _compared(group, outcome.done[group.group_id], offsets.done[group.group_id].done)
        troubles += amiss
        if made:
            done.append(group._replace(changes=made))
    return tuple(done), tuple(troubles)


def _compared(
    group: GroupPlan, outcome: Outcome, now: Mapping[TopicPartition, OffsetAndMetadata | None]
) -> tuple[dict[TopicPartition, Change], list[PlanTrouble]]:
    made: dict[TopicPartition, Change] = {}
    troubles: list[PlanTrouble] = []
    for tp, change in group.changes.items():
        failure = outcome.failed.get(tp)
        if failure is not None:
            troubles.append(PlanTrouble(group.group_id, tp, failure))
        elif not is_same(now.get(tp), change.after):
            troubles.append(PlanTrouble(group.group_id, tp, _differs(change.after, now.get(tp))))
        else:
            made[tp] = change
    return made, troubles


def _differs(wanted: OffsetAndMetadata | None, found: OffsetAndMetadata | None) -> NotAsCommitted:
    texts = ["deleted" if one is None else str(one.offset) for one in (wanted, found)]
    reason = "another client commits to the group"
    return NotAsCommitted(f"read back as {texts[1]} after {texts[0]} was accepted: {reason}")


async def wait_until_inactive(
    admin: Admin, plan: Plan, limit_s: float, tell: Callable[[Sequence[GroupIsActive], float], None]
) -> None:
    """Waits until no group of the plan has members, or `limit_s` is over; applying then names the members.

    `tell` is called after each poll with the active groups and the remaining seconds.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit_s
    await refuse_other_cluster(admin, plan)
    waiting = [group.group_id for group in plan.groups]
    while waiting:
        described = await describe(admin, waiting)
        active = [group for group in described.done.values() if group.group_state not in INACTIVE]
        waiting = [group.group_id for group in active]
        final = (GroupIdNotFound, NotOfConsumers)
        waiting += [key for key, why in described.failed.items() if not isinstance(why, final)]
        left_s = deadline - loop.time()
        if not waiting or left_s <= 0:
            return
        tell([group.refusal for group in active], left_s)
        await asyncio.sleep(min(_LOOK_EVERY_S, left_s))
