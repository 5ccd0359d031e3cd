"""tables.FRESHNESS: whether the history has everything that was committed before the tables' instant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from groupkeeper.client.admin.types import Position
from groupkeeper.coroutines import results_of
from groupkeeper.pipeline.jobs.log_offsets import Clusters
from groupkeeper.pipeline.kafka.instants import Instant
from groupkeeper.pipeline.kafka.measuring import record_times
from groupkeeper.pipeline.storage.ledger import NextOffsets
from groupkeeper.pipeline.tables import FRESHNESS
from groupkeeper.rules.words import duration

MOST_BEHIND_MS = 60_000
"""Commits that have been unread for a shorter time are no problem: an open transaction may hide them for a moment."""

_Times = Mapping[Position, int | None]


def freshness(read_to: NextOffsets, clusters: Clusters) -> pa.Table:
    """A row for every partition of the offsets topic of each queried cluster; for a cluster that could not be measured,
    only for the partitions that were read. `read_to`: the first offsets that are not in the tables.
    """
    measured = {name: each for name, each in clusters.measured.items() if name in read_to}
    answers = results_of(record_times(cluster, _unread(instant, read_to[name]))
                         for name, (cluster, instant) in measured.items())  # fmt: skip
    times = dict(zip(measured, answers, strict=True))
    rows = [
        {"cluster": name, **_row(instant, partition, read_to[name].get(partition, 0), times[name])}
        for name, (_, instant) in measured.items()
        for partition in instant.stable
    ]
    rows += [
        {"cluster": name, "log_partition": partition, "read_to": offset, "problem": why}
        for name, why in clusters.failed.items()
        if name not in clusters.instants
        for partition, offset in read_to.get(name, {}).items()
    ]
    return pa.Table.from_pylist(rows, FRESHNESS.arrow)


def _unread(instant: Instant, read_to: Mapping[int, int]) -> list[Position]:
    """The positions of the first records that are not in the tables, for partitions with such records."""
    return [
        Position(instant.topic, partition, read_to.get(partition, 0))
        for partition in instant.stable
        if instant.stable[partition] is not None and read_to.get(partition, 0) < (instant.end_of(partition) or 0)
    ]


def _row(instant: Instant, partition: int, read_to: int, times: _Times) -> dict[str, Any]:
    """A row. A time of None: only markers are left, so nothing was committed. Unreadable records may be from
    any time.
    """
    end = None if instant.stable[partition] is None else instant.end_of(partition)
    behind_ms: int | None = 0
    unread_ms = None
    if end is None:
        behind_ms = None
    elif read_to < end:
        position = Position(instant.topic, partition, read_to)
        unread_ms = times.get(position)
        behind_ms = 0 if position in times else None
        if unread_ms is not None:
            behind_ms = max(0, instant.measured_ms - unread_ms)
    is_behind = behind_ms is None or behind_ms >= MOST_BEHIND_MS
    return {
        "log_partition": partition, "read_to": read_to, "last_stable_offset": instant.stable[partition],
        "log_end_offset": end, "unread_time": None if unread_ms is None else unread_ms * 1000, "behind_ms": behind_ms,
        "measured_time": instant.measured_ms * 1000,
        "problem": _problem(instant, partition, read_to, behind_ms) if is_behind else None,
    }  # fmt: skip


def _problem(instant: Instant, partition: int, read_to: int, behind_ms: int | None) -> str:
    """Why the latest commits in a partition are unknown."""
    place = f"{instant.topic}-{partition}"
    since = "latest commits" if behind_ms is None else f"commits of the last {duration(behind_ms)}"
    stable = instant.stable[partition]
    if instant.end_of(partition) is None or stable is None:
        return f"the {since} are not known: {place} could not be queried"
    if read_to >= stable:
        return f"the {since} are not known: an open transaction holds back {place} from offset {read_to} on"
    return f"the {since} are not known: {place} has been read to offset {read_to} only"
