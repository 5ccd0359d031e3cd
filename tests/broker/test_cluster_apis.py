"""APIs of clusters and of security, as Apache Kafka 4.3.1 answers them where neither is set up."""

import importlib
from pathlib import Path
from typing import Any

import pytest
from tests.broker.conftest import Connect, Start, Wire

from groupkeeper.broker import Broker
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.framing import request_class
from groupkeeper.protocol.primitives import Message

ANY_ACL = {
    "resource_type_filter": 1,
    "pattern_type_filter": 1,
    "operation": 1,
    "permission_type": 1,
    "resource_name_filter": None,
    "principal_filter": None,
    "host_filter": None,
}
ACL = {
    "resource_type": 2, "resource_name": "t", "principal": "User:a", "host": "*", "operation": 3, "permission_type": 3
}  # fmt: skip
UNKNOWN_USER = {"error_code": 91, "error_message": "Attempt to describe a user credential that does not exist: a"}
NO_AUTHORIZER = {"error_code": 54, "error_message": "No Authorizer is configured."}
NO_NODE = "The manual partition assignment includes broker 2, but no such broker is registered."


def part(key: int, kind: str, /, **fields: object) -> Any:
    """A struct inside the request of an API."""
    return getattr(importlib.import_module(request_class(key).__module__), kind)(**fields)


def plain(value: object) -> Any:
    """A message as its values that say something."""
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, Message):
        return {name: told for name in value.__slots__ if (told := plain(getattr(value, name)))}
    return value


def reassigning(replicas: list[int] | None) -> Any:
    parts = [part(45, "ReassignablePartition", partition_index=index, replicas=replicas) for index in (0, 9)]
    return {"topics": [part(45, "ReassignableTopic", name="t", partitions=parts)]}


def reassigned(code: int, why: str | None = None) -> Any:
    first = {"error_code": code, "error_message": why} if why else {"error_code": code} if code else {}
    missing = {"partition_index": 9, "error_code": 3, "error_message": "Unable to find partition t:9."}
    return {"allow_replication_factor_change": True, "responses": [{"name": "t", "partitions": [first, missing]}]}


MOVED = part(
    34, "AlterReplicaLogDir", path="/nope", topics=[part(34, "AlterReplicaLogDirTopic", name="t", partitions=[0])]
)
ELECTED = [
    part(43, "TopicPartitions", topic="t", partitions=[0, 9]), part(43, "TopicPartitions", topic="nope", partitions=[0])
]  # fmt: skip
LED = {"error_code": 84, "error_message": "Leader election not needed for topic partition."}
NO_PARTITION = {"partition_id": 9, "error_code": 3, "error_message": "No such partition as t-9"}
NO_TOPIC = {"error_code": 3, "error_message": "No such topic as nope"}
ELECTIONS = [
    {"topic": "t", "partition_result": [LED, NO_PARTITION]}, {"topic": "nope", "partition_result": [NO_TOPIC]}
]  # fmt: skip
CASES: list[tuple[int, int, dict[str, Any], Any]] = [
    (17, 1, {"mechanism": "PLAIN"}, {"error_code": 34}),
    (29, 3, ANY_ACL, {"error_code": 54, "error_message": "No Authorizer is configured on the broker"}),
    (30, 3, {"creations": [part(30, "AclCreation", **ACL)]}, {"results": [NO_AUTHORIZER]}),
    (31, 3, {"filters": [part(31, "DeleteAclsFilter", **ANY_ACL)]}, {"filter_results": [NO_AUTHORIZER]}),
    (39, 2, {"hmac": b"x"}, {"error_code": 64, "expiry_timestamp_ms": -1}),
    (41, 3, {}, {"error_code": 64}),
    (34, 2, {"dirs": [MOVED]}, {"results": [{"topic_name": "t", "partitions": [{"error_code": 57}]}]}),
    (43, 2, {"topic_partitions": ELECTED}, {"replica_election_results": ELECTIONS}),
    (43, 2, {"topic_partitions": None}, {"replica_election_results": [{"topic": "t"}]}),
    (45, 1, reassigning(None), reassigned(85)),
    (45, 1, reassigning([1]), reassigned(0)),
    (45, 1, reassigning([1, 2]), reassigned(39, NO_NODE)),
    (48, 1, {}, {}),
    (50, 0, {"users": None}, {}),
    (50, 0, {"users": [part(50, "UserName", name="a")]}, {"results": [{"user": "a", **UNKNOWN_USER}]}),
    (64, 0, {"broker_id": 99}, {"error_code": 102, "error_message": "Broker ID 99 is not currently registered"}),
]


@pytest.mark.parametrize(("key", "version", "fields", "answer"), CASES)
async def test_answers(wire: Wire, key: int, version: int, fields: dict[str, Any], answer: Any) -> None:
    await wire.create("t")
    assert plain(await wire.call(request_class(key)(**fields), version)) == answer


async def test_the_quorum_is_this_node(broker: Broker, wire: Wire) -> None:
    wanted = part(55, "TopicData", topic_name="__cluster_metadata", partitions=[part(55, "PartitionData")])
    told = plain(await wire.call(m.DescribeQuorumRequest(topics=[wanted]), 2))
    (metadata,) = told["topics"][0]["partitions"]
    assert (metadata["leader_id"], [one["replica_id"] for one in metadata["current_voters"]]) == (1, [1])
    assert told["nodes"][0]["listeners"][0]["port"] == broker.advertised.port


