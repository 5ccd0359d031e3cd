"""Why a group has its status: the partition that decides, and the causes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.live.statuses import Judged, judge_status, partition_statuses, worst_partition
from groupkeeper.operations.causes.facts import Fact, GroupAtInstant, facts_of
from groupkeeper.operations.lag import PartitionLag
from groupkeeper.operations.transactions import OpenTransaction
from groupkeeper.rules.causes import Cause, Pace
from groupkeeper.rules.status import Status
from groupkeeper.rules.words import capitalized
from groupkeeper.web.pages.partitions import WELL


class GroupStatuses(NamedTuple):
    """The status of a group, those of its partitions, and the partition that gives the group its status."""

    judged: Judged
    by_partition: Mapping[TopicPartition, tuple[Status, str]]
    worst: tuple[TopicPartition, str] | None

    @classmethod
    def of(cls, group: GroupView, at_ms: int) -> GroupStatuses:
        judged, statuses = judge_status(group, at_ms), partition_statuses(group, at_ms)
        return cls(judged, statuses, worst_partition(group, judged.status, statuses))


def causes_of(snapshot: ClusterSnapshot, group: GroupView, statuses: GroupStatuses) -> list[Fact]:
    """The causes why a group does not move, as in `groupkeeper groups why`, from the polls' facts; none if it moves."""
    if group.description is None or statuses.judged.status in (Status.OK, Status.ABANDONED):
        return []
    rows: list[PartitionLag] = []
    held: dict[TopicPartition, OpenTransaction | None] = {}
    rates: dict[TopicPartition, Pace] = {}
    done: dict[TopicPartition, None] = {}
    by_partition = statuses.by_partition
    for row, wait in zip(group.rows, group.waits, strict=True):
        tp = row.tp
        rows.append(row if wait.held_at is None else row._replace(last_stable_offset=wait.held_at))
        if wait.held_at is not None:
            held[tp] = wait.holder
        elif not wait.is_waiting and wait.lag_ms is not None:
            done[tp] = None
        if by_partition.get(tp, WELL)[0] is Status.STOPPED:
            rates[tp] = Pace(0, 0)
    well = {tp for tp, (status, _) in by_partition.items() if status is Status.OK}
    moved = {tp for tp in rates if _moved_since(group, tp)}
    known = GroupAtInstant(group.description, rows, snapshot.at_ms, held, rates, nexts=done, well=well, moved=moved)
    found = facts_of(group.group_id, known)
    return [] if found and found[0].cause is Cause.UNREAD else found


def told(fact: Fact) -> str:
    """A cause as a sentence without a full stop; it begins with its partition, or with a capital."""
    if fact.tp is None:
        return capitalized(fact.text)
    return f"{fact.tp.topic}-{fact.tp.partition}: {fact.text}"


def _moved_since(group: GroupView, tp: TopicPartition) -> bool:
    """Whether the group has committed elsewhere since the partition stands at its offset."""
    stood = group.stood.get(tp)
    return stood is not None and group.progress_ms is not None and group.progress_ms > stood.since_ms
