"""The output directory of tables. Rows are added to tables, and tables replaced, while others read."""

from __future__ import annotations

import contextlib
import re
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from groupkeeper.pipeline.checkpoints.folders import local_path
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.relations import Rows, loaded
from groupkeeper.pipeline.storage.contents import RECEIPT, Contents, RowCounts, SentContents, in_bytes, read_rows
from groupkeeper.pipeline.storage.files import Files, HadoopFiles, LocalFiles, files_of
from groupkeeper.pipeline.storage.format_log import FormatLog, open_lake
from groupkeeper.pipeline.storage.lake import FileFacts, LakePlace
from groupkeeper.pipeline.storage.ledger import ROOT, Ledger, NextOffsets, Tables, number_of
from groupkeeper.pipeline.tables import HISTORY, TABLES, Table
from groupkeeper.pipeline.transforms.latest import what_stays

if TYPE_CHECKING:
    import pyarrow.dataset as pads

THIN_DAYS = 7
"""How long measured tables keep all their rows."""

VERSION_HOURS = 168.0
_DAY_MS = 24 * 3600 * 1000

_STAGING = f"{ROOT}/staging"
"""The parent of each run's staging directory."""

_GLOB = re.compile(r"[\\*?\[\]{}]")

_PLAIN = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}


@contextlib.contextmanager
def open_output(
    spark: SparkSession, directory: str, *, lake: LakeChoice | None = None, keep_days: int | None = None
) -> Iterator[Output]:
    """Opens the directory for one run at a time; staged files of killed runs are removed first, those of this one at
    the end. `lake`: the format of the tables from now on; None: as before. `keep_days`: how many days growing tables
    keep rows from now on; 0: for ever, None: as before.

    Raises SourceError when it can't be written, or another run writes to it; exceptions of Spark are not caught.
    """
    try:
        files = files_of(spark, directory)
        with files.lock():
            output = Output(spark, directory, files)
            files.clean(_STAGING, output.staging)
            try:
                output.follow_to(lake)
                if keep_days is not None:
                    output.keep_for(keep_days)
                yield output
            finally:
                # Otherwise the next run moves staged files into the tables, or removes them.
                if output.ledger.is_settled and not output.ledger.is_left:
                    files.clean(_STAGING, output.staging)
    except OSError as error:
        raise SourceError(f"{directory} cannot be written: {error.strerror or error}") from error


class LakeChoice(NamedTuple):
    """The format of the tables, and how long they keep old versions."""

    place: LakePlace
    version_hours: float = VERSION_HOURS

    def as_json(self) -> dict[str, Any]:
        return {**self.place._asdict(), "version_hours": self.version_hours}

    @staticmethod
    def of(found: Mapping[str, Any] | None) -> LakeChoice | None:
        """The choice that `as_json` has returned; None: there is none."""
        if found is None:
            return None
        return LakeChoice(LakePlace(*(found[name] for name in LakePlace._fields)), found["version_hours"])


class Staged(NamedTuple):
    """Rows in files of one staging directory; paths are below the output directory. `open_files`: files of open
    rows.
    """

    table: Table
    directory: str
    files: list[str]
    open_files: list[str] = []  # noqa: RUF012 - never changed

    @property
    def all_files(self) -> list[str]:
        return [*self.files, *self.open_files]


class Input(NamedTuple):
    """Rows of a table, in files below the output directory."""

    table: Table
    files: Sequence[str] = ()


