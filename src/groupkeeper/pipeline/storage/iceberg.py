"""A lake of Iceberg tables."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupkeeper.pipeline.storage.lake import (
    DAY,
    OPEN,
    LakePlace,
    Mark,
    Replaced,
    keep_mark,
    kept_mark,
    own_rows,
    partitions,
)
from groupkeeper.pipeline.tables import Table

CATALOG = "groupkeeper"
"""The catalog of the tables below an output directory, as in groupkeeper.lag."""

_PROPERTY = "groupkeeper"


def _catalog_at(spark: SparkSession, warehouse: str) -> str:
    """Configures a catalog for the tables below a directory, and returns its name. A catalog that this Spark session
    uses is not changed: another directory gets another name.
    """
    name = CATALOG
    if spark.conf.get(f"spark.sql.catalog.{name}.warehouse", warehouse) != warehouse:
        name = f"{CATALOG}_{zlib.crc32(warehouse.encode()):08x}"
    key = f"spark.sql.catalog.{name}"
    spark.conf.set(key, "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"{key}.type", "hadoop")
    spark.conf.set(f"{key}.warehouse", warehouse)
    return name


class IcebergLake:
    """Each commit is a snapshot whose summary has the mark."""

    def __init__(self, spark: SparkSession, place: LakePlace, directory: str) -> None:
        self._spark = spark
        if place.catalog is None:
            self._catalog, self._prefix = _catalog_at(spark, f"{directory}/{place.format}"), ""
        else:
            self._catalog, self._prefix = place.catalog, f"`{place.namespace}`."
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS `{place.catalog}`.`{place.namespace}`")

    def mark(self, table: Table) -> Mark | None:
        if not self._spark.catalog.tableExists(self._name(table)):
            return None
        summaries = (
            self._spark.table(f"{self._name(table)}.snapshots")
            .orderBy(F.col("committed_at").desc())
            .select(F.col("summary").getItem(_PROPERTY).alias("mark"))
        )
        for row in summaries.collect():
            if (found := Mark.of(row.mark)) is not None:
                return found
        return kept_mark(self._spark, self._name(table))

    def write(self, frame: DataFrame, table: Table, mark: Mark, replaced: Replaced) -> None:
        writer = frame.writeTo(self._name(table)).option(f"snapshot-property.{_PROPERTY}", mark.text)
        if not self._spark.catalog.tableExists(self._name(table)):
            writer = writer.using("iceberg").tableProperty("format-version", "2")
            if parts := partitions(table, has_open=OPEN in frame.columns):
                writer = writer.partitionedBy(*(F.col(name) for name in parts))
            writer.create()
            return
        self._add_columns(frame, table)
        if replaced is Replaced.NONE:
            writer.append()
        else:
            writer.overwrite(F.col(OPEN) if replaced is Replaced.OPEN else F.lit(True))

    def _add_columns(self, frame: DataFrame, table: Table) -> None:
        known = set(self._spark.table(self._name(table)).columns)
        new = [f"`{field.name}` {field.dataType.simpleString()}" for field in frame.schema if field.name not in known]
        if new:
            self._spark.sql(f"ALTER TABLE {self._name(table)} ADD COLUMNS ({', '.join(new)})")

    def read(self, table: Table, condition: str | None = None) -> DataFrame:
        return own_rows(self._spark.table(self._name(table)), table, condition)

    def tidy(self, table: Table, mark: Mark, keep_hours: float) -> None:
        keep_mark(self._spark, self._name(table), mark)
        name = f"{self._prefix}`{table.name}`"
        before = f"current_timestamp() - INTERVAL {round(keep_hours * 3600)} SECONDS"
        until = self._spark.sql(f"SELECT CAST({before} AS STRING)").collect()[0][0]
        call = f"CALL `{self._catalog}`.system"
        if table.day_of is not None:  # first, as the files that it replaces may have removed rows
            options = "map('delete-file-threshold', '1')"
            self._spark.sql(f"{call}.rewrite_data_files(table => '{name}', options => {options})")
        self._spark.sql(f"{call}.expire_snapshots(table => '{name}', older_than => TIMESTAMP '{until}')")

    def remove(self, table: Table, condition: str) -> None:
        self._spark.sql(f"DELETE FROM {self._name(table)} WHERE {condition}")

    def replace_days(self, table: Table, days: Sequence[date], frame: DataFrame) -> None:
        frame.writeTo(self._name(table)).overwrite(F.col(DAY).isin(list(days)))

    def _name(self, table: Table) -> str:
        return f"`{self._catalog}`.{self._prefix}`{table.name}`"
