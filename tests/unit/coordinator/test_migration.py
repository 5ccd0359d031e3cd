"""Online migration: groups that change their protocol while their members go on."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.unit.coordinator.consumer_driver import GROUP, Cluster, Consumer, settle

from groupkeeper.coordinator.classic.group import ClassicGroup
from groupkeeper.coordinator.kernel.group_state import GroupState
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from groupkeeper.protocol.errors import (
    NONE,
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from groupkeeper.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from groupkeeper.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from groupkeeper.protocol.messages.consumer_protocol_assignment import TopicPartition
from groupkeeper.protocol.messages.consumer_protocol_subscription import TopicPartition as OwnedPartition
from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest
from groupkeeper.protocol.messages.heartbeat_response import HeartbeatResponse
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from groupkeeper.protocol.messages.join_group_response import JoinGroupResponse
from groupkeeper.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from groupkeeper.protocol.messages.leave_group_response import LeaveGroupResponse
from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from groupkeeper.protocol.messages.sync_group_response import SyncGroupResponse

SESSION_MS = 10_000
REBALANCE_MS = 20_000


def _settings(**changes: object) -> Settings:
    return Settings(group_consumer_assignment_interval_ms=0, group_initial_rebalance_delay_ms=0, **changes)  # type: ignore[arg-type]


class Classic:
    """A member that speaks the classic protocol; it reports what it owns, as a cooperative one does."""

    def __init__(self, cluster: Cluster, *, instance_id: str | None = None) -> None:
        self.cluster = cluster
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.owned: dict[str, set[int]] = {}

    def join(self, *names: str, protocol: str = "range", protocol_type: str = "consumer") -> int:
        owned = [OwnedPartition(name, sorted(some)) for name, some in self.owned.items()]
        metadata = encode_subscription(ConsumerProtocolSubscription(names, None, owned), 1)
        request = JoinGroupRequest(
            GROUP,
            SESSION_MS,
            REBALANCE_MS,
            self.member_id,
            self.instance_id,
            protocol_type,
            [JoinGroupRequestProtocol(protocol, metadata)],
        )
        answer = self.cluster.ask(request, JoinGroupResponse, version=9)
        if answer.error_code == MemberIdRequired.code:
            request.member_id = answer.member_id
            answer = self.cluster.ask(request, JoinGroupResponse, version=9)
        if answer.error_code == NONE:
            self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer.error_code

    def sync(self, assignments: Mapping[str, bytes] | None = None) -> int:
        sent = [SyncGroupRequestAssignment(one, blob) for one, blob in (assignments or {}).items()]
        request = SyncGroupRequest(GROUP, self.generation, self.member_id, self.instance_id, "consumer", "range", sent)
        answer = self.cluster.ask(request, SyncGroupResponse, version=5)
        if answer.error_code == NONE:
            assigned = decode_assignment(answer.assignment).assigned_partitions
            self.owned = {topic.topic: set(topic.partitions) for topic in assigned}
        return answer.error_code

    def heartbeat(self) -> int:
        request = HeartbeatRequest(GROUP, self.generation, self.member_id, self.instance_id)
        return self.cluster.ask(request, HeartbeatResponse, version=4).error_code

    def lead(self, *names: str, partitions: Mapping[str, set[int]], user_data: bytes | None = None) -> None:
        """Joins an empty classic group and assigns itself partitions."""
        assert self.join(*names) == NONE
        assigned = [TopicPartition(name, sorted(some)) for name, some in partitions.items()]
        assert self.sync({self.member_id: encode_assignment(ConsumerProtocolAssignment(assigned, user_data))}) == NONE

    def go_on(self, *names: str) -> None:
        """What a client does all the time: heartbeat, and when told so, rejoin and sync."""
        while self.heartbeat() == RebalanceInProgress.code:
            assert self.join(*names) == NONE
            assert self.sync() == NONE

    def leave(self) -> None:
        request = LeaveGroupRequest(GROUP, "", [MemberIdentity(self.member_id)])
        assert self.cluster.ask(request, LeaveGroupResponse, version=5).members[0].error_code == NONE


def _upgraded() -> tuple[Cluster, Classic, Consumer]:
    cluster = Cluster({"t": 4}, _settings())
    old, new = Classic(cluster), Consumer(cluster, "new")
    old.lead("t", partitions={"t": {0, 1, 2, 3}})
    assert new.join("t").error_code == NONE
    return cluster, old, new


def test_the_first_new_member_upgrades_the_group() -> None:
    # GM-02, GM-03, GM-08
    cluster, old, new = _upgraded()
    assert cluster.written()[:6] == [
        "-GroupMetadata",
        "MemberMetadata",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]
    assert new.owned == {}
    member = cluster.group.members[old.member_id]
    assert (member.member_epoch, {p for some in member.assigned.values() for p in some}) == (1, {0, 1, 2, 3})
    assert new.epoch == 2
    (group,) = cluster.ask(ConsumerGroupDescribeRequest([GROUP]), ConsumerGroupDescribeResponse).groups
    assert sorted(one.member_type for one in group.members) == [0, 1]


def test_both_kinds_of_members_share_the_partitions() -> None:
    # GM-04
    cluster, old, new = _upgraded()
    assert old.heartbeat() == RebalanceInProgress.code
    for _ in range(4):
        old.go_on("t")
        new.report()
    assert len(old.owned["t"]) == len(new.owned["t"]) == 2
    assert old.owned["t"] | new.owned["t"] == {0, 1, 2, 3}
    assert cluster.group.state is GroupState.STABLE
    cluster.shell.load()
    assert old.heartbeat() == NONE
    old.generation -= 1
    assert old.heartbeat() == IllegalGeneration.code
    assert old.sync() == IllegalGeneration.code


def test_a_refused_member_is_not_named() -> None:
    # GM-05: a consumer group's refusal has no member id, unlike a classic group's.
    cluster, old, _ = _upgraded()
    request = JoinGroupRequest(GROUP, SESSION_MS, REBALANCE_MS, old.member_id, None, "connect")
    answer = cluster.ask(request, JoinGroupResponse, version=9)
    assert answer == JoinGroupResponse(error_code=InconsistentGroupProtocol.code, protocol_name=None)


def test_a_classic_member_joins_a_consumer_group() -> None:
    # GM-05
    cluster = Cluster({"t": 4}, _settings())
    new = Consumer(cluster, "new")
    new.join("t")
    old = Classic(cluster)
    assert old.join("t", protocol_type="connect") == InconsistentGroupProtocol.code
    assert old.join("t") == NONE
    other = Classic(cluster)
    assert other.join("t", protocol="sticky") == InconsistentGroupProtocol.code
    assert old.sync() == NONE
    for _ in range(3):
        new.report()
        old.go_on("t")
    assert len(old.owned["t"]) == 2


def test_the_last_new_member_downgrades_the_group() -> None:
    # GM-07
    cluster, old, new = _upgraded()
    for _ in range(4):
        old.go_on("t")
        new.report()
    new.leave()
    assert cluster.written()[-2:] == ["-Metadata", "GroupMetadata"]
    group = cluster.shell.coordinator.state.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert group.state is GroupState.PREPARING_REBALANCE
    assert old.heartbeat() == RebalanceInProgress.code
    assert old.join("t") == NONE
    assert old.generation > new.epoch


def test_a_silent_new_member_downgrades_the_group_too() -> None:
    # GM-07
    cluster, old, _ = _upgraded()
    for _ in range(9):
        cluster.wait(SESSION_MS // 2)
        if isinstance(cluster.shell.coordinator.state.groups[GROUP], ClassicGroup):
            break
        old.go_on("t")
    assert isinstance(cluster.shell.coordinator.state.groups[GROUP], ClassicGroup)


def test_classic_members_that_do_not_follow_are_removed() -> None:
    # GM-06
    cluster, old, new = _upgraded()
    old.heartbeat()
    for _ in range(4):
        cluster.wait(REBALANCE_MS // 4)
        old.heartbeat()
        new.beat()
    assert old.heartbeat() == UnknownMemberId.code
    settle(new)
    assert new.owned == {"t": {0, 1, 2, 3}}


def test_classic_members_may_leave_a_consumer_group() -> None:
    # GM-09
    _, old, new = _upgraded()
    old.leave()
    settle(new)
    assert new.owned == {"t": {0, 1, 2, 3}}


@pytest.mark.parametrize("policy", ["downgrade", "disabled"])
def test_policies_forbid_the_upgrade(policy: str) -> None:
    # GM-01, GM-02
    cluster = Cluster({"t": 4}, _settings(group_consumer_migration_policy=policy))
    Classic(cluster).lead("t", partitions={"t": {0}})
    answer = Consumer(cluster, "new").join("t")
    assert answer.error_code == GroupIdNotFound.code
    assert answer.error_message == (
        "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
    )


def test_policies_forbid_the_downgrade() -> None:
    # GM-01, GM-08
    cluster = Cluster({"t": 4}, _settings(group_consumer_migration_policy="upgrade"))
    old, new = Classic(cluster), Consumer(cluster, "new")
    old.lead("t", partitions={"t": {0, 1}})
    new.join("t")
    new.leave()
    assert list(cluster.group.members) == [old.member_id]


def test_custom_assignors_are_not_upgraded() -> None:
    # GM-02
    cluster = Cluster({"t": 4}, _settings())
    Classic(cluster).lead("t", partitions={"t": {0}}, user_data=b"x")
    answer = Consumer(cluster, "new").join("t")
    assert answer.error_code == GroupIdNotFound.code
    assert answer.error_message is not None
    assert "unsupported custom assignor" in answer.error_message


def _with_static_member() -> tuple[Cluster, Classic, Consumer]:
    """A Stable consumer group of a classic member and a static one of the consumer protocol, two partitions each."""
    cluster = Cluster({"t": 4, "u": 1}, _settings())
    old, static = Classic(cluster), Consumer(cluster, "s", instance_id="i")
    old.lead("t", partitions={"t": {0, 1, 2, 3}})
    static.join("t")
    for _ in range(4):
        old.go_on("t")
        static.report()
    assert cluster.group.state is GroupState.STABLE
    return cluster, old, static


def test_a_classic_member_in_the_place_of_the_last_new_one_downgrades_the_group() -> None:
    # GM-07, GM-10. As Apache Kafka 4.3.1 does: a target that holds goes on without a rebalance.
    cluster, old, static = _with_static_member()
    heir = Classic(cluster, instance_id="i")
    assert heir.join("t") == NONE
    assert heir.generation == static.epoch == 2
    assert cluster.written() == [
        *["-CurrentMemberAssignment"] * 2,
        *["-TargetAssignmentMember"] * 2,
        "-TargetAssignmentMetadata",
        *["-MemberMetadata"] * 2,
        "-PartitionMetadata",
        "-Metadata",
        "GroupMetadata",
    ]
    group = cluster.shell.coordinator.state.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert (group.state, list(group.roster.members)) == (GroupState.STABLE, [old.member_id, heir.member_id])
    assert (heir.heartbeat(), heir.sync(), old.heartbeat()) == (NONE, NONE, NONE)
    assert heir.owned == static.owned
    assert static.report().error_code == GroupIdNotFound.code
    cluster.wait(SESSION_MS)
    assert cluster.shell.coordinator.state.groups[GROUP].state is not GroupState.STABLE, "sessions run"


def test_a_downgrade_with_a_stale_target_rebalances() -> None:
    # GM-07
    cluster, old, _ = _with_static_member()
    heir = Classic(cluster, instance_id="i")
    assert heir.join("t", "u") == NONE
    group = cluster.shell.coordinator.state.groups[GROUP]
    assert group.state is GroupState.PREPARING_REBALANCE
    assert heir.heartbeat() == IllegalGeneration.code
    assert old.heartbeat() == RebalanceInProgress.code


def test_topics_that_changed_make_the_target_stale() -> None:
    # GM-07, GN-08
    cluster, _, _ = _with_static_member()
    cluster.set_topics({"t": 5, "u": 1})
    Classic(cluster, instance_id="i").join("t")
    assert cluster.shell.coordinator.state.groups[GROUP].state is GroupState.PREPARING_REBALANCE


def test_a_group_with_other_new_members_is_not_downgraded() -> None:
    # GM-07, GM-10
    cluster, old, static = _with_static_member()
    other = Consumer(cluster, "other")
    other.join("t")
    heir = Classic(cluster, instance_id="i")
    assert heir.join("t") == NONE
    assert set(cluster.group.members) == {old.member_id, heir.member_id, "other"}
    assert static.report().error_code == FencedInstanceId.code
    other.leave()
    group = cluster.shell.coordinator.state.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert group.state is GroupState.PREPARING_REBALANCE


@pytest.mark.parametrize("changes", [{"group_consumer_migration_policy": "upgrade"}, {"group_max_size": 1}])
def test_a_group_that_may_not_become_classic_goes_on(changes: dict[str, object]) -> None:
    # GM-01, GM-07, GM-08
    cluster = Cluster({"t": 2}, _settings(**changes))
    first, second = Consumer(cluster, "a", instance_id="i"), Consumer(cluster, "b", instance_id="j")
    first.join("t")
    second.join("t")
    settle(first, second)
    heirs = [Classic(cluster, instance_id="i"), Classic(cluster, instance_id="j")]
    assert [heir.join("t") for heir in heirs] == [NONE, NONE]
    assert {member.member_id for member in heirs} == set(cluster.group.members)
    assert all(member.classic is not None for member in cluster.group.members.values())
    (described,) = cluster.ask(ConsumerGroupDescribeRequest([GROUP]), ConsumerGroupDescribeResponse).groups
    assert [member.member_type for member in described.members] == [0, 0]


def test_a_new_member_takes_the_place_of_a_classic_static_one() -> None:
    # GM-10: without a leave before
    cluster = Cluster({"t": 4}, _settings())
    static = Classic(cluster, instance_id="i")
    static.lead("t", partitions={"t": {0, 1, 2, 3}})
    heir = Consumer(cluster, "heir", instance_id="i")
    answer = heir.join("t")
    assert (answer.error_code, heir.owned) == (NONE, {"t": {0, 1, 2, 3}})
    assert list(cluster.group.members) == ["heir"]
    assert cluster.group.members["heir"].classic is None
    assert static.heartbeat() == FencedInstanceId.code
    cluster.wait(SESSION_MS)
    assert list(cluster.group.members) == ["heir"], "the classic member's session ended with it"


def test_a_member_may_change_its_protocol() -> None:
    # GM-04: under the same member id, as a client that was configured anew
    cluster, old, new = _upgraded()
    again = Consumer(cluster, old.member_id)
    assert again.join("t").error_code == NONE
    settle(again, new)
    assert again.owned["t"] | new.owned["t"] == {0, 1, 2, 3}
    assert old.heartbeat() == UnknownMemberId.code


@pytest.mark.parametrize(("subscription", "assignment"), [(b"\x00", None), (b"", None), (None, b"\x00\x01\xff")])
def test_malformed_members_are_not_upgraded(subscription: bytes | None, assignment: bytes | None) -> None:
    # GM-02
    cluster = Cluster({"t": 4}, _settings())
    good = encode_subscription(ConsumerProtocolSubscription(["t"]), 1)
    protocols = [JoinGroupRequestProtocol("range", good if subscription is None else subscription)]
    request = JoinGroupRequest(GROUP, SESSION_MS, REBALANCE_MS, "", "i", "consumer", protocols)
    joined = cluster.ask(request, JoinGroupResponse, version=5)
    sent = [SyncGroupRequestAssignment(joined.member_id, assignment or b"")]
    sync = SyncGroupRequest(GROUP, joined.generation_id, joined.member_id, "i", "consumer", "range", sent)
    assert cluster.ask(sync, SyncGroupResponse, version=5).error_code == NONE
    answer = Consumer(cluster, "new").join("t")
    assert answer.error_code == GroupIdNotFound.code
    assert (answer.error_message or "").startswith("Cannot upgrade classic group g to consumer group because")
    assert isinstance(cluster.shell.coordinator.state.groups[GROUP], ClassicGroup)


def test_groups_of_other_protocols_and_large_ones_are_not_upgraded() -> None:
    # GM-02
    cluster = Cluster({"t": 4}, _settings(group_consumer_max_size=1))
    first = Classic(cluster, instance_id="i")
    first.join("t")
    request = JoinGroupRequest(
        GROUP, SESSION_MS, REBALANCE_MS, "", "j", "consumer", [JoinGroupRequestProtocol("range", b"")]
    )
    cluster.send(request, version=5)
    assert first.join("t") == NONE
    answer = Consumer(cluster, "new").join("t")
    assert answer.error_message == (
        "Cannot upgrade classic group g to consumer group because the group size exceeds the consumer group maximum "
        "size."
    )
    other = Cluster({"t": 4}, _settings())
    assert Classic(other).join("t", protocol_type="connect") == NONE
    answer = Consumer(other, "new").join("t")
    assert answer.error_message == (
        "Cannot upgrade classic group g to consumer group because the group does not use the consumer embedded "
        "protocol."
    )
