"""Make plans of resets for many groups: each broker gets the requests for all its groups at once, and each log is
looked up once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Position, TopicPartition
from groupkeeper.operations.errors import NoPlan, NoSuchTime, NothingCommitted, OutOfRange
from groupkeeper.operations.plans import reset
from groupkeeper.operations.plans.by_time import Since, first_since
from groupkeeper.operations.plans.cluster_state import (
    MOST_TIMES,
    Committed,
    FoundGroups,
    Logs,
    find_ends,
    find_groups,
    record_times,
)
from groupkeeper.operations.plans.model import (
    Adjustment,
    AdjustmentKind,
    Change,
    GroupPlan,
    Kind,
    Plan,
    PlannedTopic,
    PlanTrouble,
)
from groupkeeper.operations.plans.recorder import cluster_id_of
from groupkeeper.operations.times import utc_text
from groupkeeper.operations.topics import HIDDEN, describe_topics, hides_topics
from groupkeeper.rules.words import counted


class Otherwise(StrEnum):
    """The policy for an offset or time that isn't in the log."""

    END = "end"
    CLAMP = "clamp"
    SKIP = "skip"
    FAIL = "fail"
    EXACT = "exact"


class Policies(NamedTuple):
    """`if_no_record`: END, SKIP or FAIL. `if_out_of_range`: CLAMP (to the nearer end of the log), SKIP or FAIL."""

    if_no_record: Otherwise = Otherwise.END
    if_out_of_range: Otherwise = Otherwise.CLAMP


class PlanTopics(NamedTuple):
    """The selected partitions of a group: `names` are whole topics, `partitions` single ones, whether committed or
    not.

    `matches`: accepts partitions with a committed offset; None: none of them. `is_whole`: a reset also takes the
    other partitions of their topics.
    """

    names: Sequence[str] = ()
    partitions: Sequence[TopicPartition] = ()
    matches: Callable[[TopicPartition], bool] | None = None
    is_whole: bool = False


ALL_COMMITTED = PlanTopics(matches=lambda tp: True)


class Made(NamedTuple):
    """A plan, the troubles of parts left out of it, and notes for people. `absent`: groups that don't exist."""

    plan: Plan
    troubles: tuple[PlanTrouble, ...] = ()
    notes: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether no plan is made because a policy of some partition is to fail."""
        return any(isinstance(trouble.failure, NoSuchTime | OutOfRange) for trouble in self.troubles)


class Request(NamedTuple):
    """The requested reset."""

    group_ids: Sequence[str]
    topics: PlanTopics
    scenario: reset.Scenario | None
    """None: the offsets are those of `from_file`."""
    policies: Policies = Policies()
    from_file: Mapping[str, Mapping[TopicPartition, int]] | None = None
    """The offsets of each group, of a file or of the pipeline, in the partitions to reset; None: not given."""
    command: tuple[str, ...] = ()
    made_ms: int = 0
    file_name: str = ""
    """Where these offsets are from, for texts."""
    creates: bool = True
    """Whether to plan for groups that don't exist; else they are only in `absent` of the outcome."""


async def make_reset(admin: Admin, request: Request) -> Made:
    """The plan of a reset. Nothing is changed; the groups may be active.

    A failure of one group or partition is a trouble in the result. Raises what makes all of them fail.
    """
    groups = await find_groups(admin, request.group_ids)
    committed_topics = {tp.topic for committed in groups.committed.values() for tp in committed}
    names = dict.fromkeys(request.topics.names) | dict.fromkeys(tp.topic for tp in request.topics.partitions)
    names |= dict.fromkeys(sorted(committed_topics))
    if request.from_file is not None:
        names |= dict.fromkeys(tp.topic for offsets in request.from_file.values() for tp in offsets)
    described = await describe_topics(admin, names)
    logs = Logs(described, {}, {}, {})
    left_out = {*groups.failed, *(() if request.creates else groups.absent)}
    planned = [group_id for group_id in request.group_ids if group_id not in left_out]
    by_group = {group_id: _selected(request, group_id, groups.committed[group_id], logs) for group_id in planned}
    unselected = _unselected(request, planned, logs)
    partitions = dict.fromkeys(tp for wanted in by_group.values() for tp in wanted)
    logs = await find_ends(admin, partitions, described)
    found: Mapping[TopicPartition, Since] = {}
    if isinstance(request.scenario, reset.ToTime):
        time_ms = request.scenario.timestamp_ms
        reachable = {tp: time_ms for tp in partitions if tp not in logs.failed}
        batch = await first_since(admin, reachable)
        found, logs = batch.done, logs._replace(failed={**logs.failed, **batch.failed})
    maker = _Maker(request, groups, logs, found)
    plans = [maker.plan(group_id, wanted) for group_id, wanted in by_group.items()]
    plans = [plan for plan in plans if plan.changes]
    maker.notes += _moved(plans)
    topics = _topic_facts(request, logs, plans)
    cluster_id = await cluster_id_of(admin)
    plan = Plan(cluster_id, tuple(plans), Kind.RESET, request.made_ms, request.command, topics)
    timed, notes = await with_times(admin, plan)
    hidden = [HIDDEN] if maker.empty and await hides_topics(admin) else []
    what = f"no committed offsets {'that you may see' if hidden else 'to reset'}"
    empty = [*(f"{group_id} has {what}" for group_id in maker.empty), *hidden]
    notes = [*empty, *maker.notes, *maker.doubts, *groups.notes(group.group_id for group in plans), *notes]
    return Made(timed, (*groups.troubles, *unselected, *maker.troubles), tuple(notes), groups.absent)


