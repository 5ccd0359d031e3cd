"""tables.LAG: how far behind groups are, in records and in time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline import relations as rel
from groupkeeper.pipeline.present.trends import with_trend
from groupkeeper.pipeline.relations import Array, Rows
from groupkeeper.pipeline.tables import FRESHNESS, LAG, LOG_OFFSETS, TOPICS
from groupkeeper.pipeline.tables.state import ESTIMATES, WAITING

BEYOND = "the committed offset is past the end of the log"
"""A problem of tables.LAG: `lag` is 0 there, but what a consumer reads depends on its `auto.offset.reset`."""

_PLACE = ("cluster", "log_partition")
_OWN = (*LAG.key, "committed_offset", "commit_time", "log_partition")


class _MeasuredLag(NamedTuple):
    """Tables with a row for each committed offset; null where unknown."""

    own: pa.Table
    log: pa.Table
    """Rows of LOG_OFFSETS."""
    oldest: pa.Table
    """The record at the offset: is_there, time, is_committed_there, committed_time."""
    not_read: pa.ChunkedArray
    """Why the latest commits of the group are not known; null: they are."""
    lag: pa.Array
    committed_lag: pa.Array

    @property
    def is_nothing(self) -> pa.Array:
        """Whether no record waits for a reader that also reads open and aborted transactions."""
        return pc.or_kleene(pc.equal(self.lag, 0), pc.invert(self.oldest["is_there"]))

    @property
    def is_committed_nothing(self) -> pa.Array:
        return pc.or_kleene(pc.equal(self.committed_lag, 0), pc.invert(self.oldest["is_committed_there"]))

    @property
    def is_exact(self) -> pa.Array:
        """Whether the time of the oldest waiting record is known, or none waits; never null."""
        return pc.fill_null(pc.or_kleene(self.is_nothing, pc.is_valid(self.oldest["time"])), False)


def _measured(current_offsets: Rows, log_offsets: Rows, freshness: Rows | None) -> _MeasuredLag:
    """Offsets with their logs. Where the latest commits are unknown, so is lag: earlier ones are of another instant."""
    own, logs = rel.loaded(current_offsets, _OWN), rel.loaded(log_offsets, LOG_OFFSETS.names)
    behind = rel.loaded(FRESHNESS.arrow.empty_table() if freshness is None else freshness, (*_PLACE, "problem"))
    behind = behind.filter(pc.is_valid(behind["problem"]))
    not_read = rel.taken(behind, rel.matches(*rel.keys(_PLACE, own, behind)))["problem"]
    at = rel.matches(*rel.keys(LOG_OFFSETS.key, own, logs))
    log, is_read = rel.taken(logs.drop_columns(["records"]), at), pc.is_null(not_read)
    # A negative offset stands for the start of the log.
    begin = pc.max_element_wise(own["committed_offset"], 0)
    found = [
        pc.if_else(is_read, pc.max_element_wise(pc.subtract(end, begin), 0, skip_nulls=False), None)
        for end in (log["log_end_offset"], log["last_stable_offset"])
    ]
    return _MeasuredLag(
        own, log, _oldest(own, logs["records"], np.where(rel.numbers(is_read), at, -1)), not_read, *found
    )


def _oldest(own: pa.Table, records: pa.ChunkedArray, at: Array) -> pa.Table:
    """The record at each committed offset, from those looked up in its log; `at`: the row of the log, −1: none."""
    looked_up = records.combine_chunks()
    rows = pa.Table.from_struct_array(pc.list_flatten(looked_up))
    log = pc.list_parent_indices(looked_up).cast(pa.int64())
    wanted = pa.table({"log": pa.array(at, pa.int64()), "offset": own["committed_offset"]})
    return rel.taken(
        rows, rel.matches(*rel.keys(wanted.column_names, wanted, rows.select(["offset"]).add_column(0, "log", log)))
    )


def lag(
    current_offsets: Rows, log_offsets: Rows, estimates: Rows | None = None, freshness: Rows | None = None, *,
    then: Rows | None = None, topics_then: Rows | None = None, jumps: Rows | None = None,
) -> pa.Table:  # fmt: skip
    """The lag, from rows of tables.CURRENT_OFFSETS and tables.LOG_OFFSETS. If `freshness` (rows of tables.FRESHNESS)
    shows that the latest commits are not known, lag is not known either.

    The time is exact if the record at the committed offset was read; otherwise it comes from `estimates`
    (estimates.estimated). trends.with_trend describes `then` and `jumps`. Measures also start over for a topic whose id
    differs from that in `topics_then` (rows of tables.TOPICS).
    """
    found = _measured(current_offsets, log_offsets, freshness)
    known = rel.loaded(ESTIMATES.arrow.empty_table() if estimates is None else estimates)
    at = np.where(rel.is_known(found.not_read), -1, rel.matches(*rel.keys(ESTIMATES.key, found.own, known)))
    estimated = rel.taken(known, at)["estimated_time"]
    moved = [] if jumps is None else [rel.loaded(jumps, LAG.key)]
    if topics_then is not None:
        moved.append(found.own.select(LAG.key).filter(_is_other_topic(found, rel.loaded(topics_then, TOPICS.names))))
    jumped = rel.together(LAG.arrow.empty_table().select(LAG.key), *moved)
    return with_trend(_timed(found, estimated), LAG.arrow.empty_table() if then is None else then, jumped)


def waiting(lag: Rows) -> pa.Table:
    """By partition, the number of these groups that have read exactly up to the last stable offset, where further
    records wait: rows of tables.state.WAITING.
    """
    rows = rel.loaded(lag, [*WAITING.key, "group_id", "lag", "committed_lag"])
    rows = rows.filter(pc.and_(pc.greater(rows["lag"], 0), pc.equal(rows["committed_lag"], 0)))
    found = rows.group_by(list(WAITING.key)).aggregate([("group_id", "count_distinct")])
    return found.select([*WAITING.key, "group_id_count_distinct"]).rename_columns(WAITING.names)


def _is_other_topic(found: _MeasuredLag, then: pa.Table) -> pa.Array:
    """Whether the topic of each offset was deleted and created again since the last refresh."""
    past = rel.taken(then, rel.matches(*rel.keys(("cluster", "topic"), found.own, then)))
    return pc.fill_null(pc.not_equal(past["topic_id"], found.log["topic_id"]), False)


def _timed(found: _MeasuredLag, estimated: pa.ChunkedArray) -> pa.Table:
    """Rows of tables.LAG without the columns that need more than one measurement, with `retention_ms` of the topics."""
    log, oldest, measured = found.log, found.oldest, found.log["measured_time"]
    is_nothing, is_committed_nothing = found.is_nothing, found.is_committed_nothing
    lag_ms = pc.if_else(
        pc.fill_null(is_nothing, False), 0, _age_ms(pc.coalesce(oldest["time"], estimated), measured)
    )  # fmt: skip
    committed_ms = pc.coalesce(_age_ms(oldest["committed_time"], measured), lag_ms)
    is_unknown = pc.is_null(lag_ms)
    # Aborted records don't wait; records of an open transaction do, unless earlier records can be read.
    is_all = pc.equal(log["last_stable_offset"], log["log_end_offset"])
    is_committed = pc.fill_null(pc.or_kleene(pc.invert(is_committed_nothing), is_all), False)
    waits = pc.invert(pc.if_else(
        is_committed, pc.coalesce(is_committed_nothing, is_nothing, is_unknown), pc.coalesce(is_nothing, is_unknown)
    ))  # fmt: skip
    is_beyond = pc.fill_null(pc.greater(found.own["committed_offset"], log["log_end_offset"]), False)
    basis = pc.if_else(pc.is_valid(estimated), "interpolated", "unknown")
    why = pc.coalesce(found.not_read, log["problem"])
    columns = {
        "lag": found.lag, "committed_lag": found.committed_lag, "lag_ms": lag_ms,
        "lag_basis": pc.if_else(found.is_exact, "exact", basis),
        "committed_lag_ms": pc.if_else(pc.fill_null(is_committed_nothing, False), 0, committed_ms),
        "is_waiting": pc.if_else(pc.or_(pc.is_valid(is_nothing), pc.is_valid(lag_ms)), waits, None),
        "problem": pc.if_else(is_unknown, why, pc.if_else(is_beyond, BEYOND, pa.scalar(None, pa.string()))),
    }  # fmt: skip
    rows = found.own.drop_columns(["log_partition"])
    for name in ("log_start_offset", "last_stable_offset", "log_end_offset", "measured_time", "retention_ms"):
        rows = rows.append_column(name, log[name])
    for name, column in columns.items():
        rows = rows.append_column(name, column)
    return rows


def _age_ms(time: pa.ChunkedArray, measured: pa.ChunkedArray) -> pa.ChunkedArray:
    """How long before the measurement, in ms, at least 0; null: the time is not known."""
    age = pc.max_element_wise(rel.ms_between(time, measured), 0)
    return pc.if_else(pc.is_valid(time), age, None)
