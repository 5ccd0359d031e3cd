"""Jobs of Spark whose tasks build tables, each for a share of the groups.

A task reads the files of its inputs, or their contents, where only Spark reads the directory. Many rows are read by
many tasks, and exchanged by Spark, so that each task gets those of its share. A task writes files where it sees the
directory. Otherwise it makes them in memory, and Spark writes them all in one job.
"""

from __future__ import annotations

import pickle
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.relations import Array, Rows, loaded
from groupkeeper.pipeline.runtime.executors import described, ipc, of_ipc
from groupkeeper.pipeline.storage.contents import CONTENTS, in_bytes, line_of, parts, place_of, rows_in_bytes
from groupkeeper.pipeline.storage.lake import OPEN
from groupkeeper.pipeline.storage.output import Input, Output, Staged, rows_in
from groupkeeper.pipeline.tables import Table

if TYPE_CHECKING:
    import pyarrow.dataset as pads

ROWS_PER_SHARE = 1_000_000
"""The most rows of history that every task reads whole, for its share of them; Spark exchanges more."""

_PACKED = "share int, input string, rows binary"
_FAILED = "failed"
"""The place in CONTENTS of an error. The place of a table is its number; with OPEN at the end, of its open rows."""


class TableToBuild(NamedTuple):
    """A table to build. `adds`: its rows have the column OPEN, too, which marks provisional ones."""

    table: Table
    adds: bool = False


Built: TypeAlias = Iterator[tuple[str, pa.Table | Exception]]
"""By name, the rows of each table, or the error that stopped it."""

Build: TypeAlias = Callable[[int, Mapping[str, Rows]], Built]
"""Builds tables from the number of a share, and its rows of the inputs by name. Must be picklable."""


def build(
    output: Output, description: str, make: Build, inputs: Mapping[str, Input], wanted: Sequence[TableToBuild],
    shares: int = 1, *, is_exchanged: bool = False,
) -> dict[str, Staged | Exception]:  # fmt: skip
    """Runs a job with a task for each share; returns by name the staged tables, or their errors. Every task gets all
    rows of inputs without groups.

    `is_exchanged`: Spark exchanges the rows, even if tasks could read the files.
    """
    asides = {each.table.name: output.aside(each.table) for each in wanted}
    work = partial(_made, wanted, asides, output.folder, make)
    if is_exchanged or (output.folder is None and shares > 1):
        made = _exchanged(output, work, inputs, shares)
    elif output.folder is None:
        made = _alone(output, work, inputs)
    else:
        made = _by_files(output.spark, output.folder, work, inputs, shares)
    try:
        with described(output.spark, description), output.contents(made) as contents:
            failed: dict[str, Exception] = dict(map(pickle.loads, contents.read(_FAILED)))
            numbers = {str(number): each.table for number, each in enumerate(wanted) if each.table.name not in failed}
            places = {number: asides[table.name] for number, table in numbers.items()}
            # A file of Spark has the same name in both directories of a table.
            files = contents.move(places | {f"{number}{OPEN}": f"{aside}/open" for number, aside in places.items()})
    except BaseException:
        output.discard(Staged(each.table, asides[each.table.name], []) for each in wanted if output.folder is not None)
        raise
    for name in failed:
        output.files.remove(asides[name])
    return {**failed, **{table.name: Staged(table, asides[table.name], files[number], files[f"{number}{OPEN}"])
                         for number, table in numbers.items()}}  # fmt: skip


def _made(
    wanted: Sequence[TableToBuild], asides: Mapping[str, str], folder: Path | None, make: Build, share: int,
    given: Mapping[str, Rows],
) -> Iterator[tuple[str, bytes]]:  # fmt: skip
    """Builds the tables of a share: pairs of place and content, which is a file's path if the task sees the directory,
    else the rows.
    """
    numbers = {each.table.name: number for number, each in enumerate(wanted)}
    for name, made in make(share, given):
        if isinstance(made, Exception):
            yield _FAILED, pickle.dumps((name, made))
            continue
        for is_open, rows in parts(made, OPEN if wanted[numbers[name]].adds else None):
            place = f"{numbers[name]}{OPEN if is_open else ''}"
            if folder is None:
                yield place, line_of(in_bytes(rows))
            else:
                path = f"{asides[name]}/{uuid.uuid4().hex}.parquet"
                (folder / asides[name]).mkdir(parents=True, exist_ok=True)
                pq.write_table(rows, folder / path)
                yield place, path.encode()


