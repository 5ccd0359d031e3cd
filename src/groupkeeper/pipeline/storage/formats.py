"""The formats of tables."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.storage.delta import DeltaLake
from groupkeeper.pipeline.storage.iceberg import IcebergLake
from groupkeeper.pipeline.storage.lake import Lake, LakePlace, Look


def open_lake(spark: SparkSession, place: LakePlace, directory: str, look: Look) -> Lake:
    """The tables of a format; `directory` is the URL of the output. Raises SourceError with Spark Connect."""
    kinds: Mapping[str, type[DeltaLake | IcebergLake]] = {"delta": DeltaLake, "iceberg": IcebergLake}
    try:
        _ = spark.sparkContext
    except PySparkException:
        raise SourceError(f"{directory}: its tables are of {place}: use --master, not --remote") from None
    return kinds[place.format](spark, place, directory, look)
