"""tables.REWINDS and related rows: commits that move a group in a way that reading does not explain, among the moves
that transforms.moves found in the history.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline.relations import Rows, filled, is_known, keys, loaded, matches, numbers, runs, taken, together
from groupkeeper.pipeline.tables import REWINDS
from groupkeeper.pipeline.tables.schema import TIME
from groupkeeper.pipeline.tables.state import MOVES
from groupkeeper.pipeline.transforms.history import next_offsets
from groupkeeper.pipeline.transforms.moves import is_told

_Offsets = Mapping[str, Mapping[int, int]]
"""By cluster and partition of the offsets topic."""

_CLOCKS_MS = 3_600_000
"""The largest expected difference between the clocks of a coordinator and of who changes offsets, with the time that
it takes to commit a large plan.
"""

_TOLD = ("change_id", "change_kind", "changed_by", "changed_on", "command", "undoes")

CHANGES = pa.schema([
    *(REWINDS.arrow.field(name) for name in (*_TOLD, "group_id", "topic", "partition", "from_offset", "to_offset")),
    ("cluster", pa.string()), ("change_time", TIME),
])  # fmt: skip
"""Changes of offsets by groupkeeper, from its journals. `from_offset` null: there was none; `cluster` null: it is not
known which one it was.
"""

_PLACE = ["cluster", "topic", "partition"]
_MOVED_TO = ["group_id", "topic", "partition", "to_offset"]


def last_moves(then: Rows, moves: Rows) -> pa.Table:
    """The last move of each key, from rows of tables.state.MOVES."""
    whole = together(*(loaded(rows, MOVES.names).cast(MOVES.arrow) for rows in (then, moves)))
    order, groups = runs(MOVES.key, whole)
    return taken(whole, np.sort(order[groups.ends]))


def rewinds(
    moves: Rows, last: Rows, current_offsets: Rows, log_offsets: Rows, column: str, changes: pa.Table | None = None
) -> pa.Table:
    """Of the new `moves` those back, and the jumps ahead of groups without members, which no reader made: a reset; a
    consumer that reads without joining looks the same. Of the `last` moves of each offset those beyond the log, which
    are told as long as they stand there, as `column` says.

    An offset that was removed and then committed at a lower value counts too; an offset of another topic with that name
    does not. `changes`: as for `told_by`.
    """
    new = loaded(moves, MOVES.names).cast(MOVES.arrow)
    told = new.filter(pa.array(is_told(new)))
    found = together(told, _beyond(last, current_offsets, log_offsets))
    before, after = numbers(found["from_offset"]), numbers(found["to_offset"])
    records = before - after
    is_too_large = (before ^ after) & (before ^ records) < 0  # int64 wraps
    whole = filled(REWINDS.arrow, {name: found[name] for name in MOVES.names} | {
        "records": pa.array(records, mask=is_too_large), "direction": np.where(after < before, "back", "ahead"),
    })  # fmt: skip
    more = pa.field(column, pa.bool_())
    whole = whole.append_column(more, pa.array(np.arange(len(found)) >= len(told)))
    return whole if changes is None or not len(changes) else told_by(whole, changes, more)


def _beyond(last: Rows, current_offsets: Rows, log_offsets: Rows) -> pa.Table:
    """Of the last moves those ahead, beyond the end of the log, where the offset stands still."""
    rows = loaded(last, MOVES.names).cast(MOVES.arrow)
    logs = loaded(log_offsets, [*_PLACE, "topic_id", "log_end_offset"])
    own = taken(logs, matches(*keys(_PLACE, rows, logs)))
    is_beyond = pc.greater(rows["to_offset"], own["log_end_offset"])
    rows = rows.filter(pc.and_(is_beyond, _may_equal(rows["topic_id"], own["topic_id"])))
    rows = rows.filter(pa.array(~is_told(rows)))
    standing = loaded(current_offsets, [*MOVES.key, "committed_offset"])
    committed = taken(standing["committed_offset"], matches(*keys(MOVES.key, rows, standing)))
    return rows.filter(pc.equal(rows["to_offset"], committed))


def _may_equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether values are equal, or one is not known: an earlier topic's offsets tell nothing of a log that has another
    id.
    """
    return pc.fill_null(pc.equal(one, other), fill_value=True)


