"""The meaning of a plan, and the reasons of its troubles, in words for people."""

from __future__ import annotations

from collections.abc import Sequence

from groupkeeper.operations.plans.model import GroupPlan, PlanTrouble
from groupkeeper.operations.problems import Attempt, Problem, problem_of
from groupkeeper.rules.words import counted


def consequences(groups: Sequence[GroupPlan], *, is_share: bool = False) -> list[str]:
    """The numbers of records that are read again and skipped, and the start of consumers without a committed offset.

    `is_share`: the groups are share groups.
    """
    changes = [change for group in groups for change in group.changes.values()]
    if not changes:
        return []
    replayed = [change.replayed for change in changes if change.replayed is not None]
    skipped = [change.skipped for change in changes if change.skipped is not None]
    notes = []
    if replayed or skipped:
        records = counted(sum(replayed), "record")
        notes.append(f"{records} replayed, {sum(skipped):,} skipped, counted in offsets")
    for is_before in (True, False):
        open_ends = [
            change.log_end_offset - change.log_start_offset
            for change in changes
            if (change.before if is_before else change.after) is None
            and change.log_end_offset is not None
            and change.log_start_offset is not None
        ]
        if open_ends:
            when = "before the change" if is_before else "after the change"
            partitions, records = counted(len(open_ends), "partition"), counted(sum(open_ends), "record")
            what = "start offset" if is_share else "committed offset"
            who = "a share group" if is_share else "a consumer"
            rule = "share.auto.offset.reset" if is_share else "auto.offset.reset"
            notes.append(
                f"{partitions} without a {what} {when}: {who} reads {records} there with {rule}=earliest, "
                "none with latest"
            )
    return notes


def trouble_problem(trouble: PlanTrouble, deed: Attempt = Attempt.COMMIT) -> Problem:
    """The problem that keeps a part of a plan from being made or done."""
    topic, partition = trouble.topic_and_partition
    return problem_of(trouble.failure, deed, group=trouble.group_id, topic=topic, partition=partition)
