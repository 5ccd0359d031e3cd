"""Plans that delete committed offsets."""

from __future__ import annotations

from collections.abc import Iterable

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.errors import NothingToDelete
from groupkeeper.operations.plans.builder import Made, PlanTopics, with_times
from groupkeeper.operations.plans.cluster_state import Committed, find_groups, find_logs
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan, PlannedTopic, PlanTrouble
from groupkeeper.operations.plans.recorder import cluster_id_of

NO_PARTITIONS = PlannedTopic(None, 0)
"""The facts of a missing topic, so that the plan is stale once the topic exists."""


async def make_deletion(
    admin: Admin, group_ids: Iterable[str], topics: PlanTopics, made_ms: int, command: tuple[str, ...] = ()
) -> Made:
    """The plan that deletes offsets of groups. Nothing is changed; the groups may be active, the topics be gone.

    A named partition without a committed offset is a trouble. Raises the failure if all groups fail.
    """
    groups = await find_groups(admin, list(group_ids))
    troubles = groups.troubles
    known = {key: committed for key, committed in groups.committed.items() if key not in groups.failed}
    wanted = {key: sorted(chosen(topics, committed)) for key, committed in known.items()}
    tps = [tp for some in wanted.values() for tp in some]
    logs = await find_logs(admin, tps)
    plans: list[GroupPlan] = []
    for group_id, committed in known.items():
        troubles += (PlanTrouble(group_id, tp, nothing(tp)) for tp in lacking(topics, committed))
        changes = {
            tp: Change(committed[tp], None, logs.log_starts.get(tp), logs.log_ends.get(tp), why="requested")
            for tp in wanted[group_id]
        }
        if changes:
            plans.append(GroupPlan(group_id, changes, (), str(groups.state(group_id))))
    facts = logs.facts_of(tp.topic for tp in tps)
    cluster_id = await cluster_id_of(admin)
    plan = Plan(cluster_id, tuple(plans), Kind.DELETE, made_ms, command, facts)
    timed, notes = await with_times(admin, plan)
    return Made(timed, tuple(troubles), tuple(notes), groups.absent)


def chosen(topics: PlanTopics, committed: Committed) -> list[TopicPartition]:
    """The selected partitions with a committed offset."""
    names, partitions = frozenset(topics.names), frozenset(topics.partitions)
    matches = topics.matches or (lambda tp: False)
    return [tp for tp in committed if tp.topic in names or tp in partitions or matches(tp)]


def lacking(topics: PlanTopics, committed: Committed) -> list[TopicPartition | str]:
    """The named topics and partitions that have no committed offset."""
    known = {tp.topic for tp in committed}
    return [
        *(name for name in topics.names if name not in known),
        *(tp for tp in topics.partitions if tp not in committed),
    ]


def nothing(topic_partition: TopicPartition | str) -> NothingToDelete:
    """The reason why a partition without a committed offset cannot be in a plan."""
    return NothingToDelete(f"the group has no committed offset for {topic_partition}")
