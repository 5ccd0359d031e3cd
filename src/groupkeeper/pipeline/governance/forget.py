"""Removes the rows of groups from the history and from every table built from it. Only a format's log needs Spark."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from groupkeeper.operations.selection import Names
from groupkeeper.pipeline.checkpoints.folders import local_path
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.owners import OwnerRule, owner_of
from groupkeeper.pipeline.storage.files import LocalFiles
from groupkeeper.pipeline.storage.ledger import ROOT, Ledger
from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS, HISTORY, OWNERS, REJECTS, TABLES, Table
from groupkeeper.pipeline.tables.state import CARRIED
from groupkeeper.protocol.primitives import varint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STAGING = f"{ROOT}/staging"
_GROUP = "group_id"
_RAW = ("raw_key", "raw_value")
_READ = ("cluster", _GROUP, "kind", "name", *COMMITS.key[1:], *_RAW)
"""The columns that identify the group or reader of a row, in any table."""


class ForgetRequest(NamedTuple):
    """The groups to forget: named ones, or an owner's. `cluster` None: in all clusters."""

    groups: Names = Names(())
    owner: str | None = None
    rules: Sequence[OwnerRule] = ()
    cluster: str | None = None

    def among(self, known: Container[str]) -> ForgetRequest:
        """This request; a pattern that is the name of a known group means only that group."""
        return self._replace(groups=self.groups.among(known))

    def has(self, group_id: str) -> bool:
        if self.owner is None:
            return bool(self.groups) and self.groups.matches(group_id)
        found = owner_of(self.rules, "group", group_id)
        return found is not None and found.owner == self.owner


class Forgotten(NamedTuple):
    """The groups, the number of their rows by table, and the number of files with such rows."""

    groups: list[str]
    rows: dict[str, int]
    files: dict[str, int]
    pages: list[str]
    """HTML files beside the tables that also name the groups."""

    version_hours: float | None = None
    """How long earlier versions of the tables, with the rows, can still be read; None: there are none."""


Mask = Callable[[pa.RecordBatch], pa.Array]


def forget(
    directory: str, wanted: ForgetRequest, *, execute: bool = False, purge: bool = False,
    session: Callable[[], AbstractContextManager[SparkSession]] | None = None,
    doing: Callable[[str], None] = lambda step: None,
) -> Forgotten:  # fmt: skip
    """Remove the rows of these groups from all tables of the directory in one step, then tell a format's log. Without
    `execute` nothing is changed. `purge`: remove all earlier versions, too. `session` starts Spark for the log of a
    format; `doing` is called with descriptions of the steps there.

    Raises SourceError when it cannot be done there, or another run writes to the directory.
    """
    root = local_path(directory)
    if root is None:
        raise SourceError(f"{directory}: rows are only taken out of directories of this machine: copy it, or mount it")
    files = LocalFiles(root)
    if not files.names(f"{ROOT}/ledger"):
        raise SourceError(f"{directory} has no tables")
    try:
        with files.lock():
            ledger = Ledger(files, directory)
            if wanted.cluster is not None and wanted.cluster not in ledger.next_offsets:
                known = ", ".join(sorted(ledger.next_offsets)) or "none yet"
                raise SourceError(f"{directory} has no cluster {wanted.cluster}: its clusters: {known}")
            if ledger.lake is None and purge:
                raise SourceError(f"{directory}: its tables have no format that keeps earlier versions")
            if ledger.lake is not None and execute and session is None:
                raise SourceError(f"{directory}: its tables are of {ledger.lake['format']}: give a session of Spark")
            files.clean(_STAGING, _STAGING)  # what killed runs have written aside may have the groups, too
            forgetting = _Forgetting(root, files, ledger, wanted)
            if ledger.lake is None or not execute or session is None:
                return forgetting.run(execute=execute)
            doing("starting Spark")
            with session() as spark:
                found = forgetting.run(execute=True)
                from groupkeeper.pipeline.storage.output import Output

                output = Output(spark, directory, files)
                output.follow_to(None)
                assert output.format_log is not None
                doing(f"telling {output.format_log.name}")
                output.format_log.update()  # also where a run that was killed has left nothing else to do
                if purge:
                    doing("removing earlier versions")
                    output.format_log.purge()
                return found._replace(version_hours=output.format_log.version_hours)
    except OSError as error:
        raise SourceError(f"{directory} cannot be changed: {error.strerror or error}") from error


