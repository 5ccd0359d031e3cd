"""tables.OWNERS: the owners of groups and topics, with the rates at which groups read and topics receive records."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline.owners import OwnerRule, owner_of
from groupkeeper.pipeline.relations import Rows, filled, keys, loaded, matches, taken
from groupkeeper.pipeline.tables import OWNERS

_GROUP = ("cluster", "group_id")
_TOPIC = ("cluster", "topic")


def owners_of_groups(groups: Rows, topics: Rows, lag: Rows, rules: Sequence[OwnerRule]) -> pa.Table:
    """Rows of tables.OWNERS, from rows of the tables with the arguments' names."""
    sizes, size = _sizes(topics)
    read = _read(loaded(lag, [*_GROUP, "topic", "consumed_per_s"]), sizes, size)
    known = loaded(groups, _GROUP)
    own = taken(read, matches(*keys(_GROUP, known, read)))
    return _owned("group", rules, *known.columns, own["records_per_s_sum"], own["bytes_per_s_sum"])


def owners_of_topics(topics: Rows, rules: Sequence[OwnerRule]) -> pa.Table:
    """Rows of tables.OWNERS for topics."""
    sizes, size = _sizes(topics)
    rate = sizes["records_per_s"]
    return _owned("topic", rules, sizes["cluster"], sizes["topic"], rate, pc.multiply(rate, size))


def _sizes(topics: Rows) -> tuple[pa.Table, pa.ChunkedArray]:
    """The topics, and the mean bytes of a record of each; null: not known."""
    sizes = loaded(topics, [*_TOPIC, "log_bytes", "records", "records_per_s"])
    records = pc.if_else(pc.equal(sizes["records"], 0), None, sizes["records"])
    return sizes, pc.divide(*(each.cast(pa.float64(), safe=False) for each in (sizes["log_bytes"], records)))


def _owned(kind: str, rules: Sequence[OwnerRule], *columns: pa.ChunkedArray) -> pa.Table:
    rows = pa.table(columns, ["cluster", "name", "records_per_s", "bytes_per_s"])
    rows = rows.append_column("kind", pa.repeat(kind, len(rows)))
    matching = [owner_of(rules, kind, name) for name in rows["name"].to_pylist()]
    told = {
        name: pa.array([None if rule is None else getattr(rule, name) for rule in matching], pa.string())
        for name in ("owner", "pattern")
    }
    return filled(OWNERS.arrow, told, rows)


def _read(lag: pa.Table, topics: pa.Table, size: pa.ChunkedArray) -> pa.Table:
    """The records and bytes per second that each group reads; null: not known for any partition."""
    rate = lag["consumed_per_s"]
    bytes_per_s = pc.multiply(rate, taken(size, matches(*keys(_TOPIC, lag, topics))))
    rows = lag.select(_GROUP).append_column("records_per_s", rate).append_column("bytes_per_s", bytes_per_s)
    return rows.group_by(list(_GROUP)).aggregate([("records_per_s", "sum"), ("bytes_per_s", "sum")])
