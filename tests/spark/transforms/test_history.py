"""What became of groups and offsets, told from their records."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.spark.transforms.causes import with_causes
from tests.spark.transforms.traces import (
    DAY,
    HOUR,
    MINUTE,
    Trace,
    at,
    current_offsets,
    events_of,
    frame,
    listed,
    log_offsets,
    moves_of,
    ms,
    rewinds_of,
    seconds_of,
)

from groupkeeper.pipeline.kafka.retention import Retention, Retentions
from groupkeeper.pipeline.storage.lake import OPEN
from groupkeeper.pipeline.tables import COMMITS, GROUP_EVENTS, GROUP_RECORDS, OFFSETS_AS_OF, RATES, REWINDS
from groupkeeper.pipeline.transforms.offsets_as_of import offsets_as_of
from groupkeeper.pipeline.transforms.rates import rates, rates_of_groups

WEEK = 7 * DAY


def events(trace: Trace) -> list[tuple[str, str, int | None]]:
    """Event, member and members after it, in the log's order."""
    found = events_of(trace.group_records())
    assert found.column_names == GROUP_EVENTS.names
    rows = found.sort_by([(name, "ascending") for name in ("log_offset", "event", "member_id")])
    return [(row.event, row.member_id, row.members) for row in listed(rows)]


def classic_life() -> Trace:
    trace = Trace()
    trace.group(0, 1, ["a"])
    trace.group(10, 2, ["a", "s=b"])
    trace.group(20, 2, ["a", "s=b2"])  # the static member comes back with a new id: no rebalance
    trace.group(30, 3, ["s=b2"])
    trace.group(40, 4)
    trace.record(50, "GroupMetadata", gone=True)
    trace.group(60, 1, ["c"])
    return trace


def test_life_of_a_classic_group() -> None:
    assert events(classic_life()) == [
        ("created", "", 1), ("joined", "a", 1), ("rebalanced", "", 1),
        ("joined", "b", 2), ("rebalanced", "", 2),
        ("joined", "b2", 2), ("left", "b", 2),
        ("left", "a", 1), ("rebalanced", "", 1),
        ("emptied", "", 0), ("left", "b2", 0),
        ("deleted", "", 0),
        ("created", "", 1), ("joined", "c", 1), ("rebalanced", "", 1),
    ]  # fmt: skip
    rows = listed(events_of(classic_life().group_records()))
    (joined,) = (row for row in rows if (row.event, row.member_id) == ("joined", "b"))
    assert (joined.instance_id, joined.client_id, joined.client_host) == ("s", "app", "/h")
    assert (joined.generation, joined.group_epoch, seconds_of(joined.event_time)) == (2, None, 10)


def test_a_compacted_log_does_not_tell_what_it_does_not_know() -> None:
    trace = Trace()
    trace.group(0, 7, ["a", "b"])
    trace.group(10, 8, ["b"])
    assert events(trace) == [
        ("rebalanced", "", 2), ("left", "a", 1), ("rebalanced", "", 1)
    ]  # fmt: skip


def join(trace: Trace, seconds: float, member_id: str, epoch: int, prefix: str = "Consumer", **columns: Any) -> None:
    """What the coordinator writes when a member comes: itself, the group's epoch, the targets, what it has."""
    given: dict[str, Any] = {
        "client_id": "app",
        "client_host": "/h",
        "rebalance_timeout_ms": 60000,
        "subscribed_topics": ["t"],
    }
    trace.record(seconds, f"{prefix}GroupMemberMetadata", member_id=member_id, **(given | columns))
    trace.record(seconds, f"{prefix}GroupMetadata", group_epoch=epoch)
    target = [{"topic_id": "x", "partitions": [0]}]
    trace.record(seconds, f"{prefix}GroupTargetAssignmentMember", member_id=member_id, assigned=target)
    trace.record(
        seconds, f"{prefix}GroupTargetAssignmentMetadata", assignment_epoch=epoch, state_timestamp_ms=ms(seconds)
    )
    trace.record(
        seconds, f"{prefix}GroupCurrentMemberAssignment", member_id=member_id, member_epoch=epoch,
        member_state="STABLE", assigned=target,
    )  # fmt: skip