async def with_times(admin: Admin, plan: Plan) -> tuple[Plan, list[str]]:
    """The plan with who made it, and the times of the records at its offsets unless it has too many; and notes."""
    positions = {
        position for group in plan.groups for tp, change in group.changes.items() for position in _at(tp, change)
    }
    plan = plan._replace(principal=admin.principal)
    if len(positions) > MOST_TIMES:
        return plan, [
            f"the times of records are left out: the plan has {len(positions)} offsets, more than {MOST_TIMES}"
        ]
    times, notes = await record_times(admin, positions)

    def timed(tp: TopicPartition, change: Change) -> Change:
        before, after, log_start, log_end, _, _, why, skips, replays, certainty = change
        before_ms = None if before is None else times.get(Position(*tp, before.offset))
        after_ms = None if after is None else times.get(Position(*tp, after.offset))
        # There may be a million of them: _replace takes three times as long.
        return Change(before, after, log_start, log_end, before_ms, after_ms, why, skips, replays, certainty)

    groups = tuple(
        group._replace(changes={tp: timed(tp, change) for tp, change in group.changes.items()}) for group in plan.groups
    )
    return plan._replace(groups=groups), notes


def _at(tp: TopicPartition, change: Change) -> Iterable[Position]:
    """The positions of a change at which there may be a record."""
    if change.log_start_offset is None or change.log_end_offset is None:
        return
    for commit in (change.before, change.after):
        if commit is not None and change.log_start_offset <= commit.offset < change.log_end_offset:
            yield Position(*tp, commit.offset)


def _selected(request: Request, group_id: str, committed: Committed, logs: Logs) -> list[TopicPartition]:
    """The selected partitions of a group. `logs`: its topics are described."""
    if request.from_file is not None:
        return sorted(request.from_file.get(group_id, ()))
    topics = request.topics
    wanted = dict.fromkeys(tp for name in topics.names for tp in logs.existing(name)) | dict.fromkeys(topics.partitions)
    if topics.matches is not None:
        known = dict.fromkeys(committed)
        if topics.is_whole:
            known |= dict.fromkeys(tp for topic in {tp.topic for tp in committed} for tp in logs.existing(topic))
        wanted |= dict.fromkeys(filter(topics.matches, known))
    return sorted(wanted)


def _unselected(request: Request, group_ids: Iterable[str], logs: Logs) -> list[PlanTrouble]:
    """Troubles about named topics that cannot be described, and about groups that the file does not have."""
    failed, offsets = logs.topics.failed, request.from_file
    troubles = [PlanTrouble(None, name, failed[name]) for name in request.topics.names if name in failed]
    lacking = [] if offsets is None else [group_id for group_id in group_ids if group_id not in offsets]
    return troubles + [PlanTrouble(key, None, NoPlan(key, request.file_name)) for key in lacking]


