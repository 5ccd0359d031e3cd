"""tables.CURRENT_OFFSETS: the last commit of each group and partition."""

from __future__ import annotations

from pyspark.sql import DataFrame

from groupkeeper.pipeline.tables import CURRENT_OFFSETS
from groupkeeper.pipeline.transforms.history import commits
from groupkeeper.pipeline.transforms.latest import latest

__all__ = ["current_offsets", "current_offsets_of_decoded"]


def current_offsets(history: DataFrame) -> DataFrame:
    """Of rows of tables.COMMITS the latest of each key, unless it is a tombstone."""
    rows = history.select(*CURRENT_OFFSETS.names, "is_tombstone")
    return latest(rows, CURRENT_OFFSETS.key).select(*CURRENT_OFFSETS.names)


def current_offsets_of_decoded(decoded: DataFrame) -> DataFrame:
    """The same of rows of tables.DECODED, for which `latestOnly=true` is enough."""
    return current_offsets(commits(decoded))
