"""Reset committed offsets: find the new ones, then commit them.

A scenario defines the new offsets; `resolve` gets the log offsets that the scenario needs from the cluster and makes
the plan of one group, which changes nothing. The arithmetic, `plan_offsets`, is pure. Plans of many groups are made
in `plans.builder`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    ConsumerGroupDescription,
    GroupState,
    ListedOffset,
    OffsetAndMetadata,
    OffsetSpec,
    TopicDescription,
    TopicPartition,
)
from groupkeeper.java_numbers import INT_MAX, parse_number
from groupkeeper.operations.errors import (
    BadTopicArgument,
    GroupIsActive,
    NothingCommitted,
    PartitionsLeaderless,
    PartitionsMissing,
)
from groupkeeper.operations.plans.model import Adjustment, AdjustmentKind, Change, GroupPlan, Plan
from groupkeeper.operations.plans.recorder import Recorder, commit, known_cluster_id
from groupkeeper.operations.topics import describe_topics, listed, offsets_of
from groupkeeper.protocol.errors import GroupIdNotFound


class ToEarliest(NamedTuple):
    """The log start offset."""


class ToLatest(NamedTuple):
    """The log end offset."""


class ToCurrent(NamedTuple):
    """The committed offset, or the log end where there is none.

    `clamp`: a committed offset outside of the log becomes the nearer end.
    """

    clamp: bool = True


class ToTime(NamedTuple):
    """The first record with a timestamp ≥ `timestamp_ms`, or the log end where there is none."""

    timestamp_ms: int


class ToOffset(NamedTuple):
    """One offset for every partition, or the nearer end of the log where it is outside."""

    offset: int


class ShiftBy(NamedTuple):
    """The committed offset shifted by a number of records, back when negative, within the log."""

    records: int


class ToPlan(NamedTuple):
    """An offset for each partition, or the nearer end of the log where it is outside."""

    offsets: Mapping[TopicPartition, int]


Scenario = ToEarliest | ToLatest | ToCurrent | ToTime | ToOffset | ShiftBy | ToPlan


class LogFacts(NamedTuple):
    """Data from the cluster about the partitions of a plan: as much of it as the scenario needs."""

    log_starts: Mapping[TopicPartition, int] = {}
    log_ends: Mapping[TopicPartition, int] = {}
    found: Mapping[TopicPartition, ListedOffset] = {}
    committed: Mapping[TopicPartition, OffsetAndMetadata] = {}


INACTIVE = (GroupState.EMPTY, GroupState.DEAD)


def parse_topic_argument(argument: str) -> tuple[str, list[int] | None]:
    """`orders` (None: all of its partitions) or `orders:0,1,2`. Raises BadTopicArgument."""
    if ":" not in argument:
        return argument, None
    parts = argument.rstrip(":").split(":")
    if len(parts) != 2:
        raise BadTopicArgument(f"Invalid topic arg '{argument}', expected topic name and partitions")
    topic, numbers = parts
    partitions = []
    for number in numbers.rstrip(",").split(",") if numbers.strip(",") else []:
        partition = parse_number(number, INT_MAX)
        if partition is None:
            raise BadTopicArgument(f"Invalid partition '{number}' specified in topic arg '{argument}''")
        partitions.append(partition)
    return topic, partitions


async def partitions_of(admin: Admin, arguments: Sequence[str]) -> list[TopicPartition]:
    """The partitions that topic arguments select; those named by number come first and aren't looked up.

    Raises BadTopicArgument, and the failure of the first whole topic that cannot be described.
    """
    parsed = [parse_topic_argument(argument) for argument in arguments]
    named = [TopicPartition(topic, n) for topic, numbers in parsed if numbers is not None for n in numbers]
    topics = list(dict.fromkeys(topic for topic, numbers in parsed if numbers is None))
    if topics:
        described = (await describe_topics(admin, topics)).all()
        named += (tp for topic in topics for tp in described[topic].topic_partitions)
    return named


def refuse_unusable(partitions: Sequence[TopicPartition], described: Mapping[str, TopicDescription]) -> None:
    """Raises PartitionsMissing or PartitionsLeaderless if some partitions don't exist or have no leader."""
    has_leader = {
        TopicPartition(topic.name, partition.partition): partition.leader is not None
        for topic in described.values()
        for partition in topic.partitions
    }
    missing = [tp for tp in partitions if tp not in has_leader]
    if missing:
        raise PartitionsMissing(missing)
    leaderless = [tp for tp in partitions if not has_leader[tp]]
    if leaderless:
        raise PartitionsLeaderless(leaderless)