class _Maker:
    """Makes the plans of groups from known facts, and keeps troubles and notes."""

    def __init__(
        self, request: Request, groups: FoundGroups, logs: Logs, found: Mapping[TopicPartition, Since]
    ) -> None:
        self._request = request
        self._groups = groups
        self._logs = logs
        self._found = found
        self._aim = "" if request.scenario is None else aim(request.scenario)
        self.troubles: list[PlanTrouble] = []
        self.notes: list[str] = []
        self.empty: list[str] = []

    def plan(self, group_id: str, partitions: Sequence[TopicPartition]) -> GroupPlan:
        committed = self._groups.committed[group_id]
        state = str(self._groups.state(group_id))
        if self._request.from_file is not None:
            scenario: reset.Scenario = reset.ToPlan(self._request.from_file.get(group_id, {}))
        else:
            assert self._request.scenario is not None
            scenario = self._request.scenario
        usable = self._usable(group_id, partitions, scenario, committed)
        if not partitions and self._request.from_file is None and not self._request.topics.names:
            self.empty.append(group_id)
        found = {tp: since.at for tp, since in self._found.items()}
        facts = reset.LogFacts(self._logs.log_starts, self._logs.log_ends, found, committed)
        made = reset.plan_offsets(group_id, usable, scenario, facts)
        adjustment_by_partition = {adjustment.tp: adjustment for adjustment in made.adjustments}
        changes: dict[TopicPartition, Change] = {}
        for tp, (before, after, log_start, log_end, *_) in made.changes.items():
            adjustment = adjustment_by_partition.get(tp)
            if adjustment is None or self._keeps(group_id, adjustment):
                reason = self._why(tp) if adjustment is None else because(adjustment)
                changes[tp] = Change(before, after, log_start, log_end, None, None, reason)
        adjustments = tuple(adjustment for adjustment in made.adjustments if adjustment.tp in changes)
        return GroupPlan(group_id, changes, adjustments, state)

    @property
    def doubts(self) -> list[str]:
        return [f"{tp} goes {self._why(tp)}" for tp, since in self._found.items() if since.doubt]

    def _why(self, tp: TopicPartition) -> str:
        since = self._found.get(tp)
        if since is None or not since.doubt:
            return self._aim or "the offset in the file"
        return f"before {self._aim}: {since.doubt}"

    def _usable(
        self, group_id: str, partitions: Iterable[TopicPartition], scenario: reset.Scenario, committed: Committed
    ) -> list[TopicPartition]:
        usable = []
        for tp in partitions:
            failure = self._logs.why_not(tp)
            if failure is not None:
                self.troubles.append(PlanTrouble(group_id, tp, failure))
            elif isinstance(scenario, reset.ShiftBy) and tp not in committed:
                self.troubles.append(PlanTrouble(group_id, tp, NothingCommitted(tp)))
            else:
                usable.append(tp)
        return usable

    def _keeps(self, group_id: str, adjustment: Adjustment) -> bool:
        is_time = adjustment.kind is AdjustmentKind.NOTHING_LATER
        policies = self._request.policies
        policy = policies.if_no_record if is_time else policies.if_out_of_range
        if policy is Otherwise.FAIL:
            failure = NoSuchTime(_found_missing(adjustment)) if is_time else OutOfRange(_found_missing(adjustment))
            self.troubles.append(PlanTrouble(group_id, adjustment.tp, failure))
        elif policy is Otherwise.SKIP:
            self.notes.append(f"{group_id} {adjustment.tp} is skipped: {_found_missing(adjustment)}")
        return policy in (Otherwise.END, Otherwise.CLAMP)


def _moved(plans: Iterable[GroupPlan]) -> list[str]:
    """How often the end of a log is planned instead of what was requested. Tables may lack the reason of each row."""
    counts = Counter(adjustment.kind for plan in plans for adjustment in plan.adjustments)
    return [f"{counted(counts[kind], 'partition')} {_INSTEAD[kind]}" for kind in AdjustmentKind if counts[kind]]


_INSTEAD = {
    AdjustmentKind.ABOVE_LOG_END: "with an offset above the log end: the log end instead",
    AdjustmentKind.BELOW_LOG_START: "with an offset below the log start: the log start instead",
    AdjustmentKind.NOTHING_LATER: "without a record from that time on: the log end instead",
}


def _topic_facts(request: Request, logs: Logs, plans: Iterable[GroupPlan]) -> dict[str, PlannedTopic]:
    some = {tp.topic for tp in request.topics.partitions} if request.from_file is None else set(logs.topics.done)
    some -= set(request.topics.names)
    used = sorted({tp.topic for plan in plans for tp in plan.changes})
    found = {topic: logs.facts(topic, is_whole=topic not in some) for topic in used}
    return {topic: facts for topic, facts in found.items() if facts is not None}


def aim(scenario: reset.Scenario) -> str:
    """The target of a scenario, in words."""
    match scenario:
        case reset.ToEarliest():
            return "the oldest record"
        case reset.ToLatest():
            return "the end of the log"
        case reset.ToCurrent():
            return "the committed offset"
        case reset.ToTime(timestamp_ms):
            return f"the first record from {utc_text(timestamp_ms)} on"
        case reset.ToOffset():
            return "the requested offset"
        case reset.ToPlan():
            return "the offset in the file"
        case reset.ShiftBy(records):
            return f"{abs(records)} {'after' if records >= 0 else 'before'} the committed offset"


def because(adjustment: Adjustment) -> str:
    """Why the planned offset differs from the requested one, and where it is, in words."""
    if adjustment.kind is AdjustmentKind.NOTHING_LATER:
        return f"{_found_missing(adjustment)}: the end of the log"
    instead = "the log end" if adjustment.kind is AdjustmentKind.ABOVE_LOG_END else "the log start"
    return f"{_found_missing(adjustment)}, {instead} instead"


def _found_missing(adjustment: Adjustment) -> str:
    if adjustment.kind is AdjustmentKind.NOTHING_LATER:
        return f"no record from {utc_text(adjustment.asked)} on"
    return f"{adjustment.asked} is {adjustment.kind.value}"
