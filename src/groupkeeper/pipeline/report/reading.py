"""A report of the tables in a directory, read with Arrow: what is large is summed up there, not in Python."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.report.history import Log, Steps, lag_at, log_of
from groupkeeper.pipeline.report.model import STATUSES, Activity, Cluster, Group, LagLine, Report, Rewind, Stale
from groupkeeper.pipeline.storage.stored import Stored
from groupkeeper.pipeline.tables import (
    COMMITS,
    GROUPS,
    LAG,
    LAG_HISTORY,
    LOG_OFFSETS,
    RATES,
    REWINDS,
    STALE,
    STATUS,
    Table,
)

__all__ = ["read_report"]

_NEEDED = (GROUPS, LAG, STATUS, RATES, REWINDS, STALE, LOG_OFFSETS, COMMITS)
_TRIES = 10
_PAUSE_S = 0.2
_MOST_BINS = 120
_BIN_MINUTES = (1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440)
_SAMPLES = 96
_ROWS_AT_A_TIME = 1 << 17
_COUNTED = ("offset_commits", "completed_rebalances", "offset_expirations", "offset_deletions")

Key = tuple[str, str]
"""A cluster's name and a group's."""

Place = tuple[str, str, int]
"""A cluster, a topic and a partition."""

_Number = TypeVar("_Number", int, float)


class Window(NamedTuple):
    """What the report is about."""

    since: datetime
    until: datetime


def read_report(directory: str, *, hours: float, top: int) -> Report:
    """The report of the tables in `directory` (a path or URI), for the `hours` before the latest time in them.

    Raises SourceError when there are no tables, or they cannot be read.
    """
    for left in reversed(range(_TRIES)):
        try:
            return _Reader(directory).report(hours, top)
        except FileNotFoundError:  # tables were replaced since they were listed: these files are no set any more
            if not left:
                raise SourceError(
                    f"{directory}: its tables are not of one time, as a run leaves them that is killed while it puts "
                    "them in their places: run 'groupkeeper pipeline snapshot' again"
                ) from None
            time.sleep(_PAUSE_S)
        except (OSError, pa.ArrowException) as error:
            raise SourceError(f"{directory} cannot be read: {error}") from None
    raise AssertionError


class _Reader:
    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._stored = Stored(directory)
        self._files, self._set = self._stored.system, self._stored.files
        self.missing = tuple(table.name for table in _NEEDED if not self._stored.has(table))
        if len(self.missing) == len(_NEEDED):
            raise SourceError(
                f"{directory} has no tables: make them with 'groupkeeper pipeline snapshot --tables {directory}', "
                "or name the clusters here"
            )

    def report(self, hours: float, top: int) -> Report:
        measured, lags = self._lags()
        window = self._window(measured, hours)
        rates = self._rates(window)
        groups = self._groups(lags, rates)
        rewinds = self._rewinds(window)
        stale = self._stale({(each.cluster, each.group_id) for each in groups if each.status == "losing"})
        lines: tuple[LagLine, ...] = ()
        if window is not None:
            lines = self._lag_lines([each for each in groups if each.lag][:top], window)
        return Report(
            self._directory, measured, window.since if window else None, window.until if window else None, hours, top,
            _clusters(groups, rates, rewinds, stale), groups, _activity(rates, window), lines, rewinds, stale,
            self.missing,
        )  # fmt: skip

    def _dataset(self, table: Table) -> Any:
        """The table; one that is not there has no rows, and a column that an older one lacks is null."""
        return self._stored.dataset(table)

    def _parts(self, table: Table, columns: Sequence[str]) -> Iterator[Any]:
        """The table's rows, some at a time: a dataset would hold all of a row group, which may be millions."""
        if table.name in self.missing or self._set.get(table.name) == []:
            return
        schema = pa.schema([table.arrow.field(name) for name in columns])
        for path in self._dataset(table).files:
            with self._files.open_input_file(path) as opened:
                file = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
                there = [name for name in columns if name in file.schema_arrow.names]
                for batch in file.iter_batches(_ROWS_AT_A_TIME, columns=there):
                    rows = pa.Table.from_batches([batch])
                    for name in columns:
                        if name not in there:
                            rows = rows.append_column(name, pa.nulls(len(rows)))
                    yield rows.select(columns).cast(schema)

    def _lags(self) -> tuple[datetime | None, dict[Key, dict[str, Any]]]:
        columns = ["cluster", "group_id", "lag", "lag_ms", "measured_time"]
        rows = self._dataset(LAG).to_table(columns=columns)
        summed = rows.group_by(["cluster", "group_id"]).aggregate(
            [("lag", "sum"), ("lag", "count"), ("lag_ms", "max"), ("cluster", "count")]
        )
        return pc.max(rows["measured_time"]).as_py(), {
            (row["cluster"], row["group_id"]): row for row in summed.to_pylist()
        }

    def _window(self, measured: datetime | None, hours: float) -> Window | None:
        minutes = self._dataset(RATES).to_table(columns=["minute"], filter=pc.field("group_id").is_null())["minute"]
        known = [each for each in (measured, pc.max(minutes).as_py()) if each is not None]
        if not known:
            return None
        until = max(known)
        since = until - timedelta(hours=hours)
        first = pc.min(minutes).as_py()
        if first is not None:
            since = max(since, min(first, until - timedelta(minutes=1)))
        return Window(since, until)

    def _rates(self, window: Window | None) -> list[dict[str, Any]]:
        """Of the window: the clusters' by minute, and the groups' rebalances in all (`minute` None)."""
        if window is None:
            return []
        inside = pc.field("minute") >= pa.scalar(
            window.since.replace(second=0, microsecond=0), RATES.arrow.field(2).type
        )
        found = self._dataset(RATES)
        rows: list[dict[str, Any]] = found.to_table(filter=inside & pc.field("group_id").is_null()).to_pylist()
        wanted = inside & pc.field("group_id").is_valid() & (pc.field("completed_rebalances") > 0)
        summed = (
            found.to_table(columns=["cluster", "group_id", "completed_rebalances"], filter=wanted)
            .group_by(["cluster", "group_id"])
            .aggregate([("completed_rebalances", "sum")])
        )
        return rows + [
            {
                "cluster": row["cluster"],
                "group_id": row["group_id"],
                "minute": None,
                "completed_rebalances": row["completed_rebalances_sum"],
            }
            for row in summed.to_pylist()
        ]

    def _groups(self, lags: Mapping[Key, Mapping[str, Any]], rates: Iterable[Mapping[str, Any]]) -> tuple[Group, ...]:
        rebalances = {(row["cluster"], row["group_id"]): row["completed_rebalances"] for row in rates}
        judged = self._dataset(STATUS).to_table(filter=pc.field("topic").is_null()).to_pylist()
        verdicts = {(row["cluster"], row["group_id"]): row for row in judged}
        known = {(row["cluster"], row["group_id"]): row for row in self._dataset(GROUPS).to_table().to_pylist()}
        found = []
        for key in dict.fromkeys([*known, *verdicts, *lags]):
            group, verdict, lag = known.get(key, {}), verdicts.get(key, {}), lags.get(key, {})
            partitions = max(group.get("partitions") or 0, lag.get("cluster_count") or 0)
            status, rule = _verdict(verdict, group.get("group_type"), partitions)
            found.append(
                Group(
                    key[0] or "", key[1] or "", group.get("group_type") or "", group.get("group_state") or "",
                    group.get("members") or 0, partitions, status if status in STATUSES else "unknown",
                    rule, verdict.get("since_time"),
                    lag.get("lag_sum"), lag.get("lag_ms_max"), partitions - (lag.get("lag_count") or 0),
                    group.get("last_commit_time"), rebalances.get(key) or 0,
                )
            )  # fmt: skip
        return tuple(sorted(found, key=_badness))

    def _rewinds(self, window: Window | None) -> tuple[Rewind, ...]:
        if window is None:
            return ()
        inside = pc.field("rewind_time") >= pa.scalar(window.since, REWINDS.arrow.field("rewind_time").type)
        rows = self._dataset(REWINDS).to_table(columns=list(Rewind._fields), filter=inside)
        return tuple(Rewind(**row) for row in rows.sort_by([("rewind_time", "descending")]).to_pylist())

    def _stale(self, losing: set[Key]) -> tuple[Stale, ...]:
        """Without entries that the status of active groups already shows."""
        by_reason: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in self._dataset(STALE).to_table().to_pylist():
            by_reason[row["cluster"] or "", row["group_id"] or "", row["reason"] or ""].append(row)
        found = [
            Stale(
                *key,
                sum(row["topic"] is not None for row in rows),
                tuple(sorted({row["topic"] for row in rows if row["topic"] is not None})),
                _most(row["idle_days"] for row in rows),
                min((row["expires_time"] for row in rows if row["expires_time"] is not None), default=None),
                sum(row["lost_records"] or 0 for row in rows) if key[2] == "below_log_start" else None,
            )
            for key, rows in by_reason.items()
            if key[2] != "below_log_start" or key[:2] not in losing
        ]
        return tuple(sorted(found, key=lambda each: (-(each.lost_records or 0), -(each.idle_days or 0), each[:3])))

    def _lag_lines(self, groups: Sequence[Group], window: Window) -> tuple[LagLine, ...]:
        """Of the worst groups. What a query of Spark's had read is known from when it was measured."""
        if not groups:
            return ()
        step_s = max(1.0, (window.until - window.since).total_seconds() / _SAMPLES)
        measured = self._measured_lags([each for each in groups if each.group_type == "spark"])
        topics = self._topics(groups)
        commits = self._commits(topics, groups, window, step_s)
        logs = self._logs(topics, commits)
        count = max(2, int((window.until - window.since).total_seconds() / step_s) + 1)
        times = [window.since.timestamp() + number * step_s for number in range(count)]
        times[-1] = window.until.timestamp()
        return tuple(
            _measured_line(group, measured.get((group.cluster, group.group_id), ()), times)
            if group.group_type == "spark"
            else _line(group, commits, logs, times)
            for group in groups
        )

    def _measured_lags(self, groups: Sequence[Group]) -> dict[Key, list[Steps]]:
        """By group, of each partition."""
        if not groups or LAG_HISTORY.name not in self._set:
            return {}
        wanted = pc.field("group_id").isin([each.group_id for each in groups])
        columns = ["cluster", "group_id", "topic", "partition", "measured_time", "lag"]
        rows = self._dataset(LAG_HISTORY).to_table(columns=columns, filter=wanted).sort_by("measured_time")
        changes: dict[tuple[str, str, str, int], list[tuple[float, int | None]]] = defaultdict(list)
        for row in rows.to_pylist():
            place = (row["cluster"], row["group_id"], row["topic"], row["partition"])
            changes[place].append((row["measured_time"].timestamp(), row["lag"]))
        found: dict[Key, list[Steps]] = defaultdict(list)
        for place, own in changes.items():
            found[place[:2]].append(Steps(own))
        return found

    def _topics(self, groups: Sequence[Group]) -> list[str]:
        wanted = pc.field("group_id").isin([each.group_id for each in groups])
        found = self._dataset(LAG).to_table(columns=["topic"], filter=wanted)["topic"]
        return [each for each in found.unique().to_pylist() if each is not None]

    def _commits(self, topics: list[str], groups: Sequence[Group], window: Window, step_s: float) -> _Commits:
        found = _Commits(window.since.timestamp(), step_s)
        names = pa.array(sorted({each.group_id for each in groups}), pa.string())
        columns = ["cluster", "group_id", "topic", "partition", "log_offset", "log_time", "committed_offset"]
        wanted = pa.array(topics, pa.string())
        for part in self._parts(COMMITS, columns):
            rows = part.filter(pc.is_in(part["topic"], wanted))
            if len(rows):
                found.add(rows, names)
        return found

    def _logs(self, topics: list[str], commits: _Commits) -> dict[Place, Log]:
        columns = ["cluster", "topic", "partition", "log_end_offset", "measured_time", "records"]
        rows = self._dataset(LOG_OFFSETS).to_table(columns=columns, filter=pc.field("topic").isin(topics))
        found = {}
        for row in rows.to_pylist():
            place = (row["cluster"], row["topic"], row["partition"])
            if row["log_end_offset"] is None or row["measured_time"] is None:
                continue
            measured = row["measured_time"].timestamp()
            ends = [(measured, row["log_end_offset"])]
            for each in row["records"] or ():
                if each["is_there"] and each["time"] is not None and each["time"].timestamp() < measured:
                    ends.append((each["time"].timestamp(), each["offset"] + 1))
            found[place] = log_of(ends, sorted(commits.furthest.get(place, {}).items()))
        return found