class _Forgetting:
    def __init__(self, root: Path, files: LocalFiles, ledger: Ledger, wanted: ForgetRequest) -> None:
        self._root, self._files, self._ledger, self._wanted = root, files, ledger, wanted
        self._tables = [table for table in (*TABLES, *CARRIED) if ledger.has(table.name)]

    def run(self, *, execute: bool) -> Forgotten:
        groups = self._groups()
        found = Forgotten(sorted(groups), {}, {}, self._pages(groups))
        if not groups:
            return found
        masks = {table.name: mask for table in self._tables if (mask := self._mask(table, groups)) is not None}
        places: list[pa.Table] = []
        changed: dict[str, dict[str, int]] = {}
        for table in self._tables:
            if (mask := masks.get(table.name)) is None:
                continue
            for name in self._ledger.files(table.name):
                path = self._root / table.name / name
                hit = 0
                for batch in _batches(path, _READ):
                    chosen = mask(batch)
                    hit += pc.sum(chosen).as_py() or 0
                    if table in HISTORY:
                        places.append(pa.Table.from_batches([batch.select(list(COMMITS.key))]).filter(chosen))
                if hit:
                    changed.setdefault(table.name, {})[name] = hit
        for name, own in changed.items():
            found.rows[name], found.files[name] = sum(own.values()), len(own)
        if execute and changed:
            self._execute(changed, masks, _counts(places))
        return found

    def _groups(self) -> set[str]:
        """The wanted groups in the tables, and all that are given by name."""
        found: set[str] = set()
        for table in self._tables:
            name = _group_column(table)
            if name is None:
                continue
            for file in self._ledger.files(table.name):
                for batch in _batches(self._root / table.name / file, [name]):
                    if batch.num_columns:
                        found.update(batch[name].unique().to_pylist())
        found.discard(None)
        wanted = self._wanted.among(found)
        named = self._wanted.groups.exact  # records may have it in their bytes
        return {*named, *(each for each in found if wanted.has(each))}

    def _mask(self, table: Table, groups: set[str]) -> Mask | None:
        """Marks the rows of a batch that are of the groups, or have their names in bytes that could not be decoded."""
        column = _group_column(table)
        names = pa.array(sorted(groups), pa.string())
        cluster = self._wanted.cluster
        if column is None and table is not REJECTS:
            return None
        rejected = self._rejected(groups) if table is REJECTS else set()
        needles = _needles(groups)

        def mask(batch: pa.RecordBatch) -> pa.Array:
            if table is REJECTS:
                keys = zip(*(batch[name].to_pylist() for name in COMMITS.key), strict=True)
                return pa.array([key in rejected for key in keys], pa.bool_())
            chosen = pc.fill_null(pc.is_in(batch[column].cast(pa.string()), names), False)
            if table is OWNERS:
                chosen = pc.and_(chosen, pc.equal(batch["kind"], "group"))
            if "raw_key" in batch.schema.names:
                pairs = zip(batch["raw_key"].to_pylist(), batch["raw_value"].to_pylist(), strict=True)
                chosen = pc.or_(chosen, pa.array([_mentions(pair, needles) for pair in pairs], pa.bool_()))
            if cluster is not None:
                chosen = pc.and_(chosen, pc.fill_null(pc.equal(batch["cluster"], cluster), False))
            return chosen

        return mask

    def _rejected(self, groups: set[str]) -> set[tuple[str, int, int]]:
        """The places of the undecodable records that contain a name of the groups."""
        needles = _needles(groups)
        found: set[tuple[str, int, int]] = set()
        for file in self._ledger.files(GROUP_RECORDS.name):
            for batch in _batches(self._root / GROUP_RECORDS.name / file, [*COMMITS.key, *_RAW]):
                for row in batch.filter(pc.is_valid(batch["raw_key"])).to_pylist():
                    is_wanted = self._wanted.cluster in (None, row["cluster"])
                    if is_wanted and _mentions((row["raw_key"], row["raw_value"]), needles):
                        found.add(tuple(row[name] for name in COMMITS.key))
        return found

    def _execute(
        self, changed: Mapping[str, Mapping[str, int]], masks: Mapping[str, Mask],
        counts: Mapping[str, Mapping[int, int]],
    ) -> None:  # fmt: skip
        staging = f"{_STAGING}/{uuid.uuid4().hex}"
        directories: dict[str, str] = {}
        renamed: dict[str, dict[str, str]] = {}
        for table in self._tables:
            if table.name not in changed:
                continue
            aside = f"{staging}/{table.name.replace('/', '-')}"
            (self._root / aside).mkdir(parents=True)
            for name in self._ledger.files(table.name):
                if name not in changed[table.name]:
                    self._files.link(f"{table.name}/{name}", f"{aside}/{name}")
                    continue
                new = f"{name.partition('-')[0]}-{uuid.uuid4().hex}.parquet"
                renamed.setdefault(table.name, {})[name] = new
                _rewrite(self._root / table.name / name, self._root / aside / new, table, masks[table.name])
            directories[table.name] = aside
        self._ledger.replace(directories, renamed=renamed, rows=counts)
        self._files.remove(staging)

    def _pages(self, groups: Iterable[str]) -> list[str]:
        """The report pages beside the tables that name one of the groups."""
        needles = [each.encode() for each in groups]
        pages = [each for each in self._root.glob("*.html") if each.is_file()]
        return sorted(str(each) for each in pages if _mentions((each.read_bytes(), None), needles))


