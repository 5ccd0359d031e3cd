"""Results of several measurements: the trend of lag (columns of tables.LAG), and its history (tables.LAG_HISTORY and
tables.LOG_ENDS).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline import relations as rel
from groupkeeper.pipeline.relations import Array, Rows
from groupkeeper.pipeline.tables import FRESHNESS, LAG, LAG_HISTORY, LOG_ENDS, LOG_OFFSETS
from groupkeeper.rules.progress import catch_up_ms, retention_margin_ms, trend

MEASURES = 11
"""How many measures of lag to keep: one per minute, if each minute has a refresh."""

LEAST_S = 30
_MOST_MS = 2**63 - 1
_MINUTE_US = 60_000_000
_HOUR_US = 60 * _MINUTE_US
_MEASURE = LAG.arrow.field("measures").type.value_type
_OFFSETS = ("committed_offset", "log_end_offset")


class _Measures(NamedTuple):
    """Each row's measures, in order: `sizes` by row; `at`: places in `elements` (rows of _MEASURE), row by row."""

    elements: pa.Table
    sizes: Array
    at: Array

    @classmethod
    def of(cls, column: pa.ChunkedArray, more: pa.Table) -> _Measures:
        """The measures in a column of lists; the rows of `more` are appended to `elements`."""
        own = column.combine_chunks()
        elements = rel.together(pa.Table.from_struct_array(pc.list_flatten(own)), more)
        sizes = rel.numbers(pc.list_value_length(own)).astype(np.int64)
        return cls(elements, sizes, np.arange(sizes.sum()))

    def last(self, back: int = 0) -> Array:
        """The place in `elements` of each row's last measure, or of the one `back` before it; −1: none."""
        found, is_there = np.full(len(self.sizes), -1), self.sizes > back
        found[is_there] = self.at[(np.cumsum(self.sizes) - 1 - back)[is_there]]
        return found

    def first(self, is_wanted: Array) -> Array:
        """The place of each row's first measure for which `is_wanted` (by element) is true; −1: none."""
        return rel.firsts(*self._wanted(is_wanted), len(self.sizes))

    def latest(self, is_wanted: Array) -> Array:
        """The place of each row's last measure for which `is_wanted` is true; −1: none."""
        found, (rows, at) = np.full(len(self.sizes), -1), self._wanted(is_wanted)
        found[rows] = at
        return found

    def without(self, is_gone: Array) -> _Measures:
        """Drops all measures of the marked rows."""
        return self._replace(
            sizes=np.where(is_gone, 0, self.sizes), at=self.at[~np.repeat(is_gone, self.sizes)]
        )  # fmt: skip

    def with_one(self, is_due: Array, at: Array) -> _Measures:
        """Appends to each row that is due the measure at its place `at`, and keeps the last MEASURES of each row."""
        more = is_due.astype(np.int64)
        whole, sizes = rel.appended(self.sizes, self.at, more, at[is_due]), self.sizes + more
        return self._replace(sizes=np.minimum(sizes, MEASURES), at=whole[rel.tails(sizes, MEASURES)])

    def column(self) -> pa.ListArray:
        return rel.lists(self.sizes, rel.taken(self.elements, self.at).to_struct_array().combine_chunks())

    def _wanted(self, is_wanted: Array) -> tuple[Array, Array]:
        is_own = is_wanted[self.at]
        return np.repeat(np.arange(len(self.sizes)), self.sizes)[is_own], self.at[is_own]


