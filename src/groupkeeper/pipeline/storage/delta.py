"""Tables of Delta Lake, each in the folder of its files."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import quote, unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from groupkeeper.pipeline.storage import lake
from groupkeeper.pipeline.tables import Table

_VACUUM = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
}
"""The caller chooses which versions are kept. Directories are listed by this many tasks: with Spark's default, 10,000
for each table, four directories took 40 s.
"""

_PROPERTIES = {"delta.checkpointInterval": "100", "delta.enableDeletionVectors": "false"}
"""A checkpoint is a Spark job, and `follow` commits every few seconds. Without deletion vectors, a version's rows are
all rows of its files.
"""


class DeltaLake:
    """Tables of Delta Lake. Commits of file names are made by Delta's own transactions, without a Spark job."""

    def __init__(self, spark: SparkSession, place: lake.LakePlace, directory: str, look: lake.Look) -> None:
        self._spark = spark
        self._place = place
        self._root = directory
        self._look = look
        self._registered: set[str] = set()
        jvm: Any = spark.sparkContext._jvm
        self._delta = jvm.org.apache.spark.sql.delta
        self._scala = jvm.scala
        self._lists = jvm.java.util.ArrayList
        self._python = jvm.org.apache.spark.api.python.PythonUtils
        self._overwrite = jvm.org.apache.spark.sql.SaveMode.Overwrite
        spark.conf.set("spark.databricks.delta.snapshotPartitions", "2")  # few files need few tasks
        if place.catalog is not None:
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS `{place.catalog}`.`{place.namespace}`")

    def update(self, wanted: lake.Listed) -> None:
        table = wanted.table
        log = self._delta.DeltaLog.forTable(self._spark._jsparkSession, self._path(table))
        transaction = log.startTransaction()
        snapshot = transaction.snapshot()
        is_new = snapshot.version() < 0
        if is_new:
            found: lake.Difference | None = lake.changed(wanted, None, tuple, self._look)
        else:
            owner = snapshot.metadata().configuration().get(lake.HISTORY)
            lake.check_owner(self._path(table), owner.get() if owner.isDefined() else None, wanted.history)
            found = lake.changed(wanted, self._mark(log, snapshot), lambda: self._files(snapshot), self._look)
        if found is not None:
            self._describe(transaction, wanted, is_new=is_new)
            transaction.commit(self._actions(found, table.day_of), self._operation(wanted.mark.text))
        if self._place.catalog is not None and table.name not in self._registered:
            place = f"LOCATION '{self._path(table)}'"
            self._spark.sql(f"CREATE TABLE IF NOT EXISTS {self._name(table)} USING delta {place}")
            self._registered.add(table.name)

    def _describe(self, transaction: Any, wanted: lake.Listed, *, is_new: bool) -> None:
        """Sets the table's columns if they differ."""
        metadata: dict[str, Any] = {
            "id": str(uuid.uuid4()), "format": {"provider": "parquet", "options": {}}, "partitionColumns": [],
            "configuration": {lake.HISTORY: wanted.history, **_PROPERTIES}, "createdTime": time.time_ns() // 1_000_000,
        } if is_new else json.loads(str(transaction.metadata().json()))["metaData"]  # fmt: skip
        columns = StructType.fromDDL(wanted.table.ddl).json()
        if is_new or [each["name"] for each in json.loads(metadata["schemaString"])["fields"]] != wanted.table.names:
            new = json.dumps({"metaData": {**metadata, "schemaString": columns}})
            transaction.updateMetadata(self._action(new), False)

    def _actions(self, change: lake.Difference, column: str | None) -> Any:
        actions = self._lists()
        now_ms = time.time_ns() // 1_000_000
        for each in change.removed:
            gone = {"path": quote(each.name), "deletionTimestamp": now_ms, "dataChange": not change.moved,
                    "extendedFileMetadata": True, "partitionValues": {}, "size": each.size}  # fmt: skip
            actions.add(self._action(json.dumps({"remove": gone})))
        for each in change.added:
            new = {"path": quote(each.name), "partitionValues": {}, "size": each.size,
                   "modificationTime": each.modified_ms, "dataChange": each.name not in change.moved,
                   "stats": json.dumps(_statistics(each, column))}  # fmt: skip
            actions.add(self._action(json.dumps({"add": new})))
        return self._python.toSeq(actions)

    def _action(self, text: str) -> Any:
        return self._delta.actions.Action.fromJson(text)

    def _operation(self, mark: str) -> Any:
        none, some = self._scala.Option.empty(), self._scala.Option.apply(mark)
        write = getattr(self._delta, "DeltaOperations$Write")
        return write(self._overwrite, none, none, some, none, none, none, none, none)

    def _mark(self, log: Any, snapshot: Any) -> lake.Mark | None:
        """The mark of the last commit."""
        jvm: Any = self._spark.sparkContext._jvm
        path = jvm.org.apache.hadoop.fs.Path(log.logPath(), f"{snapshot.version():020}.json")
        text = str(log.store().read(path, log.newDeltaHadoopConf()).mkString("\n"))
        commits = [line["commitInfo"] for line in map(json.loads, text.splitlines()) if "commitInfo" in line]
        return lake.Mark.of(commits[0].get("userMetadata")) if commits else None

    def _files(self, snapshot: Any) -> list[str]:
        return [unquote(json.loads(each)["path"]) for each in snapshot.allFiles().toJSON().collectAsList()]

    def expire(self, table: Table, keep_hours: float) -> None:
        if keep_hours:
            with self._set(_VACUUM):
                self._spark.sql(f"VACUUM {self._in_sql(table)} RETAIN {keep_hours:g} HOURS")

    def read(self, table: Table) -> DataFrame:
        return self._spark.table(self._name(table))

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

    def _in_sql(self, table: Table) -> str:
        return f"delta.`{self._path(table)}`"

    def _name(self, table: Table) -> str:
        if self._place.catalog is None:
            return self._in_sql(table)
        return f"`{self._place.catalog}`.`{self._place.namespace}`.`{table.name}`"


def _statistics(file: lake.FileFacts, column: str | None) -> dict[str, Any]:
    """A file's statistics, by which readers skip files. Times in them are rounded to milliseconds."""
    found: dict[str, Any] = {"numRecords": file.rows}
    if column is not None and file.times is not None:
        first, last = file.times
        found["minValues"] = {column: f"{first:%Y-%m-%dT%H:%M:%S}.{first.microsecond // 1000:03}Z"}
        last += timedelta(milliseconds=1)
        found["maxValues"] = {column: f"{last:%Y-%m-%dT%H:%M:%S}.{last.microsecond // 1000:03}Z"}
    return found
