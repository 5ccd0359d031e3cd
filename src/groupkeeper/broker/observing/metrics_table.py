"""Every metric of the broker: its name in Kafka, its labels, its meaning (docs/metrics.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from groupkeeper.broker.meters import PERCENTILES, DeadLetters
from groupkeeper.coordinator.kernel.group import GroupState
from groupkeeper.coordinator.kernel.result import Meter

_COORDINATOR = "kafka.server:type=group-coordinator-metrics"
_MANAGER = "kafka.coordinator.group:type=GroupMetadataManager"
_SHARE = "kafka.server:type=share-coordinator-metrics"
_SHARE_GROUPS = "kafka.server:type=ShareGroupMetrics"
_CLEANER = "kafka.log:type=LogCleaner"
_REPLICAS = "kafka.server:type=ReplicaManager"


class Metric(NamedTuple):
    """A metric: its MBean, its attribute (or `name` tag, for MBeans of Kafka's older kind), its meaning, its labels,
    and the JMX exporter's suffix for a meter's count.
    """

    mbean: str
    name: str
    doc: str
    labels: tuple[str, ...] = ()
    ending: str = ""

    @property
    def prometheus_name(self) -> str:
        """Domain, type and name, joined as by the JMX exporter's rules for Kafka."""
        joined = f"{self.mbean.replace(':type=', '_')}_{self.name.removesuffix('PerSec')}{self.ending}"
        return joined.replace(".", "_").replace("-", "_").lower()


class Sample(NamedTuple):
    """A value of a metric; `labels` are in the order of the metric's."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


_MARKED = {
    Meter.OFFSET_COMMIT: "offsets that were committed, plainly or in transactions (partitions, not requests)",
    Meter.OFFSET_EXPIRATION: "offsets that expired",
    Meter.OFFSET_DELETION: "offsets that OffsetDelete removed",
    Meter.GROUP_COMPLETED_REBALANCE: "rebalances of classic groups that were completed",
    Meter.CONSUMER_GROUP_REBALANCE: "new epochs of consumer groups",
    Meter.SHARE_GROUP_REBALANCE: "new epochs of share groups",
    Meter.STREAMS_GROUP_REBALANCE: "new epochs of streams groups",
}
_DEAD_LETTERS = {
    DeadLetters.RECORDS: ("records of a share group that were written to its dead-letter queue", "_count"),
    DeadLetters.WRITES: ("batches for the dead-letter queue of a share group", "_total"),
    DeadLetters.FAILURES: ("batches for it that could not be written (the log says why)", "_total"),
}
TIMES = {
    "event-queue-time-ms": "waiting of an operation before it is taken up (0, there is no queue)",
    "event-processing-time-ms": "work on an operation, append included",
    "event-purgatory-time-ms": "waiting of an operation for replicas (0, there is one)",
    "batch-linger-time-ms": "waiting of records for others (0, they are appended at once)",
    "batch-flush-time-ms": "an append to the offsets topic",
}
CLASSIC_STATES = {
    GroupState.PREPARING_REBALANCE: "NumGroupsPreparingRebalance",
    GroupState.COMPLETING_REBALANCE: "NumGroupsCompletingRebalance",
    GroupState.STABLE: "NumGroupsStable",
    GroupState.DEAD: "NumGroupsDead",
    GroupState.EMPTY: "NumGroupsEmpty",
}
CONSUMER_STATES = (GroupState.EMPTY, GroupState.ASSIGNING, GroupState.RECONCILING, GroupState.STABLE, GroupState.DEAD)
SHARE_STATES = (GroupState.EMPTY, GroupState.STABLE, GroupState.DEAD)
STREAMS_STATES = (*CONSUMER_STATES, GroupState.NOT_READY)
PROTOCOLS = ("classic", "consumer", "share", "streams")
REPLICAS = {
    "PartitionCount": "partitions of which a node has a replica",
    "LeaderCount": "partitions that a node leads",
    "UnderReplicatedPartitions": "of these: not all replicas are in sync",
    "UnderMinIsrPartitionCount": "of these: fewer replicas than `min.insync.replicas` are in sync",
}
PARTITION_STATES = ("loading", "active", "failed")


def _metrics() -> Iterator[Metric]:
    yield Metric(_COORDINATOR, "group-count", "groups of a type", ("protocol",))
    yield Metric(_COORDINATOR, "offset-count", "committed offsets of all groups")
    yield Metric(_COORDINATOR, "classic-group-count", "classic groups in a state", ("state",))
    yield Metric(_COORDINATOR, "consumer-group-count", "consumer groups in a state", ("state",))
    yield Metric(_COORDINATOR, "share-group-count", "share groups in a state", ("state",))
    yield Metric(_COORDINATOR, "streams-group-count", "streams groups in a state", ("state",))
    for meter, what in _MARKED.items():
        yield Metric(_COORDINATOR, f"{meter.value}-rate", f"per second: {what}")
        yield Metric(_COORDINATOR, f"{meter.value}-count", f"since the start: {what}")
    yield Metric(_COORDINATOR, "num-partitions", "partitions of the offsets topic in a state", ("state",))
    yield Metric(_COORDINATOR, "partition-load-time-max", "longest reading of a partition, ms")
    yield Metric(_COORDINATOR, "partition-load-time-avg", "average reading of a partition, ms")
    yield Metric(_COORDINATOR, "thread-idle-ratio-avg", "share of time without work for the coordinators, 0 to 1")
    yield Metric(_COORDINATOR, "event-queue-size", "operations that wait (0, there is no queue)")
    yield Metric(_COORDINATOR, "batch-flush-rate", "appends to the offsets topic per second")
    for name, what in TIMES.items():
        yield Metric(_COORDINATOR, f"{name}-max", f"{what}: the longest, ms")
        for suffix, share in PERCENTILES:
            yield Metric(_COORDINATOR, f"{name}-{suffix}", f"{what}: {share * 100:g} % took no longer, ms")
    yield Metric(_MANAGER, "NumGroups", "classic groups; deprecated like all of its MBean")
    for state, name in CLASSIC_STATES.items():
        yield Metric(_MANAGER, name, f"classic groups that are {state.value}")
    yield Metric(_MANAGER, "NumOffsets", "committed offsets of all groups")
    yield Metric(_SHARE, "write-rate", "writes of share state per second")
    yield Metric(_SHARE, "write-total", "writes of share state since the start")
    yield Metric(_SHARE, "write-latency-avg", "average write of share state, ms")
    yield Metric(_SHARE, "write-latency-max", "longest write of share state, ms")
    yield Metric(
        _SHARE, "last-pruned-offset", "where the log of share state begins after its last cut", ("topic", "partition")
    )
    for count, (what, ending) in _DEAD_LETTERS.items():
        yield Metric(_SHARE_GROUPS, count.value, f"since the start: {what}", ("group",), ending)
    dead = "1 while the log cleaner pauses after an unexpected error (the log has it), 0 once it works again"
    yield Metric(_CLEANER, "DeadThreadCount", dead)
    uncleanable = "logs that cannot be compacted, and are skipped until the next start (the log says why)"
    yield Metric(f"{_CLEANER}Manager", "uncleanable-partitions-count", uncleanable)
    for name, what in REPLICAS.items():
        yield Metric(_REPLICAS, name, what, ("node",))
    yield Metric("kafka.controller:type=KafkaController", "OfflinePartitionsCount", "partitions without a leader")


METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _metrics()}
"""Every metric by its name in Kafka; no name is there twice."""
