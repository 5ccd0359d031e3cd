"""Consumer groups as a whole: their states, what makes members alike, and the assignor they agree on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.memory_shell import NO_PRODUCER
from tests.simulation.classic.check_coordinator import frozen
from tests.unit.coordinator.consumer_driver import GROUP, Cluster, Consumer, settle

from groupkeeper.coordinator.consumer import records as consumer_records
from groupkeeper.coordinator.consumer.group import ConsumerMember
from groupkeeper.coordinator.kernel.group_state import GroupState
from groupkeeper.coordinator.kernel.result import Call
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.protocol.errors import NONE, NotCoordinator, UnknownServerError
from groupkeeper.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from groupkeeper.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse, DescribedGroup
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from groupkeeper.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from groupkeeper.protocol.messages.list_groups_request import ListGroupsRequest
from groupkeeper.protocol.messages.list_groups_response import ListGroupsResponse


def _described(cluster: Cluster) -> DescribedGroup:
    (group,) = cluster.ask(ConsumerGroupDescribeRequest([GROUP]), ConsumerGroupDescribeResponse).groups
    return group


def test_null_leaves_a_member_as_it_is() -> None:
    # GN-01, GN-09
    cluster = Cluster({"t": 1})
    a = Consumer(cluster, "a")
    a.join("t", regex="u.*", assignor="range", timeout_ms=12_000)
    before = cluster.group.members["a"]
    assert (before.subscribed_topic_names, before.subscribed_topic_regex) == (("t",), "u.*")
    assert (before.server_assignor, before.rebalance_timeout_ms) == ("range", 12_000)
    a.beat()
    assert cluster.group.members["a"] == before
    a.beat(names=[], regex="", timeout_ms=5_000)
    after = cluster.group.members["a"]
    assert (after.subscribed_topic_names, after.subscribed_topic_regex) == ((), "")
    assert (after.server_assignor, after.rebalance_timeout_ms) == ("range", 5_000)


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ((None, None, None), "uniform"),
        (("range", None, None), "range"),
        (("uniform", "range", "range"), "range"),
        (("range", "uniform", "uniform"), "uniform"),
    ],
)
def test_the_assignor_that_most_members_prefer(wanted: tuple[str | None, ...], chosen: str) -> None:
    # GN-11, K1099-13
    cluster = Cluster({"t": 3, "u": 3})
    members = [Consumer(cluster, f"m{index}") for index in range(len(wanted))]
    for member, assignor in zip(members, wanted, strict=True):
        member.join("t", assignor=assignor)
    assert _described(cluster).assignor_name == chosen


def test_an_assignor_that_is_not_there_leaves_the_last_assignment() -> None:
    # GN-25: another broker wrote the member
    cluster = Cluster({"t": 2})
    a = Consumer(cluster, "a")
    a.join("t")
    settle(a)
    stranger = ConsumerMember("z", subscribed_topic_names=("t",), server_assignor="sticky", rebalance_timeout_ms=1000)
    cluster.shell.write_transactional(consumer_records.member_record(GROUP, stranger), NO_PRODUCER)
    cluster.set_topics({"t": 3})
    answer = a.beat()
    assert answer.error_code == UnknownServerError.code
    assert answer.error_message == (
        "Failed to compute a new target assignment for epoch 3: there is no assignor sticky."
    )
    assert not cluster.records
    assert (a.owned, cluster.group.assignment_epoch) == ({"t": {0, 1}}, 2)


def test_states() -> None:
    # GN-18, K518-12
    cluster = Cluster({"t": 2})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")

    def states() -> tuple[str, str]:
        (listed,) = cluster.ask(ListGroupsRequest(), ListGroupsResponse, version=5).groups
        return listed.group_state, _described(cluster).group_state

    a.join("t")
    assert states() == ("Stable", "Stable")
    b.join("t")
    assert states() == ("Reconciling", "Reconciling")
    settle(a, b)
    assert states() == ("Stable", "Stable")
    a.leave()
    assert states() == ("Assigning", "Assigning")
    assert cluster.group.group_epoch == cluster.group.assignment_epoch + 1
    b.leave()
    assert states() == ("Empty", "Empty")


def test_members_are_alike_by_names_or_by_one_pattern() -> None:
    # GN-24
    cluster = Cluster({"t": 2, "u": 2})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t", "u")
    b.join("u", "t")
    assert cluster.group.is_homogeneous
    b.beat(names=["t"])
    assert not cluster.group.is_homogeneous
    a.beat(names=[], regex="t")
    b.beat(names=[], regex="t")
    assert cluster.group.is_homogeneous
    b.beat(names=["t"])
    assert not cluster.group.is_homogeneous
    b.beat(names=[], regex="u")
    assert not cluster.group.is_homogeneous


def test_a_description_is_of_one_moment() -> None:
    # K1099-17: epochs, members and assignments are those of the log, however far a call has come that was refused
    cluster = Cluster({"t": 2})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t")
    before = _described(cluster)
    cluster.shell.refuse_append = lambda records: NotCoordinator()
    assert b.join("t").error_code != NONE
    assert _described(cluster) == before
    cluster.shell.load()
    assert _described(cluster) == before


def test_an_older_heartbeat_has_no_pattern() -> None:
    # GN-01: version 0 knows neither patterns nor ids that members choose
    cluster = Cluster({"t": 1})
    request = ConsumerGroupHeartbeatRequest(
        GROUP, "", 0, rebalance_timeout_ms=5, subscribed_topic_names=["t"], topic_partitions=[]
    )
    answer = cluster.ask(request, ConsumerGroupHeartbeatResponse, version=0)
    assert (answer.error_code, answer.member_epoch) == (NONE, 2)
    assert cluster.group.state is GroupState.STABLE


def test_a_group_has_settings_of_its_own() -> None:
    # GF-02: from the next heartbeat on, and for nobody else
    settings = Settings(group_consumer_assignment_interval_ms=0)
    cluster = Cluster({"t": 2}, settings)
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t")
    own = replace(
        settings,
        group_consumer_heartbeat_interval_ms=7_000,
        group_consumer_session_timeout_ms=50_000,
        group_consumer_assignment_interval_ms=3_000,
    )
    cluster.shell.see_settings({GROUP: own})
    assert cluster.shell.coordinator.settings_of("other") is settings
    assert a.beat().heartbeat_interval_ms == 7_000
    cluster.wait(2_999)
    b.join("t")
    assert cluster.group.state is GroupState.ASSIGNING
    cluster.wait(1)
    b.beat()
    assert cluster.group.assignment_epoch == 3
    cluster.wait(46_999)
    assert set(cluster.group.members) == {"a", "b"}
    cluster.wait(1)
    assert set(cluster.group.members) == {"b"}
    cluster.shell.load()
    assert b.beat().heartbeat_interval_ms == 7_000
    cluster.shell.see_settings({})
    assert b.beat().heartbeat_interval_ms == 5_000


def test_what_was_not_appended_was_never_there() -> None:
    # GP-06
    cluster = Cluster({"t": 1})
    a = Consumer(cluster, "a")
    cluster.shell.refuse_append = lambda records: NotCoordinator()
    assert a.join("t").error_code == NotCoordinator.code
    assert cluster.ask(ListGroupsRequest(), ListGroupsResponse, version=5).groups == []
    cluster.shell.refuse_append = lambda records: None
    a.join("t")
    described = _described(cluster)
    cluster.shell.refuse_append = lambda records: NotCoordinator()
    assert Consumer(cluster, "b").join("t").error_code == NotCoordinator.code
    assert a.beat(names=[]).error_code == NotCoordinator.code
    assert repr(frozen(_described(cluster))) == repr(frozen(described))


def test_an_operation_sees_what_the_one_before_did() -> None:
    # GP-06: even before anybody is told of that.
    cluster = Cluster({"t": 2})
    calls = [
        Call(
            number, ConsumerGroupHeartbeatRequest(GROUP, member_id, 0, None, None, 9_000, ["t"], topic_partitions=[]), 1
        )
        for number, member_id in enumerate("ab")
    ]
    for call in calls:
        cluster.shell.call(call)
    answers = [cluster.answers[call.call_id] for call in calls]
    assert [answer.member_epoch for answer in answers if isinstance(answer, ConsumerGroupHeartbeatResponse)] == [2, 3]
