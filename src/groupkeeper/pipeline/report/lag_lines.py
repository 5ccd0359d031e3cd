"""The lag of groups over time: as it was measured, and before that, for some groups, computed from commits and the
times of records.

The history of a committed offset is exact. A log end is known at the times when it was measured, and at the times of
the records that were read then; between these times it is interpolated. Before them, it is at least the highest offset
that any group had committed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.html.plots import LagLine
from groupkeeper.pipeline.report.model import Group, Key
from groupkeeper.pipeline.report.opened import Opened
from groupkeeper.pipeline.tables import COMMITS, LAG, LAG_HISTORY, LOG_ENDS, LOG_OFFSETS
from groupkeeper.pipeline.tables.schema import TIME

_SAMPLES = 96
_HOUR_S = 3600
_KEYS = ("cluster", "group_id", "topic", "partition")

PartitionKey = tuple[str, str, int]
"""A cluster, a topic and a partition."""

_Numbers = npt.NDArray[np.float64]


class Window(NamedTuple):
    """The time that a report covers."""

    since: datetime
    until: datetime


def measured_lines(opened: Opened, groups: Sequence[Group], window: Window) -> dict[Key, LagLine]:
    """The line of each measured group, from lag_history. A line ends at the last measurement of its cluster, and has a
    gap where nothing was measured for an hour. Of points too close to be told apart, the highest is kept.
    """
    since = window.since.replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
    ends = {each.cluster: each.measured_time for each in groups if each.measured_time is not None}
    found = {}
    step_s = max(1.0, (window.until - window.since).total_seconds() / _SAMPLES)
    for key, changes in _changes(opened, since, ends).items():
        found[key] = LagLine(*key, _within(changes, window, step_s), window.since, window.since)
    lines = {}
    for group in groups:
        key = group.key
        points = found[key].points if key in found else ()
        if group.measured_time is None or (not points and group.lag is None):
            continue
        before = tuple(each for each in points if each[0] < group.measured_time)
        points = (*before, (group.measured_time, group.lag))
        lines[key] = LagLine(*key, points, points[0][0], points[0][0])
    return lines


def _changes(
    opened: Opened, since: datetime, ends: Mapping[str, datetime]
) -> dict[Key, list[tuple[float, int | None]]]:
    """For each group, the sum of the known lags of its partitions, at each time at which it changed; None where no lag
    is known, or nothing was measured.
    """
    columns = [*_KEYS, "measured_time", "lag"]
    wanted = pc.field("measured_time") >= pa.scalar(since, TIME)
    rows = opened.table(LAG_HISTORY, columns, wanted)
    rows = rows.filter(pc.is_in(rows["cluster"], pa.array(list(ends), pa.string())))
    if not len(rows):
        return {}
    rows = rows.sort_by([(name, "ascending") for name in (*_KEYS, "measured_time")]).combine_chunks()
    is_group = _begins(rows, _KEYS[:2])
    group = np.cumsum(is_group) - 1
    is_place = _begins(rows, _KEYS)
    began = pc.divide(pc.cast(pc.cast(rows["measured_time"], pa.int64()), pa.float64()), 1e6).to_numpy()
    clusters = rows["cluster"].to_pylist()
    limits = np.array([ends[each].timestamp() for each in clusters])
    following = np.append(began[1:], np.inf)
    is_last = np.append(is_place[1:], True)
    following[is_last] = np.inf
    # A row holds until the next one. An hour without a row had no measurement.
    hour_end = (np.floor(began / _HOUR_S) + 1) * _HOUR_S
    ended = np.where(following < hour_end + _HOUR_S, following, hour_end)
    ended = np.where(is_last & (limits < hour_end + _HOUR_S), np.maximum(limits, began), ended)
    lag = pc.cast(pc.fill_null(rows["lag"], 0), pa.float64()).to_numpy()
    known = pc.cast(pc.is_valid(rows["lag"]), pa.float64()).to_numpy(zero_copy_only=False)
    names = list(zip(pc.filter(rows["cluster"], pa.array(is_group)).to_pylist(),
                     pc.filter(rows["group_id"], pa.array(is_group)).to_pylist(), strict=True))  # fmt: skip
    return _summed(names, group, began, ended, lag, known)


def _begins(rows: Any, names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which rows begin a run: one of the columns differs from the row before."""
    found = np.zeros(len(rows), dtype=bool)
    found[0] = True
    for name in names:
        column = rows[name]
        differs = pc.fill_null(pc.not_equal(column.slice(1), column.slice(0, len(rows) - 1)), True)
        found[1:] |= differs.to_numpy()
    return found


