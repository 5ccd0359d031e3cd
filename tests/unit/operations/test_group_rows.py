"""Rows of reports: what every type of group has in each column."""

from groupkeeper.client.admin.types import (
    ConsumerGroupDescription,
    GroupState,
    GroupType,
    MemberDescription,
    Node,
    OffsetAndMetadata,
    TopicPartition,
)
from groupkeeper.operations.lag import LagStatus, PartitionLag
from groupkeeper.operations.reporting.group_rows import lag_row, member_row, state_row
from groupkeeper.operations.share_groups import DeadLetterQueue

OWNED, TARGET = TopicPartition("t", 0), TopicPartition("t", 1)
MEMBER = MemberDescription("m", "i", "c", "/h", (OWNED,), (TARGET, OWNED), 4, True, "r")


def test_a_member() -> None:
    places = [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]
    assert member_row("g", MEMBER) == {
        "group": "g",
        "member_id": "m",
        "instance_id": "i",
        "client_id": "c",
        "host": "/h",
        "epoch": 4,
        "partitions": 1,
        "assignment": places[:1],
        "target_assignment": places,
        "rack_id": "r",
        "upgraded": True,
    }
    unread = member_row("g", MEMBER._replace(is_assignment_readable=False))
    assert (unread["partitions"], unread["assignment"]) == (None, None)


def test_a_partition() -> None:
    commit = OffsetAndMetadata(3, 2, "note")
    row = PartitionLag("g", "t", 0, commit, 1, 9, 8, 5, 0, LagStatus.OK, MEMBER, None, done_ahead=2)
    assert lag_row(row, {"trend": "steady"}) == {
        "group": "g",
        "topic": "t",
        "partition": 0,
        "committed_offset": 3,
        "log_start_offset": 1,
        "log_end_offset": 9,
        "last_stable_offset": 8,
        "lag": 5,
        "done_ahead": 2,
        "lost": 0,
        "status": "ok",
        "member_id": "m",
        "client_id": "c",
        "host": "/h",
        "leader_epoch": 2,
        "metadata": "note",
        "readable": 5,
        "trend": "steady",
    }


def test_a_state() -> None:
    node = Node(1, "b", 9092, None)
    group = ConsumerGroupDescription(
        "g", GroupType.CONSUMER, GroupState.STABLE, False, "uniform", (MEMBER,), node, 6, 5
    )  # fmt: skip
    assert state_row(group, DeadLetterQueue("dead", 7)) == {
        "group": "g",
        "type": "Consumer",
        "state": "Stable",
        "members": 1,
        "assignor": "uniform",
        "coordinator": "b:9092",
        "group_epoch": 6,
        "target_epoch": 5,
        "cluster": None,
        "dead_letter_queue": "dead",
        "dead_letters": 7,
    }
    assert state_row(group._replace(partition_assignor=""), None)["assignor"] is None
