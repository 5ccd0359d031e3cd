"""The tables to which rows are only appended: the records of the log, kept for longer than in the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.instants import Identity
from groupkeeper.pipeline.kafka.planning import RECORDS_WORTH_A_TASK
from groupkeeper.pipeline.kafka.retention import Retentions
from groupkeeper.pipeline.kafka.written import Counts, Written
from groupkeeper.pipeline.present.sql import Rows, of_rows, together
from groupkeeper.pipeline.runtime.executors import described
from groupkeeper.pipeline.storage.ledger import NextOffsets
from groupkeeper.pipeline.storage.output import Output, Staged
from groupkeeper.pipeline.tables import COMMITS, DECODED, GROUP_RECORDS, Table
from groupkeeper.pipeline.tables.state import LAST_COMMITS, LAST_RECORDS
from groupkeeper.pipeline.transforms.history import (
    COMMITS_OF,
    GROUP_RECORDS_OF,
    IS_COMMIT,
    commits,
    group_records,
    is_from,
)
from groupkeeper.pipeline.transforms.query import of_frames
from groupkeeper.pipeline.transforms.tombstones import CAUSES_OF, kept_for
from groupkeeper.rules.words import counted

__all__ = ["LITTLE", "Appended", "Aside", "append", "written_by"]

LITTLE = 1_000_000
"""The most rows of history that this process takes; more are left to Spark."""


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


def written_by(tasks: DataFrame, directory: str) -> Aside:
    """Let tasks of a source with `historyFolder` write their rows, once."""
    with described(tasks.sparkSession, "reading the offsets topics"):
        return Aside(directory, Written.together(row.written for row in tasks.collect()))


class _New(NamedTuple):
    """Rows that the tables don't have yet. `commits` has no tombstones; these are in `rest`. `near` is `rest` if it is
    small and in this process.
    """

    commits: Staged
    rest: DataFrame
    counts: Counts
    ends: NextOffsets
    used: list[Staged]
    near: Rows | None = None


def append(
    output: Output,
    decoded: DataFrame | Aside,
    retentions: Retentions,
    read_to: NextOffsets | None = None,
    identities: Mapping[str, Identity] = MappingProxyType({}),
) -> Appended:
    """Append the rows of tables.DECODED that are not in the tables yet. All partitions were read up to `read_to`; None:
    up to the last row. `identities`: the identities of the rows' clusters. Calling it twice, or with rows of several
    runs, changes nothing.
    """
    with output.lock, described(output.spark, f"{COMMITS.name}, {GROUP_RECORDS.name}: new records"):
        known = output.ledger.next_offsets
        new = _of_tasks(output, decoded, known) if isinstance(decoded, Aside) else _of_frame(output, decoded, known)
        others = _group_records(new)
        staged: list[Staged] = []
        if new.counts.commits or not output.ledger.files(COMMITS.name):
            staged += [new.commits] if new.commits.files else []
            if new.counts.tombstones:
                staged.append(output.stage(_tombstones(output, new, others, retentions), COMMITS))
            staged += [] if staged else [_empty(output, COMMITS)]
        if new.counts.others:
            staged.append(output.stage(others.to_reader() if isinstance(others, pa.Table) else others, GROUP_RECORDS))
        elif not output.ledger.files(GROUP_RECORDS.name):
            staged.append(_empty(output, GROUP_RECORDS))
        _check_count(output, staged, new.counts)
        reached = new.ends if read_to is None else read_to
        if staged or _is_further(reached, known):
            files = {table.name: [file for each in staged if each.table is table for file in each.files]
                     for table in (COMMITS, GROUP_RECORDS)}  # fmt: skip
            output.ledger.append({name: own for name, own in files.items() if own}, reached, identities)
        output.discard([new.commits, *new.used, *staged])  # `follow` may run for months
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
    return output.stage(table.arrow.empty_table().to_reader(), table)


def _of_tasks(output: Output, aside: Aside, known: NextOffsets) -> _New:
    written = aside.written
    staged, others = aside.staged(COMMITS, written.commits), aside.staged(DECODED, written.rest)
    rest = output.frame(others)
    if not written.repeats(known):
        is_near = output.takes_little and written.counts.others < RECORDS_WORTH_A_TASK
        near = output.rows(others) if is_near else None
        return _New(staged, rest, written.counts, written.ends, [others], near)
    commits = output.stage(output.frame(staged).where(is_from(known)), COMMITS)
    rest = rest.where(is_from(known))
    counts = _counted(rest)[0].plus(Counts(commits=output.count_staged(commits)))
    return _New(commits, rest, counts, written.ends, [others])


def _of_frame(output: Output, decoded: DataFrame, known: NextOffsets) -> _New:
    """For sources whose tasks cannot write by themselves: Spark stages the rows, which are then written again."""
    staged = output.stage(decoded.where(is_from(known)), DECODED)
    whole = output.frame(staged)
    counts, ends = _counted(whole)
    kept = output.stage(commits(whole.where("NOT is_tombstone")), COMMITS)
    return _New(kept, whole.where(f"is_tombstone OR NOT ({IS_COMMIT})"), counts, ends, [staged])


def _group_records(new: _New) -> DataFrame | pa.Table:
    """The new rows of tables.GROUP_RECORDS, computed in this process if they are near."""
    if new.near is None:
        return group_records(new.rest)
    if not new.counts.others:
        return GROUP_RECORDS.arrow.empty_table()
    return of_rows(GROUP_RECORDS_OF, {"decoded": new.near}).read_all()


def _tombstones(
    output: Output, new: _New, others: DataFrame | pa.Table, retentions: Retentions
) -> DataFrame | pa.RecordBatchReader:
    """The new tombstones. Why offsets were removed follows from earlier rows, and from the `others` that came with the
    tombstones. Computed in this process if there are few rows.
    """
    kept = kept_for(retentions)
    if new.near is not None and new.counts.commits <= LITTLE:
        past = {
            "last_commits": output.few_with_carried(COMMITS, LAST_COMMITS, LITTLE),
            "last_records": output.few_with_carried(GROUP_RECORDS, LAST_RECORDS, LITTLE),
        }
        known = {name: rows for name, rows in past.items() if rows is not None}
        if len(known) == len(past):
            gone = of_rows(COMMITS_OF, {"decoded": new.near}).read_all()
            return of_rows(CAUSES_OF, {
                "commits": together(output.rows(new.commits), gone), "group_records": others, "kept_for": kept, **known
            })  # fmt: skip
    frames = {
        "commits": output.frame(new.commits).unionByName(commits(new.rest)),
        "group_records": group_records(new.rest),
        "last_commits": output.with_carried(COMMITS, LAST_COMMITS),
        "last_records": output.with_carried(GROUP_RECORDS, LAST_RECORDS),
    }
    if len(kept):
        frames["kept_for"] = output.spark.createDataFrame(kept)
    return of_frames(CAUSES_OF, output.spark, frames).select(*COMMITS.names)


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
