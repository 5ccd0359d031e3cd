"""tables.CURRENT_OFFSETS: the last commit of each group and partition."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import COMMITS, CURRENT_OFFSETS
from groupkeeper.pipeline.transforms.history import commits

__all__ = ["current_offsets", "current_offsets_of_decoded"]


def current_offsets(history: DataFrame) -> DataFrame:
    """Of rows of tables.COMMITS the latest of each key, unless it is a tombstone."""
    keys = list(CURRENT_OFFSETS.key)
    rest = [name for name in COMMITS.names if name in CURRENT_OFFSETS.names and name not in keys]
    last = F.max_by(F.struct("is_tombstone", *rest), F.col("log_offset")).alias("last")
    return (
        history.groupBy(*keys)
        .agg(last)
        .where("NOT last.is_tombstone")
        .select(*keys, *(F.col(f"last.{name}").alias(name) for name in rest))
        .select(*CURRENT_OFFSETS.names)
    )


def current_offsets_of_decoded(decoded: DataFrame) -> DataFrame:
    """The same of rows of tables.DECODED, for which `latestOnly=true` is enough."""
    return current_offsets(commits(decoded))
