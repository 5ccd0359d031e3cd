"""Checks all rows of a directory of tables without Spark, and compares them with clusters' logs if these are named."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from groupkeeper.pipeline.decode.records import records_seen
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.fetching import fetch
from groupkeeper.pipeline.kafka.options import Options
from groupkeeper.pipeline.kafka.planning import Range, by_cluster, named, plan
from groupkeeper.pipeline.present.quality import (
    FAILED,
    OK,
    UNKNOWN,
    Check,
    Offsets,
    checks_of_offsets,
    checks_of_tables,
)
from groupkeeper.pipeline.present.sql import Rows, made
from groupkeeper.pipeline.storage.ledger import SCHEMA
from groupkeeper.pipeline.storage.stored import Stored
from groupkeeper.pipeline.tables import (
    COMMITS,
    CURRENT_OFFSETS,
    FRESHNESS,
    GROUP_RECORDS,
    OFFSETS_AS_OF,
    QUALITY,
    RATES,
    REJECTS,
    SCAN_TIME,
    TABLES,
    TOPICS,
)

__all__ = ["check_directory"]

_TRIES = 10
_PAUSE_S = 0.2
_HISTORY = (COMMITS, GROUP_RECORDS)
_BY_DESIGN = (RATES, QUALITY, OFFSETS_AS_OF, SCAN_TIME)
"""A minute of rates may have two rows; the others are answers, of which nothing else is made."""

_PLACES = """
    SELECT cluster, log_partition, log_offset FROM commits
    UNION ALL SELECT cluster, log_partition, log_offset FROM group_records
"""
_OFFSETS = f"""
SELECT cluster, log_partition AS partition, count(*) AS rows, count(DISTINCT log_offset) AS different,
    min(log_offset) AS first
FROM ({_PLACES}) GROUP BY ALL
"""
_LAST = """
WITH standing AS (
    SELECT cluster FROM commits JOIN ends USING (cluster, log_partition)
    WHERE log_offset < made_to
    GROUP BY cluster, group_id, topic, partition
    HAVING NOT arg_max(is_tombstone, log_offset)
)
SELECT (SELECT count(*) FROM standing) AS wanted,
    (SELECT count(*) FROM current_offsets WHERE log_partition IS NOT NULL) AS found
"""
_REJECTED = """
SELECT (SELECT count(*) FROM group_records JOIN ends USING (cluster, log_partition)
        WHERE problem IS NOT NULL AND log_offset < made_to) AS wanted,
    (SELECT count(*) FROM rejects) AS found
"""
_LOST = f"""
SELECT log_partition, log_offset
FROM log WHERE NOT EXISTS (
    SELECT 1 FROM ({_PLACES}) AS own
    WHERE own.cluster = $cluster AND own.log_partition = log.log_partition AND own.log_offset = log.log_offset)