ALL_LEVELS = {
    "group.version": 1,
    "metadata.version": 33,
    "share.version": 2,
    "streams.version": 1,
    "transaction.version": 2,
    "eligible.leader.replicas.version": 1,
}
"""As Kafka 4.4.0 has them."""


async def levels(wire: Wire) -> dict[str, int]:
    answer = await wire.call(m.ApiVersionsRequest("test", "1"), 4)
    return {one.name: one.max_version_level for one in answer.finalized_features}


async def update(wire: Wire, name: str, level: int, upgrade_type: int = 1, **options: bool) -> tuple[int, str]:
    feature_updates = [m.FeatureUpdateKey(name, level, upgrade_type=upgrade_type)]
    request = m.UpdateFeaturesRequest(feature_updates=feature_updates, **options)
    answer = await wire.call(request, 2)
    return answer.error_code, answer.error_message or ""


async def test_features_are_checked(wire: Wire) -> None:
    """The words are those of Apache Kafka 4.3.1."""
    assert await update(wire, "group.version", 1) == (0, "")
    assert await update(wire, "share.version", 0, 2, validate_only=True) == (0, "")
    assert await levels(wire) == ALL_LEVELS
    for name, level, upgrade_type, why in (
        ("nope", 1, 1, "does not support this feature."),
        ("nope", 0, 2, "Feature nope not found."),
        ("nope", 1, 0, "does not support the given upgrade type."),
        ("kraft.version", 1, 2, "Can't downgrade to a newer version."),
        ("group.version", 2, 1, "only supports versions 0-1"),
        ("group.version", -1, 2, "A feature version cannot be less than 0."),
        ("group.version", 0, 1, "Can't downgrade"),
        ("group.version", 1, 0, "does not support the given upgrade type."),
        ("metadata.version", 34, 1, "only supports versions 7-33"),
        ("metadata.version", 29, 1, "without setting the upgrade type"),
        ("metadata.version", 29, 2, "downgrade from 33 to 29. Refusing to perform the requested downgrade"),
        ("metadata.version", 29, 3, "downgrade from 33 to 29. Unsafe metadata downgrade is not supported"),
    ):
        code, message = await update(wire, name, level, upgrade_type)
        assert (code, why in message) == (95, True), message


async def test_features_change_for_good(start: Start, connect: Connect, tmp_path: Path) -> None:
    broker = await start(directory=tmp_path)
    wire = await connect(broker)
    for name, level in (("streams.version", 0), ("group.version", 0), ("transaction.version", 1)):
        assert await update(wire, name, level, 2) == (0, "")
    assert await update(wire, "group.version", 1) == (0, "")
    assert await update(wire, "kraft.version", 1) == (0, "")
    code, message = await update(wire, "kraft.version", 0, 2)
    assert (code, "Can't downgrade the version of this feature." in message) == (95, True)
    changed = {**ALL_LEVELS, "transaction.version": 1, "kraft.version": 1}
    del changed["streams.version"]
    assert await levels(wire) == changed
    await broker.stop()
    wire = await connect(await start(directory=tmp_path, properties={"feature.transaction.version": "2"}))
    assert await levels(wire) == changed
    answer = await wire.call(m.ApiVersionsRequest("test", "1"), 4)
    assert answer.finalized_features_epoch == 6


async def test_the_start_gives_features_their_levels(start: Start, connect: Connect) -> None:
    wire = await connect(await start(properties={"feature.metadata.version": "27"}))
    assert await update(wire, "metadata.version", 25, 2) == (0, "")
    assert await update(wire, "metadata.version", 24, 3) == (0, "")
    assert (await update(wire, "metadata.version", 22, 2))[0] == 95
    assert await update(wire, "metadata.version", 33) == (0, "")
    assert await levels(wire) == ALL_LEVELS
    wire = await connect(await start(properties={"unstable.feature.versions.enable": "true"}))
    assert await levels(wire) == {**ALL_LEVELS, "metadata.version": 34}


async def test_an_unstable_version_of_an_api(start: Start, connect: Connect) -> None:
    highest = []
    for given in ("false", "true"):
        wire = await connect(await start(properties={"unstable.api.versions.enable": given}))
        answer = await wire.call(m.ApiVersionsRequest("test", "1"), 4)
        highest += [one.max_version for one in answer.api_keys if one.api_key == m.InitProducerIdRequest.API_KEY]
    assert highest[1] == highest[0] + 1


async def replication(wire: Wire, name: str, factor: int) -> tuple[int, int]:
    (answer,) = (await wire.call(m.CreateTopicsRequest([m.CreatableTopic(name, 2, factor)]), 7)).topics
    return answer.error_code, answer.replication_factor


async def test_replication_factors(start: Start, connect: Connect, wire: Wire) -> None:
    assert await replication(wire, "three", 3) == (38, -1)
    assert await replication(wire, "none", 0) == (38, -1)
    lenient = await connect(await start(properties={"groupkeeper.lenient.replication": "true"}))
    assert await replication(lenient, "three", 3) == (0, 1)
    assert await replication(lenient, "none", 0) == (38, -1)
    # Nodes that aren't there stay an error: whoever names them means them.
    topic = m.CreatableTopic("named", -1, -1, assignments=[m.CreatableReplicaAssignment(0, [1, 2, 3])])
    (answer,) = (await lenient.call(m.CreateTopicsRequest([topic]), 7)).topics
    assert answer.error_code == 39
