"""The first and the last time at which the history shows a client reading a topic in a group, for tables.EDGES."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline.relations import Rows, loaded, together, unnested
from groupkeeper.pipeline.tables import EDGES
from groupkeeper.pipeline.transforms.record_kinds import CLASSIC, RecordKind, rows_of

SPANS = pa.schema([EDGES.arrow.field(name) for name in (*EDGES.key, "first_time", "last_time")])
"""As small as tables.EDGES."""

_GROUP = ("cluster", "group_id", "log_time")
_SEEN = ("cluster", "group_id", "topic", "client_id", "time")


def spans(commits: Rows, group_records: Rows) -> pa.Table:
    """Rows of SPANS: of topics of which offsets were committed, and those that members subscribed to when they joined,
    or were assigned.
    """
    records = loaded(group_records, (*_GROUP, "record_name", "client_id", "subscribed_topics", "members"))
    seen = together(_committed(commits), _of_classic(records), _of_members(records))
    found = seen.group_by(list(EDGES.key), use_threads=False).aggregate([("time", "min"), ("time", "max")])
    return pa.table([*(found[name] for name in EDGES.key), found["time_min"], found["time_max"]], SPANS)


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
