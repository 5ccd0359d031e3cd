"""Tables of what there is now, of rows that are rare in logs."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from groupkeeper.pipeline.kafka.retention import Retention
from groupkeeper.pipeline.present.groups import groups
from groupkeeper.pipeline.present.members import assigned, members
from groupkeeper.pipeline.present.moved import last_moves, rewinds
from groupkeeper.pipeline.present.stale import StaleLimits, stale
from groupkeeper.pipeline.tables import CURRENT_OFFSETS, GROUP_RECORDS, GROUPS, LOG_OFFSETS, MEMBERS, TOPICS, Table
from groupkeeper.pipeline.tables.schema import LAST_MS
from groupkeeper.pipeline.tables.state import GROUP_FACTS, MOVES
from groupkeeper.pipeline.transforms.history import next_offsets

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
DAY = timedelta(days=1)
KEY = {"cluster": "c", "group_id": "g", "topic": "t", "partition": 0}
LARGEST = 2**63 - 1


def rows(table: Table, *given: dict[str, Any]) -> pa.Table:
    columns = dict.fromkeys(table.names) | {name: KEY[name] for name in KEY if name in table.names}
    return pa.Table.from_pylist([columns | row for row in given], table.arrow)


def records(*given: tuple[str, dict[str, Any]]) -> pa.Table:
    """Of a consumer group, in the order of the log."""
    common = {"group_type": "consumer", "log_partition": 0, "is_tombstone": False}
    named = [common | {"record_name": f"ConsumerGroup{name}"} | row for name, row in given]
    return rows(GROUP_RECORDS, *(row | {"log_offset": at} for at, row in enumerate(named)))


def test_a_member_is_what_its_latest_records_say() -> None:
    topics = [{"topic": None, "topic_id": "T", "partitions": [2, 0]}]
    log = records(
        ("MemberMetadata", {"member_id": "a", "client_id": "first", "subscribed_regex": ""}),
        ("CurrentMemberAssignment", {"member_id": "a", "member_epoch": 4, "assigned": topics}),
        ("MemberMetadata", {"member_id": "a", "client_id": "second", "subscribed_regex": ""}),
        ("MemberMetadata", {"member_id": "a", "client_id": "third", "problem": "malformed"}),
        ("MemberMetadata", {"member_id": "b"}),
        ("MemberMetadata", {"member_id": "b", "is_tombstone": True}),
        ("CurrentMemberAssignment", {"member_id": "without metadata", "member_epoch": 4}),
    )
    for given in (log, log.take(list(reversed(range(len(log)))))):
        (row,) = members(given).to_pylist()
        assert (row["member_id"], row["client_id"], row["member_epoch"]) == ("a", "second", 4)
        assert (row["assigned"], row["target"], row["subscribed_regex"]) == (topics, [], None)


def test_topics_have_names_by_their_ids_in_their_cluster() -> None:
    found = assigned(
        rows(MEMBERS, *(
            {"member_id": member_id, "assigned": [{"topic": topic, "topic_id": topic_id, "partitions": [1]}]}
            for member_id, topic, topic_id in (("a", "own", None), ("b", None, "T"), ("c", None, "gone"))
        )),
        rows(TOPICS, {"topic_id": None}, {"topic": "named", "topic_id": "T"}, {"cluster": "d", "topic_id": "gone"}),
    )  # fmt: skip
    assert found.select(["member_id", "topic"]).to_pylist() == [
        {"member_id": "a", "topic": "own"}, {"member_id": "b", "topic": "named"}, {"member_id": "c", "topic": None},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("member_epoch", "member_state", "assignment_epoch", "state"),
    [(3, "STABLE", 3, "Stable"), (2, "STABLE", 3, "Reconciling"), (3, "UNREVOKED_PARTITIONS", 3, "Reconciling"),
     (2, "STABLE", 2, "Assigning"), (3, "STABLE", None, "Assigning")],
)  # fmt: skip
def test_the_state_of_a_group(
    member_epoch: int, member_state: str, assignment_epoch: int | None, state: str
) -> None:  # fmt: skip
    target = [("TargetAssignmentMetadata", {"assignment_epoch": assignment_epoch})] * (assignment_epoch is not None)
    log = records(
        ("Metadata", {"group_epoch": 3}), ("MemberMetadata", {"member_id": "a"}), *target,
        ("CurrentMemberAssignment", {"member_id": "a", "member_epoch": member_epoch, "member_state": member_state}),
    )  # fmt: skip
    times = [NOW, NOW + DAY]
    (row,) = groups(log, rows(GROUP_FACTS, {"rebalanced": times}), CURRENT_OFFSETS.arrow.empty_table()).to_pylist()
    assert (row["group_state"], row["members"], row["assignment_epoch"]) == (state, 1, assignment_epoch)
    assert (row["last_rebalance_time"], row["topics"], row["last_commit_time"]) == (times[-1], 0, None)


def test_the_distance_of_a_move_is_null_where_no_number_holds_it() -> None:
    ways = {(5, 2): 3, (-2, LARGEST): None, (LARGEST, -1): None, (LARGEST, 0): LARGEST, (-(2**63), 1): None}
    moves = rows(MOVES, *(
        {"from_offset": before, "to_offset": after, "was_empty": True, "was_removed": False, "log_offset": at}
        for at, (before, after) in enumerate(ways)
    ))  # fmt: skip
    none = CURRENT_OFFSETS.arrow.empty_table(), LOG_OFFSETS.arrow.empty_table()
    found = rewinds(moves, MOVES.arrow.empty_table(), *none, "is_open").to_pylist()
    assert [row["records"] for row in found] == list(ways.values())
    assert [row["direction"] for row in found] == ["back", "ahead", "back", "back", "ahead"]
    assert last_moves(moves, moves.slice(0, 1))["log_offset"].to_pylist() == [4]


def test_a_jump_beyond_the_log_is_told_while_it_stands() -> None:
    move = {"from_offset": 5, "to_offset": 90, "was_empty": False, "was_removed": False, "log_offset": 0}
    last, standing = rows(MOVES, move | {"topic_id": "T"}), rows(CURRENT_OFFSETS, {"committed_offset": 90})

    def told(end: int | None, topic_id: str | None = "T", committed: pa.Table = standing) -> list[bool]:
        logs = rows(LOG_OFFSETS, {"log_end_offset": end, "topic_id": topic_id})
        return list(rewinds(MOVES.arrow.empty_table(), last, committed, logs, "is_open")["is_open"].to_pylist())

    assert told(89) == told(89, None) == [True]
    assert told(90) == told(None) == told(89, "another") == told(89, committed=standing.slice(1)) == []


def test_places_in_the_log_that_are_not_given_have_the_missing_offset() -> None:
    given = rows(MOVES, {"log_partition": 1}, {"log_partition": 2}, {"log_partition": 1, "cluster": "d"})
    assert next_offsets(given, {"c": {1: 7}}, 3).tolist() == [7, 3, 3]
    assert next_offsets(given, {}, 0).tolist() == [0, 0, 0]


def test_offsets_expire_as_the_coordinator_has_it() -> None:
    """`reads`: what the only member subscribes to; no member where it is absent."""
    cases: list[tuple[dict[str, Any], datetime | None]] = [
        ({}, NOW + 6 * DAY),
        ({"expire_time": NOW + DAY}, NOW + DAY),
        ({"group_type": "classic", "state_timestamp_ms": NOW_MS}, NOW + 7 * DAY),
        ({"group_type": "classic", "state_timestamp_ms": LARGEST}, NOW + 6 * DAY),
        ({"group_type": "classic", "state_timestamp_ms": NOW_MS, "protocol_type": ""}, NOW + 6 * DAY),
        ({"group_type": "classic", "state_timestamp_ms": NOW_MS, "commit_time": None}, NOW + 7 * DAY),
        ({"commit_time": None}, None),
        ({"reads": ["u"]}, NOW + 6 * DAY),
        ({"reads": ["t"]}, None),
        ({"reads": None}, None),
        ({"reads": ["u"], "subscribed_regex": "t.*"}, None),
        ({"group_type": "spark"}, None),
        ({"commit_time": LAST_MS * 1000}, None),  # in a year that no reader has
        ({"cluster": "short"}, NOW),
    ]
    places = [
        {"group_id": f"g{at}", "group_type": "consumer", "protocol_type": "consumer", "commit_time": NOW - DAY,
         "committed_offset": 1, "members": int("reads" in case), "last_commit_time": NOW} | case
        for at, (case, _) in enumerate(cases)
    ]  # fmt: skip

    def of(table: Table, *given: dict[str, Any]) -> pa.Table:
        return rows(table, *({name: row[name] for name in row if name in table.names} for row in given))

    classic = {"record_name": "GroupMetadata", "is_tombstone": False, "log_offset": 0, "members": []}
    limits = StaleLimits(NOW_MS, retentions={"short": Retention(int(DAY.total_seconds() * 1000))})
    found = stale(
        of(CURRENT_OFFSETS, *places),
        rows(LOG_OFFSETS, *({"cluster": name, "is_deleted": True} for name in ("c", "short"))),
        of(GROUP_RECORDS, *(place | classic for place in places if place["group_type"] == "classic")),
        of(MEMBERS, *(place | {"subscribed_topics": place["reads"]} for place in places if place["members"])),
        of(GROUPS, *places), GROUP_FACTS.arrow.empty_table(), limits,
    ).to_pylist()  # fmt: skip
    by_group = {row["group_id"]: row["expires_time"] for row in found if row["reason"] == "topic_deleted"}
    assert by_group == {f"g{at}": wanted for at, (_, wanted) in enumerate(cases)}
    assert {row["group_id"] for row in found if row["reason"] == "expiring"} == {"g1", "g13"}
