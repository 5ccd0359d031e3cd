"""tables.EDGES: clients that read topics in groups, by the current members, and by the history."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline.present.members import assigned
from groupkeeper.pipeline.relations import Rows, filled, keys, loaded, matches, taken, together, unnested
from groupkeeper.pipeline.tables import EDGES
from groupkeeper.pipeline.transforms.record_kinds import CLASSIC, RecordKind, rows_of

_NAMED = ("cluster", "group_id", "client_id", "topic")
_GROUP = ("cluster", "group_id", "log_time")
_SEEN = ("cluster", "group_id", "topic", "client_id", "time")


def edges(new: Rows, members: Rows, topics: Rows, freshness: Rows, known: Rows) -> pa.Table:
    """Joins edges from new history (`new`, of `spans`) and earlier ones (`known`), both rows of tables.EDGES, with
    current members (tables.MEMBERS), which count as seen at the instant in tables.FRESHNESS. tables.TOPICS gives the
    names of topics by id.
    """
    named = loaded(members, [*_NAMED[:-1], "subscribed_topics"]).rename_columns(_NAMED)
    there = together(unnested(named, "topic"), assigned(members, topics).select(_NAMED))
    instants = loaded(freshness, ["cluster", "measured_time"]).group_by("cluster").aggregate([("measured_time", "max")])
    time = taken(instants["measured_time_max"], matches(*keys(["cluster"], there, instants)))
    now = filled(EDGES.arrow, {"first_time": time, "last_time": time}, there)
    seen = together(now, loaded(known, EDGES.names), loaded(new, EDGES.names))
    for name in ("group_id", "topic", "first_time"):
        seen = seen.filter(seen[name].is_valid())
    found = seen.group_by(list(EDGES.key)).aggregate([("first_time", "min"), ("last_time", "max")])
    return found.rename_columns({"first_time_min": "first_time", "last_time_max": "last_time"}).select(EDGES.names)


def spans(commits: Rows, group_records: Rows) -> pa.Table:
    """tables.state.SPANS from new rows: topics with committed offsets, and topics that members subscribed to when they
    joined, or were assigned.
    """
    records = loaded(group_records, (*_GROUP, "record_name", "client_id", "subscribed_topics", "members"))
    seen = together(_committed(commits), _of_classic(records), _of_members(records))
    found = seen.group_by(list(EDGES.key), use_threads=False).aggregate([("time", "min"), ("time", "max")])
    return pa.table([*(found[name] for name in EDGES.key), found["time_min"], found["time_max"]], EDGES.arrow)


def _committed(commits: Rows) -> pa.Table:
    rows = loaded(commits, ("cluster", "group_id", "topic", "commit_time", "log_time", "is_tombstone"))
    rows = rows.filter(pc.invert(rows["is_tombstone"]))
    time = pc.coalesce(rows["commit_time"], rows["log_time"])
    return pa.table([*rows.columns[:3], pa.nulls(len(rows), pa.string()), time], names=_SEEN)


def _of_classic(records: pa.Table) -> pa.Table:
    rows = records.filter(pc.fill_null(pc.equal(records["record_name"], CLASSIC), False))
    members = unnested(rows.select((*_GROUP, "members")), "members")
    client, subscribed, assigned = (
        pc.struct_field(members["members"], name) for name in ("client_id", "subscribed_topics", "assigned")
    )
    of = members.select(_GROUP).append_column("client_id", client)
    own = unnested(of.append_column("topic", assigned), "topic")
    own = own.set_column(4, "topic", pc.struct_field(own["topic"], "topic"))
    found = together(unnested(of.append_column("topic", subscribed), "topic"), own)
    return found.rename_columns([*found.column_names[:2], "time", "client_id", "topic"]).select(_SEEN)


def _of_members(records: pa.Table) -> pa.Table:
    rows = records.filter(pa.array(rows_of(records["record_name"], RecordKind.MEMBER)))
    found = unnested(rows.select((*_GROUP, "client_id", "subscribed_topics")), "subscribed_topics")
    return found.rename_columns([*found.column_names[:2], "time", "client_id", "topic"]).select(_SEEN)
