"""Streams groups through the broker: internal topics, who may what, restarts, settings, switches (KIP-1071)."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.broker.peer import Denies, Peer

from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.coordinator.streams.group import StreamsGroup
from groupkeeper.coordinator.streams.records import member_record
from groupkeeper.coordinator.streams.topology import StatusCode
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.streams_group_describe_response import DescribedGroup
from groupkeeper.protocol.messages.streams_group_heartbeat_request import (
    Endpoint,
    KeyValue,
    Subtopology,
    TopicInfo,
    Topology,
)

PROPERTIES: Mapping[str, str | int] = {
    "offsets.topic.num.partitions": 2,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.assignment.interval.ms": 0,
}


def new_broker(directory: Path, **more: str | int) -> Broker:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return Broker(directory=directory, properties={**PROPERTIES, **given})


def counting(replication_factor: int = 0, **configs: str) -> Topology:
    """Words, by way of a repartition topic, into a store."""
    topic_configs = [KeyValue(name.replace("_", "."), configs[name]) for name in configs]
    changelog = TopicInfo("c", 0, replication_factor, topic_configs)
    return Topology(
        0,
        [
            Subtopology("0", ["t"], repartition_sink_topics=["r"]),
            Subtopology("1", repartition_source_topics=[TopicInfo("r")], state_changelog_topics=[changelog]),
        ],
    )


def joining(topology: Topology | None = None) -> m.StreamsGroupHeartbeatRequest:
    """By default of a topology that reads the topic t."""
    request = m.StreamsGroupHeartbeatRequest("g", "m", 0, rebalance_timeout_ms=1000, process_id="p")
    request.topology = topology or Topology(0, [Subtopology("0", ["t"])])
    request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
    return request


async def beat(peer: Peer, epoch: int, topology: Topology | None = None) -> m.StreamsGroupHeartbeatResponse:
    request = m.StreamsGroupHeartbeatRequest("g", "m", epoch) if epoch else joining(topology or counting())
    return await peer.ask(request, 0)


async def describe(peer: Peer, *, has_operations: bool = False) -> DescribedGroup:
    request = m.StreamsGroupDescribeRequest(["g"], has_operations)
    return (await peer.ask(request, 0)).groups[0]


def told(response: m.StreamsGroupHeartbeatResponse) -> list[tuple[int, str]]:
    return [(one.status_code, one.status_detail) for one in response.status or ()]


async def test_internal_topics_are_created(peer: Peer) -> None:
    first = await beat(peer, 0, counting(cleanup_policy="compact"))
    assert told(first) == [(StatusCode.MISSING_INTERNAL_TOPICS, "Internal topics are missing: r, c")]
    topics = peer.broker.topics
    made = {name: topics.get(name) for name in ("r", "c")}
    assert [len(topic.partitions) for topic in made.values() if topic is not None] == [2, 2]
    assert made["c"] is not None
    assert made["c"].config.overrides == {"cleanup.policy": "compact"}
    second = await beat(peer, first.member_epoch)
    assert told(second) == []
    found = [(one.subtopology_id, list(one.partitions)) for one in second.active_tasks or ()]
    assert found == [("0", [0, 1]), ("1", [0, 1])]
    assert (await describe(peer, has_operations=True)).authorized_operations != -(2**31)


async def test_why_internal_topics_stay_missing_is_told(peer: Peer) -> None:
    answer = await beat(peer, 0, counting(3, cleanup_policy="maybe"))
    ((_, detail),) = told(answer)
    assert detail.startswith("Internal topics are missing: r, c; Creation failed: c (Invalid value maybe for ")
    assert peer.broker.topics.get("r") is not None
    assert peer.broker.topics.get("c") is None


async def test_who_may_not_create_is_told(peer: Peer) -> None:
    peer.broker.authorizer = Denies(
        (Operation.CREATE, ResourceType.CLUSTER, "kafka-cluster"),
        (Operation.CREATE, ResourceType.TOPIC, "r"),
        (Operation.CREATE, ResourceType.TOPIC, "c"),
    )
    ((_, detail),) = told(await beat(peer, 0))
    assert detail == "Internal topics are missing: r, c; Unauthorized to CREATE on topics r, c."
    assert peer.broker.topics.get("r") is None


async def test_hidden_topics_hide_the_group(peer: Peer) -> None:
    await beat(peer, 0)
    peer.broker.authorizer = Denies((Operation.DESCRIBE, ResourceType.TOPIC, "r"))
    hidden = await describe(peer)
    assert (hidden.error_code, hidden.topology) == (errors.TopicAuthorizationFailed.code, None)


@pytest.mark.parametrize("name", ["__consumer_offsets", "a b", "x" * 250])
async def test_names_no_topology_may_have(peer: Peer, name: str) -> None:
    answer = await beat(peer, 0, Topology(0, [Subtopology("0", ["t", name])]))
    assert answer.error_code == errors.StreamsInvalidTopology.code
    assert name in (answer.error_message or "")


async def test_tags_that_a_client_lacks_are_told(peer: Peer) -> None:
    peer.broker.group_configs.configure("g", {"streams.rack.aware.assignment.tags": "zone,rack"})
    request = joining()
    request.client_tags = [KeyValue("zone", "a")]
    first = await peer.ask(request, 1)
    missing = (
        "Missing required client tags for rack-aware standby assignment: [rack]. Configure them via "
        "'client.tag.<tagKey>' in your Streams config."
    )
    assert told(first) == [(StatusCode.MISSING_CLIENT_TAGS, missing)]
    assert told(await beat(peer, first.member_epoch)) == []  # an older client does not know the status
    group = peer.broker.groups.shard_of("g").coordinator.state.find("g", StreamsGroup)
    assert group is not None
    assert group.assignment_configs["rack.aware.assignment.tags"] == "zone,rack"


async def test_tags_may_be_in_another_order_in_the_log(peer: Peer) -> None:
    request = joining()
    request.client_tags = [KeyValue("rack", "r"), KeyValue("zone", "a")]
    first = await peer.ask(request, 1)
    group = peer.broker.groups.shard_of("g").coordinator.state.find("g", StreamsGroup)
    assert group is not None
    kafkas = member_record("g", replace(group.members["m"], client_tags=(("zone", "a"), ("rack", "r"))))
    peer.broker.groups.shard_of("g").coordinator.replay(kafkas)
    assert (await peer.ask(request, 1)).member_epoch == first.member_epoch


async def test_a_member_that_joins_again_says_whether_it_has_an_endpoint(peer: Peer) -> None:
    request = joining()
    request.endpoint_information_epoch = -1
    told = []
    for endpoint in (Endpoint("h", 1), Endpoint("h", 1), None, Endpoint("h", 2)):
        request.user_endpoint = endpoint
        answer = await peer.ask(request, 1)
        found = (await describe(peer)).members[0].user_endpoint
        told.append((answer.endpoint_information_epoch, found and found.port))
    assert told == [(0, 1), (0, 1), (1, None), (2, 2)]


async def test_groups_have_their_own_settings(peer: Peer) -> None:  # GF-02
    peer.broker.group_configs.configure(
        "g", {"streams.heartbeat.interval.ms": "7000", "streams.num.standby.replicas": "1"}
    )
    first = await beat(peer, 0)
    assert first.heartbeat_interval_ms == 7000
    group = peer.broker.groups.shard_of("g").coordinator.state.groups["g"]
    assert isinstance(group, StreamsGroup)
    assert group.assignment_configs == {"num.standby.replicas": "1"}


async def test_what_members_are_told_of_the_brokers_settings(tmp_path: Path) -> None:
    given: dict[str, str | int] = {
        "group.streams.heartbeat.interval.ms": 6000,
        "group.streams.task.offset.interval.ms": 20_000,
        "group.streams.acceptable.recovery.lag": 7,
        "group.streams.rack.aware.assignment.tags": "zone",
    }
    async with new_broker(tmp_path, **given) as broker:
        broker.groups.ensure_topic()
        answer = await Peer(broker).ask(joining(), 1)
        told_numbers = (answer.heartbeat_interval_ms, answer.task_offset_interval_ms, answer.acceptable_recovery_lag)
        assert told_numbers == (6000, 20_000, 7)
        assert any("[zone]" in detail for _, detail in told(answer))


@pytest.mark.parametrize(
    "switch", [{"feature.streams.version": 0}, {"group.coordinator.rebalance.protocols": "classic,consumer"}]
)
async def test_streams_groups_can_be_switched_off(tmp_path: Path, switch: dict[str, str | int]) -> None:
    async with Broker(directory=tmp_path, properties={**PROPERTIES, **switch}) as broker:
        broker.groups.ensure_topic()
        assert (await beat(Peer(broker), 0)).error_code == errors.UnsupportedVersion.code
        assert (await describe(Peer(broker))).error_code == errors.UnsupportedVersion.code
