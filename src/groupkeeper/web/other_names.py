"""The same numbers under the names, and with the labels, of other exporters, so that existing dashboards keep working.

If an exporter has −1 or 0 for an unknown value, the series is absent here. Every series has a label with the cluster's
name, which exporters for one cluster lack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from groupkeeper.client.admin.types import GroupState, GroupType
from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.web.exposition import MetricFamily, Sample, label, labels, sample, seconds
from groupkeeper.web.series import log_ends

_LOG = ("cluster", "topic_name", "partition_id")
_KMINION_GROUP = ("cluster", "group_id")
_KMINION_TOPIC = ("cluster", "group_id", "topic_name")
_TOPIC = ("cluster", "consumergroup", "topic")
_PARTITION = ("cluster", "topic", "partition")

KMINION = (
    MetricFamily("kminion_exporter_up", "1 unless the last poll failed.", ("cluster",)),
    MetricFamily("kminion_kafka_cluster_info", "1.", ("cluster", "broker_count", "cluster_id")),
    MetricFamily(
        "kminion_kafka_consumer_group_info",
        "1 if the group is stable, otherwise 0.",
        ("cluster", "group_id", "coordinator_id", "protocol", "protocol_type", "state"),
    ),
    MetricFamily("kminion_kafka_consumer_group_members", "Members.", _KMINION_GROUP),
    MetricFamily("kminion_kafka_consumer_group_empty_members", "Members without a partition.", _KMINION_GROUP),
    MetricFamily("kminion_kafka_consumer_group_topic_members", "Members with partitions.", _KMINION_TOPIC),
    MetricFamily(
        "kminion_kafka_consumer_group_topic_assigned_partitions", "Partitions that are assigned.", _KMINION_TOPIC
    ),
    MetricFamily("kminion_kafka_consumer_group_topic_offset_sum", "The sum of the committed offsets.", _KMINION_TOPIC),
    MetricFamily("kminion_kafka_consumer_group_topic_lag", "The lag of a topic.", _KMINION_TOPIC),
    MetricFamily(
        "kminion_kafka_consumer_group_topic_partition_lag", "The lag of a partition.", (*_KMINION_TOPIC, "partition_id")
    ),
    MetricFamily("kminion_kafka_topic_partition_low_water_mark", "Where a log begins.", _LOG),
    MetricFamily("kminion_kafka_topic_partition_high_water_mark", "Where a log ends.", _LOG),
)

KAFKA_EXPORTER = (
    MetricFamily("kafka_brokers", "Brokers.", ("cluster",)),
    MetricFamily("kafka_topic_partitions", "Partitions of a topic that are in a group.", ("cluster", "topic")),
    MetricFamily("kafka_topic_partition_current_offset", "Where a log ends.", _PARTITION),
    MetricFamily("kafka_topic_partition_oldest_offset", "Where a log begins.", _PARTITION),
    MetricFamily("kafka_consumergroup_current_offset", "The committed offset.", (*_TOPIC, "partition")),
    MetricFamily("kafka_consumergroup_current_offset_sum", "Of a topic.", _TOPIC),
    MetricFamily("kafka_consumergroup_lag", "The lag of a partition.", (*_TOPIC, "partition")),
    MetricFamily("kafka_consumergroup_lag_sum", "The lag of a topic.", _TOPIC),
    MetricFamily("kafka_consumergroup_members", "Members.", ("cluster", "consumergroup")),
)

_MOST = ("cluster_name", "group", "is_simple_consumer")
_MEMBER = ("cluster_name", "group", "topic", "partition", "member_host", "consumer_id", "client_id")

KAFKA_LAG_EXPORTER = (
    MetricFamily("kafka_partition_latest_offset", "Where a log ends.", ("cluster_name", "topic", "partition")),
    MetricFamily("kafka_partition_earliest_offset", "Where a log begins.", ("cluster_name", "topic", "partition")),
    MetricFamily("kafka_consumergroup_group_offset", "The committed offset.", _MEMBER),
    MetricFamily("kafka_consumergroup_group_lag", "The lag of a partition.", _MEMBER),
    MetricFamily("kafka_consumergroup_group_lag_seconds", "The lag of a partition in seconds.", _MEMBER),
    MetricFamily("kafka_consumergroup_group_max_lag", "Of one partition.", _MOST),
    MetricFamily("kafka_consumergroup_group_max_lag_seconds", "Of one partition.", _MOST),
    MetricFamily("kafka_consumergroup_group_sum_lag", "The lag of a group.", ("cluster_name", "group")),
    MetricFamily("kafka_consumergroup_group_topic_sum_lag", "The lag of a topic.", ("cluster_name", "group", "topic")),
    MetricFamily("kafka_consumergroup_poll_time_ms", "How long the last poll took.", ("cluster_name",)),
)


def kminion_of_cluster(snapshot: ClusterSnapshot) -> Iterator[Sample]:
    own = labels(cluster=snapshot.cluster)
    if snapshot.polls.done:
        yield sample("kminion_exporter_up", own, int(snapshot.is_up))
    if not snapshot.is_up:
        return
    more = f'{own},broker_count="{len(snapshot.brokers)}",cluster_id="{label(snapshot.cluster_id or "")}"'
    yield sample("kminion_kafka_cluster_info", more, 1)
    for (topic, partition), (start, end) in sorted(log_ends(snapshot.groups.values()).items()):
        of_log = f'{own},topic_name="{label(topic)}",partition_id="{partition}"'
        if start is not None:
            yield sample("kminion_kafka_topic_partition_low_water_mark", of_log, start)
        yield sample("kminion_kafka_topic_partition_high_water_mark", of_log, end)


def kminion_of_group(cluster: str, group: GroupView) -> Iterator[Sample]:
    own = labels(cluster=cluster, group_id=group.group_id)
    if group.description is not None:
        described = group.description
        more = (
            f'{own},coordinator_id="{described.coordinator.id}",protocol="{label(described.partition_assignor)}",'
            f'protocol_type="{_protocol_type(group)}",state="{described.group_state}"'
        )
        yield sample("kminion_kafka_consumer_group_info", more, int(described.group_state is GroupState.STABLE))
        yield sample("kminion_kafka_consumer_group_members", own, len(described.members))
        empty = sum(not member.assignment for member in described.members)
        yield sample("kminion_kafka_consumer_group_empty_members", own, empty)
    offsets, assigned = _by_topic(group)
    for topic, view in group.topics.items():
        of_topic = f'{own},topic_name="{label(topic)}"'
        if view.assigned:
            yield sample("kminion_kafka_consumer_group_topic_members", of_topic, view.assigned)
            yield sample("kminion_kafka_consumer_group_topic_assigned_partitions", of_topic, assigned[topic])
        if topic in offsets:
            yield sample("kminion_kafka_consumer_group_topic_offset_sum", of_topic, offsets[topic])
        if view.lag.lag is not None:
            yield sample("kminion_kafka_consumer_group_topic_lag", of_topic, view.lag.lag)
    for row in group.rows:
        if row.lag is not None:
            of_row = f'{own},topic_name="{label(row.topic)}",partition_id="{row.partition}"'
            yield sample("kminion_kafka_consumer_group_topic_partition_lag", of_row, row.lag)


def kafka_exporter_of_cluster(snapshot: ClusterSnapshot) -> Iterator[Sample]:
    own = labels(cluster=snapshot.cluster)
    if not snapshot.is_up:
        return
    yield sample("kafka_brokers", own, len(snapshot.brokers))
    ends = log_ends(snapshot.groups.values())
    for topic, count in sorted(Counter(topic for topic, _ in ends).items()):
        yield sample("kafka_topic_partitions", f'{own},topic="{label(topic)}"', count)
    for (topic, partition), (start, end) in sorted(ends.items()):
        of_log = f'{own},topic="{label(topic)}",partition="{partition}"'
        yield sample("kafka_topic_partition_current_offset", of_log, end)
        if start is not None:
            yield sample("kafka_topic_partition_oldest_offset", of_log, start)


def kafka_exporter_of_group(cluster: str, group: GroupView) -> Iterator[Sample]:
    own = labels(cluster=cluster, consumergroup=group.group_id)
    if group.members is not None:
        yield sample("kafka_consumergroup_members", own, group.members)
    offsets, _ = _by_topic(group)
    for topic, view in group.topics.items():
        of_topic = f'{own},topic="{label(topic)}"'
        if topic in offsets:
            yield sample("kafka_consumergroup_current_offset_sum", of_topic, offsets[topic])
        if view.lag.lag is not None:
            yield sample("kafka_consumergroup_lag_sum", of_topic, view.lag.lag)
    for row in group.rows:
        of_row = f'{own},topic="{label(row.topic)}",partition="{row.partition}"'
        if row.committed is not None:
            yield sample("kafka_consumergroup_current_offset", of_row, row.committed.offset)
        if row.lag is not None:
            yield sample("kafka_consumergroup_lag", of_row, row.lag)


def kafka_lag_exporter_of_cluster(snapshot: ClusterSnapshot) -> Iterator[Sample]:
    own = labels(cluster_name=snapshot.cluster)
    yield sample("kafka_consumergroup_poll_time_ms", own, round(snapshot.seconds * 1000))
    for (topic, partition), (start, end) in sorted(log_ends(snapshot.groups.values()).items()):
        of_log = f'{own},topic="{label(topic)}",partition="{partition}"'
        yield sample("kafka_partition_latest_offset", of_log, end)
        if start is not None:
            yield sample("kafka_partition_earliest_offset", of_log, start)


def kafka_lag_exporter_of_group(cluster: str, group: GroupView) -> Iterator[Sample]:
    own = labels(cluster_name=cluster, group=group.group_id)
    is_simple = str(getattr(group.description, "is_simple", False)).lower()
    if group.lag.lag is not None and group.lag.max_lag is not None:
        yield sample("kafka_consumergroup_group_sum_lag", own, group.lag.lag)
        more = f'{own},is_simple_consumer="{is_simple}"'
        yield sample("kafka_consumergroup_group_max_lag", more, group.lag.max_lag)
    if group.wait.lag_ms is not None and group.rows:
        more = f'{own},is_simple_consumer="{is_simple}"'
        yield sample("kafka_consumergroup_group_max_lag_seconds", more, seconds(group.wait.lag_ms))
    for topic, view in group.topics.items():
        if view.lag.lag is not None:
            yield sample("kafka_consumergroup_group_topic_sum_lag", f'{own},topic="{label(topic)}"', view.lag.lag)
    for row, wait in zip(group.rows, group.waits, strict=True):
        member = row.member
        of_row = (
            f'{own},topic="{label(row.topic)}",partition="{row.partition}",'
            f'member_host="{"" if member is None else label(member.host)}",'
            f'consumer_id="{"" if member is None else label(member.member_id)}",'
            f'client_id="{"" if member is None else label(member.client_id)}"'
        )
        if row.committed is not None:
            yield sample("kafka_consumergroup_group_offset", of_row, row.committed.offset)
        if row.lag is not None:
            yield sample("kafka_consumergroup_group_lag", of_row, row.lag)
        if wait.lag_ms is not None:
            yield sample("kafka_consumergroup_group_lag_seconds", of_row, seconds(wait.lag_ms))


def _protocol_type(group: GroupView) -> str:
    kind = group.group_type
    return kind.lower() if kind in (GroupType.SHARE, GroupType.STREAMS) else "consumer"


def _by_topic(group: GroupView) -> tuple[Counter[str], Counter[str]]:
    """By topic, the sums of committed offsets, and the numbers of assigned partitions."""
    offsets: Counter[str] = Counter()
    for row in group.rows:
        if row.committed is not None:
            offsets[row.topic] += row.committed.offset
    members = () if group.description is None else group.description.members
    assigned = Counter(topic for topic, _ in {tp for member in members for tp in member.assignment})
    return offsets, assigned
