"""Online migration: groups that change their protocol while their members go on."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.unit.coordinator.consumer_driver import GROUP, Cluster, Consumer, settle

from groupkeeper.coordinator.classic_group import ClassicGroup
from groupkeeper.coordinator.group_state import GroupState
from groupkeeper.coordinator.settings import Settings
from groupkeeper.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from groupkeeper.protocol.errors import (
    NONE,
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

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
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
            None,
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
        request = SyncGroupRequest(GROUP, self.generation, self.member_id, None, "consumer", "range", sent)
        answer = self.cluster.ask(request, SyncGroupResponse, version=5)
        if answer.error_code == NONE:
            assigned = decode_assignment(answer.assignment).assigned_partitions
            self.owned = {topic.topic: set(topic.partitions) for topic in assigned}
        return answer.error_code

    def heartbeat(self) -> int:
        request = HeartbeatRequest(GROUP, self.generation, self.member_id)
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
