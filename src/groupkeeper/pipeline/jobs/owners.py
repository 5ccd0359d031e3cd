"""tables.OWNERS: the owners of groups and topics, with the rates at which groups read and topics receive records."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline.owners import OwnerRule, owner_of
from groupkeeper.pipeline.relations import Rows, filled, keys, loaded, matches, taken, together
from groupkeeper.pipeline.tables import OWNERS

_GROUP = ("cluster", "group_id")
_TOPIC = ("cluster", "topic")


def owners(groups: Rows, topics: Rows, lag: Rows, rules: Sequence[OwnerRule]) -> pa.Table:
    """Rows of tables.OWNERS, from rows of the tables with the arguments' names."""
    sizes = loaded(topics, [*_TOPIC, "log_bytes", "records", "records_per_s"])
    records = pc.if_else(pc.equal(sizes["records"], 0), None, sizes["records"])
    size = pc.divide(*(each.cast(pa.float64(), safe=False) for each in (sizes["log_bytes"], records)))
    read = _read(loaded(lag, [*_GROUP, "topic", "consumed_per_s"]), sizes, size)
    known = loaded(groups, _GROUP)
    own = taken(read, matches(*keys(_GROUP, known, read)))
    rows = together(
        _rates("group", known["cluster"], known["group_id"], own["records_per_s_sum"], own["bytes_per_s_sum"]),
        _rates(
            "topic", sizes["cluster"], sizes["topic"], sizes["records_per_s"],
            pc.multiply(sizes["records_per_s"], size),
        ),
    )  # fmt: skip
    names = zip(rows["kind"].to_pylist(), rows["name"].to_pylist(), strict=True)
    matching = [owner_of(rules, kind, name) for kind, name in names]
    told = {
        name: pa.array([None if rule is None else getattr(rule, name) for rule in matching], pa.string())
        for name in ("owner", "pattern")
    }
    return filled(OWNERS.arrow, {name: rows[name] for name in rows.column_names} | told)


def _read(lag: pa.Table, topics: pa.Table, size: pa.ChunkedArray) -> pa.Table:
    """The records and bytes per second that each group reads; null: not known of any partition."""
    rate = lag["consumed_per_s"]
    bytes_per_s = pc.multiply(rate, taken(size, matches(*keys(_TOPIC, lag, topics))))
    rows = lag.select(_GROUP).append_column("records_per_s", rate).append_column("bytes_per_s", bytes_per_s)
    return rows.group_by(list(_GROUP)).aggregate([("records_per_s", "sum"), ("bytes_per_s", "sum")])


def _rates(kind: str, *columns: pa.ChunkedArray) -> pa.Table:
    rows = pa.table(columns, ["cluster", "name", "records_per_s", "bytes_per_s"])
    return rows.append_column("kind", pa.repeat(kind, len(rows)))
