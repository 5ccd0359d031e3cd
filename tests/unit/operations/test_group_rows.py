"""Rows of reports: what every type of group has in each column."""

import pytest

from groupkeeper.client.admin.types import (
    ConsumerGroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    MemberDescription,
    Node,
    OffsetAndMetadata,
    TopicPartition,
)
from groupkeeper.operations.lag import LagStatus, PartitionLag, sum_by_topic
from groupkeeper.operations.reporting.group_rows import Row, lag_row, listing_row, member_row, state_row, sum_row
from groupkeeper.operations.share_groups import DeadLetterQueue
from groupkeeper.protocol.errors import NotLeaderOrFollower

OWNED, TARGET = TopicPartition("t", 0), TopicPartition("t", 1)
NODE = Node(1, "b", 9092, None)
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
    group = ConsumerGroupDescription(
        "g", GroupType.CONSUMER, GroupState.STABLE, False, "uniform", (MEMBER,), NODE, 6, 5
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


LOST = PartitionLag("g", "t", 0, None, None, None, None, None, None, LagStatus.UNKNOWN, None, NotLeaderOrFollower())
UNREAD = MemberDescription("m", None, "c", "/h", is_assignment_readable=False)
DEAD = ConsumerGroupDescription("g", GroupType.CLASSIC, GroupState.DEAD, False, "", (), NODE)


@pytest.mark.parametrize(
    ("row", "known"),
    [
        (listing_row(GroupListing("g", "", None, None)), {"group"}),
        (lag_row(LOST), {"group", "topic", "partition", "status"}),
        (lag_row(LOST._replace(committed=OffsetAndMetadata(3))), {"group", "topic", "partition", "status",
                                                                  "committed_offset", "metadata"}),
        (sum_row(sum_by_topic("g", [LOST, LOST._replace(committed=OffsetAndMetadata(3))])[0]),
         {"group", "topic", "partitions", "uncommitted_partitions", "unknown"}),
        (member_row("g", UNREAD), {"group", "member_id", "client_id", "host"}),
        (state_row(DEAD, None), {"group", "type", "state", "members", "coordinator"}),
        (state_row(DEAD, DeadLetterQueue("", None)), {"group", "type", "state", "members", "coordinator"}),
    ],
    ids=["listing", "lag", "lag of a commit", "sum", "member", "state", "state of a share group"],
)  # fmt: skip
def test_what_is_not_known_is_none(row: Row, known: set[str]) -> None:
    assert {name for name, value in row.items() if value is not None} == known, (
        "None (in JSON null) is what is not known, not 0 or an empty text; the set here has the columns of such a row "
        "that are known nevertheless"
    )
