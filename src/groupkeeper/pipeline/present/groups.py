"""tables.GROUPS: the present groups."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline import relations as rel
from groupkeeper.pipeline.present.members import latest_records
from groupkeeper.pipeline.relations import Array, Groups, Rows
from groupkeeper.pipeline.tables import GROUPS
from groupkeeper.pipeline.transforms.record_kinds import RecordKind, rows_of

_HEAD = ("group_type", "protocol_type", "protocol", "generation", "group_epoch")
_COLUMNS = (
    *GROUPS.key, *_HEAD, "record_name", "assignment_epoch", "member_epoch", "member_state", "members"
)  # fmt: skip
_KINDS = RecordKind.GROUP, RecordKind.MEMBER, RecordKind.CURRENT_ASSIGNMENT, RecordKind.TARGET


def groups(group_records: Rows, facts: Rows, current_offsets: Rows, queries: Rows | None = None) -> pa.Table:
    """tables.GROUPS from rows of tables.GROUP_RECORDS and tables.CURRENT_OFFSETS, and times of rebalances from
    tables.state.GROUP_FACTS. `queries`: keys of the groups that are queries of Spark.
    """
    described = _described(latest_records(group_records, _COLUMNS, *_KINDS))
    offsets = rel.loaded(current_offsets, [*GROUPS.key, "topic", "partition", "commit_time"])
    counts = [("topic", "count_distinct"), ("partition", "count"), ("commit_time", "max")]
    committed = offsets.group_by(list(GROUPS.key)).aggregate(counts)
    past = rel.loaded(facts, [*GROUPS.key, "rebalanced"])
    own_queries = rel.loaded(GROUPS.arrow.empty_table() if queries is None else queries, GROUPS.key)
    whole = rel.together(described.select(GROUPS.key), committed.select(GROUPS.key))
    of, *others = rel.keys(GROUPS.key, whole, described, committed, past, own_queries)
    own, first = np.unique(of, return_index=True)
    at, at_committed, at_past, at_query = (rel.matches(own, other) for other in others)
    found = rel.taken(whole, first)
    head, own_offsets = rel.taken(described, at), rel.taken(committed, at_committed)
    is_query, is_described = pa.array(at_query >= 0), pa.array(at >= 0)
    columns = {name: found[name] for name in GROUPS.key} | {name: head[name] for name in head.column_names[2:]}
    columns |= {
        "group_type": pc.if_else(is_query, "spark", pc.if_else(is_described, head["group_type"], "simple")),
        "group_state": pc.if_else(is_query, "Unknown", pc.if_else(is_described, head["group_state"], "Empty")),
        "protocol_type": pc.if_else(is_query, "spark", pc.if_else(is_described, head["protocol_type"], "")),
        "members": rel.numbers(head["members"]),
        "topics": rel.numbers(own_offsets["topic_count_distinct"]),
        "partitions": rel.numbers(own_offsets["partition_count"]),
        "last_commit_time": own_offsets["commit_time_max"],
        "last_rebalance_time": rel.taken(_last_of_each(past["rebalanced"].combine_chunks()), at_past),
    }
    return rel.filled(GROUPS.arrow, columns)


def _described(records: pa.Table) -> pa.Table:
    """Columns of GROUPS from the latest records of groups, which are in the order of the log."""
    (key,) = rel.keys(GROUPS.key, records)
    order = rel.in_order(key)
    rows, runs = rel.taken(records, order), Groups.sorted(key[order])
    is_group, is_member, has, is_target = (rows_of(rows["record_name"], kind) for kind in _KINDS)
    epoch = runs.greatest(np.where(is_target, rel.numbers(rows["assignment_epoch"], -1), -1))
    joined = runs.sum(is_member.astype(int))
    # As the coordinator would report it, from its records: they do not show a running rebalance of a classic group.
    is_stable = has & _is(rows["member_state"], "STABLE")
    is_of_epoch = rel.numbers(rows["member_epoch"], -1) == epoch[runs.of]
    is_reconciled = (runs.sum(is_stable.astype(int)) == joined) & (runs.sum((has & ~is_of_epoch).astype(int)) == 0)
    last = runs.last(is_group)[runs.ends]
    own = np.flatnonzero(last >= 0)
    head = rel.taken(rows, last[own])
    is_classic, is_share, is_streams = (_is(head["group_type"], each) for each in ("classic", "share", "streams"))
    listed = pc.list_value_length(head["members"])
    members = np.where(rel.is_known(listed), rel.numbers(listed), joined[own])
    state = np.select(
        [
            members == 0, is_classic | is_share, is_streams, rel.numbers(head["group_epoch"], -1) > epoch[own],
            is_reconciled[own],
        ],
        ["Empty", "Stable", "Unknown", "Assigning", "Stable"], "Reconciling",
    )  # fmt: skip
    columns = {name: head[name] for name in (*GROUPS.key, *_HEAD)} | {
        "protocol_type": pc.if_else(pa.array(is_classic), head["protocol_type"], head["group_type"]),
        "assignment_epoch": pa.array(epoch[own], pa.int32(), mask=is_classic | (epoch[own] < 0)),
        "members": members,
        "group_state": state,
    }
    return pa.table(columns)


def _is(column: pa.ChunkedArray, value: str) -> Array:
    return rel.numbers(pc.equal(column, value))


def _last_of_each(times: pa.ListArray) -> pa.Array:
    """The last element of each list, null for null and empty ones."""
    sizes = rel.numbers(pc.list_value_length(times))
    return rel.taken(pc.list_flatten(times), np.where(sizes > 0, np.cumsum(sizes) - 1, -1))
