"""Consumer groups: what the language of the scenarios cannot say, such as malformed requests and lookups of topics."""

from dataclasses import replace

import pytest
from tests.memory_shell import NO_PRODUCER
from tests.unit.coordinator.consumer_driver import GROUP, Cluster, Consumer, settle, topic_id

from groupkeeper.coordinator.consumer import records as consumer_records
from groupkeeper.coordinator.consumer.group import ConsumerMember
from groupkeeper.coordinator.kernel.group_state import GroupState
from groupkeeper.coordinator.kernel.result import Call, Meter
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.messages.consumer_group_describe_response import DescribedGroup
from groupkeeper.protocol.offsets_topic import Entry
from groupkeeper.protocol.primitives import ZERO_UUID


def _described(cluster: Cluster) -> DescribedGroup:
    (group,) = cluster.ask(m.ConsumerGroupDescribeRequest([GROUP])).groups
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
    assert answer.error_code == errors.UnknownServerError.code
    assert answer.error_message == (
        "Failed to compute a new target assignment for epoch 3: there is no assignor sticky."
    )
    assert not cluster.records
    assert (a.owned, cluster.group.assignment_epoch) == ({"t": {0, 1}}, 2)


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


def test_an_operation_sees_what_the_one_before_did() -> None:
    # GP-06: even before anybody is told of that.
    cluster = Cluster({"t": 2})
    calls = [
        Call(
            number,
            m.ConsumerGroupHeartbeatRequest(GROUP, member_id, 0, None, None, 9_000, ["t"], topic_partitions=[]),
            1,
        )
        for number, member_id in enumerate("ab")
    ]
    for call in calls:
        cluster.shell.call(call)
    answers = [cluster.answers[call.call_id] for call in calls]
    assert [answer.member_epoch for answer in answers if isinstance(answer, m.ConsumerGroupHeartbeatResponse)] == [2, 3]


SESSION_MS = 45_000


def _commit(cluster: Cluster, member_id: str, epoch: int, partition: int = 0, version: int = 9) -> int:
    topic = m.OffsetCommitRequestTopic("t", topic_id("t"), [m.OffsetCommitRequestPartition(partition, 5)])
    request = m.OffsetCommitRequest(GROUP, epoch, member_id, topics=[topic])
    answer = cluster.ask(request, version=version)
    return answer.topics[0].partitions[0].error_code


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (m.ConsumerGroupHeartbeatRequest("", "m", 1), "GroupId can't be empty."),
        (m.ConsumerGroupHeartbeatRequest(GROUP, "", 1), "MemberId can't be empty."),
        (m.ConsumerGroupHeartbeatRequest(GROUP, "m", 1, ""), "InstanceId can't be empty."),
        (m.ConsumerGroupHeartbeatRequest(GROUP, "m", 1, None, ""), "RackId can't be empty."),
        (m.ConsumerGroupHeartbeatRequest(GROUP, "m", 0), "RebalanceTimeoutMs must be provided in first request."),
        (
            m.ConsumerGroupHeartbeatRequest(GROUP, "m", 0, rebalance_timeout_ms=5),
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            m.ConsumerGroupHeartbeatRequest(GROUP, "m", 0, rebalance_timeout_ms=5, topic_partitions=[]),
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (m.ConsumerGroupHeartbeatRequest(GROUP, "m", -2), "InstanceId can't be null."),
        (m.ConsumerGroupHeartbeatRequest(GROUP, "m", -3), "MemberEpoch is invalid."),
    ],
)
def test_malformed_requests(request_: m.ConsumerGroupHeartbeatRequest, message: str) -> None:
    # GN-02, GN-03
    answer = Cluster({}).ask(request_)
    assert (answer.error_code, answer.error_message) == (errors.InvalidRequest.code, message)


def test_a_member_without_id_gets_one_in_version_0() -> None:
    # GN-04
    request = m.ConsumerGroupHeartbeatRequest(
        GROUP, "", 0, rebalance_timeout_ms=5, subscribed_topic_names=["t"], topic_partitions=[]
    )
    assert Cluster({}).ask(request, version=0).member_id == "fresh-1"


