"""The metrics of this program, and their samples from a snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.live.statuses import judge_status, standing
from groupkeeper.operations.lag import LagStatus
from groupkeeper.web.exposition import MetricFamily, Sample, families, label, labels, sample, seconds

_CLUSTER = ("cluster",)
_GROUP = ("cluster", "group")
_TOPIC = ("cluster", "group", "topic")
_PARTITION = ("cluster", "group", "topic", "partition")


class Level(Enum):
    """The subject of a series. If there are too many series, those of later levels are left out first."""

    GROUP = "group"
    TOPIC = "topic"
    PARTITION = "partition"
    MEMBER = "member"


CLUSTER_METRICS = (
    MetricFamily("groupkeeper_cluster_up", "1 if the last poll of the cluster succeeded.", _CLUSTER),
    MetricFamily("groupkeeper_cluster_info", "1; the cluster's own id.", ("cluster", "cluster_id")),
    *families(
        _CLUSTER,
        groupkeeper_cluster_brokers="Brokers of the cluster.",
        groupkeeper_cluster_listed_groups="Groups that the cluster lists, including those not selected.",
        groupkeeper_cluster_left_out_groups="Listed groups that --group and --except-group leave out.",
    ),
    MetricFamily(
        "groupkeeper_cluster_groups",
        "Selected groups, by type and state; empty: not known.",
        ("cluster", "type", "state"),
    ),
    MetricFamily(
        "groupkeeper_cluster_problem",
        "1; why the cluster, or one of its brokers, could not list its groups.",
        ("cluster", "error", "broker"),
    ),
    *families(
        _CLUSTER,
        groupkeeper_collector_polls_total="Polls of the cluster.",
        groupkeeper_collector_failed_polls_total="Polls of the cluster that failed as a whole.",
        groupkeeper_collector_poll_seconds="How long the last poll took.",
        groupkeeper_collector_measured_timestamp_seconds="The instant of all numbers of the cluster: when the ends "
        "of its logs were requested.",
        groupkeeper_collector_succeeded_timestamp_seconds="When the last successful poll of the cluster began.",
        groupkeeper_cluster_down_since_timestamp_seconds="When the first failed poll after the last successful one "
        "began; absent while the cluster is up.",
        groupkeeper_collector_groups_with_problems="Groups with a failed request.",
        groupkeeper_exporter_series="Series of the cluster's groups.",
    ),
    MetricFamily(
        "groupkeeper_exporter_left_out_series",
        "Series that are left out, as there would be too many.",
        ("cluster", "level"),
    ),
)

GROUP_METRICS = (
    MetricFamily(
        "groupkeeper_group_info", "1; the group's type and other properties.", (*_GROUP, "type", "state", "assignor")
    ),
    *families(
        _GROUP,
        groupkeeper_group_members="Members of the group.",
        groupkeeper_group_epoch="The group's epoch; classic groups have none.",
        groupkeeper_group_target_epoch="The epoch that the target assignment was made for.",
        groupkeeper_group_rebalances_total="Observed rebalances: new epochs; for a classic group, polls that found "
        "other members or assignments.",
        groupkeeper_group_progress_timestamp_seconds="Time of the first poll that saw the current committed offset, of "
        "the partition that has stood still longest while records wait (if none wait: of the group). It may have "
        "stood still for longer.",
    ),
    MetricFamily("groupkeeper_group_status", "1; the status of the group, as on its page.", (*_GROUP, "status")),
    MetricFamily(
        "groupkeeper_partition_status",
        "1; a partition that needs attention, with its status; absent: it does not.",
        (*_PARTITION, "status"),
    ),
    MetricFamily(
        "groupkeeper_group_problem",
        "1; why some values of the group are not known; acl: the missing permission, if that is the reason.",
        (*_GROUP, "error", "acl"),
    ),
    MetricFamily(
        "groupkeeper_share_group_dead_letters",
        "Records in the dead-letter queue of a share group; absent: it has none, or that is not known.",
        (*_GROUP, "queue"),
    ),
    MetricFamily("groupkeeper_streams_group_tasks", "Tasks of the members of a streams group.", (*_GROUP, "role")),
    *families(
        _GROUP,
        groupkeeper_streams_group_topology_epoch="The epoch of the topology of a streams group.",
        groupkeeper_streams_group_subtopologies="Parts of the topology of a streams group.",
    ),
)

TOPIC_METRICS = (
    *families(
        _TOPIC,
        groupkeeper_group_lag="Offsets from the committed offsets to the ends of the logs, where both are known. "
        "For a share group: the broker's count of the records that are not done.",
        groupkeeper_group_max_lag="The lag of the partition with the largest one.",
        groupkeeper_group_lag_seconds="The age of the next record to read, by its own time, in the partition where "
        "that is oldest; a lower bound where groupkeeper_group_lag_seconds_unknown_partitions has partitions.",
        groupkeeper_group_lag_seconds_estimated_partitions="Partitions whose lag in seconds is interpolated "
        "between the ends of logs at earlier polls; absent: none.",
        groupkeeper_group_lag_seconds_unknown_partitions="Partitions whose lag in seconds is not known; absent: none.",
        groupkeeper_group_retention_margin_seconds="Time until retention.ms allows an unread record to be removed; "
        "negative: overdue.",
        groupkeeper_group_commit_age_seconds="For how long the committed offsets have not moved, at least: since a "
        "poll first found them. A commit of the same offsets changes nothing, as brokers don't report when a commit "
        "was made. For a share group: the records that are done.",
        groupkeeper_group_partitions="Partitions with a committed offset or a member.",
    ),
    MetricFamily(
        "groupkeeper_group_partitions_by_status",
        "Partitions whose committed offset is not within the log, or not known to be; absent: none.",
        (*_TOPIC, "status"),
    ),
    *families(
        _TOPIC,
        groupkeeper_group_assigned_members="Members that are assigned partitions of the topic.",
        groupkeeper_group_lost="Offsets of the lag that were removed before they were read; absent: none.",
        groupkeeper_group_uncommitted="Offsets in the logs of partitions without a commit, which the lag leaves "
        "out; absent: there is none.",
        groupkeeper_share_group_done_ahead="Records after the start offset of a share group that are done already.",
    ),
)

PARTITION_METRICS = (
    *families(
        _PARTITION,
        groupkeeper_group_partition_lag="The lag of a partition.",
        groupkeeper_group_partition_lag_seconds="The lag of a partition in seconds.",
        groupkeeper_group_partition_committed_offset="The committed offset, or a share group's start.",
    ),
    *families(
        ("cluster", "topic", "partition"),
        groupkeeper_partition_log_start_offset="The offset of the oldest record.",
        groupkeeper_partition_log_end_offset="The offset after the newest record.",
    ),
)

MEMBER_METRICS = (
    MetricFamily(
        "groupkeeper_group_member_partitions",
        "Partitions that are assigned to a member.",
        (*_GROUP, "member_id", "client_id", "host"),
    ),
)


def cluster_samples(snapshot: ClusterSnapshot) -> Iterator[Sample]:
    """The samples of a cluster and its collector."""
    own = labels(cluster=snapshot.cluster)
    if snapshot.polls.done:
        yield sample("groupkeeper_cluster_up", own, int(snapshot.is_up))
    yield sample("groupkeeper_collector_polls_total", own, snapshot.polls.done)
    yield sample("groupkeeper_collector_failed_polls_total", own, snapshot.polls.failed)
    yield sample("groupkeeper_collector_poll_seconds", own, f"{snapshot.seconds:.3f}")
    if snapshot.polls.succeeded_ms is not None:
        yield sample("groupkeeper_collector_succeeded_timestamp_seconds", own, seconds(snapshot.polls.succeeded_ms))
    if snapshot.polls.failing_ms is not None:
        yield sample("groupkeeper_cluster_down_since_timestamp_seconds", own, seconds(snapshot.polls.failing_ms))
    for error, broker in sorted({(each.error, each.broker) for each in snapshot.problems}, key=str):
        more = f'{own},error="{error}",broker="{"" if broker is None else broker}"'
        yield sample("groupkeeper_cluster_problem", more, 1)
    if snapshot.measured_ms is None:
        return
    yield sample("groupkeeper_collector_measured_timestamp_seconds", own, seconds(snapshot.measured_ms))
    yield sample("groupkeeper_cluster_info", f'{own},cluster_id="{label(snapshot.cluster_id or "")}"', 1)
    yield sample("groupkeeper_cluster_brokers", own, len(snapshot.brokers))
    yield sample("groupkeeper_cluster_listed_groups", own, snapshot.listed)
    yield sample("groupkeeper_cluster_left_out_groups", own, len(snapshot.scope.left_out))
    kinds = Counter((group.group_type or "", group.group_state or "") for group in snapshot.groups.values())
    for (kind, state), count in sorted(kinds.items()):
        yield sample("groupkeeper_cluster_groups", f'{own},type="{kind}",state="{state}"', count)
    problems = sum(bool(group.problems) for group in snapshot.groups.values())
    yield sample("groupkeeper_collector_groups_with_problems", own, problems)


def _labels(snapshot: ClusterSnapshot, group: GroupView) -> str:
    return f'{{cluster="{label(snapshot.cluster)}",group="{label(group.group_id)}"'


def group_samples(snapshot: ClusterSnapshot, group: GroupView) -> Iterator[Sample]:
    """The samples of a group as a whole."""
    own = _labels(snapshot, group)
    kind, state = group.group_type or "", group.group_state or ""
    description = group.description
    assignor = label(description.partition_assignor) if description is not None else ""
    yield sample("groupkeeper_group_info", f'{own},type="{kind}",state="{state}",assignor="{assignor}"', 1)
    judged = judge_status(group, snapshot.at_ms)
    yield sample("groupkeeper_group_status", f'{own},status="{judged.status}"', 1)
    for tp, status in judged.bad:
        of_partition = f'{own},topic="{label(tp.topic)}",partition="{tp.partition}",status="{status}"'
        yield sample("groupkeeper_partition_status", of_partition, 1)
    if description is not None:
        yield sample("groupkeeper_group_members", own, len(description.members))
        yield sample("groupkeeper_group_rebalances_total", own, group.rebalances)
        if description.group_epoch is not None:
            yield sample("groupkeeper_group_epoch", own, description.group_epoch)
        if description.target_assignment_epoch is not None:
            yield sample("groupkeeper_group_target_epoch", own, description.target_assignment_epoch)
    progress_ms = min(standing(group), default=group.progress_ms) if group.wait.waiting else group.progress_ms
    if progress_ms is not None:
        yield sample("groupkeeper_group_progress_timestamp_seconds", own, seconds(progress_ms))
    for error, acl in dict.fromkeys((each.error, str(each.acl or "")) for each in group.problems):
        yield sample("groupkeeper_group_problem", f'{own},error="{error}",acl="{label(acl)}"', 1)
    queue = group.dead_letters
    if queue is not None and queue.records is not None:
        yield sample("groupkeeper_share_group_dead_letters", f'{own},queue="{label(queue.topic)}"', queue.records)
    if group.streams is not None:
        members = group.streams.members
        for role in ("active", "standby", "warmup"):
            tasks = sum(len(getattr(member.assignment, role)) for member in members)
            yield sample("groupkeeper_streams_group_tasks", f'{own},role="{role}"', tasks)
        yield sample("groupkeeper_streams_group_subtopologies", own, len(group.streams.subtopologies))
        if group.streams.topology_epoch is not None:
            yield sample("groupkeeper_streams_group_topology_epoch", own, group.streams.topology_epoch)


def topic_samples(snapshot: ClusterSnapshot, group: GroupView) -> Iterator[Sample]:
    """The samples of a group's topics."""
    group_labels = _labels(snapshot, group)
    at_ms = snapshot.at_ms
    statuses: dict[str, Counter[LagStatus]] = {}
    done_ahead: dict[str, int] = {}
    for row in group.rows:
        if row.status is not LagStatus.OK:
            statuses.setdefault(row.topic, Counter())[row.status] += 1
        if row.done_ahead is not None:
            done_ahead[row.topic] = done_ahead.get(row.topic, 0) + row.done_ahead
    for topic, (lag, wait, assigned, progress_ms) in group.topics.items():
        own = f'{group_labels},topic="{label(topic)}"'
        age_ms = None if progress_ms is None else max(0, at_ms - progress_ms)  # clocks are set back
        values = {
            "groupkeeper_group_partitions": lag.partitions,
            "groupkeeper_group_assigned_members": assigned,
            "groupkeeper_group_lag": lag.lag,
            "groupkeeper_group_max_lag": lag.max_lag,
            "groupkeeper_group_lag_seconds": None if wait.lag_ms is None else seconds(wait.lag_ms),
            "groupkeeper_group_lag_seconds_estimated_partitions": wait.estimated or None,
            "groupkeeper_group_lag_seconds_unknown_partitions": wait.unknown or None,
            "groupkeeper_group_retention_margin_seconds": None if wait.margin_ms is None else seconds(wait.margin_ms),
            "groupkeeper_group_commit_age_seconds": None if age_ms is None else seconds(age_ms),
            "groupkeeper_group_lost": lag.lost or None,
            "groupkeeper_group_uncommitted": lag.uncommitted if lag.uncommitted_partitions else None,
            "groupkeeper_share_group_done_ahead": done_ahead.get(topic),
        }
        for name, value in values.items():
            if value is not None:
                yield sample(name, own, value)
        for offset_status, count in sorted(statuses.get(topic, {}).items()):
            yield sample("groupkeeper_group_partitions_by_status", f'{own},status="{offset_status}"', count)


