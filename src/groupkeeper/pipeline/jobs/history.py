"""The tables that are only ever appended to: the records of the log, kept for longer than in the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.instants import Identity
from groupkeeper.pipeline.kafka.retention import Retentions
from groupkeeper.pipeline.report.words import counted
from groupkeeper.pipeline.storage.ledger import NextOffsets
from groupkeeper.pipeline.storage.output import Output, Staged
from groupkeeper.pipeline.tables import COMMITS, DECODED, GROUP_RECORDS
from groupkeeper.pipeline.tables.state import LAST_COMMITS, LAST_RECORDS
from groupkeeper.pipeline.transforms.history import IS_COMMIT, commits, group_records, is_from
from groupkeeper.pipeline.transforms.tombstones import with_causes

__all__ = ["Appended", "append"]


class Appended(NamedTuple):
    """New rows by table, and how many records among them could not be decoded."""

    rows: Mapping[str, int]
    problems: int

    @property
    def note(self) -> str | None:
        """A note about problems; None: none."""
        text = f"{counted(self.problems, 'record')} could not be decoded: the table rejects has the reasons"
        return text if self.problems else None


class _Counts(NamedTuple):
    commits: int
    others: int
    tombstones: int
    problems: int


def append(
    output: Output,
    decoded: DataFrame | Iterable[pa.RecordBatch],
    retentions: Retentions,
    read_to: NextOffsets | None = None,
    identities: Mapping[str, Identity] = MappingProxyType({}),
) -> Appended:
    """Append what of tables.DECODED is not in the tables yet. All partitions were read up to `read_to`; None: as far as
    rows are there. `identities` are those of the rows' clusters. Doing it twice, or with rows of several runs, changes
    nothing. Batches of Arrow have new rows only.
    """
    with output.lock:
        known = output.ledger.next_offsets
        if isinstance(decoded, DataFrame):
            new = output.stage(decoded.where(is_from(known)), DECODED)
        else:
            new = output.stage_here(decoded, DECODED)
        decoded = output.frame(new)
        counts, seen = _counted(decoded)
        staged: dict[str, Staged] = {}
        if counts.commits or not output.ledger.files(COMMITS.name):
            staged[COMMITS.name] = output.stage(_commits(output, decoded, known, counts, retentions), COMMITS)
        if counts.others or not output.ledger.files(GROUP_RECORDS.name):
            staged[GROUP_RECORDS.name] = output.stage(group_records(decoded), GROUP_RECORDS)
        _check_count(output, staged.values(), counts)
        reached = seen if read_to is None else read_to
        if staged or _is_further(reached, known):
            output.ledger.append({name: each.files for name, each in staged.items()}, reached, identities)
        output.discard([new, *staged.values()])  # `follow` may run for months
    return Appended({COMMITS.name: counts.commits, GROUP_RECORDS.name: counts.others}, counts.problems)


def _check_count(output: Output, staged: Iterable[Staged], counts: _Counts) -> None:
    """Raises SourceError unless a row is written of each record. Elsewhere than on this machine counting would cost a
    job.
    """
    written = sum(map(output.count_staged, staged)) if output.is_here else counts.commits + counts.others
    if written != counts.commits + counts.others:
        records, rows = counted(counts.commits + counts.others, "record"), counted(written, "row")
        raise SourceError(f"of {records} {rows} would be written: nothing is appended: run again, or report a defect")


def _commits(
    output: Output, staged: DataFrame, known: NextOffsets, counts: _Counts, retentions: Retentions
) -> DataFrame:
    """The new commits; why offsets were removed follows from what was there before."""
    new = commits(staged)
    if not counts.tombstones:
        return new
    groups = new.where("is_tombstone").select("cluster", "group_id").distinct()
    past, records = (
        output.with_carried(table, carried).join(groups, ["cluster", "group_id"], "left_semi")
        for table, carried in ((COMMITS, LAST_COMMITS), (GROUP_RECORDS, LAST_RECORDS))
    )
    past = past.select(*COMMITS.names)
    records = records.select(*GROUP_RECORDS.names).unionByName(group_records(staged))
    return with_causes(past.unionByName(new), records, retentions).where(is_from(known)).select(*COMMITS.names)


def _counted(staged: DataFrame) -> tuple[_Counts, NextOffsets]:
    is_one = F.expr(IS_COMMIT)
    rows = (
        staged.groupBy("cluster", "log_partition")
        .agg(
            F.max("log_offset").alias("last"),
            F.count_if(is_one).alias("commits"),
            F.count(F.lit(1)).alias("records"),
            F.count_if(is_one & F.col("is_tombstone")).alias("tombstones"),
            F.count("problem").alias("problems"),
        )
        .collect()
    )
    seen: dict[str, dict[int, int]] = {}
    for row in rows:
        seen.setdefault(row.cluster, {})[row.log_partition] = row.last + 1
    number = sum(row.commits for row in rows)
    return (
        _Counts(
            number,
            sum(row.records for row in rows) - number,
            sum(row.tombstones for row in rows),
            sum(row.problems for row in rows),
        ),
        seen,
    )


def _is_further(reached: NextOffsets, known: NextOffsets) -> bool:
    return any(
        offset > known.get(name, {}).get(partition, 0)
        for name, offsets in reached.items()
        for partition, offset in offsets.items()
    )
