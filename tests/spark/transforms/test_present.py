"""What groups are and how they do: groups, members, lag, stale, status, on traces written by hand."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.transforms.traces import (
    DAY,
    Trace,
    at,
    current_offsets,
    events_of,
    facts_of,
    frame,
    join,
    listed,
    log_offsets,
    ms,
    seconds_of,
    table_of,
)
from tests.spark.transforms.traces import there as as_frame

from groupkeeper.pipeline.present.groups import groups
from groupkeeper.pipeline.present.lag import lag
from groupkeeper.pipeline.present.members import members
from groupkeeper.pipeline.present.stale import StaleLimits, stale
from groupkeeper.pipeline.tables import COMMITS, CURRENT_OFFSETS, GROUP_EVENTS, GROUPS, LAG, LOG_OFFSETS, MEMBERS, STALE
from groupkeeper.pipeline.tables.state import WANTED
from groupkeeper.pipeline.transforms.estimates import estimated, untimed, untimed_by_tasks


def test_groups_and_members() -> None:
    trace = Trace(group_id="classic")
    trace.group(0, 1, ["a", "s=b"], topics=["t", "u"])
    trace.commit(5, 1)
    trace.commit(6, 2, partition=1)
    trace.commit(7, 1, group_id="simple")
    trace.group_id = "stable"
    join(trace, 10, "a", 1)
    trace.group_id = "reconciling"
    join(trace, 10, "a", 1)
    join(trace, 11, "b", 2, instance_id="static", subscribed_regex="t.*")
    trace.group_id = "share"
    join(trace, 10, "a", 1, "Share", subscribed_regex="")
    trace.group_id = "streams"
    join(trace, 10, "a", 1, "Streams")
    records = trace.group_records()
    found = groups(records, facts_of(records, events_of(records)), current_offsets(trace.commits()))
    assert found.column_names == GROUPS.names
    rows = {row.group_id: row for row in listed(found)}
    classic, consumer = rows["classic"], rows["reconciling"]
    assert (classic.protocol_type, classic.protocol, classic.generation, classic.topics) == ("consumer", "range", 1, 1)
    assert (classic.group_epoch, classic.assignment_epoch) == (None, None)
    assert (consumer.group_epoch, consumer.assignment_epoch, consumer.generation) == (2, 2, None)
    states = [rows[name].group_state for name in ("stable", "reconciling", "streams")]
    assert states == ["Stable", "Reconciling", "Unknown"]
    assert (rows["simple"].last_rebalance_time, rows["share"].protocol_type) == (None, "share")
    found = members(records)
    assert found.column_names == MEMBERS.names
    people = {(row.group_id, row.member_id): row for row in listed(found)}
    one, static = people["classic", "b"], people["reconciling", "b"]
    assert (one.instance_id, one.subscribed_topics, one.member_epoch) == ("s", ["t", "u"], None)
    assert (one.assigned, one.target) == ([{"topic": "t", "topic_id": None, "partitions": [0]}], None)
    assert (static.instance_id, static.member_epoch, static.member_state) == ("static", 2, "STABLE")
    assert (static.subscribed_regex, static.assigned[0]["topic_id"], static.target) == ("t.*", "x", static.assigned)
    assert people["streams", "a"].assigned is None
    assert people["share", "a"].subscribed_regex is None


def test_lag(spark: SparkSession) -> None:
    """Each case is a partition whose committed offset is 10, of which something else is known at 100."""
    there = {"offset": 10, "is_there": True, "time": at(40)}
    timeless = there | {"time": None}
    only_markers = timeless | {"is_there": False}
    aborted = there | {"is_committed_there": True, "committed_time": at(70)}
    all_aborted = there | {"is_committed_there": False}
    ahead = there | {"time": at(160)}  # by a producer's clock that is a minute ahead of ours
    ends = ("log_start_offset", "last_stable_offset", "log_end_offset")
    cases: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
        ({"log_end_offset": 30, "records": [there]}, (20, 20, 60_000, 60_000, "exact")),
        ({"log_end_offset": 30, "records": [there], "last_stable_offset": 10}, (20, 0, 60_000, 0, "exact")),
        ({"log_end_offset": 30, "records": [aborted]}, (20, 20, 60_000, 30_000, "exact")),
        ({"log_end_offset": 30, "records": [all_aborted]}, (20, 20, 60_000, 0, "exact")),
        ({"log_end_offset": 30, "records": [ahead]}, (20, 20, 0, 0, "exact")),
        ({"log_end_offset": 10, "records": []}, (0, 0, 0, 0, "exact")),
        ({"log_end_offset": 5, "records": []}, (0, 0, 0, 0, "exact")),
        ({"log_end_offset": 11, "records": [only_markers]}, (1, 1, 0, 0, "exact")),
        (dict.fromkeys((*ends, "records")), (None, None, None, None, "unknown")),
        # All that is known: the group was there at 20, and the end is there now.
        ({"log_end_offset": 30, "records": [timeless]}, (20, 20, 80_000, 80_000, "interpolated")),
        ({"log_end_offset": 30, "records": []}, (20, 20, 90_000, 90_000, "interpolated")),
    ]
    trace = Trace()
    rows = []
    for partition, (known, _) in enumerate(cases):
        trace.commit(20, 10, partition=partition)
        place = {"cluster": "c", "topic": "t", "partition": partition, "measured_time": at(100), "is_deleted": False}
        rows.append({"log_start_offset": 0, "last_stable_offset": known["log_end_offset"]} | place | known)
    for seconds, offset in ((5, 8), (10, 20), (60, 30)):  # another group had read record 10 at 10
        trace.commit(seconds, offset, partition=len(cases) - 1, group_id="other")
    trace.commit(15, 31, partition=len(cases) - 2, group_id="other")  # past the end of the log
    here = current_offsets(trace.commits()), table_of(LOG_OFFSETS, rows)
    wanted = here[0].select(WANTED.names)
    asked = as_frame(spark, untimed(wanted, here[1]))
    by_tasks = untimed_by_tasks(as_frame(spark, wanted), as_frame(spark, here[1]))
    assert sorted(map(repr, by_tasks.collect())) == sorted(map(repr, asked.collect()))
    found = lag(*here, estimated(asked, frame(spark, COMMITS, trace.commit_rows)).toArrow())
    assert found.column_names == LAG.names
    problems = {row.log_end_offset: row.problem for row in listed(found) if row.problem is not None}
    assert problems == dict.fromkeys((5, 30), "the committed offset is past the end of the log")
    by_partition = {
        row.partition: (row.lag, row.committed_lag, row.lag_ms, row.committed_lag_ms, row.lag_basis)
        for row in listed(found)
        if row.group_id == "g"
    }
    assert by_partition == {partition: wanted for partition, (_, wanted) in enumerate(cases)}


def test_stale() -> None:
    trace = Trace(group_id="simple")
    trace.commit(0, 10)
    trace.group_id = "quiet"
    trace.group(0, 1, ["a"])
    trace.commit(1, 100)
    trace.commit(1, 90, partition=1)
    for group_id, left in (("left", 4.5 * DAY), ("just left", 8 * DAY)):
        trace.group_id = group_id
        trace.group(0, 1, ["a"])
        trace.commit(0, 100)
        trace.group(left, 2)
    trace.group_id = "two days left"
    trace.commit(4.5 * DAY, 100, topic="quiet", expire_time=at(12.5 * DAY))  # a week after it would be too soon
    trace.group_id = "other topics"
    join(trace, 0, "a", 1, subscribed_topics=["u"])
    trace.commit(DAY, 100)
    trace.group_id = "late"
    trace.commit(9.8 * DAY, 200, topic="missing")
    trace.commit(9.8 * DAY, 100, partition=1, topic_id="earlier")
    kinds = {
        "simple": ("simple", 0, 0), "quiet": ("classic", 1, 1), "left": ("classic", 0, 0),
        "just left": ("classic", 0, 0), "other topics": ("consumer", 1, DAY), "late": ("simple", 0, 9.8 * DAY),
        "two days left": ("simple", 0, 9 * DAY),
    }  # fmt: skip
    those = [
        {
            "cluster": "c", "group_id": group_id, "group_type": group_type, "members": number,
            "protocol_type": "" if group_type == "simple" else "consumer", "last_commit_time": at(committed),
        }
        for group_id, (group_type, number, committed) in kinds.items()
    ]  # fmt: skip
    logs = pa.concat_tables([
        log_offsets(10 * DAY, {0: (50, 100), 1: (0, 100)}, topic_id="now"),
        log_offsets(10 * DAY, {0: (0, 0)}, topic="missing", is_deleted=True, log_start_offset=None),
    ])  # fmt: skip
    records = trace.group_records()
    known = table_of(CURRENT_OFFSETS, trace.commit_rows), logs, records, members(records)
    facts = facts_of(records, table_of(GROUP_EVENTS, []))
    limits = StaleLimits(ms(10.6 * DAY), idle_days=5)
    found = stale(*known, table_of(GROUPS, those), facts, limits)
    assert found.column_names == STALE.names
    rows = listed(found)
    assert {(row.group_id, row.topic, row.partition, row.reason, row.lost) for row in rows} == {
        ("simple", None, None, "idle", None), ("simple", "t", 0, "idle", None), ("simple", "t", 0, "expiring", None),
        ("simple", "t", 0, "below_log_start", 40),
        ("quiet", "t", 1, "idle", None),  # of partition 0 everything is read
        ("left", None, None, "idle", None), ("left", "t", 0, "idle", None), ("left", "t", 0, "expiring", None),
        ("just left", "t", 0, "idle", None),
        ("other topics", "t", 0, "expiring", None),
        ("two days left", "quiet", 0, "idle", None),  # it does not expire within a day
        ("late", "missing", 0, "topic_deleted", None), ("late", "t", 1, "topic_deleted", None),
    }  # fmt: skip
    by_place = {(row.group_id, row.topic, row.reason): row for row in rows}
    assert seconds_of(by_place["left", "t", "expiring"].expires_time) == 11.5 * DAY  # a week after it emptied
    assert by_place["left", None, "idle"].idle_days == pytest.approx(6.1)
