"""Online migration of groups whose members say what the language of the scenarios cannot."""

from collections.abc import Mapping

import pytest
from tests.unit.coordinator.consumer_driver import GROUP, Cluster, Consumer

from groupkeeper.coordinator.classic.group import ClassicGroup
from groupkeeper.coordinator.kernel.group_state import GroupState
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.messages.consumer_protocol_assignment import TopicPartition
from groupkeeper.protocol.messages.consumer_protocol_subscription import TopicPartition as OwnedPartition

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
        request = m.JoinGroupRequest(
            GROUP,
            SESSION_MS,
            REBALANCE_MS,
            self.member_id,
            self.instance_id,
            protocol_type,
            [m.JoinGroupRequestProtocol(protocol, metadata)],
        )
        answer = self.cluster.ask(request, version=9)
        if answer.error_code == errors.MemberIdRequired.code:
            request.member_id = answer.member_id
            answer = self.cluster.ask(request, version=9)
        if answer.error_code == NONE:
            self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer.error_code

    def sync(self, assignments: Mapping[str, bytes] | None = None) -> int:
        sent = [m.SyncGroupRequestAssignment(one, blob) for one, blob in (assignments or {}).items()]
        request = m.SyncGroupRequest(
            GROUP, self.generation, self.member_id, self.instance_id, "consumer", "range", sent
        )
        answer = self.cluster.ask(request, version=5)
        if answer.error_code == NONE:
            assigned = decode_assignment(answer.assignment).assigned_partitions
            self.owned = {topic.topic: set(topic.partitions) for topic in assigned}
        return answer.error_code

    def heartbeat(self) -> int:
        request = m.HeartbeatRequest(GROUP, self.generation, self.member_id, self.instance_id)
        return self.cluster.ask(request, version=4).error_code

    def lead(self, *names: str, partitions: Mapping[str, set[int]], user_data: bytes | None = None) -> None:
        """Joins an empty classic group and assigns itself partitions."""
        assert self.join(*names) == NONE
        assigned = [TopicPartition(name, sorted(some)) for name, some in partitions.items()]
        assert self.sync({self.member_id: encode_assignment(ConsumerProtocolAssignment(assigned, user_data))}) == NONE

    def go_on(self, *names: str) -> None:
        """What a client does all the time: heartbeat, and when told so, rejoin and sync."""
        while self.heartbeat() == errors.RebalanceInProgress.code:
            assert self.join(*names) == NONE
            assert self.sync() == NONE


def _upgraded() -> tuple[Cluster, Classic, Consumer]:
    cluster = Cluster({"t": 4}, _settings())
    old, new = Classic(cluster), Consumer(cluster, "new")
    old.lead("t", partitions={"t": {0, 1, 2, 3}})
    assert new.join("t").error_code == NONE
    return cluster, old, new


def test_both_kinds_of_members_share_the_partitions() -> None:
    # GM-04
    cluster, old, new = _upgraded()
    assert old.heartbeat() == errors.RebalanceInProgress.code
    for _ in range(4):
        old.go_on("t")
        new.report()
    assert len(old.owned["t"]) == len(new.owned["t"]) == 2
    assert old.owned["t"] | new.owned["t"] == {0, 1, 2, 3}
    assert cluster.group.state is GroupState.STABLE
    cluster.shell.load()
    assert old.heartbeat() == NONE
    old.generation -= 1
    assert old.heartbeat() == errors.IllegalGeneration.code
    assert old.sync() == errors.IllegalGeneration.code


def test_custom_assignors_are_not_upgraded() -> None:
    # GM-02
    cluster = Cluster({"t": 4}, _settings())
    Classic(cluster).lead("t", partitions={"t": {0}}, user_data=b"x")
    answer = Consumer(cluster, "new").join("t")
    assert answer.error_code == errors.GroupIdNotFound.code
    assert answer.error_message is not None
    assert "unsupported custom assignor" in answer.error_message


@pytest.mark.parametrize(("subscription", "assignment"), [(b"\x00", None), (b"", None), (None, b"\x00\x01\xff")])
def test_malformed_members_are_not_upgraded(subscription: bytes | None, assignment: bytes | None) -> None:
    # GM-02
    cluster = Cluster({"t": 4}, _settings())
    good = encode_subscription(ConsumerProtocolSubscription(["t"]), 1)
    protocols = [m.JoinGroupRequestProtocol("range", good if subscription is None else subscription)]
    request = m.JoinGroupRequest(GROUP, SESSION_MS, REBALANCE_MS, "", "i", "consumer", protocols)
    joined = cluster.ask(request, version=5)
    sent = [m.SyncGroupRequestAssignment(joined.member_id, assignment or b"")]
    sync = m.SyncGroupRequest(GROUP, joined.generation_id, joined.member_id, "i", "consumer", "range", sent)
    assert cluster.ask(sync, version=5).error_code == NONE
    answer = Consumer(cluster, "new").join("t")
    assert answer.error_code == errors.GroupIdNotFound.code
    assert (answer.error_message or "").startswith("Cannot upgrade classic group g to consumer group because")
    assert isinstance(cluster.shell.coordinator.state.groups[GROUP], ClassicGroup)


def test_groups_of_other_protocols_and_large_ones_are_not_upgraded() -> None:
    # GM-02
    cluster = Cluster({"t": 4}, _settings(group_consumer_max_size=1))
    first = Classic(cluster, instance_id="i")
    first.join("t")
    request = m.JoinGroupRequest(
        GROUP, SESSION_MS, REBALANCE_MS, "", "j", "consumer", [m.JoinGroupRequestProtocol("range", b"")]
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


def test_a_full_group_lets_a_static_member_back() -> None:
    cluster = Cluster({"t": 1}, _settings(group_consumer_max_size=1))
    first, again, other = (Consumer(cluster, name, instance_id=name[0]) for name in ("i1", "i2", "k1"))
    assert first.join("t").error_code == NONE
    assert first.leave(-2).error_code == NONE
    assert other.join("t").error_code == errors.GroupMaxSizeReached.code
    assert again.join("t").error_code == NONE
    assert again.leave(-2).error_code == NONE
    assert Classic(cluster, instance_id="k").join("t") == errors.GroupMaxSizeReached.code
    assert Classic(cluster, instance_id="i").join("t") == NONE
