"""For how long records have waited to be read, of rows of tables.LAG."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline.relations import Array, firsts, is_known, ms_between, numbers, taken


def told_ms(lag: pa.Table) -> pa.Array:
    """The age of the oldest record that waits, in ms; 0: none, null: not known. Aborted records don't wait; those of an
    open transaction do where nothing before them does.
    """
    is_all = pc.equal(lag["last_stable_offset"], lag["log_end_offset"])
    is_committed = pc.fill_null(pc.or_kleene(pc.greater(lag["committed_lag_ms"], 0), is_all), False)
    return pc.if_else(is_committed, pc.coalesce(lag["committed_lag_ms"], lag["lag_ms"]), lag["lag_ms"])


def waits_ms(lag: pa.Table) -> tuple[Array, Array]:
    """The same, and whether it is known. A record whose time is ahead has waited since the measurement that found it
    first.
    """
    told = told_ms(lag)
    is_none = numbers(pc.fill_null(pc.invert(lag["is_waiting"]), False))
    is_ahead = numbers(pc.fill_null(pc.equal(told, 0), False)) & ~is_none
    measures = lag["measures"].combine_chunks()
    elements = pa.Table.from_struct_array(pc.list_flatten(measures))
    of = numbers(pc.list_parent_indices(measures))
    committed = lag["committed_offset"].take(pa.array(of))
    is_after = numbers(pc.fill_null(pc.greater(elements["log_end_offset"], committed), False))
    first = firsts(of[is_after], np.flatnonzero(is_after), len(lag))
    since = numbers(ms_between(taken(elements, first)["time"], lag["measured_time"]))
    found = np.where(is_none, 0, np.where(is_ahead, since, numbers(told)))
    return found, is_none | is_known(told)