class _Commits:
    """Commits by steps of time: the last one of each chosen group, and the highest of all groups."""

    def __init__(self, since_s: float, step_s: float) -> None:
        self._since_s, self._step_s = since_s, step_s
        self._last: dict[tuple[str, str, str, int], dict[float, tuple[int, int | None]]] = defaultdict(dict)
        self.furthest: dict[Place, dict[float, int]] = defaultdict(dict)

    def add(self, rows: Any, names: Any) -> None:
        """Rows of tables.COMMITS, in any order; `names` are those of the chosen groups."""
        seconds = pc.divide(pc.cast(pc.cast(rows["log_time"], pa.int64()), pa.float64()), 1e6)
        steps = pc.ceil(pc.divide(pc.subtract(seconds, self._since_s), self._step_s))
        rows = rows.append_column("step", pc.max_element_wise(pc.cast(steps, pa.int64()), 0))
        place = ["cluster", "topic", "partition", "step"]
        highest = rows.group_by(place).aggregate([("committed_offset", "max")])
        for row in highest.to_pylist():
            if row["committed_offset_max"] is not None and row["step"] is not None:
                own = self.furthest[row["cluster"], row["topic"], row["partition"]]
                time = self._time(row["step"])
                own[time] = max(own.get(time, 0), row["committed_offset_max"])
        chosen = rows.filter(pc.is_in(rows["group_id"], names)).sort_by("log_offset")
        last = chosen.group_by(["group_id", *place], use_threads=False).aggregate(
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

    def of(self, group: Group) -> dict[Place, Steps]:
        """The committed offsets of a group, by partition."""
        return {
            (key[0], key[2], key[3]): Steps([(time, offset) for time, (_, offset) in sorted(changes.items())])
            for key, changes in self._last.items()
            if key[:2] == (group.cluster, group.group_id)
        }

    def _time(self, step: int) -> float:
        return self._since_s + step * self._step_s


def _verdict(row: Mapping[str, Any], group_type: str | None, partitions: int) -> tuple[str, str]:
    """Status and rule of a group, of its row in the table of them; {}: it is not judged there."""
    if row.get("status"):
        return row["status"], row["rule"] or ""
    if partitions:
        return "unknown", ""
    if group_type == "share":
        return "unknown", "what a share group has read is not in the offsets topic"
    return "ok", "no committed offsets"


def _badness(group: Group) -> tuple[int, int, int, str, str]:
    return (STATUSES.index(group.status), -(group.lag_ms or 0), -(group.lag or 0), group.cluster, group.group_id)


def _line(group: Group, commits: _Commits, logs: Mapping[Place, Log], times: Sequence[float]) -> LagLine:
    own = commits.of(group)
    parts = [(steps, logs[place]) for place, steps in own.items() if place in logs]
    known_from = times[0]
    for steps, log in parts:
        offset = steps.at(times[-1])
        if offset is not None and log.end_at(times[-1]) > offset:
            known_from = max(known_from, log.known_from or times[-1])
    lags = [lag_at(time, parts) for time in times[:-1]] + [group.lag or 0]
    return LagLine(
        group.cluster, group.group_id,
        tuple((datetime.fromtimestamp(time, UTC), lag) for time, lag in zip(times, lags, strict=True)),
        datetime.fromtimestamp(known_from, UTC),
    )  # fmt: skip


def _measured_line(group: Group, parts: Sequence[Steps], times: Sequence[float]) -> LagLine:
    lags = [sum(part.at(time) or 0 for part in parts) for time in times[:-1]] + [group.lag or 0]
    known_from = next((time for time in times if any(part.at(time) is not None for part in parts)), times[-1])
    return LagLine(
        group.cluster, group.group_id,
        tuple((datetime.fromtimestamp(time, UTC), lag) for time, lag in zip(times, lags, strict=True)),
        datetime.fromtimestamp(known_from, UTC),
    )  # fmt: skip


def _clusters(
    groups: Sequence[Group], rates: Iterable[Mapping[str, Any]], rewinds: Iterable[Rewind], stale: Iterable[Stale]
) -> tuple[Cluster, ...]:
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rates:
        if row["group_id"] is None:
            counted[row["cluster"] or ""].update({name: row[name] or 0 for name in _COUNTED})
    again = Counter(each.cluster for each in rewinds)
    idle = Counter(cluster for cluster, _ in {(each.cluster, each.group_id) for each in stale})
    found = []
    for name in sorted({each.cluster for each in groups} | set(counted)):
        own = [each for each in groups if each.cluster == name]
        lags = [each.lag for each in own if each.lag is not None]
        found.append(
            Cluster(
                name, len(own), sum(each.members for each in own), sum(each.partitions for each in own),
                sum(lags) if lags else None, _most(each.lag_ms for each in own),
                {status: sum(each.status == status for each in own) for status in STATUSES},
                counted[name]["offset_commits"], counted[name]["offset_expirations"],
                counted[name]["offset_deletions"], counted[name]["completed_rebalances"], again[name], idle[name],
            )
        )  # fmt: skip
    return tuple(found)


def _activity(rates: Iterable[Mapping[str, Any]], window: Window | None) -> tuple[Activity, ...]:
    """In bins of a round length that begin at round times, so that hours stay distinct."""
    if window is None:
        return ()
    first = int(window.since.timestamp() // 60)
    end = int(window.until.timestamp() // 60) + 1
    size = next((each for each in _BIN_MINUTES if (end - first) / each <= _MOST_BINS), -(-(end - first) // _MOST_BINS))
    begin = first // size * size
    bins = -(-(end - begin) // size)
    commits: dict[str, list[int]] = defaultdict(lambda: [0] * bins)
    rebalances: dict[str, list[int]] = defaultdict(lambda: [0] * bins)
    for row in rates:
        if row["group_id"] is None and row["minute"] is not None:
            position = (int(row["minute"].timestamp() // 60) - begin) // size
            if 0 <= position < bins:
                commits[row["cluster"] or ""][position] += row["offset_commits"] or 0
                rebalances[row["cluster"] or ""][position] += row["completed_rebalances"] or 0
    starts = [begin + number * size for number in range(bins)]
    covered = tuple(min(start + size, end) - max(start, first) for start in starts)
    began = datetime.fromtimestamp(begin * 60, UTC)
    return tuple(
        Activity(name, began, size, tuple(commits[name]), tuple(rebalances[name]), covered) for name in sorted(commits)
    )


def _most(values: Iterable[_Number | None]) -> _Number | None:
    return max((each for each in values if each is not None), default=None)