def leave(trace: Trace, seconds: float, member_id: str, epoch: int, prefix: str = "Consumer") -> None:
    for name in ("CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata"):
        trace.record(seconds, f"{prefix}Group{name}", gone=True, member_id=member_id)
    trace.record(seconds, f"{prefix}GroupMetadata", group_epoch=epoch)


def test_lives_of_other_groups() -> None:
    trace = Trace()
    for prefix in ("Consumer", "Share", "Streams"):
        trace.group_id = prefix
        join(trace, 0, "a", 1, prefix)
        join(trace, 10, "b", 2, prefix, subscribed_topics=["t", "u"])
        trace.record(15, f"{prefix}GroupMemberMetadata", member_id="b", subscribed_topics=["t"])
        leave(trace, 20, "a", 3, prefix)
        leave(trace, 30, "b", 4, prefix)
        trace.record(40, f"{prefix}GroupTargetAssignmentMetadata", gone=True)
        trace.record(40, f"{prefix}GroupMetadata", gone=True)
    life = [
        ("joined", "a", 1), ("created", "", 1), ("rebalanced", "", 1),
        ("joined", "b", 2), ("epoch_bumped", "", 2), ("rebalanced", "", 2),
        ("left", "a", 1), ("epoch_bumped", "", 1),
        ("emptied", "", 0), ("left", "b", 0), ("epoch_bumped", "", 0),
        ("deleted", "", 0),
    ]  # fmt: skip
    assert events(trace) == 3 * life


def test_a_group_whose_first_epoch_is_two_is_new() -> None:
    """As Kafka 4.3 has it (GN-29); an epoch 2 that compaction has left tells nothing."""
    trace = Trace(group_id="new")
    join(trace, 0, "a", 2, "Share")
    join(trace, 10, "b", 3, "Share")
    assert events(trace)[:2] == [("joined", "a", 1), ("created", "", 1)]
    left = Trace(group_id="compacted")
    left.record(0, "ConsumerGroupMemberMetadata", member_id="a", client_id="app")
    join(left, 10, "b", 2)
    assert events(left) == [
        ("joined", "a", 1), ("joined", "b", 2), ("rebalanced", "", 2)
    ]  # fmt: skip


def test_a_group_that_migrates_is_neither_deleted_nor_left() -> None:
    trace = Trace()
    trace.group(0, 5, ["a"])
    trace.record(10, "GroupMetadata", gone=True)
    trace.record(10, "ConsumerGroupMemberMetadata", member_id="a", client_id="app")
    trace.record(10, "ConsumerGroupMetadata", group_epoch=5)
    join(trace, 10, "b", 6)
    leave(trace, 20, "b", 7)
    for name in ("CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata"):
        trace.record(30, f"ConsumerGroup{name}", gone=True, member_id="a")
    trace.record(30, "ConsumerGroupMetadata", gone=True)
    trace.group(30, 7, ["a"])
    assert events(trace) == [
        ("rebalanced", "", 1),
        ("migrated", "", 1),
        ("joined", "b", 2), ("epoch_bumped", "", 2), ("rebalanced", "", 2),
        ("left", "b", 1), ("epoch_bumped", "", 1),
        ("migrated", "", 1), ("rebalanced", "", 1),
    ]  # fmt: skip


def test_a_clock_that_goes_back_makes_no_migration() -> None:
    """The group was deleted; something was written later before the next group came, at the same time by the clock."""
    trace = Trace()
    trace.group(0, 1, ["a"])
    trace.record(10, "GroupMetadata", gone=True)
    trace.record(11, "ConsumerGroupMemberMetadata", member_id="b", client_id="app")
    trace.record(10, "ConsumerGroupMetadata", group_epoch=1)
    assert events(trace)[-3:] == [("deleted", "", 0), ("joined", "b", 1), ("created", "", 1)]


def causes(trace: Trace, retentions: Retentions = MappingProxyType({})) -> list[str]:
    found = with_causes(trace.commits(), trace.group_records(), retentions)
    assert found.schema == COMMITS.arrow
    assert len(found) == len(trace.commit_rows)
    return [row.removed_by for row in listed(found.sort_by("log_offset")) if row.is_tombstone]


