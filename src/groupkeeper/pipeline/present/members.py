"""tables.MEMBERS: the members of groups, with their assignments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline import relations as rel
from groupkeeper.pipeline.relations import Rows
from groupkeeper.pipeline.tables import MEMBERS
from groupkeeper.pipeline.tables.log import ASSIGNED
from groupkeeper.pipeline.transforms.record_kinds import CLASSIC, RecordKind, rows_of

_RECORD = ("cluster", "group_id", "record_name", "member_id")
_GROUP = ("cluster", "group_id", "group_type")
_ROSTER = (
    "member_id", "instance_id", "client_id", "client_host", "rebalance_timeout_ms", "subscribed_topics", "assigned"
)  # fmt: skip
_DESCRIBED = (
    *MEMBERS.key, "group_type", "instance_id", "client_id", "client_host", "rack_id", "rebalance_timeout_ms",
    "subscribed_topics", "subscribed_regex",
)  # fmt: skip
_ID = ("cluster", "topic_id")
_HAS = ("member_epoch", "member_state", "assigned")


def latest_records(group_records: Rows, columns: Sequence[str], *kinds: RecordKind) -> pa.Table:
    """The latest record of each group, record name and member, unless it is a tombstone, in the order of the log; only
    `columns`, and only records of these kinds. `group_records`: rows of tables.GROUP_RECORDS.
    """
    needed = dict.fromkeys((*_RECORD, "log_offset", "is_tombstone", "problem", *columns))
    rows = rel.loaded(group_records, list(needed))
    rows = rows.filter(pa.array(rows_of(rows["record_name"], *kinds) & ~rel.is_known(rows["problem"])))
    order, groups = rel.runs(_RECORD, rows)
    last = order[groups.ends]
    last = last[~rel.numbers(rows["is_tombstone"])[last]]
    in_log = np.argsort(rel.numbers(rows["log_offset"])[last])
    return rel.taken(rows.select(list(columns)), last[in_log])


def members(group_records: Rows) -> pa.Table:
    """tables.MEMBERS from rows of tables.GROUP_RECORDS."""
    columns = dict.fromkeys((*_DESCRIBED, *_HAS, "members", "record_name"))
    kinds = RecordKind.GROUP, RecordKind.MEMBER, RecordKind.CURRENT_ASSIGNMENT, RecordKind.TARGET_OF_MEMBER
    latest = latest_records(group_records, list(columns), *kinds)
    is_classic = pc.equal(latest["record_name"], CLASSIC)
    return rel.together(_newer(latest.filter(pc.invert(is_classic))), _of_rosters(latest.filter(is_classic)))


def _of_rosters(records: pa.Table) -> pa.Table:
    """The members that are listed in classic groups' records."""
    found = rel.unnested(records.select([*_GROUP, "members"]), "members")
    columns = {name: pc.struct_field(found["members"], name) for name in _ROSTER}
    return rel.filled(MEMBERS.arrow, columns, found)


def _newer(records: pa.Table) -> pa.Table:
    """The members of newer groups, which have records of their own."""
    described, current, target = (
        records.filter(pa.array(rows_of(records["record_name"], kind)))
        for kind in (RecordKind.MEMBER, RecordKind.CURRENT_ASSIGNMENT, RecordKind.TARGET_OF_MEMBER)
    )
    own, of_current, of_target = rel.keys(MEMBERS.key, described, current, target)
    last = np.flatnonzero(rel.matches(own, own) == np.arange(len(own)))
    found = rel.taken(described, last)
    has = rel.taken(current, rel.matches(own[last], of_current))
    should_have = rel.taken(target, rel.matches(own[last], of_target))
    pattern = found["subscribed_regex"]
    columns = {name: has[name] for name in _HAS} | {
        "subscribed_regex": pc.if_else(pc.equal(pattern, ""), None, pattern),
        "assigned": _there(has["assigned"], found["group_type"]),
        "target": _there(should_have["assigned"], found["group_type"]),
    }
    return rel.filled(MEMBERS.arrow, columns, found)


def _there(assigned: pa.ChunkedArray, group_type: pa.ChunkedArray) -> pa.ChunkedArray:
    """The assignments; null for streams groups, whose tasks are in group_records as JSON."""
    there = pc.coalesce(assigned, pa.scalar([], ASSIGNED))
    return pc.if_else(pc.equal(group_type, "streams"), pa.scalar(None, ASSIGNED), there)


def assigned(members: Rows, names: Rows) -> pa.Table:
    """The assignments of members (rows of tables.MEMBERS): a row for each topic, with its `partitions`. Newer protocols
    have only ids of topics; `names` has names by `cluster` and `topic_id`. A topic without a name is null.
    """
    found = rel.unnested(rel.loaded(members, [*_GROUP, "member_id", "client_id", "assigned"]), "assigned")
    topic, topic_id, partitions = (
        pc.struct_field(found["assigned"], name) for name in ("topic", "topic_id", "partitions")
    )
    known = rel.loaded(names, [*_ID, "topic"])
    known = known.filter(known["topic_id"].is_valid())
    ids = pa.table([found["cluster"], topic_id], _ID)
    named = rel.taken(known["topic"], rel.matches(*rel.keys(_ID, ids, known)))
    found = found.drop_columns(["assigned"]).append_column("topic", pc.coalesce(topic, named))
    return found.append_column("partitions", partitions)
