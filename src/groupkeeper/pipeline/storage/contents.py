"""The output of a job's tasks: files, and receipts that describe them. Where only Spark writes, tasks make the files in
memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from groupkeeper.pipeline.storage.files import Files, HadoopFiles
from groupkeeper.pipeline.tables import Table

CONTENTS = "place string, content binary"
"""The schema of task output: a place, and content. For a file, the content is its bytes (`line_of`), or its path below
the output directory if the task has written it.
"""

RECEIPT = "receipt"
"""The place of a receipt, which describes a task's files and is no file itself."""

_MAGIC = b"PAR1"
_OPTIONS = {
    "lineSep": _MAGIC.decode(), "compression": "none", "maxRecordsPerFile": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false", "mapreduce.fileoutputcommitter.algorithm.version": "2",
}  # fmt: skip
"""A task moves its file once, and the job does not move it again: files of a failed job are never used."""

_AT_ONCE = 8
"""The number of concurrent calls to a store."""


def line_of(content: bytes) -> bytes:
    """A parquet file without its last four bytes, which are always the same. Spark's text writer, the only one that
    takes bytes from Python, writes it as a line that ends with them.
    """
    return content.removesuffix(_MAGIC)


def rows_of(files: Mapping[str, bytes], receipt: bytes) -> pa.RecordBatch:
    """Rows of CONTENTS: parquet files, whose places are their names, and a receipt."""
    contents = [*map(line_of, files.values()), receipt]
    return pa.RecordBatch.from_pydict({"place": [*files, RECEIPT], "content": pa.array(contents, pa.binary())})


def parts(rows: pa.Table, column: str | None) -> Iterator[tuple[bool, pa.Table]]:
    """Splits rows into those of each file: pairs of whether they are open (`column` is true) and the rows without that
    column; a part without rows is left out. `column` None: one file with all rows, even if there are none.
    """
    if column is None:
        yield False, rows
        return
    for value in (False, True):
        own = rows.filter(pyarrow.compute.equal(rows[column], value)).drop_columns([column])
        if own.num_rows:
            yield value, own


def in_bytes(rows: pa.Table) -> bytes:
    """The bytes of a parquet file with these rows."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    return bytes(sink.getvalue())


class Contents:
    """The output of one job (rows of CONTENTS) whose tasks have written the files."""

    def __init__(self, made: DataFrame) -> None:
        self._found: dict[str, list[bytes]] = {}
        for row in made.select("place", "content").collect():
            self._found.setdefault(row.place, []).append(bytes(row.content))

    def read(self, place: str) -> Iterable[bytes]:
        """The contents at a place, other than parquet files."""
        return self._found.get(place, ())

    def move(self, directories: Mapping[str, str]) -> dict[str, list[str]]:
        """Moves files to directories, by place, under new names, unless tasks have written them there; returns their
        paths by place.
        """
        return {place: [path.decode() for path in self.read(place)] for place in directories}

    def move_named(self, directory: str) -> None:
        """Moves the files whose places are parquet names to a directory, under these names, unless tasks have written
        them there.
        """


class SentContents(Contents):
    """The output of one job that Spark writes to `path`, a new directory with this `url`."""

    def __init__(self, files: HadoopFiles, path: str, url: str, made: DataFrame) -> None:
        made.selectExpr("place", "CAST(content AS STRING)").write.partitionBy("place").options(**_OPTIONS).text(url)
        self._files = files
        self._places: dict[str, list[str]] = {}
        for each in files.below(path):
            self._places.setdefault(PurePosixPath(each).parent.name.removeprefix("place="), []).append(each)

    def read(self, place: str) -> Iterable[bytes]:
        for each in self._places.get(place, ()):
            yield self._files.read_bytes(each)[: -len(_MAGIC)]

    def move(self, directories: Mapping[str, str]) -> dict[str, list[str]]:
        found = {
            place: {each: f"{to}/{PurePosixPath(each).stem}.parquet" for each in self._places.get(place, ())}
            for place, to in directories.items()
        }
        self._move([one for own in found.values() for one in own.items()])
        return {place: [*own.values()] for place, own in found.items()}

    def move_named(self, directory: str) -> None:
        named = [(own[0], f"{directory}/{name}") for name, own in self._places.items() if name.endswith(".parquet")]
        self._move(named)

    def _move(self, moves: Sequence[tuple[str, str]]) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda move: self._files.move(*move), moves))


def read_rows(files: HadoopFiles, paths: Iterable[str], schema: pa.Schema) -> pa.Table:
    """Loads the rows of parquet files into this process."""
    found = [schema.empty_table()]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for content in pool.map(files.read_bytes, paths):
            found.append(rows_in_bytes(content, schema))
    return pa.concat_tables(found)


def rows_in_bytes(content: bytes | pa.Buffer, schema: pa.Schema) -> pa.Table:
    """The rows of a parquet file; columns that it lacks are null."""
    own = pq.read_table(pa.BufferReader(content))
    known = pa.schema(field for field in schema if field.name in own.column_names)  # fewer of earlier versions
    rows = own.select(known.names).cast(known)  # Spark writes times in its own way
    return rows if known == schema else pa.concat_tables([schema.empty_table(), rows], promote_options="default")


def place_of(path: str) -> str:
    """The last two parts of a file's path or URL, which are unique in the directory."""
    return "/".join(path.rsplit("/", 2)[-2:])


class RowCounts:
    """Counts the rows of files. Files that were in a table's last count are not read again: a file never changes."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._known: dict[str, dict[str, int]] = {}

    def count(self, table: Table, paths: Sequence[str]) -> int:
        """The number of rows in these files of the table."""
        before = self._known.get(table.name, {})
        new = [each for each in paths if each not in before]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            footers = pool.map(self._files.footer, new)
            counts = before | {each: int(footer.num_rows) for each, footer in zip(new, footers, strict=True)}
        self._known[table.name] = found = {each: counts[each] for each in paths}
        return sum(found.values())
