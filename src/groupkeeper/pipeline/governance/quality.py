"""Checks all rows of a directory of tables without Spark, and compares them with clusters' logs if these are named."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from groupkeeper.coroutines import result_of
from groupkeeper.pipeline import tables
from groupkeeper.pipeline.decode.records import records_seen
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.fetching import fetch
from groupkeeper.pipeline.kafka.options import ReadOptions
from groupkeeper.pipeline.kafka.planning import Range, by_cluster, named, plan
from groupkeeper.pipeline.present.quality import (
    FAILED,
    OK,
    UNKNOWN,
    Check,
    Offsets,
    checks_of_offsets,
    checks_of_tables,
    counts_of,
)
from groupkeeper.pipeline.relations import Array, Groups, is_known, keys, loaded, numbers, taken
from groupkeeper.pipeline.storage.ledger import SCHEMA
from groupkeeper.pipeline.storage.stored import Stored, steady
from groupkeeper.pipeline.transforms.history import next_offsets
from groupkeeper.pipeline.transforms.latest import last_commits, standing_offsets

_UNCHECKED = (tables.RATES, tables.QUALITY, tables.OFFSETS_AS_OF, tables.SCAN_TIME)
"""Tables that are not checked: a minute of RATES may have two rows; no table is built from the others."""

_ROWS = 1 << 20
"""How many rows of the history to read at a time."""

_Places = Mapping[tuple[str, int], Array]
"""The log offsets of all rows of the history, by cluster and log partition."""

_IN_LOG = pa.schema([("log_partition", pa.int32()), ("log_offset", pa.int64())])


def check_directory(
    directory: str, options: ReadOptions | None = None, *, max_age_ms: int | None = None
) -> tuple[list[Check], list[str]]:
    """The checks of all rows, and why clusters could not be compared. `options`: of clusters whose logs are read too;
    `max_age_ms`: how old the tables may be.

    Raises SourceError when there are no tables, or they cannot be read.
    """
    return steady(directory, lambda: _checked(directory, options, max_age_ms))


def _checked(directory: str, options: ReadOptions | None, max_age_ms: int | None) -> tuple[list[Check], list[str]]:
    stored = Stored(directory)
    if not stored.entry or not any(stored.has(table) for table in tables.TABLES if table not in _UNCHECKED):
        raise SourceError(f"{directory} has no tables: make them with 'groupkeeper pipeline snapshot'")
    checks = [_schema(stored)]
    if missing := stored.missing_files():
        return [*checks, Check(None, None, "files", FAILED, len(missing), f"not there: {missing[0]}")], []
    checks.append(Check(None, None, "files", OK, 0, "all files are there"))
    places = _places(stored)
    offsets = [
        Offsets(cluster, partition, len(own), len(np.unique(own)), int(own.min()))
        for (cluster, partition), own in places.items()
    ]
    taken = {name: sum(count for count, _ in own.values()) for name, own in stored.forgotten.items()}
    of_logs = checks_of_offsets(offsets, {}, stored.next_offsets, taken)
    problems: list[str] = []
    if options is not None:
        compared, problems = _compared(options, stored, places, offsets)
        of_logs = [compared.get((each.cluster, each.check_name), each) for each in of_logs]
    checks += of_logs
    there = [table for table in tables.TABLES if table not in (*tables.HISTORY, *_UNCHECKED) and stored.has(table)]
    rows = {table: stored.dataset(table) for table in there}
    checks += checks_of_tables([counts_of(rows)], rows)
    checks += _of_history(stored)
    if max_age_ms is not None:
        checks += _ages(stored, max_age_ms)
    return checks, problems


def _schema(stored: Stored) -> Check:
    if stored.schema < SCHEMA:
        detail = f"version {stored.schema}; the next run makes all tables of version {SCHEMA} anew"
        return Check(None, None, "schema", FAILED, 1, detail)
    return Check(None, None, "schema", OK, 0, f"version {SCHEMA}")


def _places(stored: Stored) -> _Places:
    found: dict[tuple[str, int], list[Array]] = {}
    for table in tables.HISTORY:
        for batch in stored.dataset(table).to_batches(columns=list(table.key), batch_size=_ROWS):
            rows = pa.Table.from_batches([batch])
            (key,) = keys(table.key[:2], rows)
            order = np.argsort(key, kind="stable")
            groups, offsets = Groups.sorted(key[order]), numbers(rows["log_offset"])[order]
            places = taken(rows, order[groups.starts]).to_pylist()
            for each, start, end in zip(places, groups.starts, groups.ends, strict=True):
                found.setdefault((each["cluster"], each["log_partition"]), []).append(offsets[start : end + 1])
    return {place: np.concatenate(own) for place, own in found.items()}


def _of_history(stored: Stored) -> list[Check]:
    """Checks that tables have the rows that follow from the history."""
    checks = []
    for table, count, what in (
        (tables.CURRENT_OFFSETS, _standing, "committed offsets"),
        (tables.REJECTS, _rejected, "records that could not be decoded"),
    ):
        if stored.has(table):
            wanted, found = count(stored)
            wrong = abs(found - wanted)
            detail = f"the history has {wanted} {what}, the table {found}"
            check = Check(None, table.name, "history", FAILED if wrong else OK, wrong, detail)
            checks.append(check)
    return checks


def _standing(stored: Stored) -> tuple[int, int]:
    """The number of committed offsets that follow from the history, and the number in the table."""
    last = tables.COMMITS.arrow.empty_table()
    for rows in _processed(stored, tables.COMMITS):
        last = last_commits(rows, last)
    # Offsets of Spark's queries have no log partition.
    found = loaded(stored.dataset(tables.CURRENT_OFFSETS), ("log_partition",))["log_partition"]
    return len(standing_offsets(last, tables.CURRENT_OFFSETS.arrow.empty_table())), int(is_known(found).sum())


def _rejected(stored: Stored) -> tuple[int, int]:
    wanted = sum(int(is_known(rows["problem"]).sum()) for rows in _processed(stored, tables.GROUP_RECORDS))
    return wanted, int(stored.dataset(tables.REJECTS).count_rows())


def _processed(stored: Stored, table: tables.Table) -> Iterator[pa.Table]:
    """The rows of the history from which the other tables were built."""
    for rows in _in_parts(stored.dataset(table).to_batches(batch_size=_ROWS)):
        yield rows.filter(pa.array(numbers(rows["log_offset"]) < next_offsets(rows, stored.made_to, 0)))


def _in_parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Joins the batches, which may be as small as the files, to fewer tables."""
    some: list[pa.RecordBatch] = []
    for batch in batches:
        some.append(batch)
        if sum(map(len, some)) >= _ROWS:
            yield pa.Table.from_batches(some)
            some = []
    if some:
        yield pa.Table.from_batches(some)