class Output:
    """Tables at `directory`/<table>/. A run stages files in `directory`/_groupkeeper/staging, which readers of the
    tables do not see.
    """

    def __init__(self, spark: SparkSession, directory: str, files: Files) -> None:
        self.spark = spark
        self.files = files
        self.ledger = Ledger(files, directory)
        self.staging = f"{_STAGING}/{uuid.uuid4().hex}"
        self.lock = threading.Lock()
        """Held while rows are appended."""
        self.format_log: FormatLog | None = None
        """Brings a format's log to the tables' files; None: the tables have no format."""
        local = local_path(directory)
        self.folder = None if local is None else local.absolute()  # a relative path may look like a URI: a:b
        """The directory, if this process and Spark can reach it under the same path; None: they cannot."""
        self._counts = RowCounts(files)
        # Hadoop takes the path after the scheme literally: nothing in it is escaped.
        self._url = (f"file://{self.folder}" if self.folder is not None else directory).rstrip("/")

    def follow_to(self, chosen: LakeChoice | None) -> None:
        """Lets the log of a format follow the tables; None: as before. Raises SourceError if they have another
        format.
        """
        known = LakeChoice.of(self.ledger.lake)
        if chosen is not None and known is not None and chosen.place != known.place:
            raise SourceError(f"{self._url}: its tables are followed by {known.place}, not by {chosen.place}")
        found = chosen or known
        if found is None:
            return
        lake = open_lake(self.spark, found.place, self._url, self.facts)
        self.format_log = FormatLog(lake, str(found.place), found.version_hours, self.ledger, self.files, self.lock)
        self.ledger.note(lake=found.as_json())

    def keep_for(self, days: int) -> None:
        """Sets how many days growing tables keep rows; 0: for ever. Raises SourceError if rows cannot be
        removed here.
        """
        if days and self.format_log is None and not isinstance(self.files, LocalFiles):
            raise SourceError(
                f"{self._url}: rows are removed in a directory of this machine, or with --table-format: leave "
                "--keep-rows out"
            )
        self.ledger.note(keep_days=days)

    def here(self, path: str) -> Path | None:
        """A path in the directory, if this process and Spark can reach it; None: they cannot."""
        return None if self.folder is None else self.folder / path

    def url(self, path: str) -> str:
        """The URL of a path in the directory, for Spark."""
        return f"{self._url}/{path}"

    def read(self, table: Table) -> DataFrame:
        """A table as it is now; a missing table has no rows."""
        return self.frame_of(table, self.files_of(table))

    def history(self, table: Table, *, is_all: bool) -> Input:
        """The rows of a history table that no refresh has processed, and maybe some that one has; `is_all`: all
        rows.
        """
        names = self.ledger.files(table.name) if is_all else self.ledger.fresh_files(table.name)
        return Input(table, [f"{table.name}/{name}" for name in names])

    def with_carried(self, table: Table, carried: Table) -> Input:
        """The rows of a history table on which later rows depend: the carried ones, and those that no refresh has
        processed, maybe with some that one has.
        """
        if self.ledger.made_to is None:
            return self.history(table, is_all=True)
        return Input(table, [*self.files_of(carried), *self.history(table, is_all=False).files])

    def _of_files(self, table: Table, names: Sequence[str]) -> DataFrame:
        return self.frame_of(table, [f"{table.name}/{name}" for name in names])

    def stage(self, rows: DataFrame | pa.Table, table: Table) -> Staged:
        """Write rows to staging, where readers do not see them."""
        path = self.aside(table)
        if isinstance(rows, pa.Table):
            self.files.write(f"{path}/{uuid.uuid4().hex}.parquet", in_bytes(rows))
        else:
            if rows.columns != table.names:
                raise AssertionError(f"{table.name}: columns {rows.columns}")
            rows.write.options(**_PLAIN).parquet(self.url(path))
        return Staged(table, path, self._parquet(path))

    def contents_of(self, files: Sequence[str]) -> DataFrame:
        """The contents of files below the directory, read by Spark: `path`, a URL, and `content`. Without files, one
        row whose path is "".
        """
        if not files:
            return self.spark.range(0, 1, 1, 1).selectExpr("'' path", "CAST('' AS BINARY) content")
        paths = [_literal(self.url(path)) for path in files]
        return self.spark.read.format("binaryFile").load(paths).select("path", "content")

    @contextlib.contextmanager
    def contents(self, made: DataFrame) -> Iterator[Contents]:
        """Runs one job with rows of CONTENTS; gives its output until the block ends. Writes the files if tasks
        don't.
        """
        if not isinstance(self.files, HadoopFiles):
            yield Contents(made)
            return
        path = f"{self.staging}/{uuid.uuid4().hex}"
        try:
            yield SentContents(self.files, path, self.url(path), made)
        finally:
            self.files.remove(path)

    def made_aside(self, made: DataFrame, directory: str) -> list[bytes]:
        """Runs one job whose tasks make files (contents.rows_of); the files are then in the directory. Returns the
        receipts.
        """
        with self.contents(made) as contents:
            contents.move_named(directory)
            return [*contents.read(RECEIPT)]

    def keep_only(self, staged: Iterable[Staged]) -> None:
        """Removes other files from the directories of staged rows: leftovers of task attempts that Spark gave up."""
        for each in () if self.folder is None else staged:
            for name in set(self._parquet(each.directory)) - {*each.files, *each.open_files}:
                self.files.remove(name)

    def frame(self, staged: Staged) -> DataFrame:
        """The staged rows, as a DataFrame."""
        return self.frame_of(staged.table, staged.all_files)

    def files_of(self, table: Table) -> list[str]:
        """The current files of a table; paths are below the directory."""
        there = set(self.files.names(table.name))
        return [f"{table.name}/{name}" for name in self.ledger.files(table.name) if name in there]

    def open_files_of(self, table: Table) -> list[str]:
        """The files of a table's open rows; paths are below the directory."""
        return [f"{table.name}/{name}" for name in self.ledger.open_files(table.name)]

    def frame_of(self, table: Table, files: Sequence[str]) -> DataFrame:
        """The rows of files below the directory, as a DataFrame."""
        if not files:
            return self.spark.createDataFrame([], table.ddl)
        return self.spark.read.schema(table.ddl).parquet(*(_literal(self.url(path)) for path in files))

    def rows(self, table: Table, files: Sequence[str]) -> Rows:
        """The rows of files below the directory, for this process."""
        if isinstance(self.files, HadoopFiles):
            return read_rows(self.files, files, table.arrow)
        assert self.folder is not None
        return rows_in(self.folder, table, files)

    def sent(self, rows: pa.Table, table: Table) -> DataFrame:
        """Sends rows of this process to Spark."""
        return self.spark.createDataFrame(rows if len(rows) else [], table.ddl)

    def _parquet(self, path: str) -> list[str]:
        return [f"{path}/{name}" for name in self.files.names(path) if name.endswith(".parquet")]

    def discard(self, staged: Iterable[Staged]) -> None:
        """Remove staged files that are no longer needed."""
        for each in staged:
            self.files.remove(each.directory)

    def replace(self, rows: DataFrame | pa.Table, table: Table) -> int:
        """Replaces the table; readers find the old one or the new one. Returns its number of rows."""
        staged = self.stage(rows, table)
        count = self.count_of(staged)
        self.publish({table.name: staged})
        return count

    def refresh(self, tables: Tables, made_to: NextOffsets) -> None:
        """Publish the staged tables, and record that the history up to these offsets is processed."""
        with self.lock:
            self.ledger.refresh(tables, made_to)

    def publish(self, staged: Mapping[str, Staged]) -> None:
        """Replace tables, by name, by staged rows. Readers that use the ledger see all changes at once, others see one
        directory after the other.
        """
        if staged:
            with self.lock:
                self.ledger.replace({name: each.directory for name, each in staged.items()})

    def merge(self, table: Table, *, many: int = 100, small_bytes: int = 32 << 20) -> int:
        """Merges the small files of a history table, once there are `many`, so that months of appending don't leave a
        file for each time; returns how many were merged. Does nothing if the directory is not on this machine:
        elsewhere, files cannot be linked.
        """
        if not isinstance(self.files, LocalFiles):
            return 0
        with self.lock:
            names = self.ledger.files(table.name)
            size_by_name = {name: self.files.status(f"{table.name}/{name}")[0] for name in names}
            busy = self._busy(table)
            small = [name for name, size in size_by_name.items() if size < small_bytes and name not in busy]
            if len(small) < many:
                return 0
            files = 1 + sum(size_by_name[name] for name in small) // (4 * small_bytes)
            rows: DataFrame | pa.Table
            if files == 1:  # faster than Spark plans a job; others wait to append meanwhile
                rows = loaded(self.rows(table, [f"{table.name}/{name}" for name in small]))
            else:
                rows = self._of_files(table, small).coalesce(files)
            directory, kept = self._rewritten(rows, table, small)
            self.ledger.replace({table.name: directory}, kept=kept)
            return len(small)

    def thin(self, table: Table, make: Callable[[DataFrame], DataFrame], now_ms: int) -> int:
        """Thins out rows of a measured table that are older than THIN_DAYS with `make`, once there is a day of them;
        returns how many files were rewritten. Does nothing if the directory is not on this machine, or the tables have
        a format.
        """
        if self.format_log is not None or not isinstance(self.files, LocalFiles):
            return 0
        with self.lock:
            cut_ms, done_ms = cut_of(now_ms, THIN_DAYS), self.ledger.thinned.get(table.name, 0)
            if cut_ms <= done_ms or not self.ledger.has(table.name):
                return 0
            spans = self._spans_ms(table, self.ledger.open_files(table.name))
            names = [name for name, (_, last_ms) in spans.items() if done_ms <= last_ms < cut_ms]
            thinned = {**self.ledger.thinned, table.name: cut_ms}
            if not names:
                self.ledger.note(thinned=thinned)
                return 0
            directory, kept = self._rewritten(make(self._of_files(table, names)).coalesce(1), table, names)
            self.ledger.replace({table.name: directory}, kept=kept, thinned=thinned)
            return len(names)

    def remove_old(self, now_ms: int) -> dict[str, int]:
        """Once a day, removes rows of growing tables that are older than `keep_days`, except the history's state at
        that time; returns the number of removed rows by table.
        """
        days = self.ledger.keep_days
        if not days or now_ms - self.ledger.tidied_ms < _DAY_MS:
            return {}
        if not self.ledger.tidied_ms:  # no refresh has processed the present rows yet
            with self.lock:
                self.ledger.note(tidied=now_ms)
            return {}
        cut_ms = cut_of(now_ms, days)
        removed: dict[str, int] = {}
        directories: dict[str, str] = {}
        beside: dict[str, list[str]] = {}
        counts: dict[str, dict[int, int]] = {}
        with self.lock:
            for table in TABLES:
                spans = self._spans_ms(table, self._busy(table))
                names = [name for name, (first_ms, _) in spans.items() if first_ms < cut_ms]
                if not names:
                    continue
                old = [f"{table.name}/{name}" for name in names]
                kept = what_stays(table, self._of_files(table, names), cut_ms).coalesce(1)
                directory, own = self._rewritten(kept, table, names)
                beside |= own
                new = set(self.ledger.parquet(directory)) - set(self.ledger.files(table.name))
                left = [f"{directory}/{name}" for name in new]
                removed[table.name] = self.count_rows(table, old) - self.count_rows(table, left)
                directories[table.name] = directory
                if table in HISTORY:
                    _add_missing(counts, self.rows(table, old), self.rows(table, left))
            kept_from = max(cut_ms, self.ledger.kept_from_ms)
            self.ledger.replace(directories, kept=beside, rows=counts, tidied=now_ms, kept_from=kept_from)
        return {name: count for name, count in removed.items() if count}

    def _busy(self, table: Table) -> set[str]:
        """The table's files that the next refresh needs."""
        return {*self.ledger.fresh_files(table.name), *self.ledger.open_files(table.name)}

    def _rewritten(
        self, rows: DataFrame | pa.Table, table: Table, names: Sequence[str]
    ) -> tuple[str, dict[str, list[str]]]:
        """Stages a directory with these rows in place of the files `names`, and with the table's other files. If the
        tables have a format, other files stay where they are, and the second result names them, by table.
        """
        staged = self.stage(rows, table)
        last = max(map(number_of, names))
        for name in self.ledger.parquet(staged.directory):
            self.files.move(f"{staged.directory}/{name}", f"{staged.directory}/{last:010}-{name}")
        others = [name for name in self.ledger.files(table.name) if name not in set(names)]
        if self.format_log is not None:
            return staged.directory, {table.name: others}
        assert isinstance(self.files, LocalFiles)
        for name in others:
            self.files.link(f"{table.name}/{name}", f"{staged.directory}/{name}")
        return staged.directory, {}

    def _spans_ms(self, table: Table, but: Collection[str]) -> dict[str, tuple[int, int]]:
        """By file of the table, except `but`, the earliest and the latest time in Table.day_of, in ms. They come from
        the file's statistics or, without these, from its rows; files without a time are missing.
        """
        found = {}
        for name in self.ledger.files(table.name) if table.day_of is not None else ():
            if name in but:
                continue
            path = f"{table.name}/{name}"
            span = _times(self.files.footer(path), str(table.day_of))
            if span is None:
                times = loaded(self.rows(table, [path]), [str(table.day_of)]).column(0)
                span = tuple(pyarrow.compute.min_max(times).as_py().values())
            if None not in span:
                found[name] = _ms(span[0]), _ms(span[1])
        return found

    def facts(self, table: Table, name: str) -> FileFacts:
        """The facts about a file of the table, for a format's log. A missing file has size 0."""
        if "/" in name:  # another program has written it elsewhere
            return FileFacts(name, 0, 0, 0)
        try:
            size, modified_ms = self.files.status(f"{table.name}/{name}")
            found = self.files.footer(f"{table.name}/{name}")
            times = None if table.day_of is None else _times(found, table.day_of)
            return FileFacts(name, size, modified_ms, int(found.num_rows), times)
        except FileNotFoundError:
            return FileFacts(name, 0, 0, 0)

    def count_of(self, rows: Staged | Input) -> int:
        """Number of rows, without open ones."""
        return self.count_rows(rows.table, rows.files)

    def count_rows(self, table: Table, files: Sequence[str]) -> int:
        """Number of rows of files below the directory, from their footers."""
        return self._counts.count(table, files)

    def count(self, table: Table) -> int:
        """Number of rows of a table."""
        return self.count_rows(table, [f"{table.name}/{name}" for name in self.ledger.files(table.name)])

    def aside(self, table: Table) -> str:
        """A new staging directory for files of a table, below the directory."""
        return f"{self.staging}/{uuid.uuid4().hex}-{table.name.replace('/', '-')}"


