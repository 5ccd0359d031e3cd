"""The progress of queries, from their checkpoints.

A batch is planned when `offsets/N` exists, and done when `commits/N` exists: after a stop the query continues from
`offsets/N` of the last done batch. These are the offsets to read next.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.pipeline.checkpoints import form
from groupkeeper.pipeline.checkpoints.folders import Folder, find_folders, is_pattern
from groupkeeper.pipeline.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_FOLLOW = "/_groupkeeper/checkpoint/"
_TRIES = 3
"""How often to read a checkpoint: a running query removes the files of old batches meanwhile."""


class Query(NamedTuple):
    """A query, and the offsets that it reads of one cluster."""

    name: str
    path: str
    query_id: str | None
    """None: the checkpoint does not tell it."""
    batch_id: int | None
    """The last batch that is done; None: none is, and `offsets` are the first ones."""
    done_ms: int
    """When that batch was done; without one, when the query began. 0: unknown."""
    offsets: Mapping[TopicPartition, int]
    """The next ones to read."""
    earlier_ms: tuple[int, ...] = ()
    """When the batches ended whose files are still there, in order."""
    running: Mapping[TopicPartition, int] = {}
    """The end offsets of the batch under way."""
    others: int = 0
    """The number of sources other than Spark's for Kafka and `groupkeeper`."""
    notes: tuple[str, ...] = ()


class _Gone(Exception):
    """A file of the checkpoint has been removed."""


def read_query(folder: Folder, name: str, clusters: Collection[str] = (), *, at_ms: int | None = None) -> Query:
    """Reads a query's checkpoint: its state at `at_ms`, or now if that is None or earlier than the checkpoint goes
    back. `name`: what to call the query; `clusters`: the names of the wanted cluster, its id among them. Raises
    SourceError.
    """
    for left in reversed(range(_TRIES)):
        try:
            return _CheckpointReader(folder, clusters).query(name, at_ms)
        except _Gone as gone:
            if not left:
                raise SourceError(
                    f"{folder.path}: commits/{gone} is there, offsets/{gone} is not: the checkpoint is not whole, and "
                    "Spark will not go on from it either"
                ) from None
    raise AssertionError