"""
_OLDER = f"""
SELECT log_partition, count(DISTINCT log_offset) AS rows
FROM ({_PLACES}) JOIN starts USING (log_partition)
WHERE cluster = $cluster AND log_offset < start
GROUP BY log_partition
"""

_MEASURED = """
SELECT cluster, epoch_ms(max(measured_time)) AS found
FROM (SELECT cluster, measured_time FROM freshness UNION ALL SELECT cluster, measured_time FROM topics)
WHERE cluster IN (SELECT cluster FROM freshness) GROUP BY cluster
"""

_TIMES = pa.schema([("cluster", pa.string()), ("found", pa.int64())])
_PAIR = pa.schema([("wanted", pa.int64()), ("found", pa.int64())])
_OFFSETS_READ = pa.schema(
    [("cluster", pa.string()), ("partition", pa.int32()), ("rows", pa.int64()), ("different", pa.int64()),
     ("first", pa.int64())]
)  # fmt: skip
_ENDS = pa.schema([("cluster", pa.string()), ("log_partition", pa.int32()), ("made_to", pa.int64())])
_STARTS = pa.schema([("log_partition", pa.int32()), ("start", pa.int64())])
_IN_LOG = pa.schema([("log_partition", pa.int32()), ("log_offset", pa.int64())])


def check_directory(
    directory: str, options: Options | None = None, *, max_age_ms: int | None = None
) -> tuple[list[Check], list[str]]:
    """The checks of all rows, and why clusters could not be compared. `options`: of clusters whose logs are read too;
    `max_age_ms`: how old the tables may be.

    Raises SourceError when there are no tables, or they cannot be read.
    """
    for left in reversed(range(_TRIES)):
        try:
            return _checked(directory, options, max_age_ms)
        except FileNotFoundError as error:  # a run has put others in their place
            if not left:
                raise SourceError(f"{directory} changes while it is read: {error}") from None
            time.sleep(_PAUSE_S)
        except (OSError, pa.ArrowException) as error:
            raise SourceError(f"{directory} cannot be read: {error}") from None
    raise AssertionError


def _checked(directory: str, options: Options | None, max_age_ms: int | None) -> tuple[list[Check], list[str]]:
    stored = Stored(directory)
    if not stored.entry or not any(stored.has(table) for table in TABLES if table not in _BY_DESIGN):
        raise SourceError(f"{directory} has no tables: make them with 'groupkeeper pipeline snapshot'")
    checks = [_schema(stored)]
    if missing := stored.missing_files():
        return [*checks, Check(None, None, "files", FAILED, len(missing), f"not there: {missing[0]}")], []
    checks.append(Check(None, None, "files", OK, 0, "all files are there"))
    history = {table.name: stored.rows(table) for table in _HISTORY}
    offsets = [Offsets(**row) for row in made(_OFFSETS_READ, _OFFSETS, history).read_all().to_pylist()]
    taken = {name: sum(count for count, _ in own.values()) for name, own in stored.forgotten.items()}
    of_logs = checks_of_offsets(offsets, {}, stored.next_offsets, taken)
    problems: list[str] = []
    if stored.is_aged:
        of_logs = [_unknown(each) for each in of_logs]
    elif options is not None:
        compared, problems = _compared(options, stored, history, offsets)
        of_logs = [compared.get((each.cluster, each.check_name), each) for each in of_logs]
    checks += of_logs
    there = [table for table in TABLES if table not in (*_HISTORY, *_BY_DESIGN) and stored.has(table)]
    checks += checks_of_tables({table: stored.rows(table) for table in there})
    checks += _of_history(stored, history)
    if max_age_ms is not None:
        checks += _ages(stored, max_age_ms)
    return checks, problems


def _schema(stored: Stored) -> Check:
    if stored.schema < SCHEMA:
        detail = f"version {stored.schema}; the next run makes all tables of version {SCHEMA} anew"
        return Check(None, None, "schema", FAILED, 1, detail)
    return Check(None, None, "schema", OK, 0, f"version {SCHEMA}")


def _of_history(stored: Stored, history: Mapping[str, Rows]) -> list[Check]:
    """Checks that tables have the rows that follow from the history."""
    ends = [
        {"cluster": cluster, "log_partition": number, "made_to": end}
        for cluster, own in stored.made_to.items()
        for number, end in own.items()
    ]
    given = {**history, "ends": pa.Table.from_pylist(ends, _ENDS)}
    checks = []
    for table, query, what in (
        (CURRENT_OFFSETS, _LAST, "committed offsets"),
        (REJECTS, _REJECTED, "records that could not be decoded"),
    ):
        if stored.has(table):
            (row,) = made(_PAIR, query, {**given, table.name: stored.rows(table)}).read_all().to_pylist()
            wrong = abs(row["found"] - row["wanted"])
            detail = f"the history has {row['wanted']} {what}, the table {row['found']}"
            check = Check(None, table.name, "history", FAILED if wrong else OK, wrong, detail)
            checks.append(_unknown(check) if stored.is_aged else check)
    return checks


def _unknown(check: Check) -> Check:
    """Of a check that wants all of the history, where a lake has the older rows."""
    if check.check_name == "keys":
        return check
    return check._replace(result=UNKNOWN, found=0, detail="older rows of the history are in the lake only")


def _ages(stored: Stored, max_age_ms: int) -> Iterator[Check]:
    """Of each cluster that the last run was given; those that others write are not looked at."""
    given = {table.name: stored.rows(table) for table in (FRESHNESS, TOPICS)}
    measured = {row["cluster"]: row["found"] for row in made(_TIMES, _MEASURED, given).read_all().to_pylist()}
    if not measured:
        yield Check(None, FRESHNESS.name, "age", FAILED, 1, "no cluster has been measured")
    for cluster, found in sorted(measured.items()):
        if found is None:
            yield Check(cluster, FRESHNESS.name, "age", FAILED, 1, "no measurement is known")
            continue
        age_s = max(0, time.time_ns() // 1_000_000 - found) // 1000
        is_old = age_s * 1000 > max_age_ms
        yield Check(cluster, FRESHNESS.name, "age", FAILED if is_old else OK, int(is_old), f"measured {age_s} s ago")


def _compared(
    options: Options, stored: Stored, history: Mapping[str, Rows], offsets: Sequence[Offsets]
) -> tuple[dict[tuple[str | None, str], Check], list[str]]:
    """The checks of gaps of clusters whose logs could be read, and why others could not."""
    found = asyncio.run(plan(options))
    problems = [str(error) for error in found.failed.values()]
    problems += [f"cluster {name}: {each.unread}" for name, each in found.instants.items() if each.unread is not None]
    options = named(options, found.ranges)
    checks: dict[tuple[str | None, str], Check] = {}
    for ranges in by_cluster(found.ranges):
        name = ranges[0].name
        if name not in stored.next_offsets:
            problems.append(f"cluster {name}: it is not in the tables: name it as the run did, by NAME=HOST:PORT")
            continue
        try:
            check = _compared_with(ranges, options, stored, history, offsets)
            checks[name, check.check_name] = check
        except SourceError as error:
            problems.append(str(error))
    return checks, problems


def _compared_with(
    ranges: Sequence[Range], options: Options, stored: Stored, history: Mapping[str, Rows],
    offsets: Sequence[Offsets],
) -> Check:  # fmt: skip
    """Offsets without a row, beside what the log has: a record that the log has must be in the history."""
    name = ranges[0].name
    ends, taken = stored.next_offsets[name], stored.forgotten.get(name, {})
    read = [each._replace(end=min(each.end, ends.get(each.partition, 0))) for each in ranges]
    log = _log([each for each in read if each.size > 0], options)
    lost = made(_IN_LOG, _LOST, {**history, "log": log}, {"cluster": name}).read_all()
    if beyond := _beyond(lost, taken):
        partition, offset = min(beyond)
        detail = f"{len(beyond)} records of the log are not in the history, for one {partition}-{offset}"
        return Check(name, None, "gaps", FAILED, len(beyond), detail)
    own = {each.partition: each for each in offsets if each.cluster == name}
    missing = sum(ends[number] - each.first - each.different for number, each in own.items() if number in ends)
    starts = pa.Table.from_pylist([{"log_partition": each.partition, "start": each.start} for each in ranges], _STARTS)
    older = made(
        pa.schema([("log_partition", pa.int32()), ("rows", pa.int64())]), _OLDER, {**history, "starts": starts},
        {"cluster": name},
    ).read_all().to_pylist()  # fmt: skip
    rows = {row["log_partition"]: row["rows"] for row in older}
    before = sum(
        min(each.start, ends.get(each.partition, 0)) - own[each.partition].first - rows.get(each.partition, 0)
        for each in ranges
        if each.partition in own and each.start > own[each.partition].first
    )
    text = f"the log has {len(log)} records up to where the history goes, all are there"
    if len(lost):
        text += f" but {len(lost)} that were taken out by 'groupkeeper pipeline forget'"
    if before:
        return Check(name, None, "gaps", UNKNOWN, before, f"{text}; {before} offsets lie before the log's begin now")
    missing -= len(lost)
    explained = f"; {missing} offsets have none there either: compacted, or of aborted transactions" if missing else ""
    return Check(name, None, "gaps", OK, 0, f"{text}{explained}")


def _beyond(lost: pa.Table, taken: Mapping[int, tuple[int, int]]) -> list[tuple[int, int]]:
    """Places that rows which were taken out do not explain: of those the number is known, and up to where they were."""
    by_partition: dict[int, list[int]] = {}
    for row in lost.to_pylist():
        by_partition.setdefault(row["log_partition"], []).append(row["log_offset"])
    found: list[tuple[int, int]] = []
    for partition, own in by_partition.items():
        count, end = taken.get(partition, (0, 0))
        early = [offset for offset in own if offset < end]
        found += [(partition, offset) for offset in own if offset >= end or len(early) > count]
    return found


def _log(ranges: Sequence[Range], options: Options) -> pa.Table:
    """The places of the records that a reader of committed records sees, markers included."""
    parts = [_IN_LOG.empty_table()]
    for own in by_cluster(ranges):
        for fetched in fetch(own, options):
            records = records_seen(fetched.batches, fetched.sets)
            partitions = np.array([each.partition for each in fetched.ranges], np.int32)[records.set_index]
            columns = [pa.array(partitions), pa.array(np.asarray(records.offset, np.int64))]
            parts.append(pa.Table.from_arrays(columns, schema=_IN_LOG))
    return pa.concat_tables(parts)
