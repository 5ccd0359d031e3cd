"""kafka-consumer-group-reset, KIP-122's first version: generate a plan of one group, verify it, execute it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Failure, GroupState, OffsetSpec, TopicPartition
from groupkeeper.client.errors import ClientError, UnsupportedVersion
from groupkeeper.java_numbers import LONG_MAX
from groupkeeper.operations.plans.cluster_state import Committed, FoundGroups, Logs, find_groups, find_logs
from groupkeeper.operations.plans.execution import carry_out
from groupkeeper.operations.plans.kip122 import ResetPlan
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan, PlanTrouble
from groupkeeper.operations.plans.recorder import Recorder, cluster_id_of
from groupkeeper.operations.plans.reset import moved
from groupkeeper.operations.topics import describe_topics, listed, offsets_of
from groupkeeper.protocol.errors import InvalidTopicException, KafkaError, UnknownTopicOrPartition


class EntryState(Enum):
    """How an entry of a plan fits the cluster. Any state but OK and OUT_OF_RANGE keeps it from being executed."""

    OK = "OK"
    NO_TOPIC = "topic does not exist"
    NO_PARTITION = "partition does not exist"
    NOT_CONSUMED = "topic is not consumed by the group"
    OUT_OF_RANGE = "offset is out of range"
    UNKNOWN = "state unknown"


class PlanEntry(NamedTuple):
    """One partition of a plan, with the current state."""

    topic_partition: TopicPartition
    planned: int
    current: int | None
    """The committed offset; None: there is none."""
    log_start: int | None
    """The log start offset; None: unknown."""
    log_end: int | None
    """The log end offset; None: unknown."""
    state: EntryState
    applied: int | None
    """The offset that executing commits; None: nothing."""
    failure: Failure | None = None
    """Why its state is unknown; None: it is known."""


class ResetReport(NamedTuple):
    """The entries of a plan, in the order of topics and partitions, and the group's state; Dead: no such group."""

    group_id: str
    state: GroupState
    entries: tuple[PlanEntry, ...]
    groups: FoundGroups

    @property
    def failures(self) -> list[PlanEntry]:
        """The entries of unknown state."""
        return [entry for entry in self.entries if entry.failure is not None]


class Generated(NamedTuple):
    """A plan, a report on it, and warnings, one line each."""

    plan: ResetPlan
    report: ResetReport
    warnings: tuple[str, ...]


class TopicMissing(ClientError):
    """A requested topic cannot be described; the text names it."""


async def generate(admin: Admin, group_id: str, topics: Sequence[str] | None, timestamp_ms: int | None) -> Generated:
    """A plan to move a group to a time, or one of its current offsets (`timestamp_ms` None). Changes nothing.

    `topics` None: all that the group consumes. Raises TopicMissing, the group's failure, and
    UnsupportedVersion where the brokers cannot find offsets by time.
    """
    groups = await _look(admin, group_id)
    warnings: list[str] = []
    partitions = await _selected(admin, groups, group_id, topics, warnings)
    committed = groups.committed[group_id]
    if timestamp_ms is None:
        offsets = {}
        for tp in partitions:
            if tp in committed:
                offsets[tp] = committed[tp].offset
            else:
                warnings.append(f"{tp}: the group has no committed offset; it is left out of the plan")
    else:
        offsets = await _offsets_for(admin, partitions, timestamp_ms)
    plan = ResetPlan(group_id, offsets)
    report = await examine(admin, plan, groups)
    return Generated(plan, report, tuple(warnings))


async def examine(admin: Admin, plan: ResetPlan, groups: FoundGroups | None = None) -> ResetReport:
    """Compares the entries of a plan with the cluster. `groups`: the group's state, if it is already known."""
    if groups is None:
        groups = await _look(admin, plan.group_id)
    logs = await find_logs(admin, plan.offsets)
    for failure in logs.failed.values():
        if isinstance(failure, UnsupportedVersion):
            raise failure
    consumed = consumed_topics(groups, plan.group_id)
    committed = groups.committed[plan.group_id]
    entries = [_entry(tp, offset, committed, consumed, logs) for tp, offset in sorted(plan.offsets.items())]
    return ResetReport(plan.group_id, groups.state(plan.group_id), tuple(entries), groups)


