"""Compares a plan with the cluster before it is applied: the state from which it was made must not have changed."""

from __future__ import annotations

from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Failure, GroupState, OffsetAndMetadata, TopicPartition
from groupkeeper.operations.errors import StalePlan, WrongCluster
from groupkeeper.operations.groups import read_topics
from groupkeeper.operations.plans.cluster_state import FoundGroups, Logs, find_groups, find_logs
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan, PlanTrouble, is_same
from groupkeeper.operations.plans.recorder import cluster_id_of
from groupkeeper.operations.plans.reset import INACTIVE
from groupkeeper.protocol.errors import GroupIdNotFound

HOW_TO_CREATE = "--create makes it"


class PlanFit(NamedTuple):
    """How a plan fits. `ready`: changes to make, of groups without trouble. `already`: partitions as planned."""

    ready: tuple[GroupPlan, ...]
    already: tuple[tuple[str, TopicPartition], ...]
    troubles: tuple[PlanTrouble, ...]


async def check(admin: Admin, plan: Plan, *, creates: bool = True, takes_any: bool = False) -> PlanFit:
    """Checks which changes can be applied now. `creates`, `takes_any`: as in `fit_of`. Raises WrongCluster."""
    await refuse_other_cluster(admin, plan)
    groups = await find_groups(admin, [group.group_id for group in plan.groups])
    partitions = dict.fromkeys(tp for group in plan.groups for tp in group.changes)
    logs = await find_logs(admin, partitions)
    return fit_of(plan, groups, logs, creates=creates, takes_any=takes_any)


async def refuse_other_cluster(admin: Admin, plan: Plan) -> None:
    """Raise WrongCluster unless the plan is for the admin's cluster, or one of the two has no id."""
    cluster_id = await cluster_id_of(admin)
    if None not in (cluster_id, plan.cluster_id) and cluster_id != plan.cluster_id:
        raise WrongCluster(f"the plan is for the cluster {plan.cluster_id}, but this cluster is {cluster_id}")


def fit_of(plan: Plan, groups: FoundGroups, logs: Logs, *, creates: bool = True, takes_any: bool = False) -> PlanFit:
    """As `check`, from known facts. Pure.

    `creates`: whether missing groups may be created. `takes_any`: whether offsets outside of the log may be
    committed.
    """
    stale_topics = _stale_topics(plan, logs)
    ready: list[GroupPlan] = []
    already: list[tuple[str, TopicPartition]] = []
    troubles: list[PlanTrouble] = []
    for group in plan.groups:
        found = _group_troubles(plan, group, groups, None if takes_any else logs, stale_topics)
        if not found and not creates and group.offsets and groups.state(group.group_id) is GroupState.DEAD:
            found = [PlanTrouble(group.group_id, None, GroupIdNotFound(f"there is no such group: {HOW_TO_CREATE}"))]
        troubles += found
        if found:
            continue
        committed = groups.committed[group.group_id]
        left = {
            tp: change
            for tp, change in group.changes.items()
            if not is_same(committed.get(tp), change.after) or _is_renewed(plan, change)
        }
        already += ((group.group_id, tp) for tp in group.changes if tp not in left)
        if left:
            ready.append(group._replace(changes=left))
    return PlanFit(tuple(ready), tuple(already), tuple(troubles))


def _group_troubles(
    plan: Plan, group: GroupPlan, groups: FoundGroups, logs: Logs | None, stale_topics: dict[str, str]
) -> list[PlanTrouble]:
    """The troubles that keep a group's changes from being applied. `logs` None: any offset is accepted."""
    group_id = group.group_id
    if group_id in groups.failed:
        return [PlanTrouble(group_id, None, groups.failed[group_id])]
    if groups.state(group_id) not in INACTIVE and not _are_unread(group, groups):
        return [PlanTrouble(group_id, None, groups.described[group_id].refusal)]
    committed = groups.committed[group_id]
    troubles: list[PlanTrouble] = []
    reported: set[str] = set()
    for tp, change in group.changes.items():
        if tp.topic in stale_topics:
            if tp.topic not in reported:
                reported.add(tp.topic)
                troubles.append(PlanTrouble(group_id, tp.topic, StalePlan(stale_topics[tp.topic])))
            continue
        now = committed.get(tp)
        if is_same(now, change.after) and not _is_renewed(plan, change):
            continue
        if not is_same(now, change.before):
            then = "when the plan was made" if plan.undoes is None else f"after the change {plan.undoes}"
            text = f"it was {_commit_text(change.before)} {then}, and is {_commit_text(now)} now"
            troubles.append(PlanTrouble(group_id, tp, StalePlan(text)))
        elif logs is not None and (trouble := _unfit(tp, change, logs)) is not None:
            troubles.append(PlanTrouble(group_id, tp, trouble))
    return troubles


def _is_renewed(plan: Plan, change: Change) -> bool:
    """Whether the same offset is committed again on purpose: in a sweep, so that it doesn't expire; in a share group,
    so that records done ahead of it are delivered again.
    """
    is_kept = change.before is not None and change.before == change.after
    return is_kept and plan.kind in (Kind.SWEEP, Kind.SHARE_RESET)


def _are_unread(group: GroupPlan, groups: FoundGroups) -> bool:
    """Whether all changes delete offsets of topics that no member reads, which members don't prevent (KIP-496)."""
    reads = read_topics(groups.described[group.group_id].members)
    return reads is not None and all(
        change.after is None and tp.topic not in reads for tp, change in group.changes.items()
    )


def _unfit(tp: TopicPartition, change: Change, logs: Logs) -> Failure | None:
    """Why the log cannot take the new offset; deleting an offset needs no log."""
    if change.after is None:
        return None
    failure = logs.why_not(tp)
    if failure is not None:
        return failure
    log_start, log_end, offset = logs.log_starts[tp], logs.log_ends[tp], change.after.offset
    if offset < log_start:
        return StalePlan(f"the log begins at {log_start} now, after the planned offset {offset}", is_outside=True)
    if offset > log_end:
        return StalePlan(f"the log ends at {log_end} now, before the planned offset {offset}", is_outside=True)
    return None


def _commit_text(commit: OffsetAndMetadata | None) -> str:
    return "not committed" if commit is None else f"committed at {commit.offset}"


def _stale_topics(plan: Plan, logs: Logs) -> dict[str, str]:
    """By topic, how it has changed since the plan was made."""
    stale: dict[str, str] = {}
    for topic, before in plan.topics.items():
        now = logs.facts(topic, is_whole=True)
        if now is None:
            continue
        if None not in (now.topic_id, before.topic_id) and now.topic_id != before.topic_id:
            stale[topic] = "the topic was deleted and recreated since the plan was made"
        elif before.partitions is not None and now.partitions != before.partitions:
            stale[topic] = (
                f"the topic had {before.partitions} partitions when the plan was made, and has {now.partitions}"
            )
    return stale
