"""The tables to which rows are only appended: the records of the log, kept for longer than in the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupkeeper.pipeline.decode.history import commits, group_records
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.shares import ROWS_PER_SHARE, Built, Wanted, build
from groupkeeper.pipeline.kafka.instants import ClusterIdentity
from groupkeeper.pipeline.kafka.options import ReadOptions
from groupkeeper.pipeline.kafka.planning import RECORDS_PER_TASK, Range, pack
from groupkeeper.pipeline.kafka.retention import Retentions
from groupkeeper.pipeline.kafka.source import read_ranges, write_ranges
from groupkeeper.pipeline.kafka.written import Counts, Written
from groupkeeper.pipeline.relations import Rows, loaded, together
from groupkeeper.pipeline.runtime.executors import described, run_tasks
from groupkeeper.pipeline.storage.ledger import NextOffsets
from groupkeeper.pipeline.storage.output import Input, Output, Staged
from groupkeeper.pipeline.tables import COMMITS, DECODED, GROUP_RECORDS, Table
from groupkeeper.pipeline.tables.state import LAST_COMMITS, LAST_RECORDS
from groupkeeper.pipeline.transforms.history import IS_COMMIT, commits_in, is_from
from groupkeeper.pipeline.transforms.tombstones import causes
from groupkeeper.rules.words import counted

_HISTORY = (COMMITS, GROUP_RECORDS)

_DECODED, _NEW, _COMMITS, _RECORDS = "decoded", "commits", "last commits", "last records"
"""The inputs of the job that makes what is not a plain commit."""


class Appended(NamedTuple):
    """New rows by table, and how many records among them could not be decoded."""

    rows: Mapping[str, int]
    problems: int

    @property
    def note(self) -> str | None:
        """A note about problems; None: none."""
        text = f"{counted(self.problems, 'record')} could not be decoded: the table rejects has the reasons"
        return text if self.problems else None


class Aside(NamedTuple):
    """The files that tasks have written to a staging directory, as Output names it."""

    directory: str
    written: Written

    def staged(self, table: Table, names: Sequence[str]) -> Staged:
        return Staged(table, self.directory, [f"{self.directory}/{name}" for name in names])


def read_aside(output: Output, ranges: Sequence[Range], options: ReadOptions) -> Aside:
    """Tasks read the ranges of the log, and write their rows to the directory, which is on this machine."""
    tasks = _packed(ranges, options)
    directory, folder = output.folder_aside(DECODED)
    work = partial(write_ranges, tasks, options, folder)
    return Aside(directory, Written.together(run_tasks(output.spark, "reading the offsets topics", len(tasks), work)))


def read_rows(spark: SparkSession, ranges: Sequence[Range], options: ReadOptions) -> DataFrame:
    """The same rows where only Spark writes: tasks read them when they are asked for."""
    tasks = _packed(ranges, options)

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_ranges(tasks[number], options)

    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(rows, DECODED.ddl)


def _packed(ranges: Sequence[Range], options: ReadOptions) -> list[list[Range]]:
    return pack(ranges, options._replace(max_records_per_task=options.max_records_per_task or RECORDS_PER_TASK))


class _New(NamedTuple):
    """Rows that the tables don't have yet. `commits` has no tombstones; these are in `rest`, rows of tables.DECODED."""

    commits: Staged
    rest: Input
    counts: Counts
    ends: NextOffsets
    used: Staged


def append(
    output: Output,
    decoded: DataFrame | Aside,
    retentions: Retentions,
    read_to: NextOffsets | None = None,
    identities: Mapping[str, ClusterIdentity] = MappingProxyType({}),
) -> Appended:
    """Append the rows of tables.DECODED that are not in the tables yet. All partitions were read up to `read_to`; None:
    up to the last row. `identities`: the identities of the rows' clusters. Calling it twice, or with rows of several
    runs, changes nothing.
    """
    with output.lock, described(output.spark, f"{COMMITS.name}, {GROUP_RECORDS.name}: new records"):
        known = output.ledger.next_offsets
        new = _of_tasks(output, decoded, known) if isinstance(decoded, Aside) else _of_frame(output, decoded, known)
        staged = [new.commits] if new.commits.files else []
        try:
            staged += _rest(output, new, retentions)
            for table in _HISTORY:
                if not output.ledger.files(table.name) and all(each.table is not table for each in staged):
                    staged.append(_empty(output, table))
            _check_count(output, staged, new.counts)
        except BaseException:
            output.discard([new.commits, new.used, *staged])
            raise
        reached = new.ends if read_to is None else read_to
        if staged or _is_further(reached, known):
            files = {table.name: [file for each in staged if each.table is table for file in each.files]
                     for table in _HISTORY}  # fmt: skip
            output.ledger.append({name: own for name, own in files.items() if own}, reached, identities)
        output.discard([new.commits, new.used, *staged])  # `follow` may run for months
    return Appended({COMMITS.name: new.counts.commits, GROUP_RECORDS.name: new.counts.others}, new.counts.problems)