def told_by(rewinds: Rows, changes: pa.Table, *more: pa.Field) -> pa.Table:
    """The same rows of tables.REWINDS, and `more` columns that they have, with what `changes` (CHANGES) know of them:
    a change of the same offset, from and to the same, at about that time. What is known stays.
    """
    schema = pa.schema([*REWINDS.arrow, *more])
    found = loaded(rewinds, schema.names).cast(schema)
    pairs = _pairs(found, changes)
    at = np.full(len(found), -1)
    at[numbers(pairs["move"])] = numbers(pairs["change"])
    known = taken(changes, at)
    told = {name: pc.coalesce(found[name], known[name]) for name in _TOLD}
    return filled(schema, {name: told.get(name, found[name]) for name in schema.names})


def _pairs(found: pa.Table, changes: pa.Table) -> pa.Table:
    """Places of moves and of the changes that made them: of a move the change that is closest in time, and of that only
    the move that is closest to it.
    """
    moves = _numbered(found, "move", ["cluster", "from_offset", "rewind_time", "change_id"])
    moves = moves.filter(moves["change_id"].is_null()).drop_columns(["change_id"])
    made = _numbered(changes, "change", ["cluster", "from_offset", "change_time", "change_id"])
    pairs = moves.join(made, _MOVED_TO, join_type="inner", right_suffix="_changed")
    for name in ("cluster", "from_offset"):
        pairs = pairs.filter(_may_equal(pairs[name], pairs[f"{name}_changed"]))
    apart_ms = np.abs(numbers(pairs["change_time"]) // 1000 - numbers(pairs["rewind_time"]) // 1000)
    is_near = (apart_ms <= _CLOCKS_MS) & is_known(pairs["rewind_time"])
    near = pairs.filter(pa.array(is_near)).take(np.argsort(apart_ms[is_near], kind="stable"))
    is_closest = np.ones(len(near), bool)
    for of in (["move"], ["change_id", *_MOVED_TO[:-1]]):
        (key,) = keys(of, near)
        _, first = np.unique(key, return_index=True)
        is_closest &= np.isin(np.arange(len(near)), first)
    return near.filter(pa.array(is_closest))


def _numbered(rows: pa.Table, name: str, columns: list[str]) -> pa.Table:
    return rows.select([*_MOVED_TO, *columns]).append_column(name, pa.array(np.arange(len(rows))))


def recent_rewinds(then: Rows, rewinds: Rows, log_offsets: Rows, made_to: _Offsets, since_ms: int) -> pa.Table:
    """The moves back since a time, of those of before and of `rewinds`, of which those from `made_to` on are new; none
    of a topic that was deleted, where `log_offsets` has another one of its name.
    """
    whole = together(loaded(then, REWINDS.names).cast(REWINDS.arrow), _new(rewinds, made_to))
    whole = whole.filter(pc.equal(whole["direction"], "back"))
    whole = whole.filter(pc.greater_equal(whole["rewind_time"], pa.scalar(since_ms * 1000, TIME)))
    logs = loaded(log_offsets, ["cluster", "topic", "topic_id"])
    logs = logs.filter(logs["topic_id"].is_valid())
    id_now = taken(logs["topic_id"], matches(*keys(["cluster", "topic"], whole, logs)))
    return whole.filter(_may_equal(whole["topic_id"], id_now))


def jumps_ahead(rewinds: Rows, made_to: _Offsets) -> pa.Table:
    """The new moves ahead."""
    new = _new(rewinds, made_to)
    return new.filter(pc.equal(new["direction"], "ahead"))


def _new(rewinds: Rows, made_to: _Offsets) -> pa.Table:
    rows = loaded(rewinds, REWINDS.names).cast(REWINDS.arrow)
    return rows.filter(pa.array(numbers(rows["log_offset"], -1) >= next_offsets(rows, made_to, 0)))
