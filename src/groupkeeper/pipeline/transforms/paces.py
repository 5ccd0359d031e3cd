"""The pace at which groups commit and move on (tables.state.PACES): it decides when a group counts as stopped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline import relations as rel
from groupkeeper.pipeline.relations import Array, Groups, Rows
from groupkeeper.pipeline.tables.state import PACES

GAPS = 15
"""How many of the last gaps to keep."""

_COLUMNS = (*PACES.key, "log_offset", "committed_offset", "commit_time", "is_tombstone")
_NEVER = np.iinfo(np.int64).max


def paces(commits: Rows, last_commits: Rows, known: Rows) -> pa.Table:
    """PACES from new `commits`, from the `known` rows before them, and from the carried commits (`last_commits`). A
    tombstone ends the earlier pace.
    """
    new, carried, then = (
        rel.loaded(commits, _COLUMNS),
        rel.loaded(last_commits, _COLUMNS),
        rel.loaded(known, PACES.names),
    )
    of_new, of_carried, of_then = rel.keys(PACES.key, new, carried, then)
    is_touched = rel.matches(of_then, of_new) >= 0
    carried = carried.filter(pa.array(rel.matches(of_carried, of_new) >= 0))
    steps, then_moving = _steps(new, carried), then.filter(pa.array(is_touched))
    return rel.together(then.filter(pa.array(~is_touched)), _paces(steps, then_moving))


class _Steps(NamedTuple):
    """The commits since the last tombstone of their key, in order; times are µs."""

    rows: pa.Table
    groups: Groups
    is_new: Array
    offset: Array
    time: Array
    is_timed: Array
    is_over: Array
    """For each key, whether a new tombstone ended the known pace."""


def _steps(new: pa.Table, carried: pa.Table) -> _Steps:
    whole = rel.together(new, carried)
    order, groups = rel.runs(PACES.key, whole)
    is_gone = rel.numbers(whole["is_tombstone"])[order]
    ended = groups.last(is_gone)[groups.ends]
    is_over = groups.greatest(is_gone & (order < len(new)))
    is_step = np.arange(len(order)) > ended[groups.of]
    order, of = order[is_step], groups.of[is_step]
    steps = Groups.sorted(of)
    rows = rel.taken(whole, order)
    time = rows["commit_time"]
    return _Steps(
        rows, steps, order < len(new), rel.numbers(rows["committed_offset"]), rel.numbers(time), rel.is_known(time),
        is_over[of[steps.starts]],
    )  # fmt: skip


def _paces(steps: _Steps, then: pa.Table) -> pa.Table:
    groups, time = steps.groups, steps.time
    before = groups.before()
    follows = steps.is_new & steps.is_timed & (before >= 0)
    is_move = follows & (steps.offset != steps.offset[before])
    rows = rel.taken(steps.rows.select(PACES.key), groups.starts)
    at = rel.matches(*rel.keys(PACES.key, rows, then))
    own = rel.taken(then, np.where(steps.is_over, -1, at))
    first = np.minimum(groups.least(np.where(steps.is_timed, time, _NEVER)), rel.numbers(own["first_time"], _NEVER))
    then_moved = rel.numbers(own["moved_time"], _NEVER)
    moved_before, moved = groups.last(is_move, is_before=True), groups.last(is_move)[groups.ends]
    moved_before_us = np.where(moved_before >= 0, time[moved_before], then_moved[groups.of])
    moved_us = np.where(moved >= 0, time[moved], then_moved)
    is_gap = follows & steps.is_timed[before]
    return pa.table([
        *rows.columns, rel.times(first, first < _NEVER), rel.times(moved_us, moved_us < _NEVER),
        _gaps(own["commit_gaps"], groups, time[before], time, is_gap),
        _gaps(own["move_gaps"], groups, moved_before_us, time, is_move & (moved_before_us < _NEVER)),
    ], PACES.arrow)  # fmt: skip


def _gaps(then: pa.ChunkedArray, groups: Groups, earlier: Array, later: Array, is_gap: Array) -> pa.ListArray:
    """The last gaps of each key, in ms: known ones, then those of new commits."""
    sizes = rel.numbers(pc.list_value_length(then))
    more = groups.sum(is_gap.astype(np.int64))
    gaps = (later // 1000 - earlier // 1000)[is_gap]
    whole = rel.appended(sizes, rel.numbers(pc.list_flatten(then)), more, gaps)
    sizes = sizes + more
    return rel.lists(np.minimum(sizes, GAPS), pa.array(whole[rel.tails(sizes, GAPS)], pa.int64()))
