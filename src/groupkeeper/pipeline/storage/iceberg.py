"""Tables of Apache Iceberg: their metadata, and the files of the output directory."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from groupkeeper.pipeline.storage.lake import HISTORY, FileFacts, LakePlace, Listed, Look, Mark, changed, check_owner
from groupkeeper.pipeline.tables import Table

CATALOG = "groupkeeper"
"""The catalog of the tables below an output directory, as in groupkeeper.lag."""

_MARK = "groupkeeper"
_MAPPING = "schema.name-mapping.default"


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
    """Tables of Iceberg. Commits of file names are made by Iceberg's own operations, without a Spark job."""

    def __init__(self, spark: SparkSession, place: LakePlace, directory: str, look: Look) -> None:
        self._spark = spark
        self._root = directory
        self._look = look
        jvm: Any = spark.sparkContext._jvm
        self._iceberg = jvm.org.apache.iceberg
        if place.catalog is None:
            self._catalog, self._prefix = _catalog_at(spark, f"{directory}/{place.format}"), ""
        else:
            self._catalog, self._prefix = place.catalog, f"`{place.namespace}`."
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS `{place.catalog}`.`{place.namespace}`")

    def update(self, wanted: Listed) -> None:
        table = self._open(wanted)
        found = changed(wanted, self._mark(table), lambda: self._files(table, wanted.table), self._look)
        if found is None:
            return
        removed = [self._file(table, wanted.table, each, has_metrics=False) for each in found.removed]
        added = [each for each in found.added if each.name not in found.moved]
        if found.moved:
            moved = [each for each in found.added if each.name in found.moved]
            mark = Mark(wanted.entry - 1, "") if added else wanted.mark
            self._commit(table.newRewrite(), removed, self._new(table, wanted.table, moved), mark)
            removed = []
        if added or not found.moved:
            self._commit(table.newOverwrite(), removed, self._new(table, wanted.table, added), wanted.mark)

    def _open(self, wanted: Listed) -> Any:
        """The table as it is now, with the columns that it must have; it is created if there is none."""
        name = self._name(wanted.table)
        if not self._spark.catalog.tableExists(name):
            self._spark.sql(
                f"CREATE TABLE {name} ({wanted.table.ddl}) USING iceberg "
                f"TBLPROPERTIES ('format-version' = '2', 'write.metadata.delete-after-commit.enabled' = 'true', "
                f"'{HISTORY}' = '{wanted.history}')"
            )
        table = self._iceberg.spark.Spark3Util.loadIcebergTable(self._spark._jsparkSession, name)
        table.refresh()
        properties = table.properties()
        check_owner(name.replace("`", ""), properties.get(HISTORY), wanted.history)
        known = {field.name() for field in table.schema().columns()}
        if new := [each for each in wanted.table.names if each not in known]:
            columns = ", ".join(each for each in wanted.table.ddl_columns if each.split("`")[1] in new)
            self._spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({columns})")
            table.refresh()
        if new or properties.get(_MAPPING) is None:  # the files have names of columns, and no numbers
            mapping = self._iceberg.mapping.MappingUtil.create(table.schema())
            text = self._iceberg.mapping.NameMappingParser.toJson(mapping)
            table.updateProperties().set(_MAPPING, text).commit()
        return table

    def _mark(self, table: Any) -> Mark | None:
        """The mark of the last version that a run made; later versions by other programs are rolled back. This way a
        file that they removed is not added again, which Iceberg would delete when old versions expire.
        """
        snapshot = last = table.currentSnapshot()
        while snapshot is not None:
            if (found := Mark.of(snapshot.summary().get(_MARK))) is not None:
                if snapshot.snapshotId() != last.snapshotId():
                    table.manageSnapshots().rollbackTo(snapshot.snapshotId()).commit()
                return found
            parent = snapshot.parentId()
            snapshot = None if parent is None else table.snapshot(parent)
        return None

    def _files(self, table: Any, of: Table) -> list[str]:
        if table.currentSnapshot() is None:
            return []
        paths = [row.file_path for row in self._spark.table(f"{self._name(of)}.files").select("file_path").collect()]
        return [path.removeprefix(f"{self._root}/{of.name}/") for path in paths]

    def _new(self, table: Any, of: Table, files: Iterable[FileFacts]) -> list[Any]:
        return [self._file(table, of, each, has_metrics=True) for each in files]

    def _file(self, table: Any, of: Table, facts: FileFacts, *, has_metrics: bool) -> Any:
        # The name of a file that another program has written is its path already.
        path = facts.name if "/" in facts.name else f"{self._root}/{of.name}/{facts.name}"
        builder = self._iceberg.DataFiles.builder(table.spec()).withFormat("parquet").withPath(path)
        builder = builder.withFileSizeInBytes(facts.size).withRecordCount(facts.rows)
        if has_metrics:
            config = self._iceberg.MetricsConfig.forTable(table)
            mapping = self._iceberg.mapping.NameMappingParser.fromJson(table.properties().get(_MAPPING))
            source = table.io().newInputFile(path)
            builder = builder.withMetrics(self._iceberg.parquet.ParquetUtil.fileMetrics(source, config, mapping))
        return builder.build()

    def _commit(self, operation: Any, removed: Iterable[Any], added: Iterable[Any], mark: Mark) -> None:
        for file in removed:
            operation.deleteFile(file)
        for file in added:
            operation.addFile(file)
        operation.set(_MARK, mark.text)
        operation.commit()

    def expire(self, table: Table, keep_hours: float) -> None:
        name = self._name(table)
        if not self._spark.catalog.tableExists(name):
            return
        before = f"current_timestamp() - INTERVAL {round(keep_hours * 3600)} SECONDS"
        until = self._spark.sql(f"SELECT CAST({before} AS STRING)").collect()[0][0]
        which = f"table => '{self._prefix}`{table.name}`', older_than => TIMESTAMP '{until}'"
        self._spark.sql(f"CALL `{self._catalog}`.system.expire_snapshots({which})")

    def read(self, table: Table) -> DataFrame:
        name = self._name(table)
        self._spark.catalog.refreshTable(name)
        return self._spark.table(name)

    def _name(self, table: Table) -> str:
        return f"`{self._catalog}`.{self._prefix}`{table.name}`"