def _check_count(output: Output, staged: Iterable[Staged], counts: Counts) -> None:
    """Raises SourceError unless a row was written for each record. Only checked on this machine: elsewhere, counting
    would cost a job.
    """
    records = counts.commits + counts.others
    written = sum(map(output.count_staged, staged)) if output.is_here else records
    if written != records:
        of, rows = counted(records, "record"), counted(written, "row")
        raise SourceError(f"of {of} {rows} would be written: nothing is appended: run again, or report a defect")


def _empty(output: Output, table: Table) -> Staged:
    """Writes a file without rows, so that the table exists for readers that do not use the ledger."""
    return output.stage(table.arrow.empty_table(), table)


def _of_tasks(output: Output, aside: Aside, known: NextOffsets) -> _New:
    written = aside.written
    staged, others = aside.staged(COMMITS, written.commits), aside.staged(DECODED, written.rest)
    if not written.repeats(known):
        return _New(staged, Input(DECODED, others.files), written.counts, written.ends, others)
    commits = output.stage(output.frame(staged).where(is_from(known)), COMMITS)
    rest = output.frame(others).where(is_from(known))
    counts = _counted(rest)[0].plus(Counts(commits=output.count_staged(commits)))
    return _New(commits, Input(DECODED, frame=rest), counts, written.ends, others)


def _of_frame(output: Output, decoded: DataFrame, known: NextOffsets) -> _New:
    """For sources whose tasks cannot write by themselves: Spark stages the rows, which are then written again."""
    staged = output.stage(decoded.where(is_from(known)), DECODED)
    whole = output.frame(staged)
    counts, ends = _counted(whole)
    kept = output.stage(commits_in(whole.where("NOT is_tombstone")), COMMITS)
    rest = whole.where(f"is_tombstone OR NOT ({IS_COMMIT})")
    return _New(kept, Input(DECODED, frame=rest), counts, ends, staged)


def _rest(output: Output, new: _New, retentions: Retentions) -> list[Staged]:
    """The new tombstones, and the new rows of GROUP_RECORDS. Why offsets were removed follows from earlier rows, and
    from group records that came with the tombstones.
    """
    inputs, rows = {_DECODED: new.rest}, sum(new.counts)
    wanted = [Wanted(GROUP_RECORDS)] if new.counts.others else []
    if new.counts.tombstones:
        wanted.append(Wanted(COMMITS))
        inputs[_NEW] = Input(COMMITS, new.commits.files)
        inputs |= {_COMMITS: output.with_carried(COMMITS, LAST_COMMITS),
                   _RECORDS: output.with_carried(GROUP_RECORDS, LAST_RECORDS)}  # fmt: skip
        rows += sum(map(output.count_input, (inputs[_COMMITS], inputs[_RECORDS]))) if output.is_here else 0
    if not wanted:
        return []
    work = partial(_built, [each.table.name for each in wanted], retentions)
    shares = 1 + rows // ROWS_PER_SHARE
    found = build(
        output, "records of groups, and tombstones", work, inputs, wanted, shares, is_exchanged=shares > 1
    ).values()  # fmt: skip
    staged = [each for each in found if isinstance(each, Staged)]
    for each in found:
        if isinstance(each, Exception):
            output.discard(staged)
            raise each
    return staged


def _built(names: Sequence[str], retentions: Retentions, _: int, rows: Mapping[str, Rows]) -> Built:
    """The rows of these tables for a share of the groups (shares.Build)."""
    decoded = loaded(rows[_DECODED])
    others = group_records(decoded)
    if GROUP_RECORDS.name in names:
        yield GROUP_RECORDS.name, others
    if COMMITS.name in names:
        whole = together(loaded(rows[_NEW]), commits(decoded))
        yield COMMITS.name, causes(whole, loaded(rows[_COMMITS]), others, loaded(rows[_RECORDS]), retentions)


def _counted(decoded: DataFrame) -> tuple[Counts, NextOffsets]:
    is_one = F.expr(IS_COMMIT)
    rows = (
        decoded.groupBy("cluster", "log_partition")
        .agg(
            F.max("log_offset").alias("last"),
            F.count_if(is_one).alias("commits"),
            F.count_if(is_one & F.col("is_tombstone")).alias("tombstones"),
            F.count_if(~is_one).alias("others"),
            F.count("problem").alias("problems"),
        )
        .collect()
    )
    counts, ends = Counts(), dict[str, dict[int, int]]()
    for row in rows:
        ends.setdefault(row.cluster, {})[row.log_partition] = row.last + 1
        counts = counts.plus(Counts(row.commits, row.tombstones, row.others, row.problems))
    return counts, ends


def _is_further(reached: NextOffsets, known: NextOffsets) -> bool:
    return any(
        offset > known.get(name, {}).get(partition, 0)
        for name, offsets in reached.items()
        for partition, offset in offsets.items()
    )
