"""Plans that delete unused offsets, and commit offsets again that are about to expire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    GroupState,
    GroupType,
    OffsetAndMetadata,
    Position,
    TopicDescription,
    TopicPartition,
)
from groupkeeper.operations.commit_times import CommitTime, CommitTimes, commit_times
from groupkeeper.operations.groups import read_topics
from groupkeeper.operations.plans.builder import Made, PlanTopics
from groupkeeper.operations.plans.cluster_state import (
    Committed,
    FoundGroup,
    FoundGroups,
    Logs,
    find_ends,
    find_groups,
    last_records,
    times_unknown,
)
from groupkeeper.operations.plans.deletions import NO_PARTITIONS, chosen
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan, PlannedTopic, PlanTrouble
from groupkeeper.operations.plans.recorder import cluster_id_of
from groupkeeper.operations.plans.reset import INACTIVE
from groupkeeper.operations.times import utc_text
from groupkeeper.operations.topics import describe_topics
from groupkeeper.protocol import OFFSETS_TOPIC
from groupkeeper.protocol.errors import InvalidTopicException, UnknownTopicOrPartition
from groupkeeper.rules.expiry import do_offsets_age, expires_ms
from groupkeeper.rules.words import duration

RETENTION = "offsets.retention.minutes"


class Criteria(NamedTuple):
    """The offsets to sweep. `idle_ms`: offsets not committed for this time, None: the age doesn't matter.

    `finds_missing`: offsets of topics and partitions that don't exist. `expiring_ms`: offsets that the brokers
    expire within this time. `retention_ms`: the brokers' retention of offsets, None: from a broker's config.
    `by_records`: the age of an offset is that of the record before it, for users without READ on
    `__consumer_offsets`.
    """

    idle_ms: int | None = None
    finds_missing: bool = False
    expiring_ms: int | None = None
    retention_ms: int | None = None
    by_records: bool = False


async def make_sweep(
    admin: Admin,
    group_ids: Iterable[str],
    topics: PlanTopics,
    criteria: Criteria,
    now_ms: int,
    command: tuple[str, ...] = (),
) -> Made:
    """The plan of a sweep. Nothing is changed. `topics.matches` narrows it to some topics.

    A group without members is idle when it had no commit and no members for this time. Of a group with members only
    topics that no member reads are swept. Raises what makes all of them fail.
    """
    groups = await find_groups(admin, list(group_ids))
    troubles = groups.troubles
    wanted = {key: chosen(topics, committed) for key, committed in groups.committed.items() if key not in groups.failed}
    tps = dict.fromkeys(tp for some in wanted.values() for tp in some)
    described = await describe_topics(admin, dict.fromkeys(tp.topic for tp in tps))
    missing = {tp: why for tp in tps if (why := _why_missing(tp, described)) is not None}
    logs = await find_ends(admin, [tp for tp in tps if tp not in missing], described)
    times, unknown = CommitTimes({}, {}, {}, 0), list[str]()
    retention_ms = criteria.retention_ms
    has_commits = any(wanted.values())
    if has_commits and criteria.by_records and criteria.idle_ms is not None:
        times, unknown = await _times_of_records(admin, groups, logs)
    elif has_commits and (criteria.idle_ms is not None or criteria.expiring_ms is not None):
        times = await commit_times(admin, list(wanted))
    if has_commits and criteria.expiring_ms is not None and retention_ms is None:
        settings = await admin.broker_settings([RETENTION])
        retention_ms = int(settings[RETENTION]) * 60_000
    different = {str(why): why for why in times.failed.values()}
    troubles += (PlanTrouble(None, OFFSETS_TOPIC, why) for why in different.values())
    sweep = _Sweep(criteria._replace(retention_ms=retention_ms), now_ms, groups, logs, missing, times)
    plans = [one for key, some in wanted.items() if (one := sweep.plan(key, some)).changes]
    facts = _facts(plans, logs, missing)
    cluster_id = await cluster_id_of(admin)
    plan = Plan(cluster_id, tuple(plans), Kind.SWEEP, now_ms, command, facts)
    return Made(plan, tuple(troubles), (*unknown, *sweep.notes), groups.absent)


def _why_missing(tp: TopicPartition, described: Batch[str, TopicDescription]) -> str | None:
    failure = described.failed.get(tp.topic)
    if isinstance(failure, UnknownTopicOrPartition | InvalidTopicException):
        return "the topic does not exist"
    topic = described.done.get(tp.topic)
    if topic is not None and tp.partition not in {one.partition for one in topic.partitions}:
        return "the topic has no such partition"
    return None


def _facts(plans: Iterable[GroupPlan], logs: Logs, missing: Mapping[TopicPartition, str]) -> dict[str, PlannedTopic]:
    facts: dict[str, PlannedTopic] = {}
    for tp in (tp for plan in plans for tp in plan.changes):
        found = logs.facts(tp.topic, is_whole=tp in missing)
        if found is not None:
            if facts.get(tp.topic, NO_PARTITIONS).partitions in (0, None):
                facts[tp.topic] = found
        elif tp in missing:
            facts[tp.topic] = NO_PARTITIONS
    return facts


async def _times_of_records(admin: Admin, groups: FoundGroups, logs: Logs) -> tuple[CommitTimes, list[str]]:
    """Estimates commit times by the times of the last records before the committed offsets: a commit is never older.
    Returns also the reasons why other times are unknown.
    """
    ends = {
        Position(*tp, commit.offset): logs.log_starts[tp]
        for committed in groups.committed.values()
        for tp, commit in committed.items()
        if tp in logs.log_starts and logs.log_starts[tp] < commit.offset <= logs.log_ends[tp]
    }
    found = await last_records(admin, ends)
    commits: dict[str, dict[TopicPartition, CommitTime]] = {}
    for group_id, committed in groups.committed.items():
        at = {tp: Position(*tp, commit.offset) for tp, commit in committed.items()}
        if any(one in ends and found.done.get(one) is None for one in at.values()):
            continue  # it may have read a new record there: nothing is known of its age
        for tp, commit in committed.items():
            record = found.done.get(at[tp])
            if record is not None and record.timestamp >= 0:
                commits.setdefault(group_id, {})[tp] = CommitTime(commit.offset, record.timestamp)
    return CommitTimes(commits, {}, {}, 0), times_unknown(found.failed)


class _Sweep:
    """The changes of the offsets of each group, and the notes."""

    def __init__(
        self,
        criteria: Criteria,
        now_ms: int,
        groups: FoundGroups,
        logs: Logs,
        missing: Mapping[TopicPartition, str],
        times: CommitTimes,
    ) -> None:
        self._criteria = criteria
        self._now_ms = now_ms
        self._groups = groups
        self._logs = logs
        self._missing = missing
        self._times = times
        self.notes: list[str] = []

    def plan(self, group_id: str, tps: Iterable[TopicPartition]) -> GroupPlan:
        committed = self._groups.committed[group_id]
        group = self._groups.described.get(group_id)
        idle = self._idle(group_id, committed, group)
        expiring = self._expiring(group_id, committed, group)
        is_active = self._groups.state(group_id) not in INACTIVE
        changes: dict[TopicPartition, Change] = {}
        for tp in sorted(tps):
            before = committed[tp]
            gone = self._missing.get(tp) if self._criteria.finds_missing else None
            why = gone or idle.get(tp.topic)
            if why is not None:
                changes[tp] = self._change(tp, before, None, why)
            elif tp in expiring and tp in self._logs.log_starts:
                if is_active:
                    self._leave(group_id, tp, expiring[tp], "while the group has members, only they can commit")
                elif not self._logs.log_starts[tp] <= before.offset <= self._logs.log_ends[tp]:
                    self._leave(group_id, tp, expiring[tp], f"{before.offset} is outside of the log")
                else:
                    changes[tp] = self._change(tp, before, before, f"{expiring[tp]}: committed again")
        return GroupPlan(group_id, changes, (), str(self._groups.state(group_id)))

    def _leave(self, group_id: str, tp: TopicPartition, what: str, why: str) -> None:
        self.notes.append(f"{group_id} {tp} {what}, and is not committed again: {why}")

    def _change(
        self, tp: TopicPartition, before: OffsetAndMetadata, after: OffsetAndMetadata | None, why: str
    ) -> Change:
        return Change(before, after, self._logs.log_starts.get(tp), self._logs.log_ends.get(tp), why=why)

    def _known(self, group_id: str, committed: Committed) -> dict[TopicPartition, CommitTime]:
        """Times of the current commits; commits made since the offsets were fetched are left out."""
        times = self._times.commits.get(group_id, {})
        return {tp: one for tp, one in times.items() if tp in committed and committed[tp].offset == one.offset}

    def _idle(self, group_id: str, committed: Committed, group: FoundGroup | None) -> dict[str, str]:
        """The idle topics of a group, with the age of their last commit, in words."""
        if self._criteria.idle_ms is None or self._times.failure(group_id) is not None or not committed:
            return {}
        known = self._known(group_id, committed)
        limit_ms = self._now_ms - self._criteria.idle_ms
        is_exact = not self._criteria.by_records
        if self._groups.state(group_id) in INACTIVE:
            parts = {topic: list(committed) for topic in dict.fromkeys(tp.topic for tp in committed)}
        else:
            reads = None if group is None else read_topics(group.members)
            if reads is None:
                return {}
            topics = dict.fromkeys(tp.topic for tp in committed if tp.topic not in reads)
            parts = {topic: [tp for tp in committed if tp.topic == topic] for topic in topics}
        idle: dict[str, str] = {}
        has_unknown = False
        for topic, tps in parts.items():
            times = [known[tp].time_ms for tp in tps if tp in known]
            if not times or (is_exact and len(times) < len(tps)):
                has_unknown = True
                continue
            last_ms = max(times)
            if last_ms <= limit_ms and self._times.empty_ms.get(group_id, last_ms) <= limit_ms:
                what = "last commit" if is_exact else "last record read"
                idle[topic] = f"{what} {duration(self._now_ms - last_ms)} ago ({utc_text(last_ms)})"
        if has_unknown:
            self.notes.append(
                f"{group_id}: the age of some of its offsets is not known; these offsets are left unchanged"
            )
        return idle

    def _expiring(self, group_id: str, committed: Committed, group: FoundGroup | None) -> dict[TopicPartition, str]:
        """The partitions whose offsets the brokers expire soon."""
        criteria = self._criteria
        if criteria.expiring_ms is None or criteria.retention_ms is None or self._times.failure(group_id) is not None:
            return {}
        has_members = group is not None and group.group_state not in INACTIVE
        reads = read_topics(group.members) if group is not None and has_members else frozenset()
        is_settled = group is not None and (
            group.group_type is GroupType.CONSUMER or group.group_state is GroupState.STABLE
        )
        if reads is None or not do_offsets_age(
            has_members=has_members, is_settled=is_settled, are_topics_known=reads is not None
        ):
            return {}
        expiring = {}
        empty_ms = self._times.empty_ms.get(group_id)
        is_vain = False
        for tp, commit in self._known(group_id, committed).items():
            at_ms = expires_ms(commit.expires_ms, commit.time_ms, criteria.retention_ms, empty_ms)
            if tp.topic in reads or at_ms > self._now_ms + criteria.expiring_ms:
                continue
            if empty_ms is not None and empty_ms + criteria.retention_ms <= at_ms:
                is_vain = True
            else:
                expiring[tp] = f"expires {utc_text(at_ms)}"
        if is_vain and empty_ms is not None:
            when = utc_text(empty_ms + criteria.retention_ms)
            self.notes.append(
                f"{group_id}: its offsets expire {when}, counted from the time when its last member left. A commit "
                "doesn't delay that; a member that joins and leaves does"
            )
        return expiring
