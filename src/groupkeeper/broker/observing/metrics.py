"""The broker's metrics under Kafka's names, read when somebody asks for them (docs/metrics.md)."""

from __future__ import annotations

from time import perf_counter_ns
from typing import NamedTuple

from groupkeeper.broker.observing.meters import PERCENTILES
from groupkeeper.coordinator.classic.group import ClassicGroup
from groupkeeper.coordinator.consumer.group import ConsumerGroup
from groupkeeper.coordinator.kernel.group_state import GroupState, GroupType
from groupkeeper.coordinator.kernel.result import Meter
from groupkeeper.coordinator.share.group import ShareGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.observing.metrics_endpoint import MetricsEndpoint
    from groupkeeper.coordinator.state import Group

_COORDINATOR = "kafka.server:type=group-coordinator-metrics"
_MANAGER = "kafka.coordinator.group:type=GroupMetadataManager"
_SHARE = "kafka.server:type=share-coordinator-metrics"


class Metric(NamedTuple):
    """A metric: its MBean, its attribute (or `name` tag, for MBeans of Kafka's older kind), and what it says."""

    mbean: str
    name: str
    doc: str
    labels: tuple[str, ...] = ()

    @property
    def prometheus_name(self) -> str:
        """Domain, type and name, as the JMX exporter's rules for Kafka join them."""
        joined = f"{self.mbean.replace(':type=', '_')}_{self.name}"
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
_TIMES = {
    "event-queue-time-ms": "waiting of an operation before it is taken up (0, there is no queue)",
    "event-processing-time-ms": "work on an operation, append included",
    "event-purgatory-time-ms": "waiting of an operation for replicas (0, there is one)",
    "batch-linger-time-ms": "waiting of records for others (0, they are appended at once)",
    "batch-flush-time-ms": "an append to the offsets topic",
}
_CLASSIC_STATES = {
    GroupState.PREPARING_REBALANCE: "NumGroupsPreparingRebalance",
    GroupState.COMPLETING_REBALANCE: "NumGroupsCompletingRebalance",
    GroupState.STABLE: "NumGroupsStable",
    GroupState.DEAD: "NumGroupsDead",
    GroupState.EMPTY: "NumGroupsEmpty",
}
_CONSUMER_STATES = (
    GroupState.EMPTY,
    GroupState.ASSIGNING,
    GroupState.RECONCILING,
    GroupState.STABLE,
    GroupState.DEAD,
)
_SHARE_STATES = (GroupState.EMPTY, GroupState.STABLE, GroupState.DEAD)
_STREAMS_STATES = (*_CONSUMER_STATES, GroupState.NOT_READY)
_PROTOCOLS = ("classic", "consumer", "share", "streams")
_PARTITION_STATES = ("loading", "active", "failed")


def _metrics() -> Iterator[Metric]:
    yield Metric(_COORDINATOR, "group-count", "groups of a type", ("protocol",))
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
    for name, what in _TIMES.items():
        yield Metric(_COORDINATOR, f"{name}-max", f"{what}: the longest, ms")
        for suffix, share in PERCENTILES:
            yield Metric(_COORDINATOR, f"{name}-{suffix}", f"{what}: {share * 100:g} % took no longer, ms")
    yield Metric(_MANAGER, "NumGroups", "classic groups")
    for state, name in _CLASSIC_STATES.items():
        yield Metric(_MANAGER, name, f"classic groups that are {state.value}")
    yield Metric(_MANAGER, "NumOffsets", "committed offsets of all groups")
    yield Metric(_SHARE, "write-rate", "writes of share state per second")
    yield Metric(_SHARE, "write-total", "writes of share state since the start")
    yield Metric(_SHARE, "write-latency-avg", "average write of share state, ms")
    yield Metric(_SHARE, "write-latency-max", "longest write of share state, ms")
    yield Metric(
        _SHARE, "last-pruned-offset", "where the log of share state begins after its last cut", ("topic", "partition")
    )


METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _metrics()}
"""Every metric by its name in Kafka; no name is there twice."""


