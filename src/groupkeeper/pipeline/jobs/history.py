"""The tables to which rows are only appended: the records of the log, kept for longer than in the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.instants import Identity
from groupkeeper.pipeline.kafka.options import Options
from groupkeeper.pipeline.kafka.planning import RECORDS_PER_TASK, RECORDS_WORTH_A_TASK, Range, pack
from groupkeeper.pipeline.kafka.retention import Retentions
from groupkeeper.pipeline.kafka.source import write_ranges
from groupkeeper.pipeline.kafka.written import Counts, Written
from groupkeeper.pipeline.present.sql import of_rows, together
from groupkeeper.pipeline.runtime.executors import described
from groupkeeper.pipeline.runtime.tasks import run_tasks
from groupkeeper.pipeline.storage.ledger import NextOffsets
from groupkeeper.pipeline.storage.output import Output, Staged, rows_in
from groupkeeper.pipeline.storage.part_files import PartFiles, write
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

__all__ = ["LITTLE", "Appended", "Aside", "append", "read_aside"]

_HISTORY = {table.name: table for table in (COMMITS, GROUP_RECORDS)}

LITTLE = 1_000_000
"""The most new rows of history that a task takes; more are left to Spark's SQL."""


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


def read_aside(spark: SparkSession, ranges: Iterable[Range], options: Options, directory: str, folder: Path) -> Aside:
    """Tasks read the ranges of the log, and write their rows to `folder`, which Output calls `directory`."""
    tasks = pack(list(ranges), options._replace(max_records_per_task=options.max_records_per_task or RECORDS_PER_TASK))
    work = partial(write_ranges, tasks, options, folder)
    return Aside(directory, Written.together(run_tasks(spark, "reading the offsets topics", len(tasks), work)))


class _New(NamedTuple):
    """Rows that the tables don't have yet. `commits` has no tombstones; these are in `rest`. `near` is `rest` if it is
    small: its file, for a task.
    """

    commits: Staged
    rest: DataFrame
    counts: Counts
    ends: NextOffsets
    used: list[Staged]
    near: Staged | None = None


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
        staged = [new.commits] if new.commits.files else []
        try:
            staged += _rest(output, new, retentions)
            for table in _HISTORY.values():
                if not output.ledger.files(table.name) and all(each.table is not table for each in staged):
                    staged.append(_empty(output, table))
            _check_count(output, staged, new.counts)
        except BaseException:
            output.discard([new.commits, *new.used, *staged])
            raise
        reached = new.ends if read_to is None else read_to
        if staged or _is_further(reached, known):
            files = {table.name: [file for each in staged if each.table is table for file in each.files]
                     for table in _HISTORY.values()}  # fmt: skip
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
        is_near = written.counts.others < RECORDS_WORTH_A_TASK
        return _New(staged, rest, written.counts, written.ends, [others], others if is_near else None)
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


def _rest(output: Output, new: _New, retentions: Retentions) -> list[Staged]:
    """The new tombstones, and the new rows of GROUP_RECORDS. Why offsets were removed follows from earlier rows, and
    from group records that came with the tombstones.
    """
    counts, kept = new.counts, kept_for(retentions)
    if not counts.tombstones and not counts.others:
        return []
    past = {
        LAST_COMMITS: output.few_with_carried(COMMITS, LAST_COMMITS, LITTLE),
        LAST_RECORDS: output.few_with_carried(GROUP_RECORDS, LAST_RECORDS, LITTLE),
    }
    known = {table: files for table, files in past.items() if files is not None}
    if new.near is not None and counts.commits <= LITTLE and len(known) == len(past):
        paths = {table: output.folder_aside(table) for table in _HISTORY.values()}
        folders = {table: folder for table, (_, folder) in paths.items()}
        rest = Rest(output.folder, new.near.files, new.commits.files, known, kept, folders, bool(counts.tombstones))
        try:
            found = run_tasks(output.spark, "records of groups, and tombstones", 1, partial(write_rest, rest))
        except BaseException:
            output.discard(Staged(table, path, []) for table, (path, _) in paths.items())
            raise
        return [output.of_tasks(_HISTORY[name], paths[_HISTORY[name]][0], [files]) for name, files in found]
    staged = []
    if counts.tombstones:
        frames = {
            "commits": output.frame(new.commits).unionByName(commits(new.rest)),
            "group_records": group_records(new.rest),
            "last_commits": output.with_carried(COMMITS, LAST_COMMITS),
            "last_records": output.with_carried(GROUP_RECORDS, LAST_RECORDS),
        }
        if len(kept):
            frames["kept_for"] = output.spark.createDataFrame(kept)
        causes = of_frames(CAUSES_OF, output.spark, frames).select(*COMMITS.names)
        staged.append(output.stage(causes, COMMITS))
    if counts.others:
        staged.append(output.stage(group_records(new.rest), GROUP_RECORDS))
    return staged


class Rest(NamedTuple):
    """What a task makes of new records that aren't plain commits. Files are below `folder`."""

    folder: Path
    records: Sequence[str]
    commits: Sequence[str]
    past: Mapping[Table, Sequence[str]]
    kept_for: pa.Table
    folders: Mapping[Table, Path]
    has_tombstones: bool


def write_rest(rest: Rest, _: int) -> list[tuple[str, PartFiles]]:
    """The task: the files of tables, by their names."""
    decoded = rows_in(rest.folder, DECODED, rest.records)
    others = of_rows(GROUP_RECORDS_OF, {"decoded": decoded}).read_all()
    found = []
    if len(others):
        found.append((GROUP_RECORDS.name, write(rest.folders[GROUP_RECORDS], others.to_reader())))
    if rest.has_tombstones:
        gone = of_rows(COMMITS_OF, {"decoded": decoded}).read_all()
        given = {
            "commits": together(rows_in(rest.folder, COMMITS, rest.commits), gone), "group_records": others,
            "kept_for": rest.kept_for, "last_commits": rows_in(rest.folder, COMMITS, rest.past[LAST_COMMITS]),
            "last_records": rows_in(rest.folder, GROUP_RECORDS, rest.past[LAST_RECORDS]),
        }  # fmt: skip
        found.append((COMMITS.name, write(rest.folders[COMMITS], of_rows(CAUSES_OF, given))))
    return found


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
