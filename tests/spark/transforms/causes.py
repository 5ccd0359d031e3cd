"""A history whose tombstones say why offsets went, by both engines."""

from __future__ import annotations

from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import DataFrame

from groupkeeper.pipeline.kafka.retention import Retentions
from groupkeeper.pipeline.present.sql import of_rows
from groupkeeper.pipeline.tables import COMMITS
from groupkeeper.pipeline.transforms.query import of_frames
from groupkeeper.pipeline.transforms.tombstones import CAUSES_OF, kept_for


def with_causes(
    commits: DataFrame, group_records: DataFrame, retentions: Retentions = MappingProxyType({})
) -> DataFrame:
    """All rows of tables.COMMITS, as Spark tells them; this process tells the same."""
    spark = commits.sparkSession
    kept = kept_for(retentions)
    given = {"commits": commits, "group_records": group_records}
    settings = {"kept_for": spark.createDataFrame(kept)} if len(kept) else {}
    found = of_frames(CAUSES_OF, spark, {**given, **settings}).select(*COMMITS.names)
    here = of_rows(CAUSES_OF, {name: rows.toArrow() for name, rows in given.items()} | {"kept_for": kept})
    assert _rows(here.read_all().select(COMMITS.names)) == _rows(found.toArrow())
    return commits.where("NOT is_tombstone").select(*COMMITS.names).unionByName(found)


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.cast(COMMITS.arrow).to_pylist()))
