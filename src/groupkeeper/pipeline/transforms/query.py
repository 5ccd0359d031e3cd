"""Queries of history that two engines run: Spark, which takes all of it, and DuckDB in this process, which takes what
is new where that is little (present.sql). A query is written once; what the two call by different names are `Words`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from groupkeeper.pipeline.tables import Table

__all__ = ["Query", "Words", "of_frames"]


class Words(Protocol):
    """What SQL of the two engines has different words for."""

    def of(self, relation: str) -> str:
        """A relation that is given."""

    def row(self, names: Sequence[str]) -> str:
        """Columns as one value."""

    def last_known(self, value: str, over: str) -> str:
        """The last value that is not null, of a window."""

    def each(self, *values: str) -> str:
        """A row for each of the values that is not null."""

    def each_of(self, values: str) -> str:
        """A row for each element of a list."""

    def in_order(self, value: str, by: str) -> str:
        """The values of a group that are not null, as a list."""

    def tail(self, values: str, count: int) -> str:
        """The last elements of a list."""

    def together(self, earlier: str, later: str) -> str:
        """Two lists of BIGINT as one; the first may be null."""

    def ms_between(self, earlier: str, later: str) -> str:
        """How much later, in milliseconds."""


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

    def row(self, names: Sequence[str]) -> str:
        return f"struct({', '.join(names)})"

    def last_known(self, value: str, over: str) -> str:
        return f"last_value({value}) IGNORE NULLS OVER ({over})"

    def each(self, *values: str) -> str:
        return f"explode(filter(array({', '.join(values)}), each -> each IS NOT NULL))"

    def each_of(self, values: str) -> str:
        return f"explode({values})"

    def in_order(self, value: str, by: str) -> str:
        pairs = f"collect_list(CASE WHEN {value} IS NOT NULL THEN struct({by} AS at, {value} AS own) END)"
        return f"transform(array_sort({pairs}), each -> each.own)"

    def tail(self, values: str, count: int) -> str:
        return f"slice({values}, greatest(array_size({values}) - {count - 1}, 1), {count})"

    def together(self, earlier: str, later: str) -> str:
        return f"concat(coalesce({earlier}, CAST(array() AS ARRAY<BIGINT>)), {later})"

    def ms_between(self, earlier: str, later: str) -> str:
        return f"(unix_millis({later}) - unix_millis({earlier}))"


_SPARK = _Spark()


def of_frames(query: Query, spark: SparkSession, given: Mapping[str, DataFrame]) -> DataFrame:
    """What Spark finds. A relation that is not given has no rows."""
    frames: dict[str, Any] = {
        name: given[name] if name in given else spark.createDataFrame([], table.ddl)
        for name, table in query.given.items()
    }
    return spark.sql(query.text(_SPARK), **frames)
