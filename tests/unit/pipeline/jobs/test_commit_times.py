"""Statuses of groups whose commits have no timestamp."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from groupkeeper.pipeline.present.sql import empty
from groupkeeper.pipeline.present.status import status
from groupkeeper.pipeline.tables import GROUPS, LAG, REWINDS
from groupkeeper.pipeline.tables.state import GROUP_FACTS, PACES

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_without_a_commit_time_nothing_is_said_of_when_it_committed() -> None:
    names = {"cluster": "c", "topic": "t", "partition": 0, "measured_time": NOW, "committed_offset": 5, "lag": 5}
    ends = {"log_start_offset": 0, "log_end_offset": 10, "lag_ms": 1_200_000, "committed_lag_ms": 1_200_000}
    rows = [
        {**names, **ends, "group_id": "dated", "commit_time": NOW - timedelta(hours=1)},
        {**names, **ends, "group_id": "undated"},
    ]
    lags = pa.Table.from_pylist(rows, schema=LAG.arrow)
    judged = status(empty(PACES), lags, empty(REWINDS), empty(GROUPS), empty(GROUP_FACTS)).read_all().to_pylist()
    told = {row["group_id"]: (row["status"], row["rule"]) for row in judged if row["topic"]}
    assert told["dated"][0] == "stopped"
    assert told["undated"] == (
        "lagging", "the oldest record to read has waited for 20 min; the time of its last commit is not known"
    )  # fmt: skip
