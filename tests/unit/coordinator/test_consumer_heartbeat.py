"""ConsumerGroupHeartbeat: what members are told, and what the log holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.unit.coordinator.consumer_driver import GROUP, Cluster, Consumer, settle, topic_id

from groupkeeper.coordinator.consumer.group import UNREVOKED_PARTITIONS
from groupkeeper.coordinator.kernel.group_state import GroupState
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.protocol.errors import (
    NONE,
    FencedInstanceId,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidRegularExpression,
    InvalidRequest,
    StaleMemberEpoch,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
    UnsupportedVersion,
)
from groupkeeper.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from groupkeeper.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from groupkeeper.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from groupkeeper.protocol.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from groupkeeper.protocol.messages.consumer_group_partition_metadata_value import ConsumerGroupPartitionMetadataValue
from groupkeeper.protocol.messages.delete_groups_request import DeleteGroupsRequest
from groupkeeper.protocol.messages.delete_groups_response import DeleteGroupsResponse
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from groupkeeper.protocol.messages.join_group_response import JoinGroupResponse
from groupkeeper.protocol.messages.list_groups_request import ListGroupsRequest
from groupkeeper.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse
from groupkeeper.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from groupkeeper.protocol.messages.offset_commit_response import OffsetCommitResponse
from groupkeeper.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from groupkeeper.protocol.messages.offset_delete_response import OffsetDeleteResponse
from groupkeeper.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from groupkeeper.protocol.messages.offset_fetch_response import OffsetFetchResponse
from groupkeeper.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from groupkeeper.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from groupkeeper.protocol.offsets_topic import Entry

SESSION_MS = 45_000


def _commit(cluster: Cluster, member_id: str, epoch: int, partition: int = 0, version: int = 9) -> int:
    topic = OffsetCommitRequestTopic("t", topic_id("t"), [OffsetCommitRequestPartition(partition, 5)])
    request = OffsetCommitRequest(GROUP, epoch, member_id, topics=[topic])
    answer = cluster.ask(request, OffsetCommitResponse, version=version)
    return answer.topics[0].partitions[0].error_code


def test_the_first_member_gets_everything() -> None:
    # GN-06, GN-14, GN-29
    cluster = Cluster({"t": 3})
    a = Consumer(cluster, "a")
    answer = a.join("t")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5_000)
    assert a.owned == {"t": {0, 1, 2}}
    assert cluster.written() == [
        "MemberMetadata",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]
    assert a.beat().assignment is None
    assert not cluster.records
    assert cluster.group.state is GroupState.STABLE


def test_an_empty_subscription_gets_epoch_one() -> None:
    # GN-29
    a = Consumer(Cluster({"t": 3}), "a")
    assert a.join().member_epoch == 1


def test_partitions_are_given_back_before_they_are_given_away() -> None:
    # GN-12, GN-13
    cluster = Cluster({"t": 4})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t")
    b.join("t")
    assert b.owned == {}
    assert a.beat().member_epoch == 2
    assert a.owned == {"t": {0, 1}}
    assert cluster.group.members["a"].state == UNREVOKED_PARTITIONS
    assert cluster.group.state is GroupState.RECONCILING
    b.beat()
    assert b.owned == {}
    assert a.report().member_epoch == 3
    b.beat()
    assert b.owned == {"t": {2, 3}}
    assert cluster.group.state is GroupState.STABLE


def test_a_member_that_keeps_partitions_is_removed() -> None:
    # GN-15
    cluster = Cluster({"t": 4})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t", timeout_ms=10_000)
    b.join("t")
    a.beat()
    cluster.wait(10_000)
    assert list(cluster.group.members) == ["b"]
    assert a.beat().error_code == UnknownMemberId.code


def test_a_silent_member_is_removed() -> None:
    # GN-15, GN-16, GR-10
    cluster = Cluster({"t": 4})
    a = Consumer(cluster, "a")
    a.join("t")
    cluster.wait(SESSION_MS - 1)
    assert not cluster.records
    cluster.wait(1)
    assert cluster.written() == [
        "-CurrentMemberAssignment",
        "-TargetAssignmentMember",
        "-MemberMetadata",
        "Metadata",
        "TargetAssignmentMetadata",
    ]
    assert cluster.group.state is GroupState.EMPTY
    assert cluster.group.group_epoch == cluster.group.assignment_epoch
    # The next member does not wait for the assignment interval.
    assert Consumer(cluster, "b").join("t").assignment is not None


def test_leaving_is_answered_with_its_epoch() -> None:
    # GN-16
    cluster = Cluster({"t": 2})
    a = Consumer(cluster, "a")
    a.join("t")
    answer = a.leave()
    assert (answer.member_id, answer.member_epoch) == ("a", -1)
    assert a.leave().error_code == UnknownMemberId.code


def test_epochs_fence() -> None:
    # GN-07
    cluster = Cluster({"t": 2})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t")
    b.join("t")
    settle(a, b)
    assert a.epoch == 3
    assert a.beat(epoch=4).error_code == FencedMemberEpoch.code
    assert a.beat(epoch=1).error_code == FencedMemberEpoch.code
    # The answer with epoch 3 was lost: epoch 2 with no more than what it may have is right.
    assert a.beat(epoch=2, owned=a.owned).error_code == NONE
    assert a.beat(epoch=2, owned={"t": {0, 1}}).error_code == FencedMemberEpoch.code
    assert a.beat(epoch=2).error_code == FencedMemberEpoch.code
    assert a.join("t").error_code == NONE


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (ConsumerGroupHeartbeatRequest("", "m", 1), "GroupId can't be empty."),
        (ConsumerGroupHeartbeatRequest(GROUP, "", 1), "MemberId can't be empty."),
        (ConsumerGroupHeartbeatRequest(GROUP, "m", 1, ""), "InstanceId can't be empty."),
        (ConsumerGroupHeartbeatRequest(GROUP, "m", 1, None, ""), "RackId can't be empty."),
        (ConsumerGroupHeartbeatRequest(GROUP, "m", 0), "RebalanceTimeoutMs must be provided in first request."),
        (
            ConsumerGroupHeartbeatRequest(GROUP, "m", 0, rebalance_timeout_ms=5),
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            ConsumerGroupHeartbeatRequest(GROUP, "m", 0, rebalance_timeout_ms=5, topic_partitions=[]),
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (ConsumerGroupHeartbeatRequest(GROUP, "m", -2), "InstanceId can't be null."),
        (ConsumerGroupHeartbeatRequest(GROUP, "m", -3), "MemberEpoch is invalid."),
    ],
)
def test_malformed_requests(request_: ConsumerGroupHeartbeatRequest, message: str) -> None:
    # GN-02, GN-03
    answer = Cluster({}).ask(request_, ConsumerGroupHeartbeatResponse)
    assert (answer.error_code, answer.error_message) == (InvalidRequest.code, message)


def test_a_member_without_id_gets_one_in_version_0() -> None:
    # GN-04
    request = ConsumerGroupHeartbeatRequest(
        GROUP, "", 0, rebalance_timeout_ms=5, subscribed_topic_names=["t"], topic_partitions=[]
    )
    assert Cluster({}).ask(request, ConsumerGroupHeartbeatResponse, version=0).member_id == "fresh-1"


def test_unknown_assignor() -> None:
    # GN-05
    answer = Consumer(Cluster({}), "a").join("t", assignor="odd")
    assert answer.error_code == UnsupportedAssignor.code
    assert answer.error_message == "ServerAssignor odd is not supported. Supported assignors: uniform, range."


def test_missing_groups_and_full_ones() -> None:
    # GN-06
    cluster = Cluster({"t": 1}, Settings(group_consumer_max_size=1))
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    assert a.beat(epoch=5).error_code == GroupIdNotFound.code
    assert a.join("t").error_code == NONE
    assert b.join("t").error_code == GroupMaxSizeReached.code
    assert b.beat(epoch=5).error_code == GroupMaxSizeReached.code


def test_assignments_wait_for_their_interval() -> None:
    # GN-10
    cluster = Cluster({"t": 4}, Settings())
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t")
    assert b.join("t").member_epoch == 2
    assert cluster.group.state is GroupState.ASSIGNING
    cluster.wait(1_000)
    a.beat()
    assert cluster.group.assignment_epoch == 3


def test_topics_that_change_are_noticed() -> None:
    # GN-08, GN-23, GN-28
    cluster = Cluster({})
    a = Consumer(cluster, "a")
    a.join("t")
    assert a.owned == {}
    cluster.set_topics({"t": 2})
    a.beat()
    assert (a.epoch, a.owned) == (3, {"t": {0, 1}})
    cluster.set_topics({"t": 3, "u": 1})
    a.beat()
    assert a.owned == {"t": {0, 1, 2}}
    cluster.set_topics({"t": 3, "u": 2})
    a.beat()
    assert not cluster.records
    cluster.set_topics({})
    a.beat()
    a.report()
    assert (a.epoch, a.owned) == (5, {})


def test_other_details_of_a_member_do_not_rebalance() -> None:
    # GN-09
    cluster = Cluster({"t": 2})
    a = Consumer(cluster, "a")
    a.join("t")
    a.beat(assignor="range")
    assert cluster.written() == ["MemberMetadata"]
    assert cluster.group.preferred_assignor("uniform") == "range"


def test_static_members_come_back_under_another_id() -> None:
    # GN-17
    cluster = Cluster({"t": 4})
    a, b = Consumer(cluster, "a", instance_id="i"), Consumer(cluster, "b")
    a.join("t")
    b.join("t")
    settle(a, b)
    again = Consumer(cluster, "a2", instance_id="i")
    assert again.join("t").error_code == UnreleasedInstanceId.code
    assert again.beat(epoch=3).error_code == FencedInstanceId.code
    assert Consumer(cluster, "x", instance_id="other").beat(epoch=3).error_code == UnknownMemberId.code
    epoch = cluster.group.group_epoch
    assert a.leave(-2).member_epoch == -2
    assert cluster.group.group_epoch == epoch
    assert again.join("t").error_code == NONE
    assert (again.owned, cluster.group.group_epoch) == (a.owned, epoch)
    assert set(cluster.group.members) == {"a2", "b"}


def test_a_static_member_that_stays_away_is_removed() -> None:
    # GN-17
    cluster = Cluster({"t": 4})
    a = Consumer(cluster, "a", instance_id="i")
    a.join("t")
    a.leave(-2)
    cluster.wait(SESSION_MS)
    assert not cluster.group.members


def test_regular_expressions_are_resolved_outside() -> None:
    # GN-19, GN-20
    cluster = Cluster({"t1": 1, "t2": 1, "u": 1})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join(regex="t.*")
    assert a.owned == {}
    assert cluster.shell.lookups[0].regexes == {"t.*"}
    cluster.shell.resolve({"t.*": frozenset({"t1", "t2"})})
    assert cluster.written()[-2:] == ["RegularExpression", "Metadata"]
    a.beat()
    assert a.owned == {"t1": {0}, "t2": {0}}
    b.join("u", regex="t.*")
    settle(a, b)
    assert a.owned.keys() | b.owned.keys() == {"t1", "t2", "u"}
    assert not cluster.shell.lookups
    cluster.wait(10_001)
    cluster.set_topics({"t1": 1, "t2": 1, "t3": 1, "u": 1})
    a.beat()
    cluster.shell.resolve({"t.*": frozenset({"t1", "t2", "t3"})})
    settle(a, b)
    assert a.owned.keys() | b.owned.keys() == {"t1", "t2", "t3", "u"}
    a.beat(names=["u"], regex="")
    b.leave()
    assert not cluster.group.resolved


def test_a_regular_expression_that_matches_nothing_any_more() -> None:
    # GN-20: the others get what the member had.
    cluster = Cluster({"t": 2})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join(regex="t.*")
    cluster.shell.resolve({"t.*": frozenset({"t"})})
    b.join(regex="t.*")
    settle(a, b)
    assert (len(a.owned["t"]), len(b.owned["t"])) == (1, 1)
    cluster.wait(10_001)
    a.beat(regex="u.*")
    cluster.shell.resolve({"t.*": frozenset({"t"}), "u.*": frozenset()})
    settle(a, b)
    assert (a.owned.get("t", set()), b.owned["t"]) == (set(), {0, 1})


def test_an_invalid_regular_expression() -> None:
    # GN-19
    a = Consumer(Cluster({}), "a")
    answer = a.beat(names=[], regex="[", timeout_ms=5, owned={}, regex_trouble="missing closing ]")
    assert answer.error_code == InvalidRegularExpression.code
    assert answer.error_message == "SubscribedTopicRegex `[` is not a valid regular expression: missing closing ]."


def test_describe_shows_epochs_and_assignments() -> None:
    # K1099-10, K1099-11, K1099-12, K1099-13, K1099-14, K1099-16
    cluster = Cluster({"t": 4})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t")
    b.join("t")
    a.beat()
    request = ConsumerGroupDescribeRequest([GROUP, "other", ""])
    group, missing, empty = cluster.ask(request, ConsumerGroupDescribeResponse).groups
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert group.assignor_name == "uniform"
    first = group.members[1]
    assert first.assignment.topic_partitions[0].partitions == [0, 1, 2, 3]
    assert first.target_assignment.topic_partitions[0].partitions == [0, 1]
    assert (first.member_epoch, first.member_type, first.client_host) == (2, 1, "/host")
    assert (missing.error_code, missing.error_message) == (GroupIdNotFound.code, "Group other not found.")
    assert empty.group_id == ""
    cluster.set_topics({})
    (group,) = cluster.ask(ConsumerGroupDescribeRequest([GROUP]), ConsumerGroupDescribeResponse).groups
    assert not group.members[0].assignment.topic_partitions


def test_listing_and_deleting() -> None:
    # GD-02, GD-04, K518-10
    cluster = Cluster({"t": 1})
    a = Consumer(cluster, "a")
    a.join("t")
    listed = cluster.ask(ListGroupsRequest(), ListGroupsResponse, version=5)
    assert listed.groups == [ListedGroup(GROUP, "consumer", "Stable", "consumer")]
    deleted = cluster.ask(DeleteGroupsRequest([GROUP]), DeleteGroupsResponse)
    assert deleted.results[0].error_code == 68
    a.leave()
    cluster.ask(DeleteGroupsRequest([GROUP]), DeleteGroupsResponse)
    assert cluster.written() == ["-TargetAssignmentMetadata", "-PartitionMetadata", "-Metadata"]
    assert not cluster.shell.coordinator.state.groups


def test_commits_follow_member_epochs() -> None:
    # GO-06, GO-07
    cluster = Cluster({"t": 4})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    assert _commit(cluster, "", -1) == NONE
    a.join("t")
    assert _commit(cluster, "", -1) == UnknownMemberId.code
    assert _commit(cluster, "a", 2, version=8) == UnsupportedVersion.code
    assert _commit(cluster, "a", 2) == NONE
    assert _commit(cluster, "a", 3) == StaleMemberEpoch.code
    b.join("t")
    settle(a, b)
    assert a.epoch == 3
    assert _commit(cluster, "a", 2, partition=0) == NONE
    assert _commit(cluster, "a", 2, partition=3) == StaleMemberEpoch.code


@pytest.mark.parametrize(
    ("member_id", "epoch", "error_code"),
    [(None, -1, NONE), ("a", 2, NONE), ("a", 1, StaleMemberEpoch.code), ("x", 2, UnknownMemberId.code)],
)
def test_fetches_follow_member_epochs(member_id: str | None, epoch: int, error_code: int) -> None:
    # GO-31
    cluster = Cluster({"t": 4})
    Consumer(cluster, "a").join("t")
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, member_id, epoch, None)])
    assert cluster.ask(request, OffsetFetchResponse, version=9).groups[0].error_code == error_code


def test_all_offsets_are_shown_to_everybody_while_members_are_active() -> None:
    # K88-16
    cluster = Cluster({"t": 2})
    a = Consumer(cluster, "a")
    a.join("t")
    assert _commit(cluster, "a", a.epoch, 1) == NONE
    (group,) = cluster.ask(
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, None, -1, None)]), OffsetFetchResponse, version=9
    ).groups
    assert group.error_code == NONE
    assert [
        (topic.name, one.partition_index, one.committed_offset) for topic in group.topics for one in topic.partitions
    ] == [("t", 1, 5)]


def test_offsets_of_topics_that_are_subscribed_to_stay() -> None:
    # K496-16: by name or by regular expression, assigned or not
    cluster = Cluster({"t": 1, "by-name": 1, "by-regex": 1})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("by-name")
    b.join(regex="by-r.*")
    cluster.shell.resolve({"by-r.*": frozenset({"by-regex"})})
    topics = [
        OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)]) for name in ("t", "by-name", "by-regex")
    ]
    answer = cluster.ask(OffsetDeleteRequest(GROUP, topics), OffsetDeleteResponse, version=0)
    assert answer.error_code == NONE
    codes = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert codes == {"t": NONE, "by-name": GroupSubscribedToTopic.code, "by-regex": GroupSubscribedToTopic.code}


@pytest.mark.parametrize("assignors", [("range", "uniform"), ("uniform", "range")])
def test_the_first_assignor_is_the_default(assignors: tuple[str, ...]) -> None:
    # GF-03
    settings = Settings(group_consumer_assignment_interval_ms=0, group_consumer_assignors=assignors)
    cluster = Cluster({"t": 1}, settings)
    Consumer(cluster, "a").join("t")
    (group,) = cluster.ask(ConsumerGroupDescribeRequest([GROUP]), ConsumerGroupDescribeResponse).groups
    assert group.assignor_name == assignors[0]


def test_listings_show_the_state_that_was_written() -> None:
    # K518-17, GD-10
    cluster = Cluster({"t": 2})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")

    def state() -> str:
        return cluster.ask(ListGroupsRequest(), ListGroupsResponse, version=5).groups[0].group_state

    a.join("t")
    assert state() == "Stable"
    b.join("t")
    assert state() == "Reconciling"
    settle(a, b)
    assert state() == "Stable"
    a.leave()
    b.leave()
    assert state() == "Empty"


def test_what_old_versions_kept_of_the_topics_is_removed() -> None:
    # GR-11
    cluster = Cluster({"t": 1})
    cluster.shell.coordinator.replay(
        Entry(ConsumerGroupPartitionMetadataKey(GROUP), ConsumerGroupPartitionMetadataValue())
    )
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t")
    assert cluster.written().count("-PartitionMetadata") == 1
    b.join("t")
    assert "-PartitionMetadata" not in cluster.written()


def test_transactional_commits_of_older_epochs() -> None:
    # GO-25: as plain commits, by partition, but the refusal is ILLEGAL_GENERATION
    cluster = Cluster({"t": 2})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t")
    first_epoch = a.epoch
    b.join("t")
    settle(a, b)
    assert a.epoch > first_epoch
    (kept,) = a.owned["t"]

    def commit(topic: str, partition: int, epoch: int) -> int:
        topics = [
            TxnOffsetCommitRequestTopic(topic, partitions=[TxnOffsetCommitRequestPartition(partition, 5, -1, "")])
        ]
        request = TxnOffsetCommitRequest("tx", GROUP, 7, 0, epoch, "a", topics=topics)
        answer = cluster.ask(request, TxnOffsetCommitResponse, version=5)
        return answer.topics[0].partitions[0].error_code

    assert commit("t", kept, a.epoch) == NONE
    assert commit("t", kept, first_epoch) == NONE
    assert commit("t", 1 - kept, first_epoch) == IllegalGeneration.code
    assert commit("unknown", 0, first_epoch) == IllegalGeneration.code
    assert commit("t", kept, a.epoch + 1) == IllegalGeneration.code


def test_types_of_groups_replace_each_other_when_empty() -> None:
    # GN-26, GM-05, GC-26, GO-75: offsets are kept.
    cluster = Cluster({"t": 4})
    assert _commit(cluster, "", -1) == NONE
    a = Consumer(cluster, "a")
    a.join("t")
    join = JoinGroupRequest(GROUP, 10_000, 10_000, "", None, "connect", [JoinGroupRequestProtocol("range", b"")])
    assert cluster.ask(join, JoinGroupResponse, version=5).error_code == InconsistentGroupProtocol.code
    a.leave()
    cluster.ask(join, JoinGroupResponse, version=5)
    assert cluster.written() == ["-TargetAssignmentMetadata", "-PartitionMetadata", "-Metadata", "GroupMetadata"]
    assert cluster.shell.coordinator.state.offsets.of_group(GROUP)


@given(st.data())
@hypothesis_settings(max_examples=60)
def test_no_partition_is_read_by_two_and_all_are_read_in_the_end(data: st.DataObject) -> None:
    # GN-12, GN-13, GR-03: from the members' view, over restarts, lost answers, and changes of topics.
    cluster = Cluster({"t": 3, "u": 2})
    members = [Consumer(cluster, f"m{index}", instance_id=None if index else "i") for index in range(4)]
    for _ in range(data.draw(st.integers(5, 40))):
        member = data.draw(st.sampled_from(members))
        match data.draw(st.sampled_from(["join", "beat", "report", "report", "lost", "leave", "restart", "topics"])):
            case "join" if member.epoch <= 0:
                member.join(*data.draw(st.sampled_from([("t",), ("u",), ("t", "u")])))
            case "beat" if member.epoch > 0:
                member.beat()
            case "report" if member.epoch > 0:
                member.report()
            case "lost" if member.epoch > 0:
                before = member.epoch, member.owned
                member.report()
                member.epoch, member.owned = before
                assert member.retry().error_code == NONE, "one lost answer fences nobody"
            case "leave" if member.epoch > 0:
                member.leave()
                member.epoch, member.owned = 0, {}
            case "restart":
                before_restart = cluster.shell.coordinator.state.groups
                cluster.shell.load()
                for group_id, group in cluster.shell.coordinator.state.groups.items():
                    group.soft = before_restart[group_id].soft  # type: ignore[misc]
                assert cluster.shell.coordinator.state.groups == before_restart
            case "topics":
                cluster.set_topics({"t": data.draw(st.integers(3, 6)), "u": 2})
        owned = [(name, p) for one in members for name, some in one.owned.items() for p in some]
        assert len(owned) == len(set(owned))
    living = [member for member in members if member.epoch > 0]
    settle(*living, rounds=6)
    wanted = cluster.group.subscribed_topics() if GROUP in cluster.shell.coordinator.state.groups else set()
    counts = cluster.shell.topics.topics
    assert {(name, p) for one in living for name, some in one.owned.items() for p in some} == {
        (name, p) for name in wanted for p in range(counts[name].partition_count)
    }
    for member in living:
        member.report()
        assert not cluster.records, "a quiet group writes nothing"