class Metrics:
    """The metrics of one running broker: `broker.metrics`. To be read where the broker runs."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def value(self, name: str, **labels: str) -> float:
        """A value by Kafka's name and labels: `value("group-count", protocol="classic")`. Raises KeyError."""
        metric = METRICS[name]
        wanted = tuple(labels[label] for label in metric.labels)
        for sample in self.samples():
            if sample.metric is metric and sample.labels == wanted:
                return sample.value
        raise KeyError(f"{name} has no value for {labels}")

    def samples(self) -> list[Sample]:
        """Every value as it is now."""
        now_ns = perf_counter_ns()
        return [
            *_of(self._group_counts()),
            *_of(self._meters(now_ns)),
            *_of(self._partitions(now_ns)),
            *_of(self._share(now_ns)),
        ]

    async def serve(self, port: int = 0) -> MetricsEndpoint:
        """Answers Prometheus on 127.0.0.1; port 0 takes a free one. Whoever calls closes it. Raises OSError,
        `InvalidSetting` when the library is missing.
        """
        from groupkeeper.broker.observing.metrics_endpoint import MetricsEndpoint

        return await MetricsEndpoint.open(self, port)

    def _groups(self) -> Iterator[Group]:
        for shard in self._broker.groups.shards:
            if shard.failure is None:
                yield from shard.coordinator.state.groups.values()

    def _group_counts(self) -> Iterator[tuple[str, tuple[str, ...], float]]:
        counts: dict[tuple[GroupType, GroupState], int] = {}
        for group in self._groups():
            key = (_type_of(group), group.state)
            counts[key] = counts.get(key, 0) + 1
        for protocol in _PROTOCOLS:
            yield "group-count", (protocol,), sum(n for (kind, _), n in counts.items() if kind.value == protocol)
        for state in _CONSUMER_STATES:
            yield "consumer-group-count", (state.value,), counts.get((GroupType.CONSUMER, state), 0)
        for state in _SHARE_STATES:
            yield "share-group-count", (state.value,), counts.get((GroupType.SHARE, state), 0)
        for state in _STREAMS_STATES:
            yield "streams-group-count", (state.value,), counts.get((GroupType.STREAMS, state), 0)
        yield "NumGroups", (), sum(n for (kind, _), n in counts.items() if kind is GroupType.CLASSIC)
        for state, name in _CLASSIC_STATES.items():
            yield name, (), counts.get((GroupType.CLASSIC, state), 0)
        active = (shard for shard in self._broker.groups.shards if shard.failure is None)
        yield "NumOffsets", (), sum(shard.coordinator.state.offsets.count for shard in active)

    def _meters(self, now_ns: int) -> Iterator[tuple[str, tuple[str, ...], float]]:
        meters = self._broker.groups.meters
        for meter, rate in meters.marks.items():
            yield f"{meter.value}-rate", (), rate.per_second(now_ns)
            yield f"{meter.value}-count", (), rate.total
        yield "thread-idle-ratio-avg", (), max(0.0, 1 - meters.busy.per_second(now_ns) / 1e9)
        yield "event-queue-size", (), 0
        yield "batch-flush-rate", (), meters.flushes.per_second(now_ns)
        measured = {"event-processing-time-ms": meters.processing, "batch-flush-time-ms": meters.flushing}
        for name in _TIMES:
            times = measured[name].read(now_ns) if name in measured else None
            yield f"{name}-max", (), 0 if times is None else times.maximum_ms
            for suffix, share in PERCENTILES:
                yield f"{name}-{suffix}", (), 0 if times is None else times.percentile_ms(share)

    def _partitions(self, now_ns: int) -> Iterator[tuple[str, tuple[str, ...], float]]:
        counts = dict.fromkeys(_PARTITION_STATES, 0)
        for shard in self._broker.groups.shards:
            if not shard.has_resigned:
                counts["failed" if shard.failure is not None else "loading" if shard.is_loading else "active"] += 1
        for state, count in counts.items():
            yield "num-partitions", (state,), count
        times = self._broker.groups.meters.loading.read(now_ns)
        yield "partition-load-time-max", (), times.maximum_ms
        yield "partition-load-time-avg", (), times.average_ms

    def _share(self, now_ns: int) -> Iterator[tuple[str, tuple[str, ...], float]]:
        meters = self._broker.share_states.meters
        yield "write-rate", (), meters.writes.per_second(now_ns)
        yield "write-total", (), meters.writes.total
        times = meters.writing.read(now_ns)
        yield "write-latency-avg", (), times.average_ms
        yield "write-latency-max", (), times.maximum_ms
        for (topic, partition), offset in meters.last_pruned.items():
            yield "last-pruned-offset", (topic, str(partition)), offset


def _of(values: Iterator[tuple[str, tuple[str, ...], float]]) -> Iterator[Sample]:
    for name, labels, value in values:
        yield Sample(METRICS[name], labels, value)


def _type_of(group: Group) -> GroupType:
    if isinstance(group, ClassicGroup):
        return GroupType.CLASSIC
    if isinstance(group, ConsumerGroup):
        return GroupType.CONSUMER
    return GroupType.SHARE if isinstance(group, ShareGroup) else GroupType.STREAMS