def _group_column(table: Table) -> str | None:
    if table is OWNERS:
        return "name"
    return _GROUP if _GROUP in table.names else None


def _needles(groups: Iterable[str]) -> list[bytes]:
    """The names as Kafka's protocol encodes them: the length first."""
    names = [each.encode() for each in groups]
    whole = [len(name).to_bytes(2, "big") + name for name in names if len(name) < 1 << 15]
    return whole + [varint(len(name) + 1) + name for name in names]


def _mentions(pair: tuple[bytes | None, bytes | None], needles: Sequence[bytes]) -> bool:
    return any(needle in part for part in pair if part is not None for needle in needles)


def _batches(path: Path, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """Reads a file's rows in batches; columns that an old file lacks are left out."""
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        there = None if columns is None else [name for name in columns if name in file.schema_arrow.names]
        yield from file.iter_batches(columns=there)


def _rewrite(source: Path, target: Path, table: Table, mask: Mask) -> None:
    """Copies the rows that stay to a new file, and flushes it to the disk."""
    with pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as file:
        schema = pa.schema([table.arrow.field(name) for name in table.names if name in file.schema_arrow.names])
        with pq.ParquetWriter(target, schema) as writer:
            for batch in file.iter_batches():
                left = batch.filter(pc.invert(mask(batch)))
                writer.write_table(pa.Table.from_batches([left]).select(schema.names).cast(schema))
    with target.open("rb") as written:
        os.fsync(written.fileno())


def _counts(places: Sequence[pa.Table]) -> dict[str, dict[int, int]]:
    """How many rows of the history are removed, by cluster and partition of the offsets topic."""
    found: dict[str, dict[int, int]] = {}
    if places:
        counted = pa.concat_tables(places).group_by(list(COMMITS.key[:2])).aggregate([([], "count_all")])
        for cluster, number, count in zip(*counted.to_pydict().values(), strict=True):
            found.setdefault(cluster, {})[number] = count
    return found
