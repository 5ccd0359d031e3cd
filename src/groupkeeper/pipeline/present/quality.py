"""tables.QUALITY: checks of the other tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa

from groupkeeper.pipeline.present.sql import Rows, made, only
from groupkeeper.pipeline.tables import CURRENT_OFFSETS, FRESHNESS, LAG, QUALITY, REJECTS, STATUS, Table
from groupkeeper.rules.words import counted

__all__ = ["FAILED", "OK", "UNKNOWN", "Check", "Offsets", "checks_of_offsets", "checks_of_tables", "quality_rows"]

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"

_KnownOffsets = Mapping[str, Mapping[int, int]]
"""By cluster and partition of the offsets topic."""

_COUNTED = pa.schema([("name", pa.string()), ("rows", pa.int64()), ("doubled", pa.int64())])
_FOUND = pa.schema([("cluster", pa.string()), ("found", pa.int64()), ("detail", pa.string())])

_REJECTED = """
SELECT cluster, count(*) AS found, format('{} at {}-{}', min_by(reason, (log_partition, log_offset)),
    min_by(log_partition, (log_partition, log_offset)), min_by(log_offset, (log_partition, log_offset))) AS detail
FROM rejects GROUP BY cluster ORDER BY cluster
"""
_BEHIND = """
SELECT cluster, count(problem) AS found, min(problem) AS detail FROM freshness GROUP BY cluster ORDER BY cluster
"""
_JUDGED = "SELECT NULL AS cluster, count(*) AS found, NULL AS detail FROM status WHERE topic IS NOT NULL"


class Check(NamedTuple):
    """A row of tables.QUALITY without the time."""

    cluster: str | None
    table_name: str | None
    check_name: str
    result: str
    found: int
    detail: str


class Offsets(NamedTuple):
    """The history of a partition of an offsets topic: its number of rows, of different offsets, and the first
    offset.
    """

    cluster: str
    partition: int
    rows: int
    different: int
    first: int


def checks_of_offsets(
    found: Sequence[Offsets], start: _KnownOffsets, end: _KnownOffsets, taken: Mapping[str, int] = MappingProxyType({})
) -> list[Check]:
    """Checks that each record between these offsets is there once. If no start is known, it is the first row. `taken`:
    how many rows of each cluster were removed on purpose.
    """
    checks: list[Check] = []
    for cluster in sorted(end):
        own = [each for each in found if each.cluster == cluster]
        doubled = sum(each.rows - each.different for each in own)
        different = {each.partition: each.different for each in own}
        first = {each.partition: each.first for each in own} | dict(start.get(cluster, {}))
        gaps = {
            number: last - first[number] - different.get(number, 0)
            for number, last in end[cluster].items()
            if number in first
        }
        missing = max(0, sum(gaps.values()) - taken.get(cluster, 0))
        twice = (
            f"{counted(doubled, 'row')} with the place of another row"
            if doubled
            else "no place in the log has two rows"
        )
        checks.append(Check(cluster, None, "keys", FAILED if doubled else OK, doubled, twice))
        if missing:
            places = sum(gap > 0 for gap in gaps.values())
            detail = (
                f"{counted(missing, 'offset')} without a row, in {counted(places, 'partition')}: compacted, of "
                "aborted transactions, or lost; 'groupkeeper pipeline quality' compares them with the log when the "
                "cluster is named"
            )
            checks.append(Check(cluster, None, "gaps", UNKNOWN, missing, detail))
        else:
            checks.append(Check(cluster, None, "gaps", OK, 0, "each offset that was read has a row"))
    return checks


def checks_of_tables(rows: Mapping[Table, Rows]) -> list[Check]:
    """Checks of whole tables that belong together."""
    counts = _counts(rows)
    checks = [_keys(table, doubled) for table, (_, doubled) in counts.items()]
    if CURRENT_OFFSETS in counts:
        offsets, _ = counts[CURRENT_OFFSETS]
        for table in (LAG, STATUS):
            if table in counts:
                number = _judged(rows[table]) if table is STATUS else counts[table][0]
                checks.append(_as_many(table, number, CURRENT_OFFSETS, offsets))
    if REJECTS in rows:
        checks += _per_cluster(REJECTS, "rejects", _REJECTED, rows[REJECTS], "record", "not decoded, the first")
        if not counts[REJECTS][0]:
            checks.append(Check(None, REJECTS.name, "rejects", OK, 0, "every record could be decoded"))
    if FRESHNESS in rows:
        checks += _per_cluster(
            FRESHNESS, "freshness", _BEHIND, rows[FRESHNESS], "partition", "not read to the end, for one"
        )
    return checks


def quality_rows(checks: Iterable[Check], now_ms: int) -> pa.RecordBatchReader:
    """Rows of tables.QUALITY."""
    rows = [{**check._asdict(), "measured_time": now_ms * 1000} for check in checks]
    return pa.Table.from_pylist(rows, QUALITY.arrow).to_reader()


def _counts(rows: Mapping[Table, Rows]) -> dict[Table, tuple[int, int]]:
    """The number of rows of tables, and of rows with a duplicate key: one query for all tables."""
    parts = [
        f"""
        SELECT '{table.name}' AS name, coalesce(sum(n), 0)::BIGINT AS rows, coalesce(sum(n - 1), 0)::BIGINT AS doubled
        FROM (SELECT count(*) AS n FROM "{table.name}" GROUP BY {", ".join(table.key)})"""
        for table in rows
    ]
    given = {table.name: only(own, table.key) for table, own in rows.items()}
    found = made(_COUNTED, " UNION ALL ".join(parts), given).read_all().to_pylist() if rows else []
    by_name = {row["name"]: (row["rows"], row["doubled"]) for row in found}
    return {table: by_name[table.name] for table in rows}


def _keys(table: Table, doubled: int) -> Check:
    key = ", ".join(table.key)
    detail = (
        f"{counted(doubled, 'row')} with the key ({key}) of another row" if doubled else f"({key}) is in no two rows"
    )
    return Check(None, table.name, "keys", FAILED if doubled else OK, doubled, detail)


def _as_many(table: Table, number: int, other: Table, wanted: int) -> Check:
    detail = f"{number} of its rows are of an offset, {wanted} are in {other.name}"
    return Check(None, table.name, "counts", OK if number == wanted else FAILED, abs(number - wanted), detail)


def _judged(rows: Rows) -> int:
    (found,) = made(_FOUND, _JUDGED, {"status": rows}).read_all().to_pylist()
    return int(found["found"])


def _per_cluster(table: Table, name: str, query: str, rows: Rows, noun: str, lack: str) -> list[Check]:
    checks = []
    for row in made(_FOUND, query, {table.name: rows}).read_all().to_pylist():
        number = row["found"]
        detail = f"{counted(number, noun)} {lack}: {row['detail']}" if number else f"no {noun} is {lack.split(',')[0]}"
        checks.append(Check(row["cluster"], table.name, name, FAILED if number else OK, number, detail))
    return checks
