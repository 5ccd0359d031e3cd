"""Settings of clusters beside the rows that they decide of."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from groupkeeper.pipeline.kafka.retention import DEFAULT, Retention, Retentions

__all__ = ["by_cluster"]


def by_cluster(retentions: Retentions, of: Callable[[Retention], int]) -> Column:
    """A number of the settings of a row's cluster."""
    default = F.lit(of(DEFAULT))
    if not retentions:
        return default
    pairs = [F.lit(each) for name, own in sorted(retentions.items()) for each in (name, of(own))]
    return F.coalesce(F.create_map(*pairs)[F.col("cluster")], default)
