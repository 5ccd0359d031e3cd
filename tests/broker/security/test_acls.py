"""ACLs over the wire: who may change them, what they then decide, and that they outlive the broker."""

import signal
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from tests.broker.conftest import Connect, Start, Wire
from tests.broker.security.logins import USERS, logged_in, of_librdkafka
from tests.broker.started import Begin
from tests.broker.test_cluster_apis import part

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker import Broker
from groupkeeper.protocol import messages as m

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SETTINGS = {"authorizer.class.name": STANDARD, "super.users": "User:root;User:admin"}
TOPIC_FAILED, GROUP_FAILED, CLUSTER_FAILED = 29, 30, 31

LogIn = Callable[..., Awaitable[Wire]]


@pytest.fixture
async def broker(start: Start) -> Broker:
    return await start(properties=SETTINGS, users=USERS)


@pytest.fixture
def log_in_as(connect: Connect) -> LogIn:
    return partial(logged_in, connect)


def creation(**changes: Any) -> m.AclCreation:
    fields = {
        "resource_type": 2,
        "resource_name": "orders",
        "resource_pattern_type": 3,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return m.AclCreation(**{**fields, **changes})


async def created(wire: Wire, *creations: m.AclCreation) -> list[tuple[int, str | None]]:
    answer = await wire.call(m.CreateAclsRequest(list(creations)), 3)
    return [(one.error_code, one.error_message) for one in answer.results]


EVERYTHING = (1, None, 1, None, None, 1, 1)


async def described(wire: Wire, *wanted: Any) -> list[tuple[Any, ...]]:
    answer = await wire.call(m.DescribeAclsRequest(*(wanted or EVERYTHING)), 3)
    assert (answer.error_code, answer.error_message) == (0, "")
    return [
        (each.resource_type, each.resource_name, each.pattern_type, *(getattr(acl, name) for name in acl.__slots__))
        for each in answer.resources
        for acl in each.acls
    ]


async def topic_error(wire: Wire, topic: str = "orders") -> int:
    answer = await wire.call(m.MetadataRequest([m.MetadataRequestTopic(name=topic)], False), 9)
    return int(answer.topics[0].error_code)


async def test_created_described_deleted(broker: Broker, log_in_as: LogIn) -> None:
    broker.topics.create("orders", 1)
    admin, alice, bob = [await log_in_as(broker, user) for user in USERS]
    assert [await topic_error(wire) for wire in (admin, alice, bob)] == [0, TOPIC_FAILED, TOPIC_FAILED]
    assert await created(admin, creation(), creation(), creation(operation=4)) == [(0, "")] * 3
    assert [await topic_error(wire) for wire in (admin, alice, bob)] == [0, 0, TOPIC_FAILED]
    assert await created(admin, creation(principal="User:*", operation=8, permission_type=2)) == [(0, "")]
    assert [await topic_error(wire) for wire in (admin, alice)] == [0, TOPIC_FAILED]
    known = await described(admin)
    assert known == [
        (2, "orders", 3, "User:alice", "*", 3, 3),
        (2, "orders", 3, "User:alice", "*", 4, 3),
        (2, "orders", 3, "User:*", "*", 8, 2),
    ]
    assert await described(admin, 2, None, 1, "User:*", None, 1, 1) == known[2:]
    wanted = [m.DeleteAclsFilter(1, None, 1, "User:*", None, 1, 1), m.DeleteAclsFilter(1, None, 1, None, None, 8, 1)]
    answer = await admin.call(m.DeleteAclsRequest(wanted), 3)
    # Each filter names what it meant before the request.
    assert [len(one.matching_acls) for one in answer.filter_results] == [1, 1]
    assert await topic_error(alice) == 0
    assert await described(admin) == known[:2]


async def test_who_may_not(broker: Broker, log_in_as: LogIn) -> None:
    alice = await log_in_as(broker, "alice")
    assert [code for code, _ in await created(alice, creation())] == [CLUSTER_FAILED]
    assert (await alice.call(m.DescribeAclsRequest(*EVERYTHING), 3)).error_code == CLUSTER_FAILED
    answer = await alice.call(m.DeleteAclsRequest([m.DeleteAclsFilter(*EVERYTHING)]), 3)
    assert [one.error_code for one in answer.filter_results] == [CLUSTER_FAILED]
    admin = await log_in_as(broker, "admin")
    cluster = {"resource_type": 4, "resource_name": "kafka-cluster"}
    assert await created(admin, creation(**cluster, operation=7)) == [(0, "")]
    # ALTER brings DESCRIBE with it.
    assert await described(alice) == [(4, "kafka-cluster", 3, "User:alice", "*", 7, 3)]


async def test_who_may_read_neither_group_nor_topic_hears_of_the_group(broker: Broker, log_in_as: LogIn) -> None:
    wire = await log_in_as(broker, "alice")
    heartbeat = m.ConsumerGroupHeartbeatRequest("g", "m", 0, subscribed_topic_names=["orders"])
    assert (await wire.call(heartbeat, 0)).error_code == GROUP_FAILED
    admin = await log_in_as(broker, "admin")
    assert await created(admin, creation(resource_type=3, resource_name="g")) == [(0, "")]
    assert (await wire.call(heartbeat, 0)).error_code == TOPIC_FAILED


async def test_who_may_not_reassign_hears_so_for_each_partition(broker: Broker, log_in_as: LogIn) -> None:
    wire = await log_in_as(broker, "alice")
    moved = [part(45, "ReassignablePartition", partition_index=index, replicas=[1]) for index in (0, 7)]
    topics = [part(45, "ReassignableTopic", name="orders", partitions=moved)]
    answer = await wire.call(m.AlterPartitionReassignmentsRequest(5000, topics=topics), 0)
    assert answer.error_code == CLUSTER_FAILED
    assert [
        (topic.name, one.partition_index, one.error_code) for topic in answer.responses for one in topic.partitions
    ] == [("orders", 0, CLUSTER_FAILED), ("orders", 7, CLUSTER_FAILED)]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"resource_type": 4}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": 99}, "Invalid patternType UNKNOWN"),
        ({"operation": 99}, "Invalid operation UNKNOWN"),
        ({"permission_type": 99}, "Invalid permissionType UNKNOWN"),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal type from",
        ),
    ],
)
async def test_refusals(broker: Broker, log_in_as: LogIn, changes: dict[str, Any], says: str) -> None:
    admin = await log_in_as(broker, "admin")
    (code, said), other = await created(admin, creation(**changes), creation())
    assert code == 42
    assert (said or "").startswith(says)
    assert other == (0, "")
    assert len(await described(admin)) == 1


