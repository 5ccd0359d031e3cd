"""tables.EDGES: clients that read topics in groups."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.present.sql import Rows, made
from groupkeeper.pipeline.tables import EDGES

__all__ = ["edges"]

_EDGES = """
WITH named AS (
    SELECT cluster, group_id, client_id, unnest(subscribed_topics) AS topic FROM members
),
assigned AS (
    SELECT cluster, group_id, client_id, unnest(assigned) AS own FROM members
),
ids AS (
    SELECT cluster, topic_id, topic FROM topics WHERE topic_id IS NOT NULL
),
there AS (
    SELECT * FROM named
    UNION ALL BY NAME
    SELECT assigned.cluster, group_id, client_id, coalesce(own.topic, ids.topic) AS topic
    FROM assigned LEFT JOIN ids ON ids.cluster = assigned.cluster AND ids.topic_id = own.topic_id
),
instants AS (
    SELECT cluster, max(measured_time) AS time FROM freshness GROUP BY cluster
),
seen AS (
    SELECT * FROM known
    UNION ALL BY NAME
    SELECT * FROM new
    UNION ALL BY NAME
    SELECT there.*, time AS first_time, time AS last_time FROM there JOIN instants USING (cluster)
)
SELECT cluster, group_id, topic, client_id, min(first_time) AS first_time, max(last_time) AS last_time
FROM seen
WHERE group_id IS NOT NULL AND topic IS NOT NULL AND first_time IS NOT NULL
GROUP BY cluster, group_id, topic, client_id
"""


def edges(new: Rows, members: Rows, topics: Rows, freshness: Rows, known: Rows) -> pa.RecordBatchReader:
    """Of those that the `new` history shows (transforms.spans) and those that were `known`, both rows of tables.EDGES.
    Current members (tables.MEMBERS) are seen at the instant in tables.FRESHNESS; tables.TOPICS gives the names of
    topics by id.
    """
    given = {"new": new, "members": members, "topics": topics, "freshness": freshness, "known": known}
    return made(EDGES, _EDGES, given)
