"""Tables of a fleet that never was, as `groupkeeper pipeline snapshot` would have written them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from groupkeeper.pipeline.tables import (
    COMMITS,
    GROUP_EVENTS,
    GROUPS,
    LAG,
    LAG_HISTORY,
    LOG_OFFSETS,
    MEMBERS,
    RATES,
    REWINDS,
    STALE,
    STATUS,
    TABLES,
    TRANSACTIONS,
    Table,
)

NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
EVIL = "<script>alert(1)</script>\"'&\u202egpj\x1b[31m"
HUGE = "h" * 20_000
STATUSES = ("ok", "ok", "ok", "lagging", "ok", "stopped", "ok", "stalled", "rewound", "unknown")

Rows = dict[str, list[dict[str, Any]]]


def write(folder: Path, rows: Mapping[str, Sequence[Mapping[str, Any]]], *, without: Sequence[str] = ()) -> Path:
    """Every table, or all but some; columns that a row lacks are null."""
    for table in TABLES:
        if table.name not in without:
            (folder / table.name).mkdir(parents=True)
            found = pa.Table.from_pylist(list(map(dict, rows.get(table.name, ()))), table.arrow)
            pq.write_table(found, folder / table.name / "part-0.parquet")
    return folder


def fleet(groups: int = 12, *, cluster: str = "east", minutes: int = 180) -> Rows:
    """So many groups of one partition each; every tenth behaves like its neighbours of ten (STATUSES)."""
    rows: Rows = {table.name: [] for table in TABLES}
    for number in range(groups):
        _add_group(rows, cluster, number, minutes)
    if groups > 20:
        _add_trouble(rows, cluster)
    begin = NOW.replace(second=0) - timedelta(minutes=minutes)
    for minute in range(minutes + 1):
        commits = groups * (4 + (minute * 7 + 3) % 5) + (groups * 20 if 60 <= minute < 70 else 0)
        _add(rows, RATES, cluster=cluster, minute=begin + timedelta(minutes=minute), offset_commits=commits,
             completed_rebalances=3 if minute % 41 == 40 else 0, offset_expirations=0, offset_deletions=0)  # fmt: skip
    return rows


def _add_group(rows: Rows, cluster: str, number: int, minutes: int) -> None:
    status = STATUSES[number % len(STATUSES)]
    name = {0: EVIL, 1: HUGE}.get(number, f"billing-{number:04}")
    key = {"cluster": cluster, "group_id": name}
    place = {**key, "topic": f"orders-{number}", "partition": 0}
    is_ok = status == "ok"
    end = 1000 * (minutes + 1)
    stop = minutes if is_ok else minutes - 30 - number
    committed = 1000 * stop if status != "rewound" else 1000 * (stop - 20)
    lag = None if status == "unknown" else 0 if is_ok else end - committed
    lag_ms = None if lag is None else lag * 60
    begin = NOW - timedelta(minutes=minutes)
    last = begin + timedelta(minutes=stop)
    for minute in range(0, stop + 1, 2):
        _add(rows, COMMITS, **place, log_partition=0, log_offset=minute, log_time=begin + timedelta(minutes=minute),
             committed_offset=1000 * minute, is_tombstone=False)  # fmt: skip
    _add(rows, COMMITS, **place, log_partition=0, log_offset=10_000, log_time=last, committed_offset=committed,
         is_tombstone=False)  # fmt: skip
    records = (
        [] if is_ok else [{"offset": committed, "is_there": True, "time": NOW - timedelta(milliseconds=lag_ms or 0)}]
    )
    if status != "unknown":
        _add(rows, LOG_OFFSETS, cluster=cluster, topic=place["topic"], partition=0, log_start_offset=0,
             log_end_offset=committed + (lag or 0), records=records, measured_time=NOW)  # fmt: skip
    rates: dict[str, Any] = {}
    if lag:
        speed = {"lagging": 900, "rewound": 1400}.get(status, 0) / 60
        rates = {"produced_per_s": 1000 / 60, "consumed_per_s": speed, "measures": [],
                 "trend": "growing" if speed < 17 else "shrinking",
                 "catch_up_ms": None if speed < 17 else round(lag / (speed - 1000 / 60) * 1000),
                 "retention_margin_ms": 86_400_000 - (lag_ms or 0)}  # fmt: skip
    _add(rows, LAG, **place, committed_offset=committed, log_start_offset=0, log_end_offset=committed + (lag or 0),
         lag=lag, lag_ms=lag_ms, commit_time=last, measured_time=NOW, lag_basis="exact", **rates,
         problem="the leader did not answer" if lag is None else None)  # fmt: skip
    if status != "unknown":
        _add_measures(rows, place, begin, minutes, stop)
    rule = "nothing to read" if is_ok else f"a record waits since {last:%H:%M}, and nothing was committed"
    for one in (place, key):
        _add(rows, STATUS, **one, status=status, since_time=None if is_ok else last, lag=lag, lag_ms=lag_ms, rule=rule)
    _add(rows, GROUPS, **key, group_type="consumer", group_state="Stable" if is_ok else "Empty", members=3 * is_ok,
         topics=1, partitions=1, last_commit_time=last)  # fmt: skip
    for member in range(3 * is_ok):
        _add(rows, MEMBERS, **key, group_type="consumer", member_id=f"member-{member}", client_id=f"app-{member}",
             client_host=f"/10.0.0.{member}", member_epoch=7, member_state="STABLE",
             assigned=[{"topic": place["topic"], "partitions": [0]}] if not member else [])  # fmt: skip
    _add(rows, GROUP_EVENTS, **key, event_time=begin, event="created", member_id="", log_partition=0, log_offset=1)
    if not is_ok:
        _add(rows, GROUP_EVENTS, **key, event_time=last, event="emptied", member_id="", members=0, log_partition=0,
             log_offset=2)  # fmt: skip
    if status == "rewound":
        _add(rows, REWINDS, **place, rewind_time=last, from_offset=1000 * stop, to_offset=committed, records=20_000,
             direction="back", was_empty=True, log_partition=0, log_offset=10_000)  # fmt: skip
    if status == "stopped":
        _add(rows, STALE, **place, reason="below_log_start", idle_days=0.5, lost=777)
        _add(rows, STALE, **key, reason="idle", idle_days=44.0)
    _add(rows, RATES, **key, minute=NOW.replace(second=0), offset_commits=2, completed_rebalances=number % 3,
         offset_expirations=0, offset_deletions=0)  # fmt: skip


def _add_measures(rows: Rows, place: Mapping[str, Any], begin: datetime, minutes: int, stop: int) -> None:
    """Measurements of every five minutes of the second half, without those of an hour in it."""
    for minute in range(minutes // 2, minutes, 5):
        time = begin + timedelta(minutes=minute)
        committed = 1000 * min(minute, stop)
        _add(rows, LAG_HISTORY, **place, measured_time=time, committed_offset=committed, log_end_offset=1000 * minute,
             lag=1000 * minute - committed)  # fmt: skip


def _add_trouble(rows: Rows, cluster: str) -> None:
    """A group that rebalances again and again, and a transaction that nothing will end."""
    key = {"cluster": cluster, "group_id": "billing-0004"}
    for minute in range(20):
        _add(rows, RATES, **key, minute=NOW.replace(second=0) - timedelta(minutes=40 - minute), offset_commits=1,
             completed_rebalances=4, offset_expirations=0, offset_deletions=0)  # fmt: skip
    _add(rows, TRANSACTIONS, cluster=cluster, topic="orders-2", partition=0, producer_id=4711, producer_epoch=3,
         first_offset=5000, held_offsets=176_000, started_time=NOW - timedelta(hours=3), open_ms=3 * 3_600_000,
         is_hanging=True, groups=2, measured_time=NOW)  # fmt: skip


def _add(rows: Rows, table: Table, **values: Any) -> None:
    rows[table.name].append(values)
