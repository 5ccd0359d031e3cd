"""Queries of the history in two dialects: Spark's SQL processes the whole history, DuckDB in a task processes new rows
if there are few (present.sql). A query is written once; `Words` has the SQL that differs between them.
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
    """The SQL expressions that differ between the two engines."""

    def of(self, relation: str) -> str:
        """A given relation."""

    def row(self, columns: Mapping[str, str]) -> str:
        """A struct of named values."""

    def last_known(self, value: str, over: str) -> str:
        """The last value in a window that is not null."""

    def each(self, *values: str) -> str:
        """A row for each value that is not null."""

    def each_of(self, values: str) -> str:
        """A row for each element of a list."""

    def known(self, *values: str) -> str:
        """A list of the values that are not null."""

    def mapped(self, values: str, make: Callable[[str], str]) -> str:
        """A list with an expression applied to each element."""

    def kept(self, values: str, when: Callable[[str], str]) -> str:
        """The elements of a list for which a condition is true."""

    def joined(self, *lists: str) -> str:
        """The concatenation of lists, none of which is null."""

    def there(self, values: str, of: str) -> str:
        """A list; an empty list in place of null. `of` is its type in Spark."""

    def has(self, values: str, value: str) -> str:
        """Whether a list contains a value; null if the list is null."""

    def size(self, values: str) -> str:
        """The number of elements of a list; null if it is null."""

    def collected(self, value: str) -> str:
        """An aggregate: the values that are not null, as a list in any order."""

    def time_of(self, ms: str) -> str:
        """tables.schema.TIME by its milliseconds since the epoch."""

    def parsed(self, text: str, columns: Sequence[Column]) -> str:
        """A struct of these columns, parsed from JSON."""

    def in_order(self, value: str, by: str) -> str:
        """An aggregate: the values that are not null, as an ordered list."""

    def tail(self, values: str, count: int) -> str:
        """The last elements of a list."""

    def ms_between(self, earlier: str, later: str) -> str:
        """How much later, in milliseconds."""

    def later(self, time: str, ms: str) -> str:
        """A time that is later by a number of milliseconds, in whole milliseconds."""


class Query(NamedTuple):
    """`text` returns a SELECT over the relations in `given`, which are named as in the query and have the columns of
    the tables. The result has the columns of `wanted`, followed by the columns of `extra`.
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
    """The result of Spark. A relation that is not given has no rows."""
    frames: dict[str, Any] = {
        name: given[name] if name in given else spark.createDataFrame([], table.ddl)
        for name, table in query.given.items()
    }
    return spark.sql(query.text(_SPARK), **frames)