def rows_in(folder: Path, table: Table, files: Sequence[str]) -> pads.Dataset | pa.Table:
    """The rows of files below a folder of this machine."""
    if not files:
        return table.arrow.empty_table()
    import pyarrow.dataset as pads  # only here: see relations

    return pads.dataset([str(folder / file) for file in files], schema=table.arrow, format="parquet")


def _times(footer: pq.FileMetaData, column: str) -> tuple[datetime, datetime] | None:
    """The first and the last time in a column, by a file's statistics; None: these are incomplete."""
    place = [footer.schema.column(number).path for number in range(len(footer.schema))].index(column)
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    known = [group.column(place).statistics for group in groups]
    if not known or not all(each is not None and each.has_min_max for each in known):
        return None
    return min(each.min for each in known), max(each.max for each in known)


def cut_of(now_ms: int, days: int) -> int:
    """The time in ms from which on rows are kept, if they are kept for `days` days: the start of a day (UTC)."""
    return (now_ms // _DAY_MS - days) * _DAY_MS


def _ms(time: datetime) -> int:
    return int(time.replace(tzinfo=UTC).timestamp() * 1000)


def _add_missing(counts: dict[str, dict[int, int]], before: Rows, after: Rows) -> None:
    """Adds the numbers of removed rows to `counts`, by cluster and partition of the offsets topic. A partition without
    removed rows gets no entry: its gaps have another reason.
    """
    found: Counter[tuple[str, int]] = Counter()
    for rows, sign in ((before, 1), (after, -1)):
        places = loaded(rows, ["cluster", "log_partition"]).group_by(["cluster", "log_partition"])
        for row in places.aggregate([([], "count_all")]).to_pylist():
            found[row["cluster"], row["log_partition"]] += sign * row["count_all"]
    for (cluster, partition), count in found.items():
        if count:
            own = counts.setdefault(cluster, {})
            own[partition] = own.get(partition, 0) + count


def _literal(url: str) -> str:
    """A URL with globs escaped, for reading: Spark takes paths to read for globs, but not paths to write."""
    return _GLOB.sub(r"\\\g<0>", url)
