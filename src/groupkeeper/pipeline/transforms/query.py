"""Queries of history that two engines run: Spark, which takes all of it, and DuckDB in this process, which takes what
is new where that is little (present.sql). A query is written once; what the two call by different names are `Words`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from groupkeeper.pipeline.tables import Table
from groupkeeper.pipeline.tables.schema import LAST_MS, Column, ddl_of

__all__ = ["Query", "Words", "of_frames"]


class Words(Protocol):
    """What SQL of the two engines has different words for."""

    def of(self, relation: str) -> str:
        """A relation that is given."""

    def row(self, columns: Mapping[str, str]) -> str:
        """Values by their names, as one."""

    def last_known(self, value: str, over: str) -> str:
        """The last value that is not null, of a window."""

    def each(self, *values: str) -> str:
        """A row for each of the values that is not null."""

    def each_of(self, values: str) -> str:
        """A row for each element of a list."""

    def known(self, *values: str) -> str:
        """The values that are not null, as a list."""

    def mapped(self, values: str, make: Callable[[str], str]) -> str:
        """What is made of each element of a list."""

    def kept(self, values: str, when: Callable[[str], str]) -> str:
        """The elements of a list of which something is true."""

    def joined(self, *lists: str) -> str:
        """The elements of lists, none of which is null."""

    def there(self, values: str, of: str) -> str:
        """A list, empty where it is null; `of` is its type in Spark."""

    def has(self, values: str, value: str) -> str:
        """Whether a list has a value; null where the list is."""

    def size(self, values: str) -> str:
        """How many elements a list has; null where it is null."""

    def collected(self, value: str) -> str:
        """The values of a group that are not null, as a list in any order."""

    def time_of(self, ms: str) -> str:
        """tables.schema.TIME by its milliseconds since the epoch."""

    def parsed(self, text: str, columns: Sequence[Column]) -> str:
        """What of JSON has these columns, as one value."""

    def in_order(self, value: str, by: str) -> str:
        """The values of a group that are not null, as a list."""

    def tail(self, values: str, count: int) -> str:
        """The last elements of a list."""

    def ms_between(self, earlier: str, later: str) -> str:
        """How much later, in milliseconds."""

    def later(self, time: str, ms: str) -> str:
        """A time that is later by so many milliseconds, and has whole ones."""


class Query(NamedTuple):
    """`text` gives a SELECT whose relations are those that are `given`, by their names in it; their columns are those
    of the tables. The result has the columns of `wanted`, and `extra` ones behind them.
    """

    wanted: Table | pa.Schema
    text: Callable[[Words], str]
    given: dict[str, Table]
    extra: tuple[pa.Field, ...] = ()


class _Spark:
    def of(self, relation: str) -> str:
        return f"{{{relation}}}"

    def row(self, columns: Mapping[str, str]) -> str:
        return f"struct({', '.join(f'{value} AS {name}' for name, value in columns.items())})"

    def last_known(self, value: str, over: str) -> str:
        return f"last_value({value}) IGNORE NULLS OVER ({over})"

    def each(self, *values: str) -> str:
        return self.each_of(self.known(*values))

    def each_of(self, values: str) -> str:
        return f"explode({values})"

    def known(self, *values: str) -> str:
        return f"filter(array({', '.join(values)}), each -> each IS NOT NULL)"

    def mapped(self, values: str, make: Callable[[str], str]) -> str:
        return f"transform({values}, each -> {make('each')})"

    def kept(self, values: str, when: Callable[[str], str]) -> str:
        return f"filter({values}, one -> {when('one')})"

    def joined(self, *lists: str) -> str:
        return f"concat({', '.join(lists)})"

    def there(self, values: str, of: str) -> str:
        return f"coalesce({values}, CAST(array() AS {of}))"

    def has(self, values: str, value: str) -> str:
        return f"array_contains({values}, {value})"

    def size(self, values: str) -> str:
        return f"array_size({values})"

    def collected(self, value: str) -> str:
        return f"collect_list({value})"

    def time_of(self, ms: str) -> str:
        return f"CASE WHEN {ms} BETWEEN 0 AND {LAST_MS} THEN timestamp_millis({ms}) END"

    def parsed(self, text: str, columns: Sequence[Column]) -> str:
        schema = ", ".join(f"`{column.name}` {ddl_of(column.type)}" for column in columns)
        return f"from_json({text}, '{schema}')"

    def in_order(self, value: str, by: str) -> str:
        pairs = f"collect_list(CASE WHEN {value} IS NOT NULL THEN struct({by} AS at, {value} AS own) END)"
        return f"transform(array_sort({pairs}), each -> each.own)"

    def tail(self, values: str, count: int) -> str:
        return f"slice({values}, greatest(array_size({values}) - {count - 1}, 1), {count})"

    def ms_between(self, earlier: str, later: str) -> str:
        return f"(unix_millis({later}) - unix_millis({earlier}))"

    def later(self, time: str, ms: str) -> str:
        return f"timestamp_millis(unix_millis({time}) + {ms})"


_SPARK = _Spark()


def of_frames(query: Query, spark: SparkSession, given: Mapping[str, DataFrame]) -> DataFrame:
    """What Spark finds. A relation that is not given has no rows."""
    frames: dict[str, Any] = {
        name: given[name] if name in given else spark.createDataFrame([], table.ddl)
        for name, table in query.given.items()
    }
    return spark.sql(query.text(_SPARK), **frames)
