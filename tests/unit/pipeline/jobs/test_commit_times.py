"""Statuses of groups whose commits have no timestamp, or which lack commits."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from groupkeeper.pipeline.present.status import status
from groupkeeper.pipeline.tables import GROUPS, LAG, LOG_OFFSETS, MEMBERS, REWINDS, Table
from groupkeeper.pipeline.tables.state import GROUP_FACTS, PACES

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _none(table: Table) -> pa.Table:
    return table.arrow.empty_table()


def test_without_a_commit_time_nothing_is_said_of_when_it_committed() -> None:
    names = {"cluster": "c", "topic": "t", "partition": 0, "measured_time": NOW, "committed_offset": 5, "lag": 5}
    waits = {"lag_ms": 1_200_000, "committed_lag_ms": 1_200_000, "is_waiting": True}
    ends = {"log_start_offset": 0, "log_end_offset": 10, **waits}
    rows = [
        {**names, **ends, "group_id": "dated", "commit_time": NOW - timedelta(hours=1)},
        {**names, **ends, "group_id": "undated"},
    ]
    lags = pa.Table.from_pylist(rows, schema=LAG.arrow)
    judged = status(_none(PACES), lags, _none(REWINDS), _none(GROUPS), _none(GROUP_FACTS)).to_pylist()
    told = {row["group_id"]: (row["status"], row["rule"]) for row in judged if row["topic"]}
    assert told["dated"][0] == "stopped"
    assert told["undated"] == (
        "lagging", "the next record has waited for 20 min"
    )  # fmt: skip


@pytest.mark.parametrize("is_named", [True, False])  # by the classic protocol; the other one has ids
def test_a_partition_without_a_commit_makes_a_group_unknown(is_named: bool) -> None:
    ends = {"cluster": "c", "topic": "t", "topic_id": "T", "log_start_offset": 2, "is_deleted": False}
    logs = [{**ends, "partition": number, "log_end_offset": end} for number, end in enumerate((9, 9, 2, 9, 9))]
    names = {"cluster": "c", "topic": "t", "measured_time": NOW, "log_start_offset": 2, "log_end_offset": 9}
    well = {"committed_offset": 9, "lag": 0, "lag_ms": 0}
    late = {"committed_offset": 5, "lag": 4, "lag_ms": 1_200_000, "committed_lag_ms": 1_200_000, "is_waiting": True}
    lags = [
        {**names, **state, "partition": 0, "group_id": group_id, "commit_time": NOW}
        for group_id, state in {"one": well, "three": well, "empty": well, "late": late, "unassigned": well}.items()
    ]
    assigned = {"one": [0, 1], "three": [0, 1, 3, 4], "empty": [0, 2], "late": [0, 1], "none": [1], "all empty": [2]}
    topic = {"topic": "t", "topic_id": None} if is_named else {"topic": None, "topic_id": "T"}
    held = [
        {"cluster": "c", "group_id": group_id, "member_id": "m", "group_type": "consumer", "assigned": [
            {**topic, "partitions": partitions}]}
        for group_id, partitions in assigned.items()
    ]  # fmt: skip
    found = status(
        _none(PACES), pa.Table.from_pylist(lags, schema=LAG.arrow), _none(REWINDS), _none(GROUPS), _none(GROUP_FACTS),
        members=pa.Table.from_pylist(held, schema=MEMBERS.arrow),
        log_offsets=pa.Table.from_pylist(logs, schema=LOG_OFFSETS.arrow),
    ).to_pylist()  # fmt: skip
    told = {row["group_id"]: (row["status"], row["rule"]) for row in found if row["topic"] is None}
    why = "t-1: nothing is committed: (share.)auto.offset.reset decides where the group begins"
    assert told.pop("late")[0] == "lagging"
    assert told == {
        "one": ("unknown", why),
        "three": ("unknown", f"{why}; 2 more partitions are like it"),
        "none": ("unknown", why),
        "empty": ("ok", "t-0: nothing to read"),
        "unassigned": ("ok", "t-0: nothing to read"),
        "all empty": ("ok", "t-2: nothing to read"),
    }
    assert sum(row["topic"] is not None for row in found) == len(lags)
