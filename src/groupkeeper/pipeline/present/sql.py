"""SQL over rows in the process that calls it, by DuckDB: a task of Spark's that builds tables, or a reader of tables.

A task builds many tables of the same rows; plans of Spark would be dozens of jobs, each with its exchanges.
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads

from groupkeeper.pipeline.tables.schema import LAST_MS, Column, Table, ddl_of
from groupkeeper.pipeline.transforms.query import Query

__all__ = [
    "ASSIGNED",
    "Rows",
    "copied",
    "empty",
    "made",
    "of_rows",
    "only",
    "plain",
    "together",
    "use_one_thread",
    "values",
]

Rows: TypeAlias = pa.Table | pads.Dataset | pads.Scanner
"""Of a table. Times of a data set or a scanner must be `plain`."""

ASSIGNED = """
SELECT cluster, group_id, group_type, member_id, coalesce(own.topic, names.topic) AS topic, partitions
FROM (SELECT cluster, group_id, group_type, member_id, unnest(assigned, recursive := true) FROM members) AS own
LEFT JOIN names USING (cluster, topic_id)
"""
"""Of `members`, rows of tables.MEMBERS, what each is assigned, a row for each topic. The newer protocols have ids of
topics, which `names` knows by `cluster` and `topic_id`.
"""

_SETTINGS = {"memory_limit": "1GB", "preserve_insertion_order": "false"}
_MACROS = f"""
CREATE MACRO later(time, ms) AS make_timestamp((epoch_us(time) // 1000 + ms) * 1000);  -- epoch_ms rounds
CREATE MACRO ms_between(earlier, later) AS epoch_us(later) // 1000 - epoch_us(earlier) // 1000;
CREATE MACRO time_of(ms) AS CASE WHEN ms BETWEEN 0 AND {LAST_MS} THEN make_timestamp(ms * 1000) END;
CREATE MACRO told_ms(lag) AS  -- aborted records don't wait; of an open transaction do where nothing before them does
    CASE WHEN lag.committed_lag_ms > 0 OR lag.last_stable_offset = lag.log_end_offset
        THEN coalesce(lag.committed_lag_ms, lag.lag_ms) ELSE lag.lag_ms END;
CREATE MACRO waits_ms(lag) AS CASE  -- of a record whose time is ahead: since the measurement that found it first
    WHEN NOT lag.is_waiting THEN 0
    WHEN told_ms(lag) = 0 THEN coalesce(ms_between(
        list_filter(lag.measures, lambda each: each.log_end_offset > lag.committed_offset)[1].time, lag.measured_time
    ), 0)
    ELSE told_ms(lag) END;
"""
_BATCH = 100_000


def made(
    wanted: Table | pa.Schema, query: str, given: Mapping[str, Rows], values: Mapping[str, Any] | None = None,
    *extra: pa.Field,
) -> pa.RecordBatchReader:  # fmt: skip
    """Rows of a table (or a schema), followed by the `extra` columns: the result of a query. `given` has its relations
    by name, `values` has its `$parameters`.
    """
    connection = _database().cursor()
    for name, rows in given.items():
        # DuckDB reads all rows of a scanner and filters them itself: otherwise Arrow may compare a filter's time, which
        # has no zone, with times in the files, and fail.
        if isinstance(rows, pa.Table):
            connection.register(name, rows.cast(plain(rows.schema)))
        else:
            connection.register(name, rows if isinstance(rows, pads.Scanner) else rows.scanner())
    found = connection.sql(query, params=dict(values or {})).to_arrow_reader(_BATCH)
    schema = pa.schema([*(wanted if isinstance(wanted, pa.Schema) else wanted.arrow), *extra])
    return pa.RecordBatchReader.from_batches(schema, _batches(connection, found, schema))


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    """One for the process: opening one costs as much as a query of many rows. What is given to a query is only its own
    cursor's.
    """
    connection = duckdb.connect(config={**_SETTINGS, "temp_directory": tempfile.gettempdir()})
    connection.execute(_MACROS)
    return connection


def use_one_thread() -> None:
    """From now on in this process."""
    _database().execute("SET threads = 1")


class _DuckDB:
    """transforms.query.Words"""

    def of(self, relation: str) -> str:
        return relation

    def row(self, columns: Mapping[str, str]) -> str:
        return f"struct_pack({', '.join(f'{name} := {value}' for name, value in columns.items())})"

    def last_known(self, value: str, over: str) -> str:
        return f"last_value({value} IGNORE NULLS) OVER ({over})"

    def each(self, *values: str) -> str:
        return self.each_of(self.known(*values))

    def each_of(self, values: str) -> str:
        return f"unnest({values})"

    def known(self, *values: str) -> str:
        return f"list_filter([{', '.join(values)}], lambda each: each IS NOT NULL)"

    def mapped(self, values: str, make: Callable[[str], str]) -> str:
        return f"list_transform({values}, lambda each: {make('each')})"

    def kept(self, values: str, when: Callable[[str], str]) -> str:
        return f"list_filter({values}, lambda one: {when('one')})"

    def joined(self, *lists: str) -> str:
        return f"({' || '.join(lists)})"

    def there(self, values: str, of: str) -> str:
        return f"coalesce({values}, [])"

    def has(self, values: str, value: str) -> str:
        return f"list_contains({values}, {value})"

    def size(self, values: str) -> str:
        return f"len({values})"

    def collected(self, value: str) -> str:
        return f"list({value}) FILTER ({value} IS NOT NULL)"

    def time_of(self, ms: str) -> str:
        return f"time_of({ms})"

    def parsed(self, text: str, columns: Sequence[Column]) -> str:
        return f"from_json({text}, '{json.dumps({column.name: _form_of(column.type) for column in columns})}')"

    def in_order(self, value: str, by: str) -> str:
        return f"coalesce(list({value} ORDER BY {by}) FILTER ({value} IS NOT NULL), [])"

    def tail(self, values: str, count: int) -> str:
        return f"({values})[-{count}:]"

    def ms_between(self, earlier: str, later: str) -> str:
        return f"ms_between({earlier}, {later})"

    def later(self, time: str, ms: str) -> str:
        return f"later({time}, {ms})"


def _form_of(kind: pa.DataType) -> Any:
    """A type, as DuckDB expects JSON to be."""
    if pa.types.is_list(kind):
        return [_form_of(kind.value_type)]
    if pa.types.is_struct(kind):
        return {kind.field(index).name: _form_of(kind.field(index).type) for index in range(kind.num_fields)}
    return ddl_of(kind)


_WORDS = _DuckDB()


def of_rows(query: Query, given: Mapping[str, Rows]) -> pa.RecordBatchReader:
    """The result of DuckDB. A relation that is not given has no rows."""
    rows = {name: given.get(name, empty(table)) for name, table in query.given.items()}
    return made(query.wanted, query.text(_WORDS), rows, None, *query.extra)


def _batches(
    connection: duckdb.DuckDBPyConnection, found: pa.RecordBatchReader, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    with connection:
        for batch in found:
            yield batch.select(schema.names).cast(schema)


def copied(table: Table, rows: Rows) -> pa.RecordBatchReader:
    """The same rows again."""
    return made(table, "SELECT * FROM rows", {"rows": rows})


def empty(table: Table) -> pa.Table:
    """No rows."""
    return table.arrow.empty_table()


def only(rows: Rows, columns: Sequence[str]) -> Rows:
    """Some columns, for `made`: others are not read."""
    if isinstance(rows, pa.Table):
        return rows.select(list(columns))
    return rows if isinstance(rows, pads.Scanner) else rows.scanner(columns=list(columns))


def together(*parts: Rows) -> Rows:
    """All rows of parts that have the same columns."""
    sets = [pads.dataset(each.cast(plain(each.schema))) if isinstance(each, pa.Table) else each for each in parts]
    return pads.dataset(sets)


def plain(schema: pa.Schema) -> pa.Schema:
    """Removes time zones: all times are UTC, and DuckDB needs an extension for zones."""
    return pa.schema([pa.field(field.name, _plain(field.type)) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain(field.type)) for field in kind])
    return kind


def values(column: pa.Array) -> list[Any]:
    """The values of a column of numbers, truths or texts, None for null: read in one go, as `to_pylist` is slow."""
    if pa.types.is_string(column.type) or pa.types.is_nested(column.type):
        return list(column.to_pylist())
    found = column.fill_null(pa.scalar(0).cast(column.type)).to_numpy(zero_copy_only=False).tolist()
    if not column.null_count:
        return list(found)
    known = column.is_valid().to_numpy(zero_copy_only=False).tolist()
    return [value if is_known else None for value, is_known in zip(found, known, strict=True)]
