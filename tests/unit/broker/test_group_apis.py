"""The group APIs: what lies between the wire and the coordinator."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.broker.held import topic_of
from tests.unit.broker.peer import UNKNOWN_ID, Denies, Peer

from groupkeeper.broker.api_table import TABLE
from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
NODE = 1
"""The default node.id."""


@pytest_asyncio.fixture
async def peer() -> AsyncIterator[Peer]:
    """A broker with the topics t (2 partitions) and u, and coordinators."""
    async with Broker(properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        broker.topics.create("t", 2, {})
        broker.topics.create("u", 1, {})
        broker.groups.ensure_topic()
        yield Peer(broker)


def deny(peer: Peer, operation: Operation, resource_type: ResourceType, name: str) -> None:
    peer.broker.authorizer = Denies((operation, resource_type, name))


def versions(key: int) -> range:
    """Every version of an API."""
    return range(TABLE[key].lowest, TABLE[key].highest + 1)


class TestFindCoordinator:
    async def find(self, peer: Peer, key: str, key_type: int = 0, version: int = 6) -> tuple[int, int, str | None]:
        """Error code, node and message of one key."""
        if version < 4:
            request = m.FindCoordinatorRequest(key, key_type)
            answer = await peer.ask(request, version)
            return answer.error_code, answer.node_id, answer.error_message
        request = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        (found,) = (await peer.ask(request, version)).coordinators
        assert found.key == key
        return found.error_code, found.node_id, found.error_message

    async def test_first_one_creates_the_topic(self) -> None:  # GW-06, GP-07, GR-12
        async with Broker(properties={"offsets.topic.num.partitions": "3"}) as broker:
            peer = Peer(broker)
            assert (await self.find(peer, "g"))[:2] == (errors.CoordinatorNotAvailable.code, -1)
            assert (await self.find(peer, "g"))[:2] == (NONE, NODE)
            topic = topic_of(broker, "__consumer_offsets")
            assert len(topic.partitions) == 3
            assert topic.config.overrides["cleanup.policy"] == "compact"
            assert topic.config.overrides["compression.type"] == "producer"
            assert topic.config.overrides["segment.bytes"] == "104857600"


class TestMembership:
    @pytest.mark.parametrize("version", versions(11))
    async def test_join_versions(self, peer: Peer, version: int) -> None:  # GC-05, GC-12
        request = peer.join_request()
        if version == 0:
            request.rebalance_timeout_ms = -1
        answer = await peer.ask(request, version)
        if version >= 4:
            assert answer.protocol_name == (None if version >= 7 else "")
            request.member_id = answer.member_id
            answer = await peer.ask(request, version)
        assert answer.error_code == NONE
        assert answer.protocol_name == "range"
        assert answer.protocol_type == ("consumer" if version >= 7 else None)
        assert [member.member_id for member in answer.members] == [answer.member_id]


class TestOffsetFetch:
    async def old(self, peer: Peer, version: int, topics: dict[str, list[int]] | None) -> m.OffsetFetchResponse:
        asked = (
            None if topics is None else [m.OffsetFetchRequestTopic(name, indexes) for name, indexes in topics.items()]
        )
        return await peer.ask(m.OffsetFetchRequest("g", asked), version)

    @pytest.mark.parametrize("version", range(1, 8))
    async def test_old_versions(self, peer: Peer, version: int) -> None:  # K88-02 … K88-05
        await peer.commit({T0: 5})
        answer = await self.old(peer, version, {"t": [1, 0], "none": [0]})
        assert answer.error_code == NONE
        offsets = [(t.name, [(p.partition_index, p.committed_offset) for p in t.partitions]) for t in answer.topics]
        assert offsets == [("t", [(1, -1), (0, 5)]), ("none", [(0, -1)])]
        if version >= 2:
            everything = await self.old(peer, version, None)
            assert [topic.name for topic in everything.topics] == ["t"]

    async def test_version_1_reports_group_errors_on_partitions(self, peer: Peer) -> None:  # K88-14, K88-20, K88-30
        deny(peer, Operation.DESCRIBE, ResourceType.GROUP, "g")
        answer = await self.old(peer, 1, {"t": [0, 1]})
        partitions = [(one.error_code, one.committed_offset, one.metadata) for one in answer.topics[0].partitions]
        assert partitions == [(errors.GroupAuthorizationFailed.code, -1, "")] * 2
        assert list((await self.old(peer, 1, {})).topics) == []

    @pytest.mark.parametrize("version", range(2, 8))
    async def test_group_error(self, peer: Peer, version: int) -> None:  # K88-20, K88-30
        deny(peer, Operation.DESCRIBE, ResourceType.GROUP, "g")
        for topics in ({"t": [0, 1]}, {}, None):
            answer = await self.old(peer, version, topics)
            assert (answer.error_code, list(answer.topics)) == (errors.GroupAuthorizationFailed.code, [])

    async def test_refused_topics(self, peer: Peer) -> None:  # K88-21, K88-22
        await peer.commit({T0: 5, U0: 6})
        deny(peer, Operation.DESCRIBE, ResourceType.TOPIC, "t")
        named = await peer.fetch([T0, U0])
        assert list(named.items()) == [(U0, (6, NONE)), (T0, (-1, errors.TopicAuthorizationFailed.code))]
        assert await peer.fetch() == {U0: (6, NONE)}

    async def test_topic_ids(self, peer: Peer) -> None:  # GO-32
        topic = topic_of(peer.broker, "t")
        await peer.commit({T0: 5}, version=10, topic_id=topic.topic_id)
        topics = [
            m.OffsetFetchRequestTopics(topic_id=one, partition_indexes=[0]) for one in (UNKNOWN_ID, topic.topic_id)
        ]
        request = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup("g", topics=topics)])
        (group,) = (await peer.ask(request, 10)).groups
        answers = [(t.topic_id, p.committed_offset, p.error_code) for t in group.topics for p in t.partitions]
        assert answers == [(topic.topic_id, 5, NONE), (UNKNOWN_ID, -1, errors.UnknownTopicId.code)]
        request = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup("g", topics=None)])
        (group,) = (await peer.ask(request, 10)).groups
        assert [one.topic_id for one in group.topics] == [topic.topic_id]

    async def test_no_coordinator(self) -> None:  # K88-32, GP-02
        async with Broker() as broker:
            request = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup("g", topics=None)])
            answer = await Peer(broker).ask(request, 9)
            assert answer.groups[0].error_code == errors.NotCoordinator.code


class TestOffsetDelete:
    async def delete(self, peer: Peer, *partitions: tuple[str, int], group_id: str = "g") -> m.OffsetDeleteResponse:
        topics = [m.OffsetDeleteRequestTopic(topic, [m.OffsetDeleteRequestPartition(one)]) for topic, one in partitions]
        return await peer.ask(m.OffsetDeleteRequest(group_id, topics), 0)

    def codes(self, answer: m.OffsetDeleteResponse) -> dict[tuple[str, int], int]:
        assert answer.error_code == NONE
        return {
            (topic.name, one.partition_index): one.error_code for topic in answer.topics for one in topic.partitions
        }

    async def test_partitions(self, peer: Peer) -> None:  # K496-10, K496-31, K496-32, GA-03
        await peer.commit({T0: 1, T1: 1, U0: 1})
        deny(peer, Operation.READ, ResourceType.TOPIC, "u")
        answer = await self.delete(peer, T0, U0, ("none", 0), ("t", 7))
        assert self.codes(answer) == {
            T0: NONE,
            U0: errors.TopicAuthorizationFailed.code,
            ("none", 0): errors.UnknownTopicOrPartition.code,
            ("t", 7): errors.UnknownTopicOrPartition.code,
        }
        assert await peer.fetch() == {T1: (1, NONE), U0: (1, NONE)}

    async def test_group_errors_win(self, peer: Peer) -> None:  # K496-18, K496-30, K496-33
        answer = await self.delete(peer, ("none", 0))
        assert (answer.error_code, list(answer.topics)) == (errors.GroupIdNotFound.code, [])
        deny(peer, Operation.DELETE, ResourceType.GROUP, "g")
        answer = await self.delete(peer, T0)
        assert (answer.error_code, list(answer.topics)) == (errors.GroupAuthorizationFailed.code, [])


class TestListings:
    async def test_list_shows_what_the_caller_may_see(self, peer: Peer) -> None:  # K518-20
        for group_id in ("a", "b"):
            await peer.commit({T0: 1}, group_id=group_id)
        group = (Operation.DESCRIBE, ResourceType.GROUP, "a")
        cluster = (Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster")
        for refused, expected in (((group,), {"a", "b"}), ((cluster, group), {"b"}), ((cluster,), {"a", "b"})):
            peer.broker.authorizer = Denies(*refused)
            answer = await peer.ask(m.ListGroupsRequest(), 5)
            assert answer.error_code == NONE
            assert {one.group_id for one in answer.groups} == expected

    @pytest.mark.parametrize("version", versions(15))
    async def test_describe(self, peer: Peer, version: int) -> None:  # GD-20, GD-22, K1099-22
        await peer.stable_member("stable")
        deny(peer, Operation.DESCRIBE, ResourceType.GROUP, "hidden")
        request = m.DescribeGroupsRequest(["hidden", "stable", "unknown"], version >= 3)
        hidden, stable, unknown = (await peer.ask(request, version)).groups
        assert (hidden.group_id, hidden.error_code) == ("hidden", errors.GroupAuthorizationFailed.code)
        assert (stable.group_id, stable.error_code, stable.group_state) == ("stable", NONE, "Stable")
        assert stable.authorized_operations == (3400 if version >= 3 else -(2**31))
        assert hidden.authorized_operations == -(2**31)
        expected = (errors.GroupIdNotFound.code, "Group unknown not found.") if version >= 6 else (NONE, None)
        assert (unknown.error_code, unknown.error_message) == expected
        assert unknown.group_state == "Dead"

    @pytest.mark.parametrize("version", versions(69))
    async def test_a_consumer_group_on_the_wire(self, peer: Peer, version: int) -> None:
        # K1099-01, K1099-02, K1099-03, K1099-04, K1099-05, K1099-22, GN-27
        beat = m.ConsumerGroupHeartbeatRequest("c", "m", 0, "i", "r", 1000, ["t"], topic_partitions=[])
        assert (await peer.ask(beat, 1)).error_code == NONE
        request = m.ConsumerGroupDescribeRequest(["c"], True)
        (group,) = (await peer.ask(request, version)).groups
        assert (group.error_code, group.error_message, group.group_state) == (NONE, None, "Stable")
        assert (group.group_epoch, group.assignment_epoch, group.assignor_name) == (2, 2, "uniform")
        assert group.authorized_operations == 3400
        (member,) = group.members
        assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("m", "i", "r", 2)
        assert member.client_host.startswith("/127.0.0.1")
        assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (["t"], "")
        for assignment in (member.assignment, member.target_assignment):
            (topic,) = assignment.topic_partitions
            assert (topic.topic_name, topic.partitions) == ("t", [0, 1])
            assert topic.topic_id == peer.broker.topics.get("t").topic_id  # type: ignore[union-attr]
        assert member.member_type == (1 if version else -1)

    @pytest.mark.parametrize(
        ("name", "value"), [("feature.group.version", "0"), ("group.coordinator.rebalance.protocols", "classic")]
    )
    async def test_consumer_protocol_off(self, name: str, value: str) -> None:  # K1099-23
        async with Broker(properties={name: value}) as broker:
            request = m.ConsumerGroupDescribeRequest(["g"])
            answer = await Peer(broker).ask(request, 1)
            assert [one.error_code for one in answer.groups] == [errors.UnsupportedVersion.code]