def test_tombstones_of_groups_without_members() -> None:
    trace = Trace()
    trace.commit(0, 1, group_id="young")
    trace.commit(HOUR, None, group_id="young")
    trace.commit(0, 1, group_id="old")
    trace.commit(WEEK + 5 * MINUTE, None, group_id="old")
    trace.commit(0, 1, group_id="too old")
    trace.commit(WEEK + DAY, None, group_id="too old")
    trace.commit(WEEK, None, group_id="compacted")
    trace.commit(0, 1, group_id="own time", expire_time=at(HOUR))
    trace.commit(HOUR + MINUTE, None, group_id="own time")
    trace.commit(0, 1, group_id="before its time", expire_time=at(2 * WEEK))
    trace.commit(WEEK + MINUTE, None, group_id="before its time")
    assert causes(trace) == ["deleted", "expired", "unknown", "unknown", "expired", "deleted"]
    an_hour = {"another": Retention(1), "c": Retention(HOUR * 1000, MINUTE * 1000)}
    assert causes(trace, an_hour) == ["expired", "unknown", "unknown", "unknown", "expired", "deleted"]


def test_tombstones_of_groups_with_a_past() -> None:
    trace = Trace()
    trace.group(0, 1, ["a"])
    trace.commit(10, 1)
    trace.commit(WEEK + MINUTE, None)  # of a topic that is read: it was deleted with the topic
    trace.commit(WEEK + HOUR, 2)
    trace.group(2 * WEEK, 2)  # empty from here on: the week begins
    trace.commit(2 * WEEK + 2 * HOUR, None)
    trace.commit(2 * WEEK + 3 * HOUR, 3)
    trace.commit(3 * WEEK + MINUTE, None)  # a week after the group emptied, not after the commit
    other = Trace(group_id="k", topic="u")
    join(other, 0, "a", 1)
    other.commit(10, 1)
    join(other, 2 * WEEK, "a", 2)  # it reads u no more
    other.commit(2 * WEEK + 5 * MINUTE, None)
    assert causes(trace) == ["deleted", "deleted", "expired"]
    assert causes(other) == ["expired"]


def test_rates() -> None:
    trace = classic_life()
    for second in (5, 15):
        trace.commit(second, second)
    trace.commit(65, 65, partition=1)
    trace.commit(70, None)
    trace.commit(71, None, partition=1)  # with its group: in no meter (K496-61)
    trace.record(71, "GroupMetadata", gone=True)
    trace.commit(71, 1, group_id="h")
    trace.commit(WEEK + 71, None, group_id="h")
    trace.commit(WEEK + 71, None, group_id="nobody knows")
    history = with_causes(trace.commits(), trace.group_records())
    found = rates(
        rates_of_groups(history, trace.group_records(), events_of(trace.group_records())),
        RATES.arrow.empty_table(),
        OPEN,
    )
    assert found.column_names == [*RATES.names, OPEN]
    rows = {(row.group_id, seconds_of(row.minute)): tuple(vars(row).values())[3:-1] for row in listed(found)}
    assert rows == {  # commits, expirations, deletions, rebalances, unexplained, with the group; K496-60
        ("g", 0): (2, 0, 0, 3, 0, 0), ("g", 60): (1, 0, 1, 1, 0, 1), ("h", 60): (1, 0, 0, 0, 0, 0),
        ("h", WEEK + 60): (0, 1, 0, 0, 0, 0), ("nobody knows", WEEK + 60): (0, 0, 0, 0, 1, 0),
        (None, 0): (2, 0, 0, 3, 0, 0), (None, 60): (2, 0, 1, 1, 0, 1), (None, WEEK + 60): (0, 1, 0, 0, 1, 0),
    }  # fmt: skip


def test_a_clock_that_steps_back_takes_no_offset_with_its_group() -> None:
    """The first offset went earlier, at the time by the clock at which the group is deleted later."""
    trace = Trace()
    trace.record(0, "GroupMetadata", generation=1, members=[])
    for partition in (0, 1):
        trace.commit(70, 5, partition=partition)
    trace.commit(71, None)
    trace.commit(10, 6, partition=2)
    trace.commit(71, None, partition=1)
    trace.record(71, "GroupMetadata", gone=True)
    history = with_causes(trace.commits(), trace.group_records())
    found = rates_of_groups(history, trace.group_records(), events_of(trace.group_records()))
    assert sum(row.offset_deletions for row in listed(found)) == 1
    assert sum(row.removed_with_group for row in listed(found)) == 1


def told(trace: Trace, logs: pa.Table) -> pa.Table:
    found = moves_of(trace.commits(), events_of(trace.group_records()))
    return rewinds_of(found, current_offsets(trace.commits()), logs)


