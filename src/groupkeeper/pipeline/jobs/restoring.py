"""Offsets of a time that has passed as plans, for `kafka-consumer-group-reset --execute` and `groupkeeper apply`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans import kip122
from groupkeeper.operations.plans.making import Made, Policies, Request, Topics, make_reset
from groupkeeper.operations.plans.model import Change, GroupPlan

__all__ = ["POLICIES", "OffsetThen", "kip122_plans", "restore_plan", "then_of"]


POLICIES = Policies()
"""An offset that the log no longer has becomes the nearer end."""


class OffsetThen(NamedTuple):
    """A row of tables.OFFSETS_AS_OF, without the cluster and the time."""

    group_id: str
    topic: str
    partition: int
    committed_offset: int
    leader_epoch: int | None
    metadata: str | None


Then = Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]]


def then_of(rows: Iterable[OffsetThen]) -> Then:
    """The offsets by group and partition. Rows are those of one cluster."""
    found: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
    for row in rows:
        commit = OffsetAndMetadata(row.committed_offset, row.leader_epoch, row.metadata or "")
        found.setdefault(row.group_id, {})[TopicPartition(row.topic, row.partition)] = commit
    return found


def kip122_plans(then: Then) -> dict[str, str]:
    """For each group the JSON of KIP-122, which has one group and offsets only."""
    return {
        group_id: kip122.write(kip122.ResetPlan(group_id, {place: commit.offset for place, commit in commits.items()}))
        for group_id, commits in then.items()
    }


async def restore_plan(
    admin: Admin, then: Then, *, policies: Policies = POLICIES, command: Sequence[str] = (), made_ms: int = 0
) -> Made:
    """A plan that brings all these groups back, made beside what is there now: documents.write makes its file.

    Partitions that a group has committed offsets of only since then are not touched. An offset that the log still has
    keeps its leader epoch, and all of them their metadata.
    """
    wanted = {
        group_id: {place: commit.offset for place, commit in commits.items()} for group_id, commits in then.items()
    }
    request = Request(
        tuple(then), Topics(), None, policies, wanted, tuple(command), made_ms, "the offsets of that time"
    )
    made = await make_reset(admin, request)
    groups = tuple(_with_details(group, then[group.group_id]) for group in made.plan.groups)
    return made._replace(plan=made.plan._replace(groups=groups))


def _with_details(group: GroupPlan, commits: Mapping[TopicPartition, OffsetAndMetadata]) -> GroupPlan:
    return group._replace(
        changes={place: _with_detail(change, commits[place]) for place, change in group.changes.items()}
    )


def _with_detail(change: Change, commit: OffsetAndMetadata) -> Change:
    if change.after is None:
        return change
    epoch = commit.leader_epoch if change.after.offset == commit.offset else None
    after = change.after._replace(metadata=commit.metadata, leader_epoch=epoch)
    return change._replace(after=after, why=change.why.replace("in the file", "of that time"))
