"""Several checkpoints at once, each query under a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from groupkeeper.pipeline.checkpoints.folders import find_folders, is_pattern
from groupkeeper.pipeline.checkpoints.queries import Query, read_query
from groupkeeper.pipeline.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Checkpoint(Protocol):
    """A requested checkpoint. ``name`` None: the folder's name."""

    @property
    def name(self) -> str | None: ...

    @property
    def path(self) -> str: ...


class FoundCheckpoint(NamedTuple):
    """The queries, and why others could not be read."""

    queries: list[Query]
    failed: list[str]


def read_queries(
    checkpoints: Sequence[Checkpoint], spark: SparkSession | None = None, *, at_ms: int | None = None
) -> FoundCheckpoint:
    """The queries of these checkpoints; a path may be a pattern. `spark` is needed for paths that only Hadoop reaches;
    `at_ms` as for `read_query`.
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
                queries[name] = read_query(folder, name, at_ms=at_ms)
            except SourceError as error:
                failed.append(str(error))
    return FoundCheckpoint(list(queries.values()), failed)
