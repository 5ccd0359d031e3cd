"""tables.REWINDS and related rows: of the commits that differ from the offset committed before, those that move a group
in a way that reading does not explain.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline import relations as rel
from groupkeeper.pipeline.relations import Array, Groups, Rows
from groupkeeper.pipeline.tables import CURRENT_OFFSETS, GROUPS, REWINDS
from groupkeeper.pipeline.tables.schema import TIME
from groupkeeper.pipeline.tables.state import MOVES
from groupkeeper.pipeline.transforms.group_facts import memberships
from groupkeeper.pipeline.transforms.history import next_offsets

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
_OF_COMMITS = (
    *CURRENT_OFFSETS.key, "topic_id", "log_partition", "log_offset", "commit_time", "committed_offset", "is_tombstone"
)  # fmt: skip


def _is_told(moves: pa.Table) -> Array:
    """Of rows of tables.state.MOVES, whether each is back, or a jump ahead of a group without members
    (rewinds).
    """
    is_back = rel.numbers(moves["to_offset"]) < rel.numbers(moves["from_offset"])
    return is_back | (rel.numbers(moves["was_empty"]) & ~rel.numbers(moves["was_removed"]))


def moves(commits: Rows, last_commits: Rows, group_events: Rows, facts: Rows) -> pa.Table:
    """tables.state.NEW_MOVES: of `commits`, and the carried ones before them, the moves that are reported: rewinds, and
    the last of each key. Whether the group had members tell `group_events`, and the `facts` of before.
    """
    new = rel.loaded(commits, _OF_COMMITS)
    whole = rel.together(new, rel.loaded(last_commits, _OF_COMMITS))
    order, groups = rel.runs(CURRENT_OFFSETS.key, whole)
    is_gone, offset = (rel.numbers(whole[name])[order] for name in ("is_tombstone", "committed_offset"))
    topic_id = rel.numbers(whole["topic_id"].combine_chunks().dictionary_encode().indices, -1)[order]
    before = groups.before()
    known = groups.last(~is_gone, is_before=True)
    is_same_topic = (topic_id == topic_id[known]) | (topic_id == -1) | (topic_id[known] == -1)
    is_move = (order < len(new)) & ~is_gone & (known >= 0) & (offset != offset[known]) & is_same_topic
    at = np.flatnonzero(is_move)
    rows = rel.taken(whole, order[at])
    was_removed = is_gone[before[at]] & (before[at] >= 0)
    made = {
        "rewind_time": rows["commit_time"],
        "from_offset": pa.array(offset[known[at]], pa.int64()),
        "to_offset": rows["committed_offset"],
        "was_removed": pa.array(was_removed, pa.bool_()),
        "was_empty": _was_empty(rows, memberships(group_events), rel.loaded(facts, (*GROUPS.key, "was_empty"))),
    }
    found = pa.table([made[name] if name in made else rows[name] for name in MOVES.names], MOVES.arrow)
    is_last = np.zeros(len(at), bool)
    is_last[Groups.sorted(groups.of[at]).ends] = True
    return found.filter(pa.array(_is_told(found) | is_last, pa.bool_()))


def _was_empty(rows: pa.Table, changes: pa.Table, facts: pa.Table) -> pa.Array:
    """Of commits, whether the group had no members then: by its last change before, otherwise by what was known; null:
    neither tells it.
    """
    by_now = rel.taken(changes["is_empty"].combine_chunks(), rel.earlier(GROUPS.key, rows, changes))
    then = rel.taken(facts["was_empty"].combine_chunks(), rel.matches(*rel.keys(GROUPS.key, rows, facts)))
    return pc.coalesce(by_now, then)


def last_moves(then: Rows, moves: Rows) -> pa.Table:
    """The last move of each key, from rows of tables.state.MOVES."""
    whole = rel.together(*(rel.loaded(rows, MOVES.names).cast(MOVES.arrow) for rows in (then, moves)))
    order, groups = rel.runs(MOVES.key, whole)
    return rel.taken(whole, np.sort(order[groups.ends]))


def rewinds(
    moves: Rows, last: Rows, current_offsets: Rows, log_offsets: Rows, column: str, changes: pa.Table | None = None
) -> pa.Table:
    """Of the new `moves` those back, and the jumps ahead of groups without members, which no reader made: a reset; a
    consumer that reads without joining looks the same. Of the `last` moves of each offset those beyond the log, which
    are told as long as they stand there, as `column` says.

    An offset that was removed and then committed at a lower value counts too; an offset of another topic with that name
    does not. `changes`: as for `told_by`.
    """
    new = rel.loaded(moves, MOVES.names).cast(MOVES.arrow)
    told = new.filter(pa.array(_is_told(new)))
    found = rel.together(told, _beyond(last, current_offsets, log_offsets))
    before, after = rel.numbers(found["from_offset"]), rel.numbers(found["to_offset"])
    records = before - after
    is_too_large = (before ^ after) & (before ^ records) < 0  # int64 wraps
    whole = rel.filled(REWINDS.arrow, {name: found[name] for name in MOVES.names} | {
        "records": pa.array(records, mask=is_too_large), "direction": np.where(after < before, "back", "ahead"),
    })  # fmt: skip
    more = pa.field(column, pa.bool_())
    whole = whole.append_column(more, pa.array(np.arange(len(found)) >= len(told)))
    return whole if changes is None or not len(changes) else told_by(whole, changes, more)


def _beyond(last: Rows, current_offsets: Rows, log_offsets: Rows) -> pa.Table:
    """Of the last moves those ahead, beyond the end of the log, where the offset stands still."""
    rows = rel.loaded(last, MOVES.names).cast(MOVES.arrow)
    logs = rel.loaded(log_offsets, [*_PLACE, "topic_id", "log_end_offset"])
    own = rel.taken(logs, rel.matches(*rel.keys(_PLACE, rows, logs)))
    is_beyond = pc.greater(rows["to_offset"], own["log_end_offset"])
    rows = rows.filter(pc.and_(is_beyond, _may_equal(rows["topic_id"], own["topic_id"])))
    rows = rows.filter(pa.array(~_is_told(rows)))
    standing = rel.loaded(current_offsets, [*MOVES.key, "committed_offset"])
    committed = rel.taken(standing["committed_offset"], rel.matches(*rel.keys(MOVES.key, rows, standing)))
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
    found = rel.loaded(rewinds, schema.names).cast(schema)
    pairs = _pairs(found, changes)
    at = np.full(len(found), -1)
    at[rel.numbers(pairs["move"])] = rel.numbers(pairs["change"])
    known = rel.taken(changes, at)
    told = {name: pc.coalesce(found[name], known[name]) for name in _TOLD}
    return rel.filled(schema, {name: told.get(name, found[name]) for name in schema.names})


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
    apart_ms = np.abs(rel.numbers(pairs["change_time"]) // 1000 - rel.numbers(pairs["rewind_time"]) // 1000)
    is_near = (apart_ms <= _CLOCKS_MS) & rel.is_known(pairs["rewind_time"])
    near = pairs.filter(pa.array(is_near)).take(np.argsort(apart_ms[is_near], kind="stable"))
    is_closest = np.ones(len(near), bool)
    for of in (["move"], ["change_id", *_MOVED_TO[:-1]]):
        (key,) = rel.keys(of, near)
        _, first = np.unique(key, return_index=True)
        is_closest &= np.isin(np.arange(len(near)), first)
    return near.filter(pa.array(is_closest))


def _numbered(rows: pa.Table, name: str, columns: list[str]) -> pa.Table:
    return rows.select([*_MOVED_TO, *columns]).append_column(name, pa.array(np.arange(len(rows))))


def recent_rewinds(then: Rows, rewinds: Rows, log_offsets: Rows, made_to: _Offsets, since_ms: int) -> pa.Table:
    """The moves back since a time, of those of before and of `rewinds`, of which those from `made_to` on are new; none
    of a topic that was deleted, where `log_offsets` has another one of its name.
    """
    whole = rel.together(rel.loaded(then, REWINDS.names).cast(REWINDS.arrow), _new(rewinds, made_to))
    whole = whole.filter(pc.equal(whole["direction"], "back"))
    whole = whole.filter(pc.greater_equal(whole["rewind_time"], pa.scalar(since_ms * 1000, TIME)))
    logs = rel.loaded(log_offsets, ["cluster", "topic", "topic_id"])
    logs = logs.filter(logs["topic_id"].is_valid())
    id_now = rel.taken(logs["topic_id"], rel.matches(*rel.keys(["cluster", "topic"], whole, logs)))
    return whole.filter(_may_equal(whole["topic_id"], id_now))


def jumps_ahead(rewinds: Rows, made_to: _Offsets) -> pa.Table:
    """The new moves ahead."""
    new = _new(rewinds, made_to)
    return new.filter(pc.equal(new["direction"], "ahead"))


def _new(rewinds: Rows, made_to: _Offsets) -> pa.Table:
    rows = rel.loaded(rewinds, REWINDS.names).cast(REWINDS.arrow)
    return rows.filter(pa.array(rel.numbers(rows["log_offset"], -1) >= next_offsets(rows, made_to, 0)))
