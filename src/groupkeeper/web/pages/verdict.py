"""Why a group has its status: the partition that decides, and the causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.live.verdicts import Judged, judge_status, partition_statuses, worst_partition
from groupkeeper.operations.causes.facts import Fact, KnownCauses, facts_of
from groupkeeper.operations.lag import PartitionLag
from groupkeeper.operations.transactions import OpenTransaction
from groupkeeper.rules.causes import Cause, Rate
from groupkeeper.rules.status import Status
from groupkeeper.web.pages.partitions import WELL


class Verdict(NamedTuple):
    """How a group and its partitions are doing, and the one that the group has its status from."""

    judged: Judged
    statuses: Mapping[TopicPartition, tuple[Status, str]]
    worst: tuple[TopicPartition, str] | None

    @classmethod
    def of(cls, group: GroupView, at_ms: int) -> Verdict:
        judged, statuses = judge_status(group, at_ms), partition_statuses(group, at_ms)
        return cls(judged, statuses, worst_partition(group, judged.status, statuses))


def causes_of(snapshot: ClusterSnapshot, group: GroupView, verdict: Verdict) -> list[Fact]:
    """Why it does not move, as `groupkeeper groups why` says it, from what the polls know; none where it moves."""
    if group.description is None or verdict.judged.status in (Status.OK, Status.ABANDONED):
        return []
    rows: list[PartitionLag] = []
    held: dict[TopicPartition, OpenTransaction | None] = {}
    rates: dict[TopicPartition, Rate] = {}
    done: dict[TopicPartition, None] = {}
    statuses = verdict.statuses
    for row, wait in zip(group.rows, group.waits, strict=True):
        place = TopicPartition(row.topic, row.partition)
        rows.append(row if wait.held_at is None else row._replace(last_stable_offset=wait.held_at))
        if wait.held_at is not None:
            held[place] = wait.holder
        elif not wait.is_waiting and wait.lag_ms is not None:
            done[place] = None
        if statuses.get(place, WELL)[0] is Status.STOPPED:
            rates[place] = Rate(0, 0)
    well = {place for place, (status, _) in statuses.items() if status is Status.OK}
    known = KnownCauses(group.description, rows, snapshot.at_ms, held, rates, nexts=done, well=well)
    found = _by_member(facts_of(group.group_id, known), group, statuses)
    return [] if found and found[0].cause is Cause.UNREAD else found


def told(fact: Fact) -> str:
    """A cause as a sentence without its end: it begins with its partition, or with a capital."""
    if fact.place is None:
        return fact.text[:1].upper() + fact.text[1:]
    return f"{fact.place.topic}-{fact.place.partition}: {fact.text}"


def _by_member(
    facts: Sequence[Fact], group: GroupView, statuses: Mapping[TopicPartition, tuple[Status, str]]
) -> list[Fact]:
    """A record that cannot be read is likely only where one partition of a member stands still while others move. What
    else stands still is told once for a member: its program hangs.
    """
    members = {TopicPartition(row.topic, row.partition): row.member and row.member.member_id for row in group.rows}
    found, told = [], set[str | None]()
    for fact in facts:
        if fact.cause is not Cause.STUCK or fact.place is None:
            found.append(fact)
            continue
        member = members[fact.place]
        own = [place for place in members if members[place] == member]
        stopped = sum(statuses.get(place, WELL)[0] is Status.STOPPED for place in own)
        if stopped == 1 < len(own) and _moved_since(group, fact.place):
            found.append(fact)
        elif member not in told:
            told.add(member)
            found.append(_hung(fact, stopped, len(own), is_member=member is not None))
    return found


def _moved_since(group: GroupView, place: TopicPartition) -> bool:
    """Whether the group has committed elsewhere after the partition was seen first as it is."""
    stood = group.stood.get(place)
    return stood is not None and group.progress_ms is not None and group.progress_ms > stood.since_ms


def _hung(fact: Fact, stopped: int, count: int, *, is_member: bool) -> Fact:
    of, whom = ("of this member", "the member") if is_member else ("of the group", "its program")
    many = f"all {count} partitions {of} stand still" if stopped == count else f"{stopped} of {count} {of} stand still"
    many = f"it is the only partition {of}" if count == 1 else many
    text = f"{fact.text}; {many}: restart {whom}, or look at what it does"
    return fact._replace(text=text, words=("groups", "members"))
