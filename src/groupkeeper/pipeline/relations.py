"""Rows in memory: keys as numbers, order, matches and groups of rows, by Arrow and numpy.

Tables stay Arrow. Results are numpy arrays with an element for each row, or arrays of places (`at`): row numbers in a
table, −1 for none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline.tables.schema import LAST_MS, TIME

if TYPE_CHECKING:
    import pyarrow.dataset as pads  # imports pandas: each Python process of Spark would take a second longer to start

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@runtime_checkable
class Loaded(Protocol):
    """Rows that a filter chooses when they are loaded."""

    def load(self, names: Sequence[str] | None) -> pa.Table:
        """The rows, as `loaded` returns them."""


Rows: TypeAlias = "pa.Table | pads.Dataset | Loaded"
"""Rows of a table: in memory, in files, or a filtered choice of these."""

_Taken = TypeVar("_Taken", pa.Table, pa.Array)
_LARGEST = 2**62


def loaded(rows: Rows, names: Sequence[str] | None = None) -> pa.Table:
    """Loads the rows with these columns only (None: all), each column in one piece."""
    if isinstance(rows, Loaded):
        rows = rows.load(names)
    elif not isinstance(rows, pa.Table):
        rows = rows.to_table(columns=None if names is None else list(names))
    return (rows if names is None else rows.select(list(names))).combine_chunks()


def filled(
    schema: pa.Schema, columns: Mapping[str, pa.Array | pa.ChunkedArray | Array], rows: pa.Table | None = None
) -> pa.Table:
    """Rows of a schema with these columns, at least one; the other columns are those of `rows`, or null."""
    whole = columns if rows is None else {name: rows[name] for name in rows.column_names} | {**columns}
    size = len(next(iter(whole.values())))
    found = []
    for field in schema:
        column = whole[field.name] if field.name in whole else pa.nulls(size, field.type)
        found.append(pa.array(column, field.type) if isinstance(column, np.ndarray) else column.cast(field.type))
    return pa.table(found, schema)


def together(*parts: pa.Table) -> pa.Table:
    """All rows of parts that have the same columns, in the order of the first part's."""
    names = parts[0].column_names
    return pa.concat_tables([parts[0], *(each.select(names).cast(parts[0].schema) for each in parts[1:])])


def keys(names: Sequence[str], *tables: pa.Table) -> list[Array]:
    """The keys of each table's rows as numbers below 2^62: equal keys have equal numbers across all tables, and null
    equals null. The order of the numbers means nothing.
    """
    found = np.zeros(sum(map(len, tables)), np.int64)
    size = 1
    for name in names:
        kind = tables[0].schema.field(name).type
        column = pa.chunked_array([chunk for table in tables for chunk in table[name].chunks], kind)
        coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        if size * max(1, len(coded.dictionary)) > _LARGEST:
            different, numbered = np.unique(found, return_inverse=True)
            size, found = len(different), numbered.reshape(-1)
        found = found * len(coded.dictionary) + coded.indices.to_numpy(zero_copy_only=False)
        size *= max(1, len(coded.dictionary))
    bounds = np.cumsum([len(table) for table in tables])[:-1]
    return np.split(found, bounds)


def matches(of: Array, others: Array) -> Array:
    """For each key in `of`, the place of the equal key in `others`, the last one of several; −1: none."""
    if not len(others):
        return np.full(len(of), -1)
    order = np.argsort(others, kind="stable")
    ordered = others[order]
    at = np.searchsorted(ordered, of, side="right") - 1
    return np.where((at >= 0) & (ordered[at] == of), order[at], -1)


def in_order(key: Array, *by: Array) -> Array:
    """The places of rows in the order of `key`, then of `by`, the most significant first."""
    return np.lexsort([*reversed(by), key])


class Groups(NamedTuple):
    """Runs of equal keys in sorted rows. `starts`: the place of the first row of each run; `of`: for each row, the
    number of its run.
    """

    starts: Array
    of: Array

    @classmethod
    def sorted(cls, key: Array) -> Groups:
        """The runs in a sorted array of keys."""
        is_first = np.ones(len(key), bool)
        is_first[1:] = key[1:] != key[:-1]
        return cls(np.flatnonzero(is_first), np.cumsum(is_first) - 1)

    @property
    def ends(self) -> Array:
        """The place of the last row of each run."""
        return self.starts + self.sizes - 1

    @property
    def sizes(self) -> Array:
        return np.diff(np.append(self.starts, len(self.of)))

    def before(self) -> Array:
        """For each row, the place of the row before it in its run; −1: it is the first."""
        at = np.arange(len(self.of)) - 1
        at[self.starts] = -1
        return at

    def last(self, is_wanted: Array, *, is_before: bool = False) -> Array:
        """For each row, the place of the last wanted row in its run up to it (`is_before`: before it); −1: none."""
        at = np.where(is_wanted, np.arange(len(self.of)), -1)
        if is_before:
            at = np.concatenate([np.full(min(1, len(at)), -1), at[:-1]])
        at = np.maximum.accumulate(at)
        return np.where(at >= self.starts[self.of], at, -1)

    def sum(self, each: Array) -> Array:
        """The sum of `each` in each run."""
        return np.add.reduceat(each, self.starts)

    def least(self, each: Array) -> Array:
        return np.minimum.reduceat(each, self.starts)

    def greatest(self, each: Array) -> Array:
        return np.maximum.reduceat(each, self.starts)


