"""The broker's metrics under Kafka's names, computed at each scrape (docs/metrics.md)."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Protocol

from groupkeeper.broker.meters import PERCENTILES
from groupkeeper.broker.observing import metrics_table
from groupkeeper.coordinator.kernel.group import GroupState, GroupType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from groupkeeper.broker.coordination.group_host import GroupHost
    from groupkeeper.broker.log.cleaner import LogCleaner
    from groupkeeper.broker.log.topics import Topics
    from groupkeeper.broker.observing.metrics_endpoint import MetricsEndpoint
    from groupkeeper.broker.shares.state_host import ShareStateHost
    from groupkeeper.broker.storage.open_files import OpenFiles
    from groupkeeper.coordinator.kernel.group import Group


class Measured(Protocol):
    """The parts of a broker that metrics read."""

    files: OpenFiles
    topics: Topics

    @property
    def groups(self) -> GroupHost: ...

    @property
    def share_states(self) -> ShareStateHost: ...

    @property
    def cleaner(self) -> LogCleaner: ...


class Metrics:
    """The metrics of one running broker: `broker.metrics`. Read them in the broker's event loop."""

    def __init__(self, broker: Measured) -> None:
        self._broker = broker

    def value(self, name: str, **labels: str) -> float:
        """A value by Kafka's name and labels: `value("group-count", protocol="classic")`. Raises KeyError."""
        metric = metrics_table.METRICS[name]
        wanted = tuple(labels[label] for label in metric.labels)
        for sample in self.samples():
            if sample.metric is metric and sample.labels == wanted:
                return sample.value
        raise KeyError(f"{name} has no value for {labels}")

    def samples(self) -> list[metrics_table.Sample]:
        """The current value of every metric."""
        now_ns = perf_counter_ns()
        return [
            *_of(self._group_counts()),
            *_of(self._meters(now_ns)),
            *_of(self._partitions(now_ns)),
            *_of(self._share(now_ns)),
            *_of(self._cleaning()),
            *_of(self._replicas()),
        ]

    async def serve(self, port: int = 0) -> MetricsEndpoint:
        """Serves the metrics to Prometheus on 127.0.0.1; port 0: any free port. The caller closes it. Raises OSError,
        `InvalidSetting` when the library is missing.
        """
        from groupkeeper.broker.observing.metrics_endpoint import MetricsEndpoint

        return await MetricsEndpoint.open(self.samples, port, self._broker.files)

    def _groups(self) -> Iterator[Group]:
        for shard in self._broker.groups.shards:
            if shard.failure is None:
                yield from shard.coordinator.state.groups.values()

    def _group_counts(self) -> Iterator[tuple[str, tuple[str, ...], float]]:
        counts: dict[tuple[GroupType, GroupState], int] = {}
        for group in self._groups():
            key = (group.group_type, group.state)
            counts[key] = counts.get(key, 0) + 1
        for protocol in metrics_table.PROTOCOLS:
            yield "group-count", (protocol,), sum(n for (kind, _), n in counts.items() if kind.value == protocol)
        for state in metrics_table.CONSUMER_STATES:
            yield "consumer-group-count", (state.value,), counts.get((GroupType.CONSUMER, state), 0)
        for state in metrics_table.SHARE_STATES:
            yield "share-group-count", (state.value,), counts.get((GroupType.SHARE, state), 0)
        for state in metrics_table.STREAMS_STATES:
            yield "streams-group-count", (state.value,), counts.get((GroupType.STREAMS, state), 0)
        yield "NumGroups", (), sum(n for (kind, _), n in counts.items() if kind is GroupType.CLASSIC)
        for state, name in metrics_table.CLASSIC_STATES.items():
            yield name, (), counts.get((GroupType.CLASSIC, state), 0)
            yield "classic-group-count", (state.value,), counts.get((GroupType.CLASSIC, state), 0)
        active = (shard for shard in self._broker.groups.shards if shard.failure is None)
        offsets = sum(shard.coordinator.state.offsets.count for shard in active)
        yield "NumOffsets", (), offsets
        yield "offset-count", (), offsets

    def _meters(self, now_ns: int) -> Iterator[tuple[str, tuple[str, ...], float]]:
        meters = self._broker.groups.meters
        for meter, rate in meters.marks.items():
            yield f"{meter.value}-rate", (), rate.per_second(now_ns)
            yield f"{meter.value}-count", (), rate.total
        yield "thread-idle-ratio-avg", (), max(0.0, 1 - meters.processing.share(now_ns))
        yield "event-queue-size", (), 0
        yield "batch-flush-rate", (), meters.flushing.per_second(now_ns)
        measured = {"event-processing-time-ms": meters.processing, "batch-flush-time-ms": meters.flushing}
        for name in metrics_table.TIMES:
            times = measured[name].read(now_ns) if name in measured else None
            yield f"{name}-max", (), 0 if times is None else times.maximum_ms
            for suffix, share in PERCENTILES:
                yield f"{name}-{suffix}", (), 0 if times is None else times.percentile_ms(share)

    def _partitions(self, now_ns: int) -> Iterator[tuple[str, tuple[str, ...], float]]:
        counts = dict.fromkeys(metrics_table.PARTITION_STATES, 0)
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
        for (count, group_id), number in meters.dead_letters.items():
            yield count.value, (group_id,), number

    def _cleaning(self) -> Iterator[tuple[str, tuple[str, ...], float]]:
        yield "DeadThreadCount", (), min(self._broker.cleaner.failures, 1)
        yield "uncleanable-partitions-count", (), len(self._broker.cleaner.given_up)

    def _replicas(self) -> Iterator[tuple[str, tuple[str, ...], float]]:
        running = self._broker.topics.placements.running
        counts = {node: dict.fromkeys(metrics_table.REPLICAS, 0) for node in sorted(running)}
        offline = 0
        for log in self._broker.topics.logs():
            at = log.placement
            for node in running.intersection(at.replicas):
                counts[node]["PartitionCount"] += 1
            if at.leader not in counts:
                offline += 1
                continue
            of_leader = counts[at.leader]
            of_leader["LeaderCount"] += 1
            of_leader["UnderReplicatedPartitions"] += len(at.isr) < len(at.original)
            of_leader["UnderMinIsrPartitionCount"] += at.has_too_few_in_sync(log.config.min_insync_replicas)
        yield "OfflinePartitionsCount", (), offline
        for node, of_node in counts.items():
            for name, count in of_node.items():
                yield name, (str(node),), count


def _of(values: Iterator[tuple[str, tuple[str, ...], float]]) -> Iterator[metrics_table.Sample]:
    for name, labels, value in values:
        yield metrics_table.Sample(metrics_table.METRICS[name], labels, value)
