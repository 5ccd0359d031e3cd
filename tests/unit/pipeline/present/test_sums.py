"""Sums of numbers that brokers give: those that no 64 bits hold are the largest number, and do not wrap."""

from datetime import UTC, datetime

import pyarrow as pa

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.pipeline.jobs.topics import _rows
from groupkeeper.pipeline.kafka.instants import ClusterIdentity, Instant, LogEnds
from groupkeeper.pipeline.present.status import status
from groupkeeper.pipeline.tables import GROUPS, LAG, REWINDS
from groupkeeper.pipeline.tables.state import GROUP_FACTS, PACES

LARGEST = 2**63 - 1


def test_of_the_lags_of_a_group() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    own = [("g", 2**62), ("g", 2**62), ("h", 3), ("h", 4), ("unknown", None)]
    lags = [
        dict.fromkeys(LAG.names)
        | {"cluster": "c", "group_id": group_id, "topic": "t", "partition": number, "lag": lag}
        | {"committed_offset": 0, "commit_time": now, "measured_time": now}
        for number, (group_id, lag) in enumerate(own)
    ]
    others = (each.arrow.empty_table() for each in (REWINDS, GROUPS, GROUP_FACTS))
    found = status(PACES.arrow.empty_table(), pa.Table.from_pylist(lags, LAG.arrow), *others)
    whole = {row["group_id"]: row["lag"] for row in found.to_pylist() if row["topic"] is None}
    assert whole == {"g": LARGEST, "h": 7, "unknown": None}


def test_of_the_logs_of_a_topic() -> None:
    ends = {TopicPartition("t", number): LogEnds(0, 2**62, 2**62, "id") for number in (0, 1)}
    instant = Instant(1, ClusterIdentity(None, None), "__consumer_offsets", {}, ends)
    (row,) = _rows("c", instant, {}, {})
    assert row["records"] == row["measures"][0]["log_end_offset"] == LARGEST
