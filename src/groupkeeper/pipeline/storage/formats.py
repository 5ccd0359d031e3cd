"""The formats of a lake."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from groupkeeper.pipeline.storage.delta import DeltaLake
from groupkeeper.pipeline.storage.iceberg import IcebergLake
from groupkeeper.pipeline.storage.lake import Lake, LakePlace


def open_lake(spark: SparkSession, place: LakePlace, directory: str) -> Lake:
    """The tables of a lake; `directory` is the URL of the output."""
    kinds: Mapping[str, type[DeltaLake | IcebergLake]] = {"delta": DeltaLake, "iceberg": IcebergLake}
    return kinds[place.format](spark, place, directory)