def with_trend(rows: pa.Table, then: Rows, jumped: pa.Table) -> pa.Table:
    """Completes rows of tables.LAG, which have `retention_ms` of their topics, by the columns that need several
    measurements. `then`: rows of LAG from the last refresh; `jumped`: keys whose offsets were moved ahead since. Their
    measures start over, as do those of an offset that went back, and of a log that was truncated.
    """
    now = _now(rows)
    earlier = rel.loaded(then, (*LAG.key, "measures"))
    of, of_then, of_jumped = rel.keys(LAG.key, rows, earlier, jumped)
    at = np.where(rel.matches(of, of_jumped) < 0, rel.matches(of, of_then), -1)
    known = _Measures.of(rel.taken(earlier, at)["measures"], now)
    is_measured = rel.is_known(known.elements["log_end_offset"])
    latest = rel.taken(known.elements, known.latest(is_measured))
    is_back = [pc.fill_null(pc.less(rows[name], latest[name]), False) for name in _OFFSETS]
    kept = known.without(rel.numbers(pc.or_(*is_back)))
    last = rel.taken(known.elements, kept.last())["time"]
    time = rows["measured_time"]
    is_due = rel.is_known(time) & (
        ~rel.is_known(last) | (rel.numbers(time) // _MINUTE_US > rel.numbers(last) // _MINUTE_US)
    )
    measures = kept.with_one(is_due, np.arange(len(rows)) + len(known.elements) - len(rows))
    is_lag = rel.is_known(rows["lag"])
    first = rel.taken(known.elements, np.where(is_lag, measures.first(is_measured), -1))
    whole = rows.append_column("measures", measures.column())
    for name, column in _rates(rows, first).items():
        whole = whole.append_column(name, column)
    return _judged(whole)


def _now(rows: pa.Table) -> pa.Table:
    """A measure for each row. If the cluster was asked, but lag is unknown, its offsets are null."""
    is_lag = pc.is_valid(rows["lag"])
    found = [rows["measured_time"], *(pc.if_else(is_lag, rows[name], None) for name in _OFFSETS)]
    return pa.table(found, pa.schema(list(_MEASURE)))


def _rates(rows: pa.Table, first: pa.Table) -> dict[str, pa.Array]:
    """Records per second since the first measure; null: that is less than LEAST_S old."""
    since_ms = rel.ms_between(first["time"], rows["measured_time"])
    is_long = pc.fill_null(pc.greater_equal(since_ms, LEAST_S * 1000), False)
    seconds = pc.if_else(is_long, pc.divide(since_ms.cast(pa.float64()), 1000.0), None)
    read = [pc.if_else(pc.is_valid(each), pc.max_element_wise(each, 0), None)
            for each in (rows["committed_offset"], first["committed_offset"])]  # fmt: skip
    return {
        "produced_per_s": _per_s(rows["log_end_offset"], first["log_end_offset"], seconds),
        "consumed_per_s": _per_s(read[0], read[1], seconds),
    }


def _per_s(now: pa.ChunkedArray, then: pa.ChunkedArray, seconds: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.divide(pc.subtract(now, then).cast(pa.float64()), seconds)


def _judged(rows: pa.Table) -> pa.Table:
    """Rows of tables.LAG with the columns that groupkeeper.rules computes."""
    lag, produced, consumed = (rel.values(rows[name]) for name in ("lag", "produced_per_s", "consumed_per_s"))
    waits, are_known = waits_ms(rows)
    is_waiting = are_known & rel.numbers(rows["is_waiting"], missing=False)
    kept = rel.values(rows["retention_ms"])
    judged = {
        "trend": [None if come is None or read is None or own is None else trend(come, read, own)
                  for own, come, read in zip(lag, produced, consumed, strict=True)],
        "catch_up_ms": [0 if own == 0 else None if come is None or read is None or own is None
                        else _known(catch_up_ms(own, come, read))
                        for own, come, read in zip(lag, produced, consumed, strict=True)],
        "retention_margin_ms": [retention_margin_ms(-wait, kept_ms, 0) if is_own else None
                                for wait, kept_ms, is_own in zip(waits.tolist(), kept, is_waiting, strict=True)],
    }  # fmt: skip
    columns = {name: pa.array(each, LAG.arrow.field(name).type) for name, each in judged.items()}
    return rel.filled(LAG.arrow, columns, rows)


def waits_ms(lag: pa.Table) -> tuple[Array, Array]:
    """For rows of tables.LAG, how long the oldest waiting record has waited, in ms (0: none waits), and whether that is
    known. Aborted records don't wait; records of an open transaction do, unless earlier ones can be read. A record with
    a future time has waited since the first measurement that saw it.
    """
    is_all = pc.equal(lag["last_stable_offset"], lag["log_end_offset"])
    is_committed = pc.fill_null(pc.or_kleene(pc.greater(lag["committed_lag_ms"], 0), is_all), False)
    told = pc.if_else(is_committed, pc.coalesce(lag["committed_lag_ms"], lag["lag_ms"]), lag["lag_ms"])
    is_none = rel.numbers(pc.fill_null(pc.invert(lag["is_waiting"]), False))
    is_ahead = rel.numbers(pc.fill_null(pc.equal(told, 0), False)) & ~is_none
    measures = lag["measures"].combine_chunks()
    elements = pa.Table.from_struct_array(pc.list_flatten(measures))
    of = rel.numbers(pc.list_parent_indices(measures))
    committed = lag["committed_offset"].take(pa.array(of))
    is_after = rel.numbers(pc.fill_null(pc.greater(elements["log_end_offset"], committed), False))
    first = rel.firsts(of[is_after], np.flatnonzero(is_after), len(lag))
    since = rel.numbers(rel.ms_between(rel.taken(elements, first)["time"], lag["measured_time"]))
    found = np.where(is_none, 0, np.where(is_ahead, since, rel.numbers(told)))
    return found, is_none | rel.is_known(told)


def _known(ms: int | None) -> int | None:
    return None if ms is None or ms > _MOST_MS else ms


def lag_history(lag: Rows, column: str) -> pa.Table:
    """New rows of tables.LAG_HISTORY from rows of tables.LAG: changed values, and at least one row per hour. `column`
    is false in all of them: they are final.
    """
    rows = rel.loaded(lag, list(dict.fromkeys([*LAG_HISTORY.names, "measures"])))
    measures = _Measures.of(rows["measures"], pa.schema(list(_MEASURE)).empty_table())
    last, before = (rel.taken(measures.elements, measures.last(back)) for back in (0, 1))
    is_new = pc.fill_null(pc.equal(last["time"], rows["measured_time"]), False)
    is_same_hour = rel.is_known(before["time"]) & (
        rel.numbers(last["time"]) // _HOUR_US == rel.numbers(before["time"]) // _HOUR_US
    )
    is_same = is_same_hour & np.logical_and.reduce([_is_same(last[name], before[name]) for name in _OFFSETS])
    found = rows.filter(pa.array(rel.numbers(is_new) & ~is_same)).select(LAG_HISTORY.names)
    return found.append_column(column, pa.array(np.zeros(len(found), bool)))


def _is_same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Array:
    """Whether values are equal; null equals null."""
    are_known = rel.is_known(one), rel.is_known(other)
    is_equal = (rel.numbers(one) == rel.numbers(other)) & are_known[0] & are_known[1]
    return np.asarray(is_equal | ~(are_known[0] | are_known[1]))


def log_ends(log_offsets: Rows, freshness: Rows, topic: str, last: Rows, column: str) -> pa.Table:
    """Rows of tables.LOG_ENDS from measurements of logs: rows of tables.LOG_OFFSETS, and of tables.FRESHNESS for the
    offsets topic, called `topic`. A row stands for its minute, and without changes for its hour. `last`: the latest row
    of each partition so far; `column` is true for the latest ones now, with which the next refresh compares.
    """
    now, then = _measured(log_offsets, freshness, topic), rel.loaded(last, LOG_ENDS.names)
    key = ("cluster", "topic", "partition")
    of_now, of_then = rel.keys(key, now, then)
    before, after = rel.taken(then, rel.matches(of_now, of_then)), rel.taken(now, rel.matches(of_then, of_now))
    is_new = ~_holds(now, before)
    stays = _holds(after, then)
    return pa.concat_tables([
        then.append_column(column, pa.array(stays)),
        now.filter(pa.array(is_new)).append_column(column, pa.array(np.ones(is_new.sum(), bool))),
    ])  # fmt: skip


def _measured(log_offsets: Rows, freshness: Rows, topic: str) -> pa.Table:
    """The current measurements as rows of LOG_ENDS."""
    rows = rel.loaded(log_offsets, [name for name in LOG_ENDS.names if name in LOG_OFFSETS.names])
    rows = rows.filter(pc.not_equal(rows["topic"], topic)).select(LOG_ENDS.names).cast(LOG_ENDS.arrow)
    own = rel.loaded(freshness, FRESHNESS.names)
    place = {"topic": pa.array([topic] * len(own), pa.string()), "partition": own["log_partition"]}
    logs = rel.filled(LOG_ENDS.arrow, place, own)
    whole = pa.concat_tables([rows, logs])
    return whole.filter(pc.is_valid(whole["log_end_offset"]))


def _holds(now: pa.Table, last: pa.Table) -> Array:
    """Whether the last row (null: none) also stands for the current measurement (null: none)."""
    us, last_us = rel.numbers(now["measured_time"]), rel.numbers(last["measured_time"])
    is_same = np.logical_and.reduce([
        _is_same(now[name], last[name]) for name in ("log_start_offset", "last_stable_offset", "log_end_offset")
    ])  # fmt: skip
    is_held = (last_us // _MINUTE_US >= us // _MINUTE_US) | ((last_us // _HOUR_US >= us // _HOUR_US) & is_same)
    return np.asarray(~rel.is_known(now["measured_time"]) | (rel.is_known(last["measured_time"]) & is_held))