def _summed(
    names: Sequence[Key], group: npt.NDArray[np.int64], began: _Numbers, ended: _Numbers, lag: _Numbers, known: _Numbers
) -> dict[Key, list[tuple[float, int | None]]]:
    """The sums of lag by group: a row adds its lag to its group's sum when it begins, and subtracts it when it ends."""
    groups = np.concatenate([group, group])
    times = np.concatenate([began, ended])
    order = np.lexsort((times, groups))
    groups, times = groups[order], times[order]
    sums = np.cumsum(np.concatenate([lag, -lag])[order])
    counts = np.cumsum(np.concatenate([known, -known])[order])
    is_whole = np.append((groups[1:] != groups[:-1]) | (times[1:] != times[:-1]), True)
    found: dict[Key, list[tuple[float, int | None]]] = defaultdict(list)
    chosen = zip(groups[is_whole], times[is_whole], sums[is_whole], counts[is_whole], strict=True)
    for number, time, total, count in chosen:
        found[names[number]].append((float(time), round(total) if count > 0.5 else None))
    return found


def _within(
    changes: Sequence[tuple[float, int | None]], window: Window, step_s: float
) -> tuple[tuple[datetime, int | None], ...]:
    since = window.since.timestamp()
    before = [each for each in changes if each[0] <= since]
    inside = [each for each in changes if each[0] > since]
    if before and before[-1][1] is not None:
        inside.insert(0, (since, before[-1][1]))
    shown: dict[tuple[int, bool], tuple[float, int | None]] = {}
    for time, lag in inside:
        slot = (int((time - since) / step_s), lag is None)
        if slot not in shown or (lag or 0) > (shown[slot][1] or 0):
            shown[slot] = (time, lag)
    points = sorted(shown.values(), key=lambda each: each[0])
    while points and points[0][1] is None:
        points.pop(0)
    return tuple((_utc(time), lag) for time, lag in points)


def lag_lines(
    opened: Opened, groups: Sequence[Group], window: Window, measured: Mapping[Key, LagLine]
) -> tuple[LagLine, ...]:
    """The lines of some groups, with the time before their first measurement computed from commits. Lines of Spark
    queries begin with their first measurement.
    """
    lines = {group.key: measured[group.key] for group in groups if group.key in measured}
    computed = [
        group for group in groups
        if group.group_type != "spark"
        and (line := lines.get(group.key)) is not None
        and line.points[0][0] > window.since
    ]  # fmt: skip
    if computed:
        lines |= {(line.cluster, line.group_id): line for line in _Computed(opened, computed, window).lines(measured)}
    return tuple(lines[group.key] for group in groups if group.key in lines)


class Steps:
    """A value that changes over time: each one holds until the next. None before the first one, and where it was
    removed.
    """

    def __init__(self, changes: Sequence[tuple[float, int | None]]) -> None:
        """`changes` in the order of their times, in seconds."""
        self._times = [time for time, _ in changes]
        self._values = [value for _, value in changes]

    def at(self, time: float) -> int | None:
        position = bisect_right(self._times, time)
        return self._values[position - 1] if position else None


