"""The exporter: writes a snapshot's series once, when it arrives, and returns the text of all series to each scrape."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from groupkeeper import __version__
from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.web import exposition, other_names, series
from groupkeeper.web.exposition import Block, Format, MetricFamily, Sample, Writing, labels
from groupkeeper.web.series import Level

_Samples = Callable[[ClusterSnapshot, GroupView], Iterator[Sample]]
_OF_GROUP: Mapping[Level, tuple[Sequence[MetricFamily], _Samples]] = {
    Level.GROUP: (series.GROUP_METRICS, series.group_samples),
    Level.TOPIC: (series.TOPIC_METRICS, series.topic_samples),
    Level.PARTITION: (series.PARTITION_METRICS, series.partition_samples),
    Level.MEMBER: (series.MEMBER_METRICS, series.member_samples),
}


class ExportedNames(NamedTuple):
    """Metrics under the names of another exporter."""

    metrics: Sequence[MetricFamily]
    of_cluster: Callable[[ClusterSnapshot], Iterator[Sample]]
    of_group: Callable[[str, GroupView], Iterator[Sample]]


_SAMPLES_AT_A_TIME = 2000

OWN = "groupkeeper"
OTHERS: Mapping[str, ExportedNames] = {
    "kminion": ExportedNames(other_names.KMINION, other_names.kminion_of_cluster, other_names.kminion_of_group),
    "kafka_exporter": ExportedNames(
        other_names.KAFKA_EXPORTER, other_names.kafka_exporter_of_cluster, other_names.kafka_exporter_of_group
    ),
    "kafka-lag-exporter": ExportedNames(
        other_names.KAFKA_LAG_EXPORTER,
        other_names.kafka_lag_exporter_of_cluster,
        other_names.kafka_lag_exporter_of_group,
    ),
}

PROGRAM_METRICS = (
    MetricFamily("groupkeeper_build_info", "1; the version of this program.", ("version",)),
    MetricFamily(
        "groupkeeper_history_up", "1 if the last poll was written to the history; absent: there is no history."
    ),
    MetricFamily("groupkeeper_history_failed_polls_total", "Polls that could not be written to the history."),
    MetricFamily("groupkeeper_journal_up", "1 unless the journal of changes could not be read; absent: there is none."),
    MetricFamily(
        "groupkeeper_alert_firing",
        "1; an alert: a group breaks a rule of --rules, or the cluster cannot be polled; also when silenced.",
        ("rule", "severity", "cluster", "group"),
    ),
    MetricFamily(
        "groupkeeper_rule_groups", "Groups of the cluster that a rule of --rules applies to.", ("rule", "cluster")
    ),
    MetricFamily(
        "groupkeeper_rule_unmatched_names",
        "Names and globs of a rule that have matched nothing since the start; absent: there are none.",
        ("rule",),
    ),
    MetricFamily(
        "groupkeeper_webhook_notices_total",
        "Notices by outcome: sent, failed (given up), dropped (too many waited), superseded (by later ones).",
        ("webhook", "outcome"),
    ),
    MetricFamily("groupkeeper_webhook_pending", "Notices that are not delivered to the webhook yet.", ("webhook",)),
    MetricFamily(
        "groupkeeper_webhook_oldest_pending_seconds",
        "How long the oldest undelivered notice had waited at the last snapshot; 0: there is none.",
        ("webhook",),
    ),
    MetricFamily("groupkeeper_webhook_retries_total", "Requests that repeated a failed one.", ("webhook",)),
    MetricFamily("groupkeeper_webhook_failures_total", "Requests that failed.", ("webhook", "reason")),
    MetricFamily("process_resident_memory_bytes", "Memory of this program at the last snapshot."),
    MetricFamily("process_cpu_seconds_total", "CPU time of this program at the last snapshot."),
    MetricFamily("process_start_time_seconds", "When this program started."),
)


class Choices(NamedTuple):
    """The chosen series. `names`: OWN and OTHERS. `levels`: beside groups and topics. `most`: per cluster."""

    names: Sequence[str] = (OWN,)
    levels: frozenset[Level] = frozenset()
    most: int = 250_000


class Exporter:
    """The series of several clusters. A snapshot's series replace the earlier ones of its cluster."""

    def __init__(self, choices: Choices, of_program: Callable[[], Iterable[Sample]] = tuple) -> None:
        """`of_program`: samples of PROGRAM_METRICS, beside those of any program."""
        self._choices = choices
        self._of_program = of_program
        self._blocks: dict[str, Block] = {}
        self._own: Block = {}
        self._lock = threading.Lock()
        self._gzipped: dict[Format, bytes] = {}
        self._began_s = time.time()
        self._levels = [level for level in Level if level in (Level.GROUP, Level.TOPIC) or level in choices.levels]

    @property
    def metrics(self) -> list[MetricFamily]:
        """All metrics that may have samples."""
        found: list[MetricFamily] = [*PROGRAM_METRICS, *series.CLUSTER_METRICS]
        if OWN in self._choices.names:
            found += [metric for level in self._levels for metric in _OF_GROUP[level][0]]
        for name in self._choices.names:
            if name in OTHERS:
                found += OTHERS[name].metrics
        return found

    def take(self, snapshot: ClusterSnapshot) -> None:
        """Writes the series of a cluster's latest snapshot."""
        writing = Writing()
        for sample in self._of(snapshot):
            writing.add(sample)
        self._show(snapshot.cluster, writing.block())

    async def take_aside(self, snapshot: ClusterSnapshot) -> None:
        """As `take`, yielding to other tasks of this loop."""
        writing = Writing()
        for number, sample in enumerate(self._of(snapshot)):
            writing.add(sample)
            if number % _SAMPLES_AT_A_TIME == 0:
                await asyncio.sleep(0)
        self._show(snapshot.cluster, writing.block())

    def _show(self, cluster: str, block: Block) -> None:
        own = Writing()
        for sample in self._program():
            own.add(sample)
        with self._lock:
            self._blocks[cluster] = block
            self._own = own.block()
            self._gzipped.clear()

    def _of(self, snapshot: ClusterSnapshot) -> Iterator[Sample]:
        budget = _Budget(self._choices.most)
        yield from series.cluster_samples(snapshot)
        groups = [snapshot.groups[group_id] for group_id in sorted(snapshot.groups)]
        if OWN in self._choices.names:
            for level in self._levels:
                _, samples = _OF_GROUP[level]
                for group in groups:
                    yield from budget.of(level.value, [*samples(snapshot, group)])
                if level is Level.PARTITION:
                    yield from budget.of(level.value, [*series.log_samples(snapshot)])
        for name in self._choices.names:
            if name in OTHERS:
                yield from budget.of(name, [*OTHERS[name].of_cluster(snapshot)])
                for group in groups:
                    yield from budget.of(name, [*OTHERS[name].of_group(snapshot.cluster, group)])
        yield from budget.samples(snapshot.cluster)

    def text(self, form: Format) -> Iterator[bytes]:
        """The current series, part by part: the whole text is large, and is never in memory."""
        with self._lock:
            parts = self._parts(form)
        return map(exposition.unpacked, parts)

    def gzipped(self, form: Format) -> bytes:
        """The current series with gzip, made once for all scrapes until the next snapshot, in any thread."""
        with self._lock:
            if form not in self._gzipped:
                self._gzipped[form] = exposition.gzipped(self._parts(form))
            return self._gzipped[form]

    def _parts(self, form: Format) -> list[bytes]:
        return list(exposition.segments(self.metrics, [self._own, *self._blocks.values()], form))

    def _program(self) -> Iterator[Sample]:
        yield "groupkeeper_build_info", f'groupkeeper_build_info{{version="{__version__}"}} 1\n'
        yield from self._of_program()
        memory = _resident_bytes()
        if memory is not None:
            yield plain("process_resident_memory_bytes", memory)
        yield plain("process_cpu_seconds_total", f"{time.process_time():.2f}")
        yield plain("process_start_time_seconds", f"{self._began_s:.3f}")


class _Budget:
    """The limit of a cluster's series. Series left out are counted, and a group's series of a level stay together."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._used = 0
        self._left_out: dict[str, int] = {}

    def of(self, level: str, samples: list[Sample]) -> list[Sample]:
        if self._used + len(samples) > self._left:
            self._left_out[level] = self._left_out.get(level, 0) + len(samples)
            return []
        self._used += len(samples)
        return samples

    def samples(self, cluster: str) -> Iterator[Sample]:
        own = labels(cluster=cluster)
        yield exposition.sample("groupkeeper_exporter_series", own, self._used)
        for level, count in self._left_out.items():
            yield exposition.sample("groupkeeper_exporter_left_out_series", f'{own},level="{level}"', count)


def plain(name: str, value: int | str) -> Sample:
    """A sample without labels."""
    return name, f"{name} {value}\n"


def _resident_bytes() -> int | None:
    """The memory of this program; None: unknown on this system."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None
