"""What was measured of a topic tells nothing of one that is created under its name later."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.pipeline.jobs.log_offsets import Clusters
from groupkeeper.pipeline.jobs.topics import _created_again, _is_measured, _rows, topics
from groupkeeper.pipeline.kafka.instants import ClusterIdentity, Instant, InstantRefused, LogEnds
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.present.lag import lag
from groupkeeper.pipeline.present.moved import recent_rewinds
from groupkeeper.pipeline.tables import CURRENT_OFFSETS, LAG, LOG_OFFSETS, REWINDS, TOPICS, Table
from groupkeeper.pipeline.tables.state import READERS

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def rows(table: Table, **columns: Any) -> pa.Table:
    known = {"cluster": "c", "group_id": "g", "topic": "t", "partition": 0}
    row = dict.fromkeys(table.names) | {name: known[name] for name in known if name in table.names}
    return pa.Table.from_pylist([row | columns], table.arrow)


@pytest.mark.parametrize(
    ("before", "now", "known"),
    [("one", "one", [100, 130]), ("one", "two", [130]), (None, "two", [100, 130]), ("one", None, [100, 130])],
)
def test_measures_of_lag_begin_again(before: str | None, now: str | None, known: list[int]) -> None:
    """Although the log ends behind the earlier one's end, and the group is further than it was there."""
    measures = [{"time": BEGIN, "committed_offset": 50, "log_end_offset": 100}]
    ends = {"log_start_offset": 0, "last_stable_offset": 130, "log_end_offset": 130}
    (row,) = lag(
        rows(CURRENT_OFFSETS, committed_offset=90, commit_time=BEGIN),
        rows(LOG_OFFSETS, topic_id=now, measured_time=BEGIN + MINUTE, records=[], **ends),
        then=rows(LAG, measures=measures),
        topics_then=rows(TOPICS, topic_id=before),
    ).to_pylist()
    assert [each["log_end_offset"] for each in row["measures"]] == known
    assert row["lag"] == 40
    assert row["produced_per_s"] == (0.5 if len(known) == 2 else None)


def instant(*ends: LogEnds | InstantRefused) -> Instant:
    logs = {TopicPartition("t", number): each for number, each in enumerate(ends)}
    return Instant(int(BEGIN.timestamp() * 1000), ClusterIdentity(None, None), "__consumer_offsets", {}, logs)


def test_a_topic_of_another_id_is_measured_in_the_same_minute() -> None:
    before = {("c", "t"): {"topic_id": "one", "measured_time": BEGIN, "problem": None}}
    same, other = LogEnds(0, 9, 9, "one"), LogEnds(0, 9, 9, "two")
    gone, unnamed = InstantRefused("no leader", is_deleted=False), LogEnds(0, 9, 9, None)
    for now in (instant(same), instant(gone), instant(unnamed)):
        assert _created_again("c", now, before) == {}
        assert _is_measured("c", now, before)
    for now in (instant(other), instant(gone, other)):
        assert _created_again("c", now, before) == {"t": ("one", "two")}
        assert not _is_measured("c", now, before)
    assert _created_again("d", instant(other), before) == {}
    assert _created_again("c", instant(other), {("c", "t"): {"topic_id": None}}) == {}


def test_an_id_stays_known_while_the_cluster_is_away() -> None:
    options = parse_options({"kafka.bootstrap.servers": "127.0.0.1:1", "cluster": "c", "rows": "decoded"})
    before = rows(TOPICS, topic_id="one", partitions=1, measured_time=BEGIN, measures=[])
    for clusters, why in (
        (Clusters(options, {}, {"c": "cluster c: out of reach"}), "cluster c: out of reach"),
        (Clusters(options, {}, {}), "cluster c is not among the given ones"),
    ):
        (row,) = topics(READERS.arrow.empty_table(), clusters, before).to_pylist()
        assert (row["topic_id"], row["measured_time"], row["problem"]) == ("one", BEGIN, f"not measured: {why}")
    after = {("c", "t"): row}
    assert not _is_measured("c", instant(LogEnds(0, 9, 9, "one")), after)  # although it is of the same minute
    assert _created_again("c", instant(LogEnds(0, 9, 9, "two")), after) == {"t": ("one", "two")}


def test_an_id_stays_known_while_no_log_can_be_queried() -> None:
    before = {("c", "t"): {"topic_id": "one", "measured_time": BEGIN, "measures": []}}
    (row,) = _rows("c", instant(InstantRefused("no leader", is_deleted=False)), {}, before)
    assert row["topic_id"] == "one"


@pytest.mark.parametrize("is_carried", [True, False])
def test_moves_back_in_the_earlier_topic_are_left_out(*, is_carried: bool) -> None:
    moves = [
        rows(REWINDS, partition=number, topic_id=topic_id, direction="back", rewind_time=BEGIN, log_offset=number)
        for number, topic_id in enumerate(("one", "two", None))
    ]
    given = pa.concat_tables(moves)
    there = (given, REWINDS.arrow.empty_table()) if is_carried else (REWINDS.arrow.empty_table(), given)

    def found(topic_id: str | None) -> list[int]:
        logs = rows(LOG_OFFSETS, topic_id=topic_id)
        return sorted(recent_rewinds(*there, logs, {}, 0)["partition"].to_pylist())

    assert found("two") == [1, 2]
    assert found(None) == [0, 1, 2]
