"""tables.EDGES: clients that read topics in groups."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.present.members import assigned
from groupkeeper.pipeline.relations import Rows, filled, keys, loaded, matches, taken, together, unnested
from groupkeeper.pipeline.tables import EDGES

_NAMED = ("cluster", "group_id", "client_id", "topic")


def edges(new: Rows, members: Rows, topics: Rows, freshness: Rows, known: Rows) -> pa.Table:
    """Of those that the `new` history shows (transforms.spans) and those that were `known`, both rows of tables.EDGES.
    Current members (tables.MEMBERS) are seen at the instant in tables.FRESHNESS; tables.TOPICS gives the names of
    topics by id.
    """
    named = loaded(members, [*_NAMED[:-1], "subscribed_topics"]).rename_columns(_NAMED)
    there = together(unnested(named, "topic"), assigned(members, topics).select(_NAMED))
    instants = loaded(freshness, ["cluster", "measured_time"]).group_by("cluster").aggregate([("measured_time", "max")])
    time = taken(instants["measured_time_max"], matches(*keys(["cluster"], there, instants)))
    now = filled(EDGES.arrow, {name: there[name] for name in _NAMED} | {"first_time": time, "last_time": time})
    seen = together(now, loaded(known, EDGES.names), loaded(new, EDGES.names))
    for name in ("group_id", "topic", "first_time"):
        seen = seen.filter(seen[name].is_valid())
    found = seen.group_by(list(EDGES.key)).aggregate([("first_time", "min"), ("last_time", "max")])
    return found.rename_columns({"first_time_min": "first_time", "last_time_max": "last_time"}).select(EDGES.names)
