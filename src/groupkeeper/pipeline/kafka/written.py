"""Writing of decoded history by tasks: each writes files to a directory, and returns a description of their rows.
Without access to the directory, it makes the files in memory, and Spark writes them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from groupkeeper.pipeline.decode.history import commits, is_commit
from groupkeeper.pipeline.tables import COMMITS, DECODED

_ROWS_PER_GROUP = 131_072
_ENCODINGS = {"log_offset": "DELTA_BINARY_PACKED"}
"""Log offsets rise by small steps, so that their differences are small even before compression. Committed offsets are
better left to zstd: those of many groups alternate, and those of idle groups repeat.
"""


class Counts(NamedTuple):
    """Numbers of records: offset commits, tombstones among these, other records, undecodable records."""

    commits: int = 0
    tombstones: int = 0
    others: int = 0
    problems: int = 0

    def plus(self, more: Counts) -> Counts:
        """The sums."""
        return Counts(*map(sum, zip(self, more, strict=True)))


class Written(NamedTuple):
    """The files that one or more tasks have written to one directory, and the rows in them."""

    commits: tuple[str, ...] = ()
    """Files with rows of tables.COMMITS, without tombstones: those need the group's history."""
    rest: tuple[str, ...] = ()
    """Files with rows of tables.DECODED: tombstones, and records that are no offset commits."""
    counts: Counts = Counts()
    spans: tuple[tuple[str, int, int, int], ...] = ()
    """Cluster, log partition, and the first and last offset there."""

    @staticmethod
    def together(parts: Iterable[Written]) -> Written:
        """The files and rows of all tasks."""
        commits: list[str] = []
        rest: list[str] = []
        counts, spans = Counts(), _Spans()
        for own in parts:
            commits += own.commits
            rest += own.rest
            counts = counts.plus(own.counts)
            spans.add(own.spans)
        return Written(tuple(commits), tuple(rest), counts, spans.all)

    @property
    def ends(self) -> dict[str, dict[int, int]]:
        """By cluster and log partition, the offset after the last row."""
        found: dict[str, dict[int, int]] = {}
        for cluster, partition, _, last in self.spans:
            found.setdefault(cluster, {})[partition] = last + 1
        return found

    def repeats(self, known: Mapping[str, Mapping[int, int]]) -> bool:
        """Whether some rows may lie before these offsets (by cluster and log partition), so that the tables already
        have them.
        """
        return any(first < known.get(cluster, {}).get(partition, 0) for cluster, partition, first, _ in self.spans)


def write(batches: Iterable[pa.RecordBatch], directory: Path | None) -> tuple[Written, dict[str, bytes]]:
    """Writes rows of tables.DECODED to new files in the directory, which is created if needed. Without a directory, the
    second result has the contents of the files by their names.
    """
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    files = _WrittenFile(COMMITS.arrow, directory), _WrittenFile(DECODED.arrow, directory)
    written = _sort(batches, *files)
    return written, {name: each.content for each in files for name in each.names if directory is None}


def _sort(batches: Iterable[pa.RecordBatch], plain: _WrittenFile, rest: _WrittenFile) -> Written:
    """Writes plain commits, as rows of tables.COMMITS, to one file, and other rows, of tables.DECODED, to the other."""
    counts, found = Counts(), _Spans()
    with plain, rest:
        for batch in batches:
            found.add(_spans(batch))
            is_one = is_commit(batch)
            is_kept = pc.and_(is_one, pc.invert(batch["is_tombstone"]))
            counts = counts.plus(_counts(batch, is_one, is_kept))
            if is_kept.true_count:
                plain.add(commits(batch if is_kept.true_count == len(batch) else batch.filter(is_kept)))
            if is_kept.true_count < len(batch):
                rest.add(batch.filter(pc.invert(is_kept)))
    return Written(plain.names, rest.names, counts, found.all)


def _counts(batch: pa.RecordBatch, is_commit: pa.BooleanArray, is_kept: pa.BooleanArray) -> Counts:
    commits, kept = is_commit.true_count, is_kept.true_count
    return Counts(commits, commits - kept, len(batch) - commits, len(batch) - batch["problem"].null_count)


def _spans(batch: pa.RecordBatch) -> Iterator[tuple[str, int, int, int]]:
    """The spans of consecutive rows of one log partition. In a fetch, all rows of a log partition are consecutive, and
    this takes a fifth of the time of grouping.
    """
    if not len(batch):
        return
    clusters = pc.run_end_encode(batch["cluster"])
    partitions, offsets = (batch[name].to_numpy(zero_copy_only=False) for name in ("log_partition", "log_offset"))
    names = clusters.values.to_pylist()
    ends = clusters.run_ends.to_numpy()
    begins = np.union1d(np.flatnonzero(np.diff(partitions)) + 1, np.append(0, ends[:-1]))
    which = np.searchsorted(ends, begins, side="right").tolist()
    firsts, lasts = np.minimum.reduceat(offsets, begins).tolist(), np.maximum.reduceat(offsets, begins).tolist()
    for number, partition, first, last in zip(which, partitions[begins].tolist(), firsts, lasts, strict=True):
        yield names[number], partition, first, last


class _Spans:
    """First and last offsets, merged by cluster and log partition."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, int], tuple[int, int]] = {}

    def add(self, spans: Iterable[tuple[str, int, int, int]]) -> None:
        for cluster, partition, first, last in spans:
            ends = self._ends.get((cluster, partition), (first, last))
            self._ends[cluster, partition] = min(first, ends[0]), max(last, ends[1])

    @property
    def all(self) -> tuple[tuple[str, int, int, int], ...]:
        return tuple((*key, *ends) for key, ends in self._ends.items())


class _WrittenFile:
    """A parquet file with a new unique name, by which the ledger distinguishes it from others; without rows there is no
    file. Without a directory it is in memory.
    """

    def __init__(self, schema: pa.Schema, directory: Path | None) -> None:
        self._name = f"{uuid.uuid4().hex}.parquet"
        self._sink: Any = pa.BufferOutputStream() if directory is None else directory / self._name
        self._schema = schema
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The file's name, once it is closed; none without rows."""
        return () if self._writer is None else (self._name,)

    @property
    def content(self) -> bytes:
        return bytes(self._sink.getvalue())

    def add(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._waiting_rows += len(batch)
        if self._waiting_rows >= _ROWS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        if self._writer is None:
            repeated = [field.name for field in self._schema if pa.types.is_string(field.type)]
            self._writer = pq.ParquetWriter(
                self._sink, self._schema, compression="zstd", use_dictionary=repeated, column_encoding=_ENCODINGS
            )
        self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema))
        self._waiting, self._waiting_rows = [], 0

    def __enter__(self) -> _WrittenFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        if self._writer is not None:
            self._writer.close()
            if kind is not None and isinstance(self._sink, Path):
                self._sink.unlink(missing_ok=True)
