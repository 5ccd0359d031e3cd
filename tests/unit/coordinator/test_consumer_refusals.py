"""A request that is refused is refused to who sent it: the group, its other members and the log stay as they are."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.simulation.classic.check_coordinator import frozen
from tests.unit.coordinator.consumer_driver import GROUP, Cluster, Consumer, settle, topic_id

from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import TopicPartitions

JOINING = {"member_epoch": 0, "rebalance_timeout_ms": 9_000, "subscribed_topic_names": ["t"], "topic_partitions": []}
FULL = "The consumer group has reached its maximum capacity of 2 members."
AHEAD = "greater member epoch (1000) than the one known by the group coordinator (3)"
BEHIND = "smaller member epoch (2) than the one known by the group coordinator (3)"
FOREIGN = [TopicPartitions(topic_id("t"), [0, 1, 2, 3])]


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({**JOINING, "member_id": "c"}, errors.GroupMaxSizeReached, FULL),
        (
            {**JOINING, "member_id": "c", "server_assignor": "best"},
            errors.UnsupportedAssignor,
            "Supported assignors: uniform",
        ),
        (
            {**JOINING, "subscribed_topic_regex": "("},
            errors.InvalidRegularExpression,
            "SubscribedTopicRegex `(` is not a valid",
        ),
        ({**JOINING, "member_id": "c", "instance_id": "ib"}, errors.UnreleasedInstanceId, "is owned by b member."),
        (
            {**JOINING, "topic_partitions": FOREIGN},
            errors.InvalidRequest,
            "TopicPartitions must be empty when (re-)joining.",
        ),
        ({**JOINING, "rebalance_timeout_ms": -1}, errors.InvalidRequest, "RebalanceTimeoutMs must be provided"),
        ({"member_epoch": 1000}, errors.FencedMemberEpoch, AHEAD),
        ({"member_epoch": 1000, "topic_partitions": FOREIGN}, errors.FencedMemberEpoch, AHEAD),
        ({"member_epoch": 2, "topic_partitions": FOREIGN}, errors.FencedMemberEpoch, BEHIND),
        ({"member_epoch": -3}, errors.InvalidRequest, "MemberEpoch is invalid."),
        ({"member_epoch": -2}, errors.InvalidRequest, "InstanceId can't be null."),
        ({**JOINING, "subscribed_topic_names": None}, errors.InvalidRequest, "Either SubscribedTopicNames or"),
        ({"group_id": "", "member_epoch": 3}, errors.InvalidRequest, "GroupId can't be empty."),
        ({"member_id": "", "member_epoch": 3}, errors.InvalidRequest, "MemberId can't be empty."),
        ({"member_id": "c", "member_epoch": 3}, errors.UnknownMemberId, "Member c is not a member of group g."),
        ({"member_id": "c", "member_epoch": -1}, errors.UnknownMemberId, "Member c is not a member of group g."),
        ({"member_epoch": 3, "instance_id": "ib"}, errors.FencedInstanceId, "was fenced by member b."),
        ({"member_epoch": -1, "instance_id": "ib"}, errors.FencedInstanceId, "was fenced by member b."),
        ({"member_epoch": 3, "instance_id": "ic"}, errors.UnknownMemberId, "Instance id ic is unknown."),
        ({"member_epoch": 3, "instance_id": ""}, errors.InvalidRequest, "InstanceId can't be empty."),
        ({"member_epoch": 3, "rack_id": ""}, errors.InvalidRequest, "RackId can't be empty."),
    ],
)
def test_nothing_else_moves(fields: Mapping[str, Any], error: type[errors.KafkaError], text: str) -> None:
    # GN-02, GN-03, GN-05, GN-06, GN-07, GN-17, GN-19
    max_size = 2 if error is errors.GroupMaxSizeReached else 1_000
    cluster = Cluster({"t": 4}, Settings(group_consumer_assignment_interval_ms=0, group_consumer_max_size=max_size))
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b", instance_id="ib")
    for member in (a, b):
        member.join("t")
    settle(a, b)
    before, deadlines = _state(cluster), dict(cluster.shell.deadlines)
    request = m.ConsumerGroupHeartbeatRequest(**{"group_id": GROUP, "member_id": "a", **fields})
    trouble = "missing closing ): `(`" if request.subscribed_topic_regex else None
    answer = cluster.ask(request, regex_trouble=trouble)
    assert answer.error_code == error.code
    assert text in (answer.error_message or "")
    assert (answer.member_id, answer.member_epoch, answer.assignment) == (None, 0, None)
    assert cluster.records == []
    assert _state(cluster) == before
    assert cluster.shell.deadlines == deadlines
    for member in (a, b):
        going_on = member.beat()
        assert (going_on.error_code, going_on.member_epoch, going_on.assignment) == (NONE, 3, None)


def test_who_says_to_have_what_it_was_not_given_gets_nothing_by_it() -> None:
    # GN-12, GN-13: the others' partitions stay theirs, and what is to be given back is waited for.
    cluster = Cluster({"t": 4})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    for member in (a, b):
        member.join("t")
    settle(a, b)
    owners = cluster.group.owner_by_partition
    before = {topic: dict(some) for topic, some in owners.items()}
    for _ in range(3):
        answer = a.beat(owned={"t": range(4)})
        assert (answer.error_code, answer.member_epoch, answer.assignment) == (NONE, 3, None)
    assert cluster.records == []
    assert cluster.group.owner_by_partition == before
    assert b.beat().assignment is None


def _state(cluster: Cluster) -> str:
    return repr(frozen(cluster.ask(m.ConsumerGroupDescribeRequest([GROUP]))))