def partition_samples(snapshot: ClusterSnapshot, group: GroupView) -> Iterator[Sample]:
    """The samples of a group's partitions, if enabled."""
    group_labels = _labels(snapshot, group)
    for row, wait in zip(group.rows, group.waits, strict=True):
        own = f'{group_labels},topic="{label(row.topic)}",partition="{row.partition}"'
        if row.lag is not None:
            yield sample("groupkeeper_group_partition_lag", own, row.lag)
        if wait.lag_ms is not None:
            yield sample("groupkeeper_group_partition_lag_seconds", own, seconds(wait.lag_ms))
        if row.committed is not None:
            yield sample("groupkeeper_group_partition_committed_offset", own, row.committed.offset)


def member_samples(snapshot: ClusterSnapshot, group: GroupView) -> Iterator[Sample]:
    """The samples of a group's members, if enabled."""
    group_labels = _labels(snapshot, group)
    for member in () if group.description is None else group.description.members:
        own = (
            f'{group_labels},member_id="{label(member.member_id)}",client_id="{label(member.client_id)}",'
            f'host="{label(member.host)}"'
        )
        yield sample("groupkeeper_group_member_partitions", own, len(member.assignment))


def log_ends(groups: Iterable[GroupView]) -> Mapping[tuple[str, int], tuple[int | None, int]]:
    """The start (None: unknown) and end of the groups' logs, by topic and partition."""
    return {
        row.tp: (row.log_start_offset, row.log_end_offset)
        for group in groups
        for row in group.rows
        if row.log_end_offset is not None
    }


def log_samples(snapshot: ClusterSnapshot) -> Iterator[Sample]:
    """The samples of partitions, independent of groups."""
    for (topic, partition), (start, end) in sorted(log_ends(snapshot.groups.values()).items()):
        own = f'{labels(cluster=snapshot.cluster, topic=topic)},partition="{partition}"'
        if start is not None:
            yield sample("groupkeeper_partition_log_start_offset", own, start)
        yield sample("groupkeeper_partition_log_end_offset", own, end)
