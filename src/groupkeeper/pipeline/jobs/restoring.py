"""Offsets of a past time as plans, for `kafka-consumer-group-reset --execute` and `groupkeeper apply`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans import kip122
from groupkeeper.operations.plans.builder import Made, PlanTopics, Policies, Request, make_reset
from groupkeeper.operations.plans.model import Change
from groupkeeper.operations.topics import describe_topics
from groupkeeper.protocol.uuids import uuid_text
from groupkeeper.rules.words import counted


class OffsetThen(NamedTuple):
    """A row of tables.OFFSETS_AS_OF, without the cluster and the time."""

    group_id: str
    topic: str
    partition: int
    committed_offset: int
    leader_epoch: int | None
    """None: the commit has none."""
    metadata: str | None
    """None: it is not kept (privacy)."""
    topic_id: str | None = None
    """None: the commit has none."""


Then = Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]]


def then_of(rows: Iterable[OffsetThen]) -> Then:
    """The offsets by group and partition, from the rows of one cluster."""
    found: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
    for row in rows:
        commit = OffsetAndMetadata(row.committed_offset, row.leader_epoch, row.metadata or "")
        found.setdefault(row.group_id, {})[TopicPartition(row.topic, row.partition)] = commit
    return found


class OfTopicsNow(NamedTuple):
    """Offsets whose topics may be the same as then; why the others are left out; and what could not be checked."""

    offsets: list[OffsetThen]
    left_out: list[str]
    doubts: list[str]


async def of_topics_now(admin: Admin, offsets: Sequence[OffsetThen]) -> OfTopicsNow:
    """Leaves out offsets of topics that were recreated since: these offsets mean nothing in the new logs."""
    described = await describe_topics(admin, dict.fromkeys(each.topic for each in offsets))
    now = {name: uuid_text(topic.topic_id) for name, topic in described.done.items() if topic.topic_id is not None}
    earlier: dict[tuple[str, str], list[OffsetThen]] = {}
    untold: set[str] = set()
    kept = []
    for each in offsets:
        if each.topic_id is None and each.topic in now:
            untold.add(each.topic)
        elif each.topic_id != now.get(each.topic, each.topic_id):
            earlier.setdefault((each.topic, str(each.topic_id)), []).append(each)
            continue
        kept.append(each)
    left_out = []
    for (topic, topic_id), own in earlier.items():
        groups = list(dict.fromkeys(each.group_id for each in own))
        left_out.append(
            f"topic {topic} was deleted and created again since: its id was {topic_id}, and is {now[topic]}; "
            f"{counted(len(own), 'offset')} in the earlier one, of {_some(groups, 'group')}, left out"
        )
    doubts = []
    if untold:
        doubts.append(
            f"the commits in {_some(sorted(untold), 'topic')} do not have the topic's id (those of transactions, "
            "and of brokers before 4.1): whether it was deleted and created again since is unknown"
        )
    return OfTopicsNow(kept, left_out, doubts)


def _some(names: Sequence[str], noun: str) -> str:
    """The number of these names, and the first of them."""
    return f"{counted(len(names), noun)} ({names[0]}{', …' if len(names) > 1 else ''})"


def kip122_plans(then: Then) -> dict[str, str]:
    """For each group the JSON of KIP-122, which has offsets of one group and nothing else."""
    return {
        group_id: kip122.write(kip122.ResetPlan(group_id, {tp: commit.offset for tp, commit in commits.items()}))
        for group_id, commits in then.items()
    }


async def restore_plan(admin: Admin, then: Then, *, command: Sequence[str] = (), made_ms: int = 0) -> Made:
    """A plan that resets all these groups to their earlier offsets, compared with the current ones; documents.write
    writes its file.

    Partitions for which a group committed its first offset later are not changed. Offsets that are still in the log
    keep their leader epoch, others become the nearer end of the log; all offsets keep their metadata.
    """
    wanted = {group_id: {tp: commit.offset for tp, commit in commits.items()} for group_id, commits in then.items()}
    request = Request(
        tuple(then), PlanTopics(), None, Policies(), wanted, tuple(command), made_ms, "the offsets of that time"
    )
    made = await make_reset(admin, request)
    groups = []
    for group in made.plan.groups:
        commits = then[group.group_id]
        changes = {tp: _with_details(change, commits[tp]) for tp, change in group.changes.items()}
        groups.append(group._replace(changes=changes))
    return made._replace(plan=made.plan._replace(groups=tuple(groups)))


def _with_details(change: Change, commit: OffsetAndMetadata) -> Change:
    if change.after is None:
        return change
    epoch = commit.leader_epoch if change.after.offset == commit.offset else None
    after = change.after._replace(metadata=commit.metadata, leader_epoch=epoch)
    return change._replace(after=after, why=change.why.replace("in the file", "of that time"))