class Log(NamedTuple):
    """A partition: the known ends of its log, in the order of their times, and the highest offset that any group had
    committed.
    """

    ends: tuple[tuple[float, int], ...]
    furthest: Steps

    @property
    def known_from(self) -> float | None:
        """The first time at which the log's end is known, in seconds; None: never."""
        return self.ends[0][0] if self.ends else None

    def end_at(self, time: float) -> int:
        """The log's end at a time, or a lower bound of it."""
        least = self.furthest.at(time) or 0
        position = bisect_right(self.ends, time, key=lambda each: each[0])
        if not position:
            return least
        begun, low = self.ends[position - 1]
        if position == len(self.ends):
            return max(least, low)
        ended, high = self.ends[position]
        return max(least, low + int((high - low) * (time - begun) / (ended - begun)))


def log_of(
    measured: Sequence[tuple[float, int]], written: Sequence[tuple[float, int]], furthest: Sequence[tuple[float, int]]
) -> Log:
    """A log from its ends, in any order, as they were `measured`, and as they were when records were `written`. Later
    ones count if they contradict: clients may set any time. A commit past the end that was measured next is no sign of
    the log.
    """
    known: list[tuple[float, int]] = []
    for time, end in sorted([*measured, *written], reverse=True):
        if not known or (time < known[-1][0] and end <= known[-1][1]):
            known.append((time, end))
    highest, raised = 0, []
    looks = sorted(measured)
    for time, offset in furthest:
        following = bisect_left(looks, (time, 0))
        if following == len(looks) or offset <= looks[following][1]:
            highest = max(highest, offset)
            raised.append((time, highest))
    return Log(tuple(reversed(known)), Steps(raised))


def lag_at(time: float, parts: Sequence[tuple[Steps, Log]]) -> int:
    """The lag of a group at a time, in records. `parts`: for each partition, its committed offsets and its log."""
    total = 0
    for committed, log in parts:
        offset = committed.at(time)
        if offset is not None:
            total += max(0, log.end_at(time) - offset)
    return total


class _Computed:
    """The lag of some groups, computed from commits and the times of records."""

    def __init__(self, opened: Opened, groups: Sequence[Group], window: Window) -> None:
        self._opened, self._groups, self._window = opened, groups, window
        self._step_s = max(1.0, (window.until - window.since).total_seconds() / _SAMPLES)
        topics = self._topics()
        self._commits = self._read_commits(topics)
        self._logs = self._read_logs(topics)

    def lines(self, measured: Mapping[Key, LagLine]) -> list[LagLine]:
        return [self._line(group, measured[group.key]) for group in self._groups]

    def _line(self, group: Group, measured: LagLine) -> LagLine:
        first = measured.points[0][0].timestamp()
        since = self._window.since.timestamp()
        count = int((first - since) / self._step_s) + 1
        times = [time for number in range(count) if (time := since + number * self._step_s) < first]
        own = self._commits.of(group)
        parts = [(steps, self._logs[key]) for key, steps in own.items() if key in self._logs]
        if not times or not parts:
            return measured
        known_from = max([times[0], *(first if log.known_from is None else log.known_from for _, log in parts)])
        computed = tuple((_utc(time), lag_at(time, parts)) for time in times)
        return measured._replace(points=(*computed, *measured.points), known_from=_utc(min(known_from, first)))

    def _topics(self) -> list[str]:
        wanted = pc.field("group_id").isin([each.group_id for each in self._groups])
        found = self._opened.table(LAG, ["topic"], wanted)["topic"]
        return [each for each in found.unique().to_pylist() if each is not None]

    def _read_commits(self, topics: list[str]) -> _Commits:
        found = _Commits(self._window.since.timestamp(), self._step_s)
        names = pa.array(sorted({each.group_id for each in self._groups}), pa.string())
        columns = ["cluster", "group_id", "topic", "partition", "log_offset", "log_time", "committed_offset"]
        wanted = pa.array(topics, pa.string())
        for part in self._opened.parts(COMMITS, columns):
            rows = part.filter(pc.is_in(part["topic"], wanted))
            if len(rows):
                found.add(rows, names)
        return found

    def _read_logs(self, topics: list[str]) -> dict[PartitionKey, Log]:
        wanted = pc.field("topic").isin(topics)
        ends: dict[PartitionKey, list[tuple[float, int]]] = defaultdict(list)
        measured = self._opened.table(LOG_ENDS, ["cluster", "topic", "partition", "measured_time", "log_end_offset"],
                                      wanted)  # fmt: skip
        for row in measured.to_pylist():
            if row["measured_time"] is not None and row["log_end_offset"] is not None:
                key = (row["cluster"], row["topic"], row["partition"])
                ends[key].append((row["measured_time"].timestamp(), row["log_end_offset"]))
        columns = ["cluster", "topic", "partition", "log_end_offset", "measured_time", "records"]
        found = {}
        for row in self._opened.table(LOG_OFFSETS, columns, wanted).to_pylist():
            key = (row["cluster"], row["topic"], row["partition"])
            if row["log_end_offset"] is None or row["measured_time"] is None:
                continue
            now = row["measured_time"].timestamp()
            written = [
                (each["time"].timestamp(), each["offset"] + 1)
                for each in row["records"] or ()
                if each["is_there"] and each["time"] is not None and each["time"].timestamp() < now
            ]
            furthest = sorted(self._commits.furthest.get(key, {}).items())
            found[key] = log_of([(now, row["log_end_offset"]), *ends[key]], written, furthest)
        return found


