"""tables.OWNERS: the owners of groups and topics, with the rates at which groups read and topics receive records."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from groupkeeper.pipeline.owners import Rule, owner_of
from groupkeeper.pipeline.present.sql import Rows, made
from groupkeeper.pipeline.tables import OWNERS

__all__ = ["owners"]

_OWNERS = """
WITH sizes AS (SELECT cluster, topic, log_bytes / nullif(records, 0) AS size FROM topics),
read AS (
    SELECT cluster, group_id, sum(consumed_per_s) AS records_per_s, sum(consumed_per_s * size) AS bytes_per_s
    FROM lag LEFT JOIN sizes USING (cluster, topic)
    GROUP BY cluster, group_id
)
SELECT cluster, 'group' AS kind, group_id AS name, records_per_s, bytes_per_s
FROM groups LEFT JOIN read USING (cluster, group_id)
UNION ALL BY NAME
SELECT cluster, 'topic' AS kind, topic AS name, records_per_s, records_per_s * size AS bytes_per_s
FROM topics JOIN sizes USING (cluster, topic)
"""


def owners(groups: Rows, topics: Rows, lag: Rows, rules: Sequence[Rule]) -> pa.RecordBatchReader:
    """Rows of tables.OWNERS, from rows of the tables with the arguments' names."""
    columns = [(each.name, each.type) for each in OWNERS.columns if each.name not in ("owner", "pattern")]
    found = made(pa.schema(columns), _OWNERS, {"groups": groups, "topics": topics, "lag": lag}).read_all()
    names = zip(found["kind"].to_pylist(), found["name"].to_pylist(), strict=True)
    matching = [owner_of(rules, kind, name) for kind, name in names]
    for column in ("owner", "pattern"):
        values = [None if rule is None else getattr(rule, column) for rule in matching]
        found = found.append_column(column, pa.array(values, pa.string()))
    return found.select(OWNERS.names).to_reader()