@pytest.mark.parametrize("changes", [{"resource_type": 1}, {"resource_pattern_type": 2}, {"operation": 1}])
async def test_what_only_a_filter_may_have_fails_the_whole_request(
    broker: Broker, log_in_as: LogIn, changes: dict[str, Any]
) -> None:
    admin = await log_in_as(broker, "admin")
    assert await created(admin, creation(), creation(**changes)) == [(-1, None)] * 2
    assert await described(admin) == []


async def test_what_cannot_be_parsed_ends_the_connection(broker: Broker, log_in_as: LogIn) -> None:
    alice = await log_in_as(broker, "alice")
    alice.send(m.CreateAclsRequest([creation(operation=0)]), 3)
    assert await alice.reader.read() == b""


async def test_without_any_acl(log_in_as: LogIn) -> None:
    settings = {**SETTINGS, "allow.everyone.if.no.acl.found": "true"}
    async with Broker(properties=settings, users=USERS) as broker:
        for topic in ("orders", "payments"):
            broker.topics.create(topic, 1)
        admin, alice, bob = [await log_in_as(broker, user) for user in USERS]
        assert await topic_error(bob) == 0
        await created(admin, creation(resource_name="ord", resource_pattern_type=4))
        assert [await topic_error(wire) for wire in (alice, bob)] == [0, TOPIC_FAILED]
        assert await topic_error(bob, "payments") == 0


async def test_a_host(broker: Broker, log_in_as: LogIn) -> None:
    broker.topics.create("orders", 1)
    admin, alice, bob = [await log_in_as(broker, user) for user in USERS]
    await created(admin, creation(host="10.0.0.1"), creation(principal="User:bob", host="127.0.0.0/8"))
    assert [await topic_error(wire) for wire in (alice, bob)] == [TOPIC_FAILED, 0]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"authorizer.class.name": "com.example.Own"}, "authorizer.class.name=com.example.Own: Java code cannot run"),
        ({"super.users": "User:a;root"}, "super.users: root is no principal: expected User:root"),
    ],
)
async def test_settings_that_make_no_sense(changes: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        await Broker(properties={**SETTINGS, **changes}).start()


async def test_a_damaged_registry(tmp_path: Path) -> None:
    async with Broker(properties=SETTINGS, directory=tmp_path):
        pass
    (tmp_path / "acls.journal").write_text("no acl\n")
    with pytest.raises(InvalidSetting, match=r"acls\.journal: line 1 is damaged"):
        await Broker(properties=SETTINGS, directory=tmp_path).start()


async def test_without_an_authorizer_they_rest(tmp_path: Path, log_in_as: LogIn) -> None:
    for settings in (SETTINGS, {}, SETTINGS):
        async with Broker(properties=settings, users=USERS, directory=tmp_path) as broker:
            alice = await log_in_as(broker, "alice")
            answer = await alice.call(m.ListGroupsRequest(), 4)
            assert answer.error_code == 0
            code = (await alice.call(m.DescribeAclsRequest(*EVERYTHING), 3)).error_code
            assert code == (CLUSTER_FAILED if settings else 54)


def test_they_outlive_a_killed_broker_and_librdkafka_uses_them(begin: Begin) -> None:
    words = ["--data", "d", *(f"--add-user={user}={secret}" for user, secret in USERS.items())]
    words += [f"--property={name}={value}" for name, value in SETTINGS.items()]

    def client(kind: Any, address: str, user: str) -> Any:
        return kind(of_librdkafka(address, user, USERS[user], "SCRAM-SHA-256") | {"log_level": 0})

    def acl(name: str, operation: AclOperation) -> AclBinding:
        return AclBinding(
            ResourceType.TOPIC,
            name,
            ResourcePatternType.PREFIXED,
            "User:alice",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )

    started = begin("--port", "0", *words)
    admin = client(AdminClient, started.address, "admin")
    wanted = [acl("or", AclOperation.WRITE), acl("or", AclOperation.CREATE)]
    for future in admin.create_acls(wanted).values():
        future.result(20)
    started.end(signal.SIGKILL)

    started = begin("--port", "0", *words)
    admin = client(AdminClient, started.address, "admin")
    unnamed: Any = None  # what its types leave out
    everything = AclBindingFilter(
        ResourceType.ANY, unnamed, ResourcePatternType.ANY, unnamed, unnamed, AclOperation.ANY, AclPermissionType.ANY
    )
    assert set(admin.describe_acls(everything).result(20)) == set(wanted)
    outcomes: list[KafkaError | None] = []
    for user, topic in (("alice", "orders"), ("alice", "payments"), ("bob", "orders")):
        producer = client(Producer, started.address, user)
        producer.produce(topic, b"x", on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(20) == 0
    assert [error and error.code() for error in outcomes] == [None, TOPIC_FAILED, TOPIC_FAILED]