def _ages(stored: Stored, max_age_ms: int) -> Iterator[Check]:
    """Checks the age of the tables for each cluster of the last run; other clusters are left out."""
    parts = [loaded(stored.dataset(table), ("cluster", "measured_time")) for table in (tables.FRESHNESS, tables.TOPICS)]
    latest = pa.concat_tables(parts).group_by("cluster").aggregate([("measured_time", "max")])
    times = dict(zip(latest["cluster"].to_pylist(), latest["measured_time_max"].to_pylist(), strict=True))
    measured = {name: times[name] for name in parts[0]["cluster"].unique().to_pylist()}
    if not measured:
        yield Check(None, tables.FRESHNESS.name, "age", FAILED, 1, "no cluster has been measured")
    for cluster, found in sorted(measured.items()):
        if found is None:
            yield Check(cluster, tables.FRESHNESS.name, "age", FAILED, 1, "no measurement is known")
            continue
        age_s = max(0, int(time.time() - found.timestamp()))
        is_old = age_s * 1000 > max_age_ms
        yield Check(
            cluster, tables.FRESHNESS.name, "age", FAILED if is_old else OK, int(is_old), f"measured {age_s} s ago"
        )


def _compared(
    options: ReadOptions, stored: Stored, places: _Places, offsets: Sequence[Offsets]
) -> tuple[dict[tuple[str | None, str], Check], list[str]]:
    """The checks of gaps of clusters whose logs could be read, and why others could not."""
    found = result_of(plan(options))
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
            check = _compared_with(ranges, options, stored, places, offsets)
            checks[name, check.check_name] = check
        except SourceError as error:
            problems.append(str(error))
    return checks, problems