class _CheckpointReader:
    def __init__(self, folder: Folder, clusters: Collection[str]) -> None:
        self._folder = folder
        self._clusters = clusters
        self._notes: list[str] = []

    def query(self, name: str, at_ms: int | None) -> Query:
        planned = self._folder.times("offsets")
        text = self._folder.read("metadata")
        if planned is None:
            raise SourceError(
                f"{self._folder.path} is no checkpoint of a streaming query, which has a folder 'offsets': give what "
                "the query has as checkpointLocation"
            )
        done = _numbered(self._folder.times("commits") or {})
        if at_ms is not None:
            done = {number: ms for number, ms in done.items() if ms <= at_ms} or done
        batch_id = max(done, default=None)
        following = [number for number in _numbered(planned) if batch_id is None or number > batch_id]
        offsets, others, done_ms = self._from_begin(planned) if batch_id is None else self._done(batch_id, done)
        if not offsets and _OF_FOLLOW in self._folder.path:
            raise SourceError(
                f"{self._folder.path}: how far 'groupkeeper pipeline follow' has read is in its tables, not here: see "
                "the table freshness, or 'groupkeeper pipeline quality'"
            )
        running = self._running(min(following)) if following else {}
        valid = self._valid(offsets)
        unknown = running.keys() - valid.keys() if batch_id is None else {}
        if unknown or (batch_id is None and not offsets):
            where = f" of {len(unknown)} partitions" if unknown else ""
            self._notes.append(f"no batch is done, and where the query began is not written{where}: wait for the first")
        return Query(
            name, self._folder.path, None if text is None else form.parse_query_id(text), batch_id, done_ms,
            valid, tuple(ms for _, ms in sorted(done.items())), running, others, tuple(self._notes),
        )  # fmt: skip

    def _done(self, batch_id: int, done: Mapping[int, int]) -> tuple[list[form.ByCluster], int, int]:
        path = f"offsets/{batch_id}"
        text = self._folder.read(path)
        if text is None:
            raise _Gone(batch_id)
        batch = form.parse_batch(text, f"{self._folder.path}/{path}")
        found = [own if own is not None else self._begin(source) or {} for source, own in batch.sources.items()]
        return found, batch.others, done[batch_id]

    def _from_begin(self, planned: Mapping[str, int]) -> tuple[list[form.ByCluster], int, int]:
        sources = self._folder.times("sources")
        times = [*planned.values(), *(sources or {}).values()]
        found = [self._begin(source) for source in sorted(sources or {})]
        return [own for own in found if own is not None], found.count(None), min(times, default=0)

    def _begin(self, source: str) -> form.ByCluster | None:
        path = f"sources/{source}/0"
        text = self._folder.read(path)
        return None if text is None else form.parse_begin(text, f"{self._folder.path}/{path}")

    def _running(self, batch_id: int) -> dict[TopicPartition, int]:
        text = self._folder.read(f"offsets/{batch_id}")
        if not text:  # it is being written, or was left so by a query that was killed
            return {}
        batch = form.parse_batch(text, f"{self._folder.path}/offsets/{batch_id}")
        known = [form.of_cluster(each, self._clusters) for each in batch.sources.values() if each is not None]
        return {tp: offset for own in known for tp, offset in (own or {}).items() if offset is not None}

    def _valid(self, sources: Sequence[form.ByCluster]) -> dict[TopicPartition, int]:
        """The next offset of each partition; the smaller one if two sources read the partition."""
        found: dict[TopicPartition, int] = {}
        for each in sources:
            own = form.of_cluster(each, self._clusters)
            if own is None and each:
                why = form.other_clusters(each, self._clusters)
                self._notes.append(f"{why}: ask the other one, or give this one's name there, as CLUSTER:=PATH")
            for tp, offset in (own or {}).items():
                if offset is None:
                    self._notes.append(f"{tp.topic}-{tp.partition} has no offset in it")
                else:
                    found[tp] = min(offset, found.get(tp, offset))
        return found


def _numbered(times: Mapping[str, int]) -> dict[int, int]:
    """The files of batches, by batch number. Unfinished files and checksums have other names."""
    return {int(name): ms for name, ms in times.items() if name.isascii() and name.isdecimal()}


class Checkpoint(Protocol):
    """A requested checkpoint. `cluster`: the query's name for the cluster; None: not given. `name` None: the
    folder's name.
    """

    @property
    def cluster(self) -> str | None: ...

    @property
    def name(self) -> str | None: ...

    @property
    def path(self) -> str: ...


class FoundCheckpoint(NamedTuple):
    """The queries, and why others could not be read."""

    queries: list[Query]
    failed: list[str]


def read_queries(
    checkpoints: Sequence[Checkpoint], clusters: Sequence[str] = (), spark: SparkSession | None = None, *,
    at_ms: int | None = None,
) -> FoundCheckpoint:  # fmt: skip
    """The queries of these checkpoints; a path may be a pattern. `spark` is needed for paths that only Hadoop reaches;
    `clusters` and `at_ms` as for `read_query`.
    """
    queries: dict[str, Query] = {}
    failed: list[str] = []
    for each in checkpoints:
        try:
            folders = find_folders(each.path, spark)
            if each.name is not None and is_pattern(each.path) and len(folders) > 1:
                raise SourceError(
                    f"{each.path}: {len(folders)} folders match, and all would be called {each.name}: without a NAME "
                    "each is called as its folder"
                )
        except SourceError as error:
            failed.append(str(error))
            continue
        for folder in folders:
            name = each.name or folder.path.rstrip("/").rpartition("/")[2]
            try:
                if name in queries:
                    raise SourceError(
                        f"{folder.path} and {queries[name].path} are both called {name}: name one otherwise, as "
                        f"NAME={folder.path}"
                    )
                called = clusters if each.cluster is None else [each.cluster, *clusters]
                queries[name] = read_query(folder, name, called, at_ms=at_ms)
            except SourceError as error:
                failed.append(str(error))
    return FoundCheckpoint(list(queries.values()), failed)
