"""Rows of groups in the tables of a lake that follow a directory's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import SparkSession

from groupkeeper.pipeline.storage.files import LocalFiles
from groupkeeper.pipeline.storage.ledger import number_of
from groupkeeper.pipeline.storage.output import Output
from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS, Table

_GROUP = "group_id"


class LakeRows:
    """Of the tables that grow; the others are copies of the directory's. The caller has the lock of runs.

    Raises SourceError when the lake's tables are not those of the directory; what Spark raises passes.
    """

    def __init__(self, spark: SparkSession, directory: str, files: LocalFiles) -> None:
        output = Output(spark, directory, files)
        output.follow_to(None)
        assert output.mirror is not None
        self._mirror = output.mirror
        self.ledger = output.ledger
        self._tables = [each for each in self._mirror.tables() if each.day_of is not None and _GROUP in each.names]
        self._where: dict[str, str] = {}

    def groups(self, wants: Callable[[str], bool]) -> set[str]:
        """Those of all rows that are wanted."""
        found: set[str] = set()
        for table in self._tables:
            names = self._mirror.read(table).select(_GROUP).distinct().collect()
            found.update(name for (name,) in names if name is not None and wants(name))
        return found

    def choose(self, groups: Iterable[str], needles: Sequence[bytes], cluster: str | None) -> dict[str, int]:
        """Rows of these groups, or with one of the needles in bytes that could not be decoded: how many, by table as
        people call it.
        """
        self._where = {table.name: _condition(table, groups, needles, cluster) for table in self._tables}
        rows = {
            self._mirror.name_of(table): self._mirror.read(table).where(self._where[table.name]).count()
            for table in self._tables
        }
        return {name: count for name, count in rows.items() if count}

    def by_partition(self) -> dict[str, dict[int, int]]:
        """Of the history how many rows are chosen, by cluster and partition of the offsets topic."""
        found: dict[str, dict[int, int]] = {}
        for table in self._tables:
            if table in (COMMITS, GROUP_RECORDS):
                rows = self._mirror.read(table).where(self._where[table.name])
                for cluster, number, count in rows.groupBy("cluster", "log_partition").count().collect():
                    own = found.setdefault(cluster, {})
                    own[number] = own.get(number, 0) + count
        return found

    def rejected(self) -> set[tuple[str, int, int]]:
        """The places of chosen records that could not be decoded: cluster, partition of the offsets topic, offset."""
        if GROUP_RECORDS not in self._tables:
            return set()
        rows = self._mirror.read(GROUP_RECORDS).where(self._where[GROUP_RECORDS.name]).where("raw_key IS NOT NULL")
        return {tuple(row) for row in rows.select("cluster", "log_partition", "log_offset").collect()}

    def has(self, table: Table, file: str) -> bool:
        """Whether the lake has the rows of a file of the directory's."""
        return number_of(file) <= self._mirror.has_to(table)

    def remove(self) -> None:
        """Take out what is chosen, table after table."""
        for table in self._tables:
            self._mirror.remove(table, self._where[table.name])

    def update(self) -> None:
        """Bring the tables that are copies up to the directory's, which have the rows no longer."""
        self._mirror.update()

    def behind(self) -> int:
        """How many tables are not up to date: they may have rows that the directory's have no longer."""
        return len(self._mirror.behind())

    def purge(self) -> None:
        """Remove all earlier versions of all tables."""
        for table in self._mirror.tables():
            self._mirror.tidy(table, 0)

    @property
    def version_hours(self) -> float:
        """How long earlier versions can be read."""
        return self._mirror.version_hours


def _condition(table: Table, groups: Iterable[str], needles: Sequence[bytes], cluster: str | None) -> str:
    """In SQL."""
    found = f"`{_GROUP}` IN ({', '.join(map(_text, sorted(groups)))})"
    if "raw_key" in table.names:
        raw = [f"contains({name}, X'{each.hex()}')" for name in ("raw_key", "raw_value") for each in needles]
        found = " OR ".join([found, *(f"coalesce({each}, false)" for each in raw)])
    return f"({found})" if cluster is None else f"({found}) AND cluster = {_text(cluster)}"


def _text(text: str) -> str:
    r"""A literal; in those of Spark a backslash is one of `\\`."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
