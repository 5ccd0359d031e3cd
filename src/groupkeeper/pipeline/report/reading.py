"""A report of the tables in a directory. Large tables are summed up with Arrow, not in Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.html.plots import Activity
from groupkeeper.operations.plans.journal import ChangeJournal
from groupkeeper.pipeline.present.changes import read_changes
from groupkeeper.pipeline.present.moved import with_change_columns
from groupkeeper.pipeline.report import findings
from groupkeeper.pipeline.report.details import read_details
from groupkeeper.pipeline.report.lag_lines import Window, lag_lines, measured_lines
from groupkeeper.pipeline.report.model import STATUSES, Cluster, Finding, Group, Key, Report, Rewind, Stale, Unmeasured
from groupkeeper.pipeline.report.opened import Opened
from groupkeeper.pipeline.report.shares import Share, read_shares, status_row, sums
from groupkeeper.pipeline.storage.stored import steady
from groupkeeper.pipeline.tables import (
    COMMITS,
    FRESHNESS,
    GROUPS,
    LAG,
    LOG_OFFSETS,
    MEMBERS,
    RATES,
    REWINDS,
    STALE,
    STATUS,
    TRANSACTIONS,
)
from groupkeeper.pipeline.tables.schema import TIME
from groupkeeper.rules.status import Status
from groupkeeper.shell import NO_WAYS, Ways

_NEEDED = (GROUPS, LAG, STATUS, RATES, REWINDS, STALE, LOG_OFFSETS, COMMITS)
_MOST_BINS = 120
_BIN_MINUTES = (1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440)
_COUNTED = ("offset_commits", "completed_rebalances", "offset_expirations", "offset_deletions")
_TRENDS = ("cluster", "group_id", "topic", "partition", "lag", "lag_ms", "produced_per_s", "consumed_per_s", "trend",
           "catch_up_ms", "retention_margin_ms", "measured_time")  # fmt: skip

_IS_READABLE = (pc.field("lag") > 0) & (pc.field("committed_lag_ms").is_null() | (pc.field("committed_lag_ms") > 0))
"""Rows with committed records to read. Aborted records are never read; open transactions have a list of their own."""

_Number = TypeVar("_Number", int, float)


def read_report(
    directory: str,
    *,
    hours: float,
    top: int,
    journals: Sequence[str | ChangeJournal] = (),
    note: Callable[[str], None] = lambda text: None,
    ways: Ways = NO_WAYS,
) -> Report:
    """The report of the tables in `directory` (a path or URI), for the `hours` before the latest time in them. `top`:
    how many groups the plots show. `journals`: files of groupkeeper's journal, or folders of them, which tell who made
    the rewinds; `note` is called with a message for what cannot be read of them. `ways`: how commands reach the
    clusters; a cluster without one gets HOST:PORT.

    Raises SourceError when there are no tables, or they cannot be read.
    """
    return steady(directory, lambda: _Reader(directory, journals, note, ways).report(hours, top))


class _Reader:
    def __init__(
        self, directory: str, journals: Sequence[str | ChangeJournal], note: Callable[[str], None], ways: Ways
    ) -> None:
        self._directory = directory
        self._journals = journals
        self._note = note
        self._ways = ways
        self._opened = Opened(directory, _NEEDED)

    def report(self, hours: float, top: int) -> Report:
        measured, lags = self._lags()
        latest = max(measured.values(), default=None)
        window = self._window(latest, hours)
        rebalances = self._rebalances(window)
        rates = self._rates(window)
        shares = read_shares(self._opened)
        known = self._reported(self._groups(lags, shares, rebalances, measured))
        groups = tuple(each.group for each in known)
        rewinds = self._rewinds(window)
        stale = self._stale()
        shown = _shown(stale, {each.key for each in groups if each.status == Status.LOSING})
        lines = {} if window is None else measured_lines(self._opened, groups, window)
        chosen = [each for each in groups if each.lag and each.key in lags][:top]
        return Report(
            self._directory, latest, window.since if window else None, window.until if window else None, hours, top,
            _clusters(groups, rates, rewinds, shown), groups, _activity(rates, window),
            () if window is None else lag_lines(self._opened, chosen, window, lines),
            rewinds, shown, self._opened.missing, self._opened.refresh,
            self._findings(known, stale, shown, rebalances), read_details(self._opened, groups, shares, lines, window),
            self._unmeasured(),
        )  # fmt: skip

    def _reported(self, groups: Sequence[Group]) -> list[findings.ReportedGroup]:
        lags = self._opened.table(LAG, _TRENDS, _IS_READABLE).to_pylist()
        judged = self._opened.table(STATUS).to_pylist()
        retention = self._opened.table(LOG_OFFSETS, ["cluster", "topic", "retention_ms"]).to_pylist()
        return findings.reported(groups, lags, judged, retention)

    def _findings(
        self, known: Sequence[findings.ReportedGroup], stale: Sequence[Stale], shown: Sequence[Stale], rebalances: Any
    ) -> tuple[Finding, ...]:
        lost = {each[:2]: each.lost for each in stale if each.reason == "below_log_start"}
        storms = findings.fullest(rebalances)
        return (
            *findings.acting(known, lost, storms, self._ways),
            *findings.calmed(known, storms, self._ways),
            *findings.held(self._opened.table(TRANSACTIONS).to_pylist(), self._ways),
            *findings.unused(shown, self._ways),
        )

    def _unmeasured(self) -> tuple[Unmeasured, ...]:
        """The clusters that the last refresh could not measure."""
        rows = self._opened.table(FRESHNESS, ["cluster", "measured_time", "problem"])
        found = rows.group_by(["cluster"]).aggregate([("measured_time", "max"), ("problem", "min")]).to_pylist()
        away = [(row["cluster"], row["problem_min"]) for row in found if row["measured_time_max"] is None]
        return tuple(Unmeasured(cluster or "", why or "why is unknown") for cluster, why in sorted(away))

    def _lags(self) -> tuple[dict[str, datetime], dict[Key, dict[str, Any]]]:
        """When each cluster was measured, and the sums of its groups."""
        columns = ["cluster", "group_id", "lag", "lag_ms", "measured_time"]
        rows = self._opened.table(LAG, columns)
        summed = rows.group_by(["cluster", "group_id"]).aggregate(
            [("lag", "sum"), ("lag", "count"), ("lag_ms", "max"), ("cluster", "count")]
        )
        instants = rows.group_by(["cluster"]).aggregate([("measured_time", "max")]).to_pylist()
        return {row["cluster"]: row["measured_time_max"] for row in instants if row["measured_time_max"] is not None}, {
            (row["cluster"], row["group_id"]): row for row in summed.to_pylist()
        }

    def _window(self, measured: datetime | None, hours: float) -> Window | None:
        minutes = self._opened.table(RATES, ["minute"], pc.field("group_id").is_null())["minute"]
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
        """The rates of clusters, by minute."""
        if window is None:
            return []
        wanted = _since(window) & pc.field("group_id").is_null()
        rows: list[dict[str, Any]] = self._opened.table(RATES, wanted=wanted).to_pylist()
        return rows

    def _rebalances(self, window: Window | None) -> Any:
        """The rebalances of groups, by minute."""
        columns = ["cluster", "group_id", "minute", "completed_rebalances"]
        if window is None:
            return RATES.arrow.empty_table().select(columns)
        wanted = _since(window) & pc.field("group_id").is_valid() & (pc.field("completed_rebalances") > 0)
        return self._opened.table(RATES, columns, wanted)

    def _groups(
        self,
        lags: Mapping[Key, Mapping[str, Any]],
        shares: Mapping[Key, Share],
        rates: Any,
        measured: Mapping[str, datetime],
    ) -> tuple[Group, ...]:
        summed = rates.group_by(["cluster", "group_id"]).aggregate([("completed_rebalances", "sum")]).to_pylist()
        rebalances = {(row["cluster"], row["group_id"]): row["completed_rebalances_sum"] for row in summed}
        judged = self._opened.table(STATUS, wanted=pc.field("topic").is_null()).to_pylist()
        statuses = {(row["cluster"], row["group_id"]): row for row in judged}
        storms = {key for key, row in statuses.items() if row["status"] == Status.UNSTABLE}
        statuses |= {key: status_row(own) for key, own in shares.items() if key not in storms}
        lags = {**lags, **{key: sums(own) for key, own in shares.items()}}
        known = {(row["cluster"], row["group_id"]): row for row in self._opened.table(GROUPS).to_pylist()}
        assigned = self._assigned()
        found = []
        for key in dict.fromkeys([*known, *statuses, *lags]):
            group, row, lag = known.get(key, {}), statuses.get(key, {}), lags.get(key, {})
            partitions = max(group.get("partitions") or 0, lag.get("cluster_count") or 0)
            status, rule = _status_and_rule(row, group, partitions, assigned[key])
            found.append(
                Group(
                    key[0] or "", key[1] or "", group.get("group_type") or "", group.get("group_state") or "",
                    group.get("members") or 0, partitions, status if status in STATUSES else Status.UNKNOWN,
                    rule, row.get("since_time"),
                    lag.get("lag_sum"), lag.get("lag_ms_max"), partitions - (lag.get("lag_count") or 0),
                    group.get("last_commit_time"), rebalances.get(key) or 0,
                    measured.get(key[0]) if key in lags else None,
                )
            )  # fmt: skip
        return tuple(found)

    def _assigned(self) -> Counter[Key]:
        """How many partitions the members of each group are assigned."""
        counted: Counter[Key] = Counter()
        for row in self._opened.table(MEMBERS, ["cluster", "group_id", "assigned"]).to_pylist():
            counted[row["cluster"], row["group_id"]] += sum(len(each["partitions"]) for each in row["assigned"] or ())
        return counted

    def _rewinds(self, window: Window | None) -> tuple[Rewind, ...]:
        if window is None:
            return ()
        inside = pc.field("rewind_time") >= pa.scalar(window.since, TIME)
        rows = self._opened.table(REWINDS, wanted=inside)
        if self._journals and len(rows):
            ids = dict.fromkeys(rows["cluster"].unique().to_pylist()) | self._opened.cluster_ids
            changes, notes = read_changes(self._journals, ids, self._opened.privacy)
            for each in notes:
                self._note(each)
            rows = with_change_columns(rows, changes)
        rows = rows.select(Rewind._fields)
        return tuple(Rewind(**row) for row in rows.sort_by([("rewind_time", "descending")]).to_pylist())

    def _stale(self) -> tuple[Stale, ...]:
        by_reason: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in self._opened.table(STALE).to_pylist():
            by_reason[row["cluster"] or "", row["group_id"] or "", row["reason"] or ""].append(row)
        found = [
            Stale(
                *key,
                sum(row["topic"] is not None for row in rows),
                tuple(sorted({row["topic"] for row in rows if row["topic"] is not None})),
                _most(row["idle_days"] for row in rows),
                min((row["expires_time"] for row in rows if row["expires_time"] is not None), default=None),
                sum(row["lost"] or 0 for row in rows) if key[2] == "below_log_start" else None,
            )
            for key, rows in by_reason.items()
        ]
        return tuple(sorted(found, key=lambda each: (-(each.lost or 0), -(each.idle_days or 0), each[:3])))


def _shown(stale: Sequence[Stale], losing: set[Key]) -> tuple[Stale, ...]:
    """The stale entries, without those that the status of active groups already shows."""
    return tuple(each for each in stale if each.reason != "below_log_start" or each[:2] not in losing)


def _since(window: Window) -> Any:
    """A filter for the minutes of the window."""
    return pc.field("minute") >= pa.scalar(window.since.replace(second=0, microsecond=0), TIME)


def _status_and_rule(
    row: Mapping[str, Any], group: Mapping[str, Any], partitions: int, assigned: int
) -> tuple[str, str]:
    """Status and rule of a group, from its rows in tables.STATUS and tables.GROUPS; {}: it has none. `assigned`: how
    many partitions its members are assigned.
    """
    if row.get("status"):
        return row["status"], row["rule"] or ""
    if partitions:
        return Status.UNKNOWN, ""
    if group.get("group_type") == "share":
        return Status.UNKNOWN, "its progress is not known"
    if assigned:
        return Status.UNKNOWN, f"no committed offsets: {assigned:,} not committed of {assigned:,} assigned"
    if group.get("group_type") == "streams" and group.get("members"):
        return Status.UNKNOWN, "no committed offsets, and its assigned tasks are not known"
    return Status.OK, "no committed offsets"


def _clusters(
    groups: Sequence[Group], rates: Iterable[Mapping[str, Any]], rewinds: Iterable[Rewind], stale: Iterable[Stale]
) -> tuple[Cluster, ...]:
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rates:
        if row["group_id"] is None:
            counted[row["cluster"] or ""].update({name: row[name] or 0 for name in _COUNTED})
    again = Counter(each.cluster for each in rewinds)
    idle = Counter(cluster for cluster, _ in {each[:2] for each in stale})
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
    """The activity in bins of a round length, which begin at round times."""
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
