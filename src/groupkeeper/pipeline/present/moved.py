"""tables.REWINDS and related rows: moves of a group's committed offset that reading does not explain."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline import relations as rel
from groupkeeper.pipeline.relations import Array, Groups, Rows
from groupkeeper.pipeline.tables import CURRENT_OFFSETS, GROUPS, REWINDS
from groupkeeper.pipeline.tables.schema import TIME
from groupkeeper.pipeline.tables.state import MOVES
from groupkeeper.pipeline.transforms.group_facts import memberships
from groupkeeper.pipeline.transforms.history import LogOffsets, next_offsets

_CLOCKS_MS = 3_600_000
"""The longest expected time between a change in a journal and its commit: differing clocks, and a large plan."""

_CHANGE_COLUMNS = ("change_id", "change_kind", "changed_by", "changed_on", "command", "undoes")

CHANGES = pa.schema([
    *map(REWINDS.arrow.field, (*_CHANGE_COLUMNS, "group_id", "topic", "partition", "from_offset", "to_offset")),
    ("cluster", pa.string()), ("change_time", TIME),
])  # fmt: skip
"""Changes of offsets by groupkeeper, from its journals. `from_offset` null: there was none; `cluster` null: the journal
does not say which.
"""

_PLACE = ["cluster", "topic", "partition"]
_MOVED_TO = ["group_id", "topic", "partition", "to_offset"]
_OF_COMMITS = (
    *CURRENT_OFFSETS.key, "topic_id", "log_partition", "log_offset", "commit_time", "committed_offset", "is_tombstone"
)  # fmt: skip


def _is_rewind(moves: pa.Table) -> Array:
    """Which rows of tables.state.MOVES are rewinds: moves back, and moves ahead without members or removal."""
    is_back = rel.numbers(moves["to_offset"]) < rel.numbers(moves["from_offset"])
    return is_back | (rel.numbers(moves["was_empty"]) & ~rel.numbers(moves["was_removed"]))


def moves(commits: Rows, last_commits: Rows, group_events: Rows, facts: Rows) -> pa.Table:
    """tables.state.NEW_MOVES from new `commits` and the carried ones (`last_commits`): rewinds, and the last move of
    each key. `group_events` and the earlier `facts` show whether the group had members.
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
    found = rel.filled(MOVES.arrow, made, rows)
    is_last = np.zeros(len(at), bool)
    is_last[Groups.sorted(groups.of[at]).ends] = True
    return found.filter(pa.array(_is_rewind(found) | is_last, pa.bool_()))


def _was_empty(rows: pa.Table, changes: pa.Table, facts: pa.Table) -> pa.Array:
    """Whether the group of each commit had no members then: by its last change before (`changes`), otherwise by earlier
    facts; null: unknown.
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
    """tables.REWINDS: new `moves` back, new moves ahead of groups without members (a reset, or a consumer that reads
    without joining), and from the `last` moves of each key those past the log's end, as long as the offset stands
    there; `column` is true for the latter.

    A lower offset after a removal counts too; the offset of an earlier topic of that name does not. `changes`: as for
    `with_change_columns`.
    """
    new = rel.loaded(moves, MOVES.names).cast(MOVES.arrow)
    new_rewinds = new.filter(pa.array(_is_rewind(new)))
    found = rel.together(new_rewinds, _beyond(last, current_offsets, log_offsets))
    before, after = rel.numbers(found["from_offset"]), rel.numbers(found["to_offset"])
    records = before - after
    is_too_large = (before ^ after) & (before ^ records) < 0  # int64 wraps
    made = {"records": pa.array(records, mask=is_too_large), "direction": np.where(after < before, "back", "ahead")}
    whole = rel.filled(REWINDS.arrow, made, found)
    more = pa.field(column, pa.bool_())
    whole = whole.append_column(more, pa.array(np.arange(len(found)) >= len(new_rewinds)))
    return whole if changes is None or not len(changes) else with_change_columns(whole, changes, more)


def _beyond(last: Rows, current_offsets: Rows, log_offsets: Rows) -> pa.Table:
    """The last moves ahead of groups with members to an offset past the log's end, where the offset still stands."""
    rows = rel.loaded(last, MOVES.names).cast(MOVES.arrow)
    logs = rel.loaded(log_offsets, [*_PLACE, "topic_id", "log_end_offset"])
    own = rel.taken(logs, rel.matches(*rel.keys(_PLACE, rows, logs)))
    is_beyond = pc.greater(rows["to_offset"], own["log_end_offset"])
    rows = rows.filter(pc.and_(is_beyond, _may_equal(rows["topic_id"], own["topic_id"])))
    rows = rows.filter(pa.array(~_is_rewind(rows)))
    standing = rel.loaded(current_offsets, [*MOVES.key, "committed_offset"])
    committed = rel.taken(standing["committed_offset"], rel.matches(*rel.keys(MOVES.key, rows, standing)))
    return rows.filter(pc.equal(rows["to_offset"], committed))


def _may_equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether two values are equal, or one is unknown. Offsets of an earlier topic say nothing about a log with another
    id.
    """
    return pc.fill_null(pc.equal(one, other), fill_value=True)


def with_change_columns(rewinds: Rows, changes: pa.Table, *more: pa.Field) -> pa.Table:
    """Fills the columns about changes in rows of tables.REWINDS (with columns `more`) from `changes` (CHANGES): the
    change of the same offset, from and to the same values, at about that time. Values that are already known stay.
    """
    schema = pa.schema([*REWINDS.arrow, *more])
    found = rel.loaded(rewinds, schema.names).cast(schema)
    pairs = _pairs(found, changes)
    at = np.full(len(found), -1)
    at[rel.numbers(pairs["move"])] = rel.numbers(pairs["change"])
    known = rel.taken(changes, at)
    return rel.filled(schema, {name: pc.coalesce(found[name], known[name]) for name in _CHANGE_COLUMNS}, found)


def _pairs(found: pa.Table, changes: pa.Table) -> pa.Table:
    """The row numbers of moves and of the changes that made them. A move goes with the change closest in time, and a
    change only with the move closest to it.
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


def recent_rewinds(then: Rows, rewinds: Rows, log_offsets: Rows, made_to: LogOffsets, since_ms: int) -> pa.Table:
    """The moves back since a time, from the last refresh (`then`) and new ones of `rewinds` (from `made_to` on). Moves
    of a deleted topic are left out if `log_offsets` has another topic of that name.
    """
    whole = rel.together(rel.loaded(then, REWINDS.names).cast(REWINDS.arrow), _new(rewinds, made_to))
    whole = whole.filter(pc.equal(whole["direction"], "back"))
    whole = whole.filter(pc.greater_equal(whole["rewind_time"], pa.scalar(since_ms * 1000, TIME)))
    logs = rel.loaded(log_offsets, ["cluster", "topic", "topic_id"])
    logs = logs.filter(logs["topic_id"].is_valid())
    id_now = rel.taken(logs["topic_id"], rel.matches(*rel.keys(["cluster", "topic"], whole, logs)))
    return whole.filter(_may_equal(whole["topic_id"], id_now))


def jumps_ahead(rewinds: Rows, made_to: LogOffsets) -> pa.Table:
    """The moves ahead from `made_to` on."""
    new = _new(rewinds, made_to)
    return new.filter(pc.equal(new["direction"], "ahead"))


def _new(rewinds: Rows, made_to: LogOffsets) -> pa.Table:
    rows = rel.loaded(rewinds, REWINDS.names).cast(REWINDS.arrow)
    return rows.filter(pa.array(rel.numbers(rows["log_offset"], -1) >= next_offsets(rows, made_to, 0)))