def test_missing_groups_and_full_ones() -> None:
    # GN-06
    cluster = Cluster({"t": 1}, Settings(group_consumer_max_size=1))
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    assert a.beat(epoch=5).error_code == errors.GroupIdNotFound.code
    assert a.join("t").error_code == NONE
    assert b.join("t").error_code == errors.GroupMaxSizeReached.code
    assert b.beat(epoch=5).error_code == errors.GroupMaxSizeReached.code


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


def test_describe_shows_epochs_and_assignments() -> None:
    # K1099-10, K1099-11, K1099-12, K1099-13, K1099-14, K1099-15, K1099-16
    cluster = Cluster({"t": 4})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t")
    b.join("t")
    a.beat()
    request = m.ConsumerGroupDescribeRequest([GROUP, "other", ""])
    group, missing, empty = cluster.ask(request).groups
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert group.assignor_name == "uniform"
    first = group.members[1]
    assert first.assignment.topic_partitions[0].partitions == [0, 1, 2, 3]
    assert first.target_assignment.topic_partitions[0].partitions == [0, 1]
    assert (first.member_epoch, first.member_type, first.client_host) == (2, 1, "/host")
    assert (missing.error_code, missing.error_message) == (errors.GroupIdNotFound.code, "Group other not found.")
    assert empty.group_id == ""
    cluster.set_topics({})
    (group,) = cluster.ask(m.ConsumerGroupDescribeRequest([GROUP])).groups
    assert not group.members[0].assignment.topic_partitions


def test_commits_follow_member_epochs() -> None:
    # GO-06, GO-07
    cluster = Cluster({"t": 4})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    assert _commit(cluster, "", -1) == NONE
    a.join("t")
    assert _commit(cluster, "", -1) == errors.UnknownMemberId.code
    assert _commit(cluster, "a", 2, version=8) == errors.UnsupportedVersion.code
    assert _commit(cluster, "a", 2) == NONE
    assert _commit(cluster, "a", 3) == errors.StaleMemberEpoch.code
    b.join("t")
    settle(a, b)
    assert a.epoch == 3
    assert _commit(cluster, "a", 2, partition=0) == NONE
    assert _commit(cluster, "a", 2, partition=3) == errors.StaleMemberEpoch.code


@pytest.mark.parametrize(
    ("member_id", "epoch", "error_code"),
    [(None, -1, NONE), ("a", 2, NONE), ("a", 1, errors.StaleMemberEpoch.code), ("x", 2, errors.UnknownMemberId.code)],
)
def test_fetches_follow_member_epochs(member_id: str | None, epoch: int, error_code: int) -> None:
    # GO-31
    cluster = Cluster({"t": 4})
    Consumer(cluster, "a").join("t")
    request = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(GROUP, member_id, epoch, None)])
    assert cluster.ask(request, version=9).groups[0].error_code == error_code


def test_what_old_versions_kept_of_the_topics_is_removed() -> None:
    # GR-11
    cluster = Cluster({"t": 1})
    cluster.shell.coordinator.replay(
        Entry(m.ConsumerGroupPartitionMetadataKey(GROUP), m.ConsumerGroupPartitionMetadataValue())
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
            m.TxnOffsetCommitRequestTopic(topic, partitions=[m.TxnOffsetCommitRequestPartition(partition, 5, -1, "")])
        ]
        request = m.TxnOffsetCommitRequest("tx", GROUP, 7, 0, epoch, "a", topics=topics)
        answer = cluster.ask(request, version=5)
        return answer.topics[0].partitions[0].error_code

    assert commit("t", kept, a.epoch) == NONE
    assert commit("t", kept, first_epoch) == NONE
    assert commit("t", 1 - kept, first_epoch) == errors.IllegalGeneration.code
    assert commit("unknown", 0, first_epoch) == errors.IllegalGeneration.code
    assert commit("t", kept, a.epoch + 1) == errors.IllegalGeneration.code


def test_a_description_is_of_one_moment() -> None:
    # K1099-17: epochs, members and assignments are those of the log, however far a call has come that was refused
    cluster = Cluster({"t": 2})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t")
    before = _described(cluster)
    cluster.shell.refuse_append = lambda records: errors.NotCoordinator()
    assert b.join("t").error_code != NONE
    assert _described(cluster) == before
    cluster.shell.load()
    assert _described(cluster) == before