class ShareRows:
    """Rows of files, from which a task loads only those of its share, and each column once (relations.Loaded)."""

    def __init__(self, rows: pads.Dataset | pa.Table, share: int, shares: int) -> None:
        self._rows = rows
        self._share, self._shares = share, shares
        self._columns: dict[str, pa.ChunkedArray] = {}
        self._chosen: pa.Array | None = None

    def load(self, names: Sequence[str] | None) -> pa.Table:
        names = self._rows.schema.names if names is None else names
        if lacking := [name for name in names if name not in self._columns]:
            is_first = self._chosen is None and self._shares > 1
            found = loaded(self._rows, list(dict.fromkeys([*lacking, *(["group_id"] if is_first else [])])))
            if is_first:
                self._chosen = pa.array(_share_of(found["group_id"].combine_chunks(), self._shares) == self._share)
            found = found if self._chosen is None else found.filter(self._chosen)
            self._columns |= {name: found[name] for name in found.column_names}
        return pa.table({name: self._columns[name] for name in names})


def rows_of_share(rows: pa.Table, share: int, shares: int) -> pa.Table:
    """The rows of the groups of a share; all rows of a table without groups."""
    if shares == 1 or "group_id" not in rows.column_names:
        return rows
    return rows.filter(pa.array(_share_of(rows["group_id"].combine_chunks(), shares) == share))


def _share_of(group_ids: pa.Array, shares: int) -> Array:
    """The share of each row, by its group's id alone: a change in a journal may lack the cluster, and may be of each
    of them. Rows without a group are in the share of the group ''.
    """
    coded = group_ids.dictionary_encode(null_encoding="encode")
    own = [zlib.crc32((each or "").encode(errors="surrogatepass")) % shares for each in coded.dictionary.to_pylist()]
    return np.asarray(np.array(own, np.int64)[coded.indices.to_numpy(zero_copy_only=False)])


_Make: TypeAlias = Callable[[int, Mapping[str, Rows]], Iterator[tuple[str, bytes]]]
"""Builds the rows of CONTENTS of a share, from its number and its inputs."""


def _by_files(spark: SparkSession, folder: Path, make: _Make, inputs: Mapping[str, Input], shares: int) -> DataFrame:
    """Rows of CONTENTS from a task for each share, which reads the files."""
    return spark.range(0, shares, 1, shares).mapInArrow(partial(_made_of_files, folder, make, inputs, shares), CONTENTS)


def _made_of_files(
    folder: Path, make: _Make, inputs: Mapping[str, Input], shares: int, numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for share in (one for batch in numbers for one in batch.column(0).to_pylist()):
        given: dict[str, Rows] = {}
        for name, (table, own) in inputs.items():
            given[name] = ShareRows(rows_in(folder, table, own), share, shares if "group_id" in table.names else 1)
        try:
            yield from _contents(make(share, given))
        except OSError as error:  # another machine may see the files
            raise SourceError(f"{folder}: {error.strerror or error}") from error


def _contents(made: Iterable[tuple[str, bytes]]) -> Iterator[pa.RecordBatch]:
    for place, content in made:
        yield pa.RecordBatch.from_pydict({"place": [place], "content": pa.array([content], pa.binary())})


_Read: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[tuple[str, Iterable[pa.RecordBatch]]]]
"""Yields, from the input of a task, rows with the name of their table's input."""


def _reading(output: Output, inputs: Mapping[str, Input]) -> tuple[DataFrame, _Read]:
    """A DataFrame that gives tasks the files of the inputs, and the function by which they read them. Spark's own
    reader of parquet would cost several times as much.
    """
    files = [(name, each.table, file) for name, each in inputs.items() for file in each.files]
    if output.folder is not None:
        return output.spark.range(0, len(files), 1, max(1, len(files))), partial(_files_here, output.folder, files)
    places: dict[str, list[tuple[str, Table]]] = {}
    for name, table, file in files:
        places.setdefault(place_of(file), []).append((name, table))
    return output.contents_of([*dict.fromkeys(file for _, _, file in files)]), partial(_files_sent, places)