def _compared_with(
    ranges: Sequence[Range], options: ReadOptions, stored: Stored, places: _Places, offsets: Sequence[Offsets]
) -> Check:
    """Compares the history with the log: every record of the log must have a row."""
    name = ranges[0].name
    ends, taken = stored.next_offsets[name], stored.forgotten.get(name, {})
    read = [each._replace(end=min(each.end, ends.get(each.partition, 0))) for each in ranges]
    log = _log([each for each in read if each.size > 0], options)
    there = {each.partition: places.get((name, each.partition), np.array([], np.int64)) for each in ranges}
    lost = _without(log, there)
    if beyond := _beyond(lost, taken):
        partition, offset = min(beyond)
        detail = f"{len(beyond)} records of the log are not in the history, for one {partition}-{offset}"
        return Check(name, None, "gaps", FAILED, len(beyond), detail)
    own = {each.partition: each for each in offsets if each.cluster == name}
    missing = sum(ends[number] - each.first - each.different for number, each in own.items() if number in ends)
    rows = {each.partition: len(np.unique(own[own < each.start]))
            for each in ranges for own in (there[each.partition],)}  # fmt: skip
    before = sum(
        min(each.start, ends.get(each.partition, 0)) - own[each.partition].first - rows.get(each.partition, 0)
        for each in ranges
        if each.partition in own and each.start > own[each.partition].first
    )
    text = f"all {len(log)} records of the log up to the end of the history are in the tables"
    if len(lost):
        text += f" but {len(lost)} that 'groupkeeper pipeline forget' removed"
    if before:
        return Check(name, None, "gaps", UNKNOWN, before, f"{text}; {before} offsets lie before the log's begin now")
    missing -= len(lost)
    explained = f"; {missing} offsets have no record in the log: compacted or aborted" if missing else ""
    return Check(name, None, "gaps", OK, 0, f"{text}{explained}")


def _without(log: pa.Table, places: Mapping[int, Array]) -> pa.Table:
    """The records of the log without a row; `places` has the offsets of the rows by log partition."""
    partitions, offsets = numbers(log["log_partition"]), numbers(log["log_offset"])
    is_lost = np.zeros(len(log), bool)
    for number in np.unique(partitions).tolist():
        own = partitions == number
        is_lost[own] = ~np.isin(offsets[own], places[number])
    return log.filter(pa.array(is_lost))


def _beyond(lost: pa.Table, taken: Mapping[int, tuple[int, int]]) -> list[tuple[int, int]]:
    """The lost records that `forget` doesn't explain. `taken`: how many it removed, before which offset, by
    partition.
    """
    by_partition: dict[int, list[int]] = {}
    for row in lost.to_pylist():
        by_partition.setdefault(row["log_partition"], []).append(row["log_offset"])
    found: list[tuple[int, int]] = []
    for partition, own in by_partition.items():
        count, end = taken.get(partition, (0, 0))
        early = [offset for offset in own if offset < end]
        found += [(partition, offset) for offset in own if offset >= end or len(early) > count]
    return found


def _log(ranges: Sequence[Range], options: ReadOptions) -> pa.Table:
    """The places of the records that a reader of committed records sees, markers included. Raises SourceError."""
    parts = [_IN_LOG.empty_table()]
    for own in by_cluster(ranges):
        for fetched in fetch(own, options):
            with fetched.naming():
                records = records_seen(fetched.batches, fetched.sets)
            partitions = np.array([each.partition for each in fetched.ranges], np.int32)[records.set_index]
            columns = [pa.array(partitions), pa.array(np.asarray(records.offset, np.int64))]
            parts.append(pa.Table.from_arrays(columns, schema=_IN_LOG))
    return pa.concat_tables(parts)