def test_all_offsets_are_shown_to_everybody_while_members_are_active() -> None:
    # K88-16
    cluster = Cluster({"t": 2})
    a = Consumer(cluster, "a")
    a.join("t")
    assert _commit(cluster, "a", a.epoch, 1) == NONE
    (group,) = cluster.ask(
        m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(GROUP, None, -1, None)]), version=9
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
        m.OffsetDeleteRequestTopic(name, [m.OffsetDeleteRequestPartition(0)]) for name in ("t", "by-name", "by-regex")
    ]
    answer = cluster.ask(m.OffsetDeleteRequest(GROUP, topics), version=0)
    assert answer.error_code == NONE
    codes = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert codes == {
        "t": NONE,
        "by-name": errors.GroupSubscribedToTopic.code,
        "by-regex": errors.GroupSubscribedToTopic.code,
    }


@pytest.mark.parametrize("assignors", [("range", "uniform"), ("uniform", "range")])
def test_the_first_assignor_is_the_default(assignors: tuple[str, ...]) -> None:
    # GF-03
    settings = Settings(group_consumer_assignment_interval_ms=0, group_consumer_assignors=assignors)
    cluster = Cluster({"t": 1}, settings)
    Consumer(cluster, "a").join("t")
    (group,) = cluster.ask(m.ConsumerGroupDescribeRequest([GROUP])).groups
    assert group.assignor_name == assignors[0]


def test_listings_show_the_state_that_was_written() -> None:
    # K518-17, GD-10
    cluster = Cluster({"t": 2})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")

    def state() -> str:
        return cluster.ask(m.ListGroupsRequest(), version=5).groups[0].group_state

    a.join("t")
    assert state() == "Stable"
    b.join("t")
    assert state() == "Reconciling"
    settle(a, b)
    assert state() == "Stable"
    a.leave()
    b.leave()
    assert state() == "Empty"


def test_every_field_of_a_listed_group_is_filled() -> None:
    cluster = Cluster({"t": 1})
    Consumer(cluster, "a").join("t")
    (group,) = cluster.ask(m.ListGroupsRequest(), version=m.ListGroupsRequest.MAX_VERSION).groups
    assert [name for name in group.__slots__ if getattr(group, name) == getattr(m.ListedGroup(), name)] == []


def test_transactional_offsets_are_counted_when_they_are_accepted() -> None:
    # K496-62, GO-24
    cluster = Cluster({"t": 1})
    topic = m.TxnOffsetCommitRequestTopic("t", partitions=[m.TxnOffsetCommitRequestPartition(0, 5, -1, "")])
    request = m.TxnOffsetCommitRequest("tx", "g", 7, 0, topics=[topic])
    cluster.ask(request, version=5)
    assert cluster.shell.marks[Meter.OFFSET_COMMIT] == 1
    (record,) = cluster.records
    assert isinstance(record, Entry)
    assert isinstance(record.value, m.OffsetCommitValue)
    assert record.value.topic_id == ZERO_UUID
    cluster.shell.coordinator.replay_end_transaction(7, is_commit=True)
    assert cluster.shell.marks[Meter.OFFSET_COMMIT] == 1


@pytest.mark.parametrize("member_id", ["", "m"])
def test_a_share_group_commits_nothing(member_id: str) -> None:
    # GO-08
    cluster = Cluster({"t": 1})
    join = m.ShareGroupHeartbeatRequest("g", "m", 0, subscribed_topic_names=["t"])
    assert cluster.ask(join).error_code == NONE
    topic = m.OffsetCommitRequestTopic("t", partitions=[m.OffsetCommitRequestPartition(0, 7)])
    commit = m.OffsetCommitRequest("g", 1 if member_id else -1, member_id, topics=[topic])
    answer = cluster.ask(commit, version=9)
    assert answer.topics[0].partitions[0].error_code == errors.GroupIdNotFound.code
    partition = m.TxnOffsetCommitRequestPartition(0, 7)
    in_transaction = m.TxnOffsetCommitRequest(
        "x", "g", 1, 0, topics=[m.TxnOffsetCommitRequestTopic("t", partitions=[partition])]
    )
    refused = cluster.ask(in_transaction, version=3)
    assert refused.topics[0].partitions[0].error_code == errors.GroupIdNotFound.code
    assert cluster.records == []