def _files_here(
    folder: Path, files: Sequence[tuple[str, Table, str]], numbers: Iterable[pa.RecordBatch]
) -> Iterator[tuple[str, Iterable[pa.RecordBatch]]]:
    for number in (one for batch in numbers for one in batch.column(0).to_pylist()):
        name, table, file = files[number]
        try:
            rows = rows_in(folder, table, [file])
            yield name, rows.to_batches() if isinstance(rows, pa.Table) else rows.to_batches(batch_readahead=1)
        except OSError as error:  # another machine may see the files
            raise SourceError(f"{folder}: {error.strerror or error}") from error


def _files_sent(
    places: Mapping[str, Sequence[tuple[str, Table]]], batches: Iterable[pa.RecordBatch]
) -> Iterator[tuple[str, Iterable[pa.RecordBatch]]]:
    for batch in batches:
        for path, content in zip(batch["path"], batch["content"], strict=True):
            for name, table in places.get(place_of(path.as_py()), ()):
                yield name, rows_in_bytes(content.as_buffer(), table.arrow).to_batches()


def _alone(output: Output, make: _Make, inputs: Mapping[str, Input]) -> DataFrame:
    """Rows of CONTENTS from one task for all groups, where only Spark can read the files."""
    given, read = _reading(output, inputs)
    tables = {name: each.table for name, each in inputs.items()}
    return given.coalesce(1).mapInArrow(partial(_made_alone, read, make, tables), CONTENTS)


def _made_alone(
    read: _Read, make: _Make, tables: Mapping[str, Table], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in tables}
    for name, rows in read(batches):
        parts[name] += rows
    given = {name: pa.Table.from_batches(parts[name], table.arrow) for name, table in tables.items()}
    yield from _contents(make(0, given))


def _exchanged(output: Output, make: _Make, inputs: Mapping[str, Input], shares: int) -> DataFrame:
    """Rows of CONTENTS from a task for each share, whose rows Spark has exchanged."""
    tables = {name: each.table for name, each in inputs.items()}
    given, read = _reading(output, inputs)
    none = output.spark.range(shares).selectExpr("CAST(id AS INT) share", "'' input", "CAST('' AS BINARY) rows")
    whole = none.unionAll(given.mapInArrow(partial(_packed, read, shares), _PACKED))
    return whole.groupBy("share").applyInArrow(_unpacking(tables, make), CONTENTS)


def _packed(read: _Read, shares: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for name, batch in ((name, batch) for name, rows in read(batches) for batch in rows):
        parts = (batch,) * shares
        if "group_id" in batch.schema.names and shares > 1:
            own = _share_of(batch["group_id"], shares)
            parts = tuple(batch.filter(pa.array(own == share)) for share in range(shares))
        for share, part in enumerate(parts):
            if len(part):
                columns = [pa.array([share], pa.int32()), pa.array([name]), pa.array([ipc(part)])]
                yield pa.RecordBatch.from_arrays(columns, names=["share", "input", "rows"])


def _unpacking(tables: Mapping[str, Table], make: _Make) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    def made(key: tuple[pa.Scalar, ...], packed: pa.Table) -> pa.Table:
        parts: dict[str, list[pa.Table]] = {}
        for row in packed.select(["input", "rows"]).to_pylist():
            if row["input"]:
                parts.setdefault(row["input"], []).append(of_ipc(row["rows"]))
        given = {name: pa.concat_tables(parts[name]) if name in parts else table.arrow.empty_table()
                 for name, table in tables.items()}  # fmt: skip
        rows = [*make(key[0].as_py(), given)]
        columns = [pa.array([place for place, _ in rows], pa.string()), pa.array([one for _, one in rows], pa.binary())]
        return pa.Table.from_arrays(columns, names=["place", "content"])

    return made
