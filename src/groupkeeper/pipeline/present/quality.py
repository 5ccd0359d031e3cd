"""tables.QUALITY: checks of the other tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from groupkeeper.pipeline.relations import Groups, Rows, is_known, keys, loaded, taken, together
from groupkeeper.pipeline.tables import CURRENT_OFFSETS, FRESHNESS, LAG, QUALITY, REJECTS, STATUS, TABLES, Table
from groupkeeper.pipeline.tables.state import COUNTS_OF_LAG, OFFSETS_READ
from groupkeeper.pipeline.transforms.history import LogOffsets
from groupkeeper.rules.words import counted

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"

_PARTITION = list(OFFSETS_READ.key)
_FOUND = ["cluster", "found", "detail"]
"""The columns of findings: a cluster, how many rows were found, and a sentence about one; null: none."""


class Check(NamedTuple):
    """A row of tables.QUALITY without the time."""

    cluster: str | None
    """None: the check covers all clusters."""
    table_name: str | None
    """None: the check covers the directory."""
    check_name: str
    result: str
    found: int
    detail: str


class Offsets(NamedTuple):
    """A partition of an offsets topic in the history: its number of rows, of distinct offsets, and its first offset."""

    cluster: str
    partition: int
    rows: int
    different: int
    first: int


def offsets_read(commits: Rows, group_records: Rows) -> pa.Table:
    """tables.state.OFFSETS_READ for some groups: counts of the log offsets in the history, by partition."""
    rows = together(*(loaded(each, (*_PARTITION, "log_offset")) for each in (commits, group_records)))
    counts = [("log_offset", how) for how in ("count", "count_distinct", "min")]
    found = rows.group_by(_PARTITION, use_threads=False).aggregate(counts)
    return found.select([*_PARTITION, *("_".join(each) for each in counts)]).rename_columns(OFFSETS_READ.names)


def all_read(parts: Rows) -> pa.Table:
    """OFFSETS_READ for all groups, by adding up the shares: each log offset is a row in one share."""
    sums = [("records", "sum"), ("offsets", "sum"), ("first", "min")]
    found = loaded(parts, OFFSETS_READ.names).group_by(_PARTITION, use_threads=False).aggregate(sums)
    return found.select([*_PARTITION, *("_".join(each) for each in sums)]).rename_columns(OFFSETS_READ.names)


def checks_of_offsets(
    found: Sequence[Offsets], start: LogOffsets, end: LogOffsets, taken: Mapping[str, int] = MappingProxyType({})
) -> list[Check]:
    """Checks that each record between two offsets has one row; a partition without `start` begins with its first row.
    `taken`: how many rows of each cluster were removed on purpose.
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
            partitions = sum(gap > 0 for gap in gaps.values())
            detail = (
                f"{counted(missing, 'offset')} without a row, in {counted(partitions, 'partition')}: compacted, of "
                "aborted transactions, or lost; 'groupkeeper pipeline quality' compares them with the log when the "
                "cluster is named"
            )
            checks.append(Check(cluster, None, "gaps", UNKNOWN, missing, detail))
        else:
            checks.append(Check(cluster, None, "gaps", OK, 0, "each offset that was read has a row"))
    return checks


def counts_of(rows: Mapping[Table, Rows]) -> pa.Table:
    """Rows of tables.state.COUNTS_OF_LAG: counts of the tables' rows for some groups, all of whose rows are given."""
    found = []
    for table, own in rows.items():
        (key,) = keys(table.key, loaded(own, table.key))
        judged = int(is_known(loaded(own, ("topic",))["topic"]).sum()) if "topic" in table.names else None
        found.append((table.name, len(key), len(key) - len(np.unique(key)), judged))
    return pa.Table.from_pylist(
        [dict(zip(COUNTS_OF_LAG.names, each, strict=True)) for each in found], COUNTS_OF_LAG.arrow
    )


def checks_of_tables(
    counts: Iterable[pa.Table], rows: Mapping[Table, Rows], failed: Container[str] = ()
) -> list[Check]:
    """Checks of whole tables, from the counts of all their rows (counts_of), except `failed` tables. `rows` may have
    REJECTS and FRESHNESS, which are checked too.
    """
    by_name: dict[str, Counter[str]] = {}
    for each in counts:
        for row in each.to_pylist():
            name = row.pop("table_name")
            by_name.setdefault(name, Counter()).update({column: found or 0 for column, found in row.items()})
    known = {table: by_name[table.name] for table in TABLES if table.name in by_name and table.name not in failed}
    checks = [_keys(table, own["doubled"]) for table, own in known.items()]
    for table in (LAG, STATUS):
        if table in known and CURRENT_OFFSETS in known:
            number, wanted = known[table]["judged" if table is STATUS else "rows"], known[CURRENT_OFFSETS]["rows"]
            detail = f"{number} of its rows are of an offset, {wanted} are in {CURRENT_OFFSETS.name}"
            result = OK if number == wanted else FAILED
            checks.append(Check(None, table.name, "counts", result, abs(number - wanted), detail))
    if REJECTS in rows:
        found = _firsts(loaded(rows[REJECTS], (*REJECTS.key, "reason")))
        checks += _per_cluster(REJECTS, "rejects", found, "record", "not decoded, the first")
        if not len(found):
            checks.append(Check(None, REJECTS.name, "rejects", OK, 0, "every record could be decoded"))
    if FRESHNESS in rows:
        behind = loaded(rows[FRESHNESS], ("cluster", "problem")).group_by("cluster")
        found = behind.aggregate([("problem", "count"), ("problem", "min")])
        found = found.select(["cluster", "problem_count", "problem_min"]).rename_columns(_FOUND)
        checks += _per_cluster(FRESHNESS, "freshness", found, "partition", "not read to the end, for one")
    return checks


def _firsts(rejects: pa.Table) -> pa.Table:
    """By cluster, the number of records that could not be decoded, and the first of them: rows of _FOUND."""
    order = rejects.sort_by([(name, "ascending") for name in REJECTS.key])
    groups = Groups.sorted(*keys(("cluster",), order))
    first = taken(order, groups.starts).to_pylist()
    texts = ["{reason} at {log_partition}-{log_offset}".format(**each) for each in first]
    return pa.table([[each["cluster"] for each in first], groups.sizes, texts], _FOUND)


def quality_rows(checks: Iterable[Check], now_ms: int) -> pa.Table:
    """Rows of tables.QUALITY."""
    rows = [{**check._asdict(), "measured_time": now_ms * 1000} for check in checks]
    return pa.Table.from_pylist(rows, QUALITY.arrow)


def _keys(table: Table, doubled: int) -> Check:
    key = ", ".join(table.key)
    detail = (
        f"{counted(doubled, 'row')} with the key ({key}) of another row" if doubled else f"({key}) is in no two rows"
    )
    return Check(None, table.name, "keys", FAILED if doubled else OK, doubled, detail)


def _per_cluster(table: Table, name: str, found: pa.Table, noun: str, lack: str) -> list[Check]:
    """A check of each cluster, from rows of _FOUND."""
    checks = []
    for row in found.sort_by("cluster").to_pylist():
        number = row["found"]
        detail = f"{counted(number, noun)} {lack}: {row['detail']}" if number else f"no {noun} is {lack.split(',')[0]}"
        checks.append(Check(row["cluster"], table.name, name, FAILED if number else OK, number, detail))
    return checks
