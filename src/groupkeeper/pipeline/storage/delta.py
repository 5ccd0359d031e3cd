"""A lake of Delta tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from groupkeeper.pipeline.errors import SourceError
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

_LOOKED_AT = 100
"""The number of latest commits that are searched for one of a run; `tidy` and people make others."""


_VACUUM = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
}
"""The caller chooses which versions are kept. Directories are listed by this many tasks: with Spark's default, 10,000
for each table, four directories took 40 s.
"""


class DeltaLake:
    """Each commit is a Delta transaction with a number; repeating it with the same number has no effect."""

    def __init__(self, spark: SparkSession, place: LakePlace, directory: str) -> None:
        self._spark = spark
        self._place = place
        self._root = f"{directory}/{place.format}"
        # Open rows are replaced by rows of any kind, and few files need few tasks.
        spark.conf.set("spark.databricks.delta.replaceWhere.constraintCheck.enabled", "false")
        spark.conf.set("spark.databricks.delta.snapshotPartitions", "2")
        if place.catalog is not None:
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS `{place.catalog}`.`{place.namespace}`")

    def mark(self, table: Table) -> Mark | None:
        if not self._is_there(table):
            return None
        commits = self._spark.sql(f"DESCRIBE HISTORY {self._name(table)} LIMIT {_LOOKED_AT}")
        for row in commits.select("userMetadata").collect():  # the latest one comes first
            if (found := Mark.of(row.userMetadata)) is not None:
                return found
        return kept_mark(self._spark, self._name(table))

    def write(self, frame: DataFrame, table: Table, mark: Mark, replaced: Replaced) -> None:
        writer = (
            frame.write.format("delta")
            .mode("append" if replaced is Replaced.NONE else "overwrite")
            .option("txnAppId", f"groupkeeper-{mark.history}")
            .option("txnVersion", mark.entry)
            .option("userMetadata", mark.text)
        )
        if replaced is Replaced.ALL:
            writer = writer.option("overwriteSchema", "true")
        else:
            writer = writer.option("mergeSchema", "true")
        if replaced is Replaced.OPEN:
            writer = writer.option("replaceWhere", OPEN)
        else:
            writer = writer.partitionBy(*partitions(table, has_open=OPEN in frame.columns))
        if self._place.catalog is None:
            writer.save(self._path(table))
        else:
            writer.saveAsTable(self._name(table))

    def read(self, table: Table, condition: str | None = None) -> DataFrame:
        return own_rows(self._spark.table(self._name(table)), table, condition)

    def tidy(self, table: Table, mark: Mark, keep_hours: float) -> None:
        name = self._name(table)
        keep_mark(self._spark, name, mark)
        self._spark.sql(f"OPTIMIZE {name}")
        with self._set(_VACUUM):
            self._spark.sql(f"VACUUM {name} RETAIN {keep_hours:g} HOURS")

    def remove(self, table: Table, condition: str) -> None:
        self._spark.sql(f"DELETE FROM {self._name(table)} WHERE {condition}")

    def replace_days(self, table: Table, days: Sequence[date], frame: DataFrame) -> None:
        which = ", ".join(f"DATE '{day}'" for day in days)
        writer = frame.write.format("delta").mode("overwrite").option("replaceWhere", f"{DAY} IN ({which})")
        if self._place.catalog is None:
            writer.save(self._path(table))
        else:
            writer.saveAsTable(self._name(table))

    @contextlib.contextmanager
    def _set(self, settings: Mapping[str, str]) -> Iterator[None]:
        before = {key: self._spark.conf.get(key, None) for key in settings}
        for key, value in settings.items():
            self._spark.conf.set(key, value)
        try:
            yield
        finally:
            for key, known in before.items():
                self._spark.conf.unset(key) if known is None else self._spark.conf.set(key, known)

    def _path(self, table: Table) -> str:
        return f"{self._root}/{table.name}"

    def _name(self, table: Table) -> str:
        if self._place.catalog is None:
            return f"delta.`{self._path(table)}`"
        return f"`{self._place.catalog}`.`{self._place.namespace}`.`{table.name}`"

    def _is_there(self, table: Table) -> bool:
        if self._place.catalog is not None:
            return self._spark.catalog.tableExists(self._name(table))
        try:
            self._spark.sql(f"DESCRIBE DETAIL {self._name(table)}").collect()
        except PySparkException as error:
            if error.getCondition() in ("DELTA_MISSING_DELTA_TABLE", "DELTA_TABLE_NOT_FOUND", "PATH_NOT_FOUND"):
                return False
            if "DELTA" in str(error.getCondition()):
                return False
            raise SourceError(f"{self._path(table)}: {error}") from error
        return True