def test_rewinds_and_jumps() -> None:
    trace = Trace()
    trace.group(0, 1, ["a"])
    trace.commit(1, 100)
    trace.commit(2, 900)  # a reader that is fast, no jump
    trace.commit(3, 850)  # read again after a rebalance
    trace.group(4, 2)
    trace.commit(5, 10)  # a reset
    trace.commit(6, 500)  # another one, ahead
    trace.group(7, 3, ["a"])
    trace.commit(8, 600)
    trace.commit(9, None)
    trace.commit(10, 20)  # began anew after the offset was gone
    trace.commit(11, 5000)  # beyond the log
    trace.commit(11, 7, group_id="gone")
    trace.record(11, "GroupMetadata", gone=True, group_id="gone")
    trace.commit(11, None, group_id="gone")
    trace.commit(11, 9, group_id="gone")  # begins anew further on: whoever reads has read that
    trace.commit(12, 1, partition=1, topic_id="one")
    trace.commit(13, 0, partition=1, topic_id="two")  # another topic
    trace.commit(14, 7, group_id="simple")
    trace.commit(15, 5, group_id="simple")
    found = told(trace, log_offsets(20, {0: (0, 1000)}))
    assert found.column_names == REWINDS.names
    rows = listed(found.sort_by("log_offset"))
    assert [(r.from_offset, r.to_offset, r.records, r.direction, r.was_empty) for r in rows] == [
        (900, 850, 50, "back", False),
        (850, 10, 840, "back", True),
        (10, 500, -490, "ahead", True),
        (600, 20, 580, "back", False),
        (20, 5000, -4980, "ahead", False),
        (7, 5, 2, "back", None),
    ]
    assert [seconds_of(r.rewind_time) for r in rows] == [3, 5, 6, 10, 11, 15]


def test_an_earlier_log_tells_nothing_of_what_is_beyond_this_one() -> None:
    trace = Trace()
    trace.commit(1, 5000, topic_id="earlier")
    trace.commit(2, 6000, topic_id="earlier")
    trace.commit(3, 10, topic_id="now")
    trace.commit(4, 5000, partition=1)
    trace.commit(5, 6000, partition=1)
    trace.commit(6, None, partition=1)  # with its topic
    trace.commit(7, 10, partition=2)
    trace.commit(8, 6000, partition=2)
    logs = log_offsets(20, {0: (0, 1000), 1: (0, 1000), 2: (0, 1000)}, topic_id="now")
    found = listed(told(trace, logs))
    assert [(row.partition, row.direction, row.to_offset) for row in found] == [(2, "ahead", 6000)]


def test_offsets_as_they_were(spark: SparkSession) -> None:
    trace = Trace()
    trace.commit(0, 1)
    trace.commit(10, 2)
    trace.commit(20, None)
    trace.commit(30, 3, leader_epoch=4, metadata="m")
    trace.commit(5, 7, partition=1)
    trace.commit(31, 50, partition=2, producer_id=9)
    trace.commit(32, 40, partition=2)  # later in the log: it wins once the transaction has ended, too
    trace.commit(33, 60, partition=3, producer_id=9)
    trace.record(40, "EndTransaction", group_id="", producer_id=9)
    trace.commit(50, 61, partition=3, producer_id=9)
    trace.record(60, "EndTransaction", group_id="", producer_id=9)

    history = frame(spark, COMMITS, trace.commit_rows), frame(spark, GROUP_RECORDS, trace.group_rows)

    def then(seconds: float) -> dict[int, int]:
        found = offsets_as_of(*history, ms(seconds))
        assert found.columns == OFFSETS_AS_OF.names
        return {row.partition: row.committed_offset for row in found.collect()}

    assert then(-1) == {}
    assert then(9) == {0: 1, 1: 7}
    assert then(10) == {0: 2, 1: 7}
    assert then(25) == {1: 7}
    assert then(39) == {0: 3, 1: 7, 2: 40}
    assert then(41) == {0: 3, 1: 7, 2: 40, 3: 60}
    assert then(61) == {0: 3, 1: 7, 2: 40, 3: 61}
    (row,) = offsets_as_of(*history, ms(99)).where("partition = 0").collect()
    assert (row.leader_epoch, row.metadata, seconds_of(row.commit_time)) == (4, "m", 30)