class _Commits:
    """Commits by steps of time: the last one of each chosen group, and the highest of all groups."""

    def __init__(self, since_s: float, step_s: float) -> None:
        self._since_s, self._step_s = since_s, step_s
        self._last: dict[tuple[str, str, str, int], dict[float, tuple[int, int | None]]] = defaultdict(dict)
        self.furthest: dict[PartitionKey, dict[float, int]] = defaultdict(dict)

    def add(self, rows: Any, names: Any) -> None:
        """Adds rows of tables.COMMITS, in any order; `names`: the chosen groups."""
        seconds = pc.divide(pc.cast(pc.cast(rows["log_time"], pa.int64()), pa.float64()), 1e6)
        steps = pc.ceil(pc.divide(pc.subtract(seconds, self._since_s), self._step_s))
        rows = rows.append_column("step", pc.max_element_wise(pc.cast(steps, pa.int64()), 0))
        key = ["cluster", "topic", "partition", "step"]
        highest = rows.group_by(key).aggregate([("committed_offset", "max")])
        for row in highest.to_pylist():
            if row["committed_offset_max"] is not None and row["step"] is not None:
                own = self.furthest[row["cluster"], row["topic"], row["partition"]]
                time = self._time(row["step"])
                own[time] = max(own.get(time, 0), row["committed_offset_max"])
        chosen = rows.filter(pc.is_in(rows["group_id"], names)).sort_by("log_offset")
        last = chosen.group_by(["group_id", *key], use_threads=False).aggregate(
            [("log_offset", "last"), ("committed_offset", "last", pc.ScalarAggregateOptions(skip_nulls=False))]
        )
        for row in last.to_pylist():
            if row["step"] is None:
                continue
            changes = self._last[row["cluster"], row["group_id"], row["topic"], row["partition"]]
            time = self._time(row["step"])
            latest = (row["log_offset_last"], row["committed_offset_last"])
            if time not in changes or changes[time][0] < latest[0]:
                changes[time] = latest

    def of(self, group: Group) -> dict[PartitionKey, Steps]:
        """The committed offsets of a group, by partition."""
        return {
            (key[0], key[2], key[3]): Steps([(time, offset) for time, (_, offset) in sorted(changes.items())])
            for key, changes in self._last.items()
            if key[:2] == group.key
        }

    def _time(self, step: int) -> float:
        return self._since_s + step * self._step_s


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
