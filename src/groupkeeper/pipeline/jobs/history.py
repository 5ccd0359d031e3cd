"""The tables to which rows are only appended: the records of the log, kept for longer than in the log."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa

from groupkeeper.pipeline.decode.history import commits, group_records
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.shares import ROWS_PER_SHARE, Built, TableToBuild, build
from groupkeeper.pipeline.kafka.instants import ClusterIdentity
from groupkeeper.pipeline.kafka.options import ReadOptions
from groupkeeper.pipeline.kafka.planning import RECORDS_PER_TASK, Range, pack
from groupkeeper.pipeline.kafka.retention import Retentions
from groupkeeper.pipeline.kafka.source import read_ranges
from groupkeeper.pipeline.kafka.written import Counts, Written, write
from groupkeeper.pipeline.relations import Rows, loaded, together
from groupkeeper.pipeline.runtime.executors import described
from groupkeeper.pipeline.storage.contents import CONTENTS, rows_of
from groupkeeper.pipeline.storage.ledger import NextOffsets, is_beyond
from groupkeeper.pipeline.storage.output import Input, Output, Staged
from groupkeeper.pipeline.tables import COMMITS, DECODED, GROUP_RECORDS, HISTORY, Table
from groupkeeper.pipeline.tables.state import LAST_COMMITS, LAST_RECORDS
from groupkeeper.pipeline.transforms.tombstones import causes
from groupkeeper.rules.words import counted

_DECODED, _NEW, _COMMITS, _RECORDS = "decoded", "commits", "last commits", "last records"
"""The names of the inputs of the job that makes tombstones and group records."""


class Appended(NamedTuple):
    """The number of new rows by table, and how many of the records could not be decoded."""

    rows: Mapping[str, int]
    problems: int

    @property
    def note(self) -> str | None:
        """A note about problems; None: none."""
        text = f"{counted(self.problems, 'record')} could not be decoded: the table rejects has the reasons"
        return text if self.problems else None


class StagedRows(NamedTuple):
    """Rows that tasks have read and written to a staging directory, as Output names it."""

    directory: str
    written: Written

    def staged(self, table: Table, names: Sequence[str]) -> Staged:
        return Staged(table, self.directory, [f"{self.directory}/{name}" for name in names])


def read_aside(output: Output, ranges: Sequence[Range], options: ReadOptions) -> StagedRows:
    """Has tasks read the ranges of the log; they, or Spark for them, write files to a staging directory."""
    tasks = pack(ranges, options._replace(max_records_per_task=options.max_records_per_task or RECORDS_PER_TASK))
    directory = output.aside(DECODED)
    if not tasks:
        return StagedRows(directory, Written())
    read = partial(_read, tasks, options, output.here(directory))
    made = output.spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, CONTENTS)
    with described(output.spark, "reading the offsets topics"):
        return StagedRows(directory, Written.together(map(pickle.loads, output.made_aside(made, directory))))


def _read(
    tasks: Sequence[Sequence[Range]], options: ReadOptions, folder: Path | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            written, files = write(read_ranges(tasks[number], options), folder)
            yield rows_of(files, pickle.dumps(written))


def append(
    output: Output,
    aside: StagedRows,
    retentions: Retentions,
    read_to: NextOffsets | None = None,
    identities: Mapping[str, ClusterIdentity] = MappingProxyType({}),
) -> Appended:
    """Appends the rows that tasks have read. `read_to`: by partition, the first unread offset; None: the end of the
    rows. `identities`: those of the rows' clusters. Raises SourceError if the tables have some of the rows already.
    """
    with output.lock, described(output.spark, f"{COMMITS.name}, {GROUP_RECORDS.name}: new records"):
        written, known = aside.written, output.ledger.next_offsets
        if written.repeats(known):
            raise SourceError("records that the tables have were read again: nothing is appended: report a defect")
        plain, rest = aside.staged(COMMITS, written.commits), aside.staged(DECODED, written.rest)
        staged = [plain] if plain.files else []
        try:
            staged += _made_of_rest(output, plain, rest, written.counts, retentions)
            for table in HISTORY:
                if not output.ledger.files(table.name) and all(each.table is not table for each in staged):
                    # A file without rows, so that the table exists for readers that do not use the ledger.
                    staged.append(output.stage(table.arrow.empty_table(), table))
            _check_count(output, staged, written.counts)
        except BaseException:
            output.discard([plain, rest, *staged])
            raise
        reached = written.ends if read_to is None else read_to
        if staged or is_beyond(reached, known):
            files = {table.name: [file for each in staged if each.table is table for file in each.files]
                     for table in HISTORY}  # fmt: skip
            output.ledger.append({name: own for name, own in files.items() if own}, reached, identities)
        output.discard([plain, rest, *staged])  # `follow` may run for months
    return Appended(
        {COMMITS.name: written.counts.commits, GROUP_RECORDS.name: written.counts.others}, written.counts.problems
    )


def _check_count(output: Output, staged: Iterable[Staged], counts: Counts) -> None:
    """Raises SourceError unless a row was written for each record. Only checked on this machine: elsewhere, counting
    would take requests.
    """
    records = counts.commits + counts.others
    written = records if output.folder is None else sum(map(output.count_of, staged))
    if written != records:
        of, rows = counted(records, "record"), counted(written, "row")
        raise SourceError(f"of {of} {rows} would be written: nothing is appended: run again, or report a defect")


def _made_of_rest(
    output: Output, new_commits: Staged, rest: Staged, counts: Counts, retentions: Retentions
) -> list[Staged]:
    """Makes tombstones and GROUP_RECORDS from the rows of DECODED in `rest`. Why an offset was removed follows from
    earlier rows, new commits, and group records beside the tombstones.
    """
    inputs, rows = {_DECODED: Input(DECODED, rest.files)}, sum(counts)
    wanted = [TableToBuild(GROUP_RECORDS)] if counts.others else []
    if counts.tombstones:
        wanted.append(TableToBuild(COMMITS))
        inputs[_NEW] = Input(COMMITS, new_commits.files)
        earlier = {_COMMITS: output.with_carried(COMMITS, LAST_COMMITS),
                   _RECORDS: output.with_carried(GROUP_RECORDS, LAST_RECORDS)}  # fmt: skip
        inputs |= earlier
        rows += 0 if output.folder is None else sum(map(output.count_of, earlier.values()))
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