def runs(names: Sequence[str], rows: pa.Table) -> tuple[Array, Groups]:
    """The places of the rows, ordered by key and then by `log_offset`; and the runs of equal keys."""
    (key,) = keys(names, rows)
    order = in_order(key, numbers(rows["log_offset"]))
    return order, Groups.sorted(key[order])


def earlier(names: Sequence[str], rows: pa.Table, others: pa.Table) -> Array:
    """For each row, the place of the last of `others` with the same key and a lower `log_offset`; −1: none."""
    of = np.concatenate(keys(names, rows, others))
    order = in_order(of, np.concatenate([numbers(each["log_offset"]) for each in (rows, others)]))
    last = Groups.sorted(of[order]).last(order >= len(rows))
    found = np.empty(len(of), np.int64)
    found[order] = np.where(last >= 0, order[last] - len(rows), -1)
    return found[: len(rows)]


def taken(rows: _Taken, at: Array) -> _Taken:
    """The rows, or values, at these places; −1 gives nulls."""
    return rows.take(pa.array(at, pa.int64(), mask=at < 0))


def numbers(column: pa.Array | pa.ChunkedArray, missing: int = 0) -> Array:
    """The column as a numpy array: numbers, booleans, or times as µs since 1970; null becomes `missing`."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column, kind = column.cast(pa.int64()), pa.int64()
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(missing).cast(kind))
    found = column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    return np.asarray(found)


def is_known(column: pa.Array | pa.ChunkedArray) -> Array:
    """Whether each value is not null."""
    found = column.is_valid()
    return np.asarray(found.to_numpy() if isinstance(found, pa.ChunkedArray) else found.to_numpy(zero_copy_only=False))


def times(us: Array, are_known: Array | None = None) -> pa.Array:
    """Numbers of µs since 1970 as Arrow's times; null where not known."""
    return pa.array(us, pa.int64(), mask=None if are_known is None else ~are_known).cast(TIME)


def time_of(milliseconds: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Milliseconds since 1970 as times; null if out of range."""
    bounds = pc.min_max(milliseconds).as_py()  # times out of range are rare
    if bounds["min"] is not None and not 0 <= bounds["min"] <= bounds["max"] <= LAST_MS:
        is_time = pc.and_(pc.greater_equal(milliseconds, 0), pc.less_equal(milliseconds, LAST_MS))
        milliseconds = pc.if_else(is_time, milliseconds, None)
    return milliseconds.cast(pa.timestamp("ms", "UTC")).cast(TIME)


def ms_between(earlier: pa.ChunkedArray, later: pa.ChunkedArray) -> pa.ChunkedArray:
    """The milliseconds from `earlier` to `later`; null if one is null."""
    ms = [pc.divide(each.cast(pa.int64()), 1000) for each in (earlier, later)]
    return pc.subtract(ms[1], ms[0])


def times_ms(times: pa.Array | pa.ChunkedArray) -> list[int | None]:
    """Times as milliseconds since 1970; None for null."""
    return [None if us is None else us // 1000 for us in values(times.cast(pa.int64()))]


def unnested(rows: pa.Table, name: str) -> pa.Table:
    """A row for each element of a column of lists; the element replaces the list. A null list gives no row."""
    column = rows[name].combine_chunks()
    found = rows.drop_columns([name]).take(pc.list_parent_indices(column))
    return found.append_column(name, pc.list_flatten(column))


def lists(sizes: Array, elements: pa.Array) -> pa.ListArray:
    """Splits consecutive elements into lists of these sizes."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), elements)


def appended(sizes: Array, elements: Array, more: Array, others: Array) -> Array:
    """Appends the next `more` of `others` to each of the lists, which have these sizes and consecutive elements."""
    ends = np.cumsum(sizes + more)
    found = np.empty(len(elements) + len(others), elements.dtype)
    found[np.arange(len(elements)) + np.repeat(np.cumsum(more) - more, sizes)] = elements
    found[np.arange(len(others)) + np.repeat(ends - np.cumsum(more), more)] = others
    return found


def firsts(owners: Array, at: Array, size: int) -> Array:
    """For each of `size` owners, the place `at` of its first element; −1: none. `owners` has the owner of each element,
    and both arrays are in the order of the elements.
    """
    found = np.full(size, -1)
    found[owners[::-1]] = at[::-1]
    return found


def tails(sizes: Array, most: int) -> Array:
    """For each element of consecutive lists of these sizes, whether it is among the last `most` of its list."""
    ends = np.repeat(np.cumsum(sizes), sizes)
    return ends - np.arange(len(ends)) <= most


def values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values as Python objects, None for null; numbers and booleans at once, as `to_pylist` is slow."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        return list(column.to_pylist())
    found = numbers(column).tolist()
    if not column.null_count:
        return list(found)
    return [value if is_there else None for value, is_there in zip(found, is_known(column).tolist(), strict=True)]