async def execute(
    admin: Admin, report: ResetReport, recorder: Recorder | None
) -> tuple[dict[TopicPartition, int], tuple[PlanTrouble, ...]]:
    """Commits the offsets of the report. Returns the offsets that are committed now, and failures.

    Raises GroupIsActive; if a member joins only then, the coordinator refuses the partitions.
    """
    report.groups.refuse_active(report.group_id)
    committed = report.groups.committed[report.group_id]
    changes: dict[TopicPartition, Change] = {}
    for entry in report.entries:
        if entry.applied is not None:
            before = committed.get(entry.topic_partition)
            after = moved(entry.applied, before, None)
            changes[entry.topic_partition] = Change(before, after, entry.log_start, entry.log_end)
    if not changes:
        return {}, ()
    cluster_id = await cluster_id_of(admin)
    plan = Plan(cluster_id, (GroupPlan(report.group_id, changes),), Kind.RESET)
    done, troubles = await carry_out(admin, plan, recorder)
    offsets = {tp: commit.offset for group in done for tp, commit in group.offsets.items()}
    return offsets, troubles


def consumed_topics(groups: FoundGroups, group_id: str) -> set[str]:
    """Topics with a committed offset, and those that members subscribe to or are assigned."""
    topics = {tp.topic for tp in groups.committed[group_id]}
    group = groups.described.get(group_id)
    for member in () if group is None else group.members:
        topics.update(member.subscribed_topics or ())
        topics.update(tp.topic for tp in member.assignment)
        topics.update(tp.topic for tp in member.target_assignment or ())
    return topics


async def _look(admin: Admin, group_id: str) -> FoundGroups:
    groups = await find_groups(admin, [group_id])
    if group_id in groups.failed:
        raise groups.failed[group_id]
    return groups


async def _selected(
    admin: Admin, groups: FoundGroups, group_id: str, topics: Sequence[str] | None, warnings: list[str]
) -> list[TopicPartition]:
    """The existing partitions of the topics."""
    wanted = sorted(consumed_topics(groups, group_id)) if topics is None else list(dict.fromkeys(topics))
    if not wanted:
        warnings.append(f"group {group_id} consumes no topics: the plan is empty")
    described = await describe_topics(admin, wanted)
    tps = []
    for topic in wanted:
        failure = described.failed.get(topic)
        if failure is None:
            tps += described.done[topic].topic_partitions
        elif topics is None and isinstance(failure, UnknownTopicOrPartition | InvalidTopicException):
            warnings.append(f"topic {topic} no longer exists; it is left out of the plan")
        else:
            raise TopicMissing(_unusable(topic, failure)) from failure
    gone = [tp for tp in groups.committed[group_id] if tp.topic in described.done and tp not in set(tps)]
    warnings += [f"{tp}: the partition no longer exists; it is left out of the plan" for tp in sorted(gone)]
    return tps


def _unusable(topic: str, failure: Failure) -> str:
    if isinstance(failure, UnknownTopicOrPartition | InvalidTopicException):
        return f"topic {topic} does not exist"
    name = f" ({failure.name})" if isinstance(failure, KafkaError) else ""
    return f"topic {topic} cannot be described: {failure}{name}"


async def _offsets_for(
    admin: Admin, partitions: Iterable[TopicPartition], timestamp_ms: int
) -> dict[TopicPartition, int]:
    """The first records from a time on, the log end where there is none."""
    tps = list(partitions)
    if timestamp_ms < 0:
        # No record is older than 1970, and negative timestamps have other meanings in the request.
        return offsets_of((await listed(admin, tps, OffsetSpec.earliest())).all())
    spec = OffsetSpec.for_timestamp(min(timestamp_ms, LONG_MAX))
    found = (await listed(admin, tps, spec)).all()
    later = [tp for tp, answer in found.items() if answer.offset < 0]
    ends = (await listed(admin, later, OffsetSpec.latest())).all()
    return offsets_of({tp: ends.get(tp, answer) for tp, answer in found.items()})


def _entry(tp: TopicPartition, planned: int, committed: Committed, consumed: set[str], logs: Logs) -> PlanEntry:
    current = committed[tp].offset if tp in committed else None
    log_start, log_end = logs.log_starts.get(tp), logs.log_ends.get(tp)

    def entry(state: EntryState, applied: int | None = None, failure: Failure | None = None) -> PlanEntry:
        return PlanEntry(tp, planned, current, log_start, log_end, state, applied, failure)

    unknown = logs.topics.failed.get(tp.topic)
    if isinstance(unknown, UnknownTopicOrPartition | InvalidTopicException):
        return entry(EntryState.NO_TOPIC)
    if unknown is None and tp not in logs.existing(tp.topic):
        return entry(EntryState.NO_PARTITION)
    if tp.topic not in consumed:
        return entry(EntryState.NOT_CONSUMED)
    if log_start is None or log_end is None:
        return entry(EntryState.UNKNOWN, failure=unknown or logs.failed[tp])
    nearer = min(max(planned, log_start), log_end)
    return entry(EntryState.OK if nearer == planned else EntryState.OUT_OF_RANGE, nearer)