async def committed_offsets(admin: Admin, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """All committed offsets of one group. Raises the coordinator's error for the group."""
    batch = await admin.list_consumer_group_offsets({group_id: None})
    offsets = batch.result(group_id).done
    return {tp: offset for tp, offset in offsets.items() if offset is not None}


async def resolve(admin: Admin, group_id: str, partitions: Iterable[TopicPartition], scenario: Scenario) -> GroupPlan:
    """Find the new offsets of existing partitions. Metadata and leader epochs of the group's commits are kept.

    Raises NothingCommitted, and the first failure of an answer that the plan needs.
    """
    wanted = list(dict.fromkeys(partitions))
    committed = await committed_offsets(admin, group_id)

    async def found(spec: OffsetSpec, some: Iterable[TopicPartition] = wanted) -> dict[TopicPartition, ListedOffset]:
        return (await listed(admin, some, spec)).all()

    facts = LogFacts(committed=committed)
    if isinstance(scenario, ToEarliest | ToOffset | ShiftBy | ToPlan | ToCurrent):
        needs_log_starts = not isinstance(scenario, ToCurrent) or scenario.clamp
        facts = facts._replace(log_starts=offsets_of(await found(OffsetSpec.earliest()))) if needs_log_starts else facts
    if isinstance(scenario, ToTime):
        facts = facts._replace(found=await found(OffsetSpec(scenario.timestamp_ms)))
        later = [tp for tp, offset in facts.found.items() if offset.offset < 0]
        facts = facts._replace(log_ends=offsets_of(await found(OffsetSpec.latest(), later)))
    elif not isinstance(scenario, ToEarliest):
        facts = facts._replace(log_ends=offsets_of(await found(OffsetSpec.latest())))
    return plan_offsets(group_id, wanted, scenario, facts)


def plan_offsets(group_id: str, partitions: Sequence[TopicPartition], scenario: Scenario, facts: LogFacts) -> GroupPlan:
    """The plan for a scenario, from known facts. Raises NothingCommitted for a shift without a committed offset."""
    changes: dict[TopicPartition, Change] = {}
    adjustments: list[Adjustment] = []
    for tp in partitions:
        offset, adjustment = _new_offset(tp, scenario, facts)
        before, found = facts.committed.get(tp), facts.found.get(tp)
        changes[tp] = Change(
            before,
            moved(offset, before, found),
            facts.log_starts.get(tp),
            facts.log_ends.get(tp),
            after_ms=found.timestamp if found is not None and found.offset >= 0 else None,
        )
        if adjustment is not None:
            adjustments.append(adjustment)
    return GroupPlan(group_id, changes, tuple(adjustments))


def _new_offset(tp: TopicPartition, scenario: Scenario, facts: LogFacts) -> tuple[int, Adjustment | None]:
    match scenario:
        case ToEarliest():
            return facts.log_starts[tp], None
        case ToLatest():
            return facts.log_ends[tp], None
        case ToTime(timestamp_ms):
            found = facts.found[tp].offset
            if found >= 0:
                return found, None
            log_end = facts.log_ends[tp]
            return log_end, Adjustment(AdjustmentKind.NOTHING_LATER, tp, timestamp_ms, log_end)
        case ToCurrent(clamp):
            commit = facts.committed.get(tp)
            if commit is None:
                return facts.log_ends[tp], None
            return _within(tp, commit.offset, facts) if clamp else (commit.offset, None)
        case ToOffset(offset):
            return _within(tp, offset, facts)
        case ToPlan(planned):
            return _within(tp, planned[tp], facts)
        case ShiftBy(records):
            commit = facts.committed.get(tp)
            if commit is None:
                raise NothingCommitted(tp)
            return _within(tp, commit.offset + records, facts)


def _within(tp: TopicPartition, offset: int, facts: LogFacts) -> tuple[int, Adjustment | None]:
    """The offset, or the log's nearer end, with a adjustment, if the log doesn't hold it."""
    if offset > facts.log_ends[tp]:
        return facts.log_ends[tp], Adjustment(AdjustmentKind.ABOVE_LOG_END, tp, offset, facts.log_ends[tp])
    if offset < facts.log_starts[tp]:
        return facts.log_starts[tp], Adjustment(AdjustmentKind.BELOW_LOG_START, tp, offset, facts.log_starts[tp])
    return offset, None


def moved(offset: int, commit: OffsetAndMetadata | None, found: ListedOffset | None) -> OffsetAndMetadata:
    """The commit at another offset, with its metadata; its leader epoch stays only with the same offset."""
    epoch = found.leader_epoch if found is not None and found.offset == offset else None
    if commit is None:
        return OffsetAndMetadata(offset, epoch)
    if commit.offset == offset:
        epoch = commit.leader_epoch
    return OffsetAndMetadata(offset, epoch, commit.metadata)


async def apply(admin: Admin, plan: GroupPlan, recorder: Recorder | None = None) -> Batch[TopicPartition, None]:
    """Commit the plan of one group without any check. Partitions that the coordinator refuses are in `failed`.

    Raises JournalUnwritable when the recorder does, and what the coordinator refuses of the whole group.
    """
    if not plan.changes:
        return Batch()
    cluster_id = None if recorder is None else await known_cluster_id(admin)
    outcome = await commit(admin, Plan(cluster_id, (plan,)), recorder)
    return outcome.result(plan.group_id)


def refuse_active(group_id: str, described: Batch[str, ConsumerGroupDescription]) -> None:
    """Raise GroupIsActive, or why the group cannot be described; a group that doesn't exist is inactive."""
    failure = described.failed.get(group_id)
    if isinstance(failure, GroupIdNotFound):
        return
    description = described.result(group_id)
    if description.group_state not in INACTIVE:
        raise GroupIsActive(group_id, description.group_state)
