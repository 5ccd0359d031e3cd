"""Commits that differ from the offset committed before: present.moved reports them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline.relations import (
    Array,
    Groups,
    Rows,
    earlier,
    keys,
    loaded,
    matches,
    numbers,
    runs,
    taken,
    together,
)
from groupkeeper.pipeline.tables import CURRENT_OFFSETS, GROUPS
from groupkeeper.pipeline.tables.state import MOVES
from groupkeeper.pipeline.transforms.group_facts import memberships

_KEY = CURRENT_OFFSETS.key
_COLUMNS = (*_KEY, "topic_id", "log_partition", "log_offset", "commit_time", "committed_offset", "is_tombstone")


def is_told(moves: pa.Table) -> Array:
    """Of rows of tables.state.MOVES, whether each is back, or a jump ahead of a group without members
    (present.moved.rewinds).
    """
    is_back = numbers(moves["to_offset"]) < numbers(moves["from_offset"])
    return is_back | (numbers(moves["was_empty"]) & ~numbers(moves["was_removed"]))


def moves(commits: Rows, last_commits: Rows, group_events: Rows, facts: Rows) -> pa.Table:
    """tables.state.NEW_MOVES: of `commits`, and the carried ones before them, the moves that are reported: rewinds, and
    the last of each key. Whether the group had members tell `group_events`, and the `facts` of before.
    """
    new = loaded(commits, _COLUMNS)
    whole = together(new, loaded(last_commits, _COLUMNS))
    order, groups = runs(_KEY, whole)
    is_gone, offset = (numbers(whole[name])[order] for name in ("is_tombstone", "committed_offset"))
    topic_id = numbers(whole["topic_id"].combine_chunks().dictionary_encode().indices, -1)[order]
    before = groups.before()
    known = groups.last(~is_gone, is_before=True)
    is_same_topic = (topic_id == topic_id[known]) | (topic_id == -1) | (topic_id[known] == -1)
    is_move = (order < len(new)) & ~is_gone & (known >= 0) & (offset != offset[known]) & is_same_topic
    at = np.flatnonzero(is_move)
    rows = taken(whole, order[at])
    was_removed = is_gone[before[at]] & (before[at] >= 0)
    made = {
        "rewind_time": rows["commit_time"],
        "from_offset": pa.array(offset[known[at]], pa.int64()),
        "to_offset": rows["committed_offset"],
        "was_removed": pa.array(was_removed, pa.bool_()),
        "was_empty": _was_empty(rows, memberships(group_events), loaded(facts, (*GROUPS.key, "was_empty"))),
    }
    found = pa.table([made[name] if name in made else rows[name] for name in MOVES.names], MOVES.arrow)
    is_last = np.zeros(len(at), bool)
    is_last[Groups.sorted(groups.of[at]).ends] = True
    return found.filter(pa.array(is_told(found) | is_last, pa.bool_()))


def _was_empty(rows: pa.Table, changes: pa.Table, facts: pa.Table) -> pa.Array:
    """Of commits, whether the group had no members then: by its last change before, otherwise by what was known; null:
    neither tells it.
    """
    by_now = taken(changes["is_empty"].combine_chunks(), earlier(GROUPS.key, rows, changes))
    then = taken(facts["was_empty"].combine_chunks(), matches(*keys(GROUPS.key, rows, facts)))
    return pc.coalesce(by_now, then)
