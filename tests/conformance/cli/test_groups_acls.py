"""`groupkeeper groups` on a real Apache Kafka with ACLs: what one may not see is told, and breaks nothing."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from tests.conformance.brokers import PROPERTIES
from tools.apache_kafka import ApacheKafka

from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(180)]

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": f'{MODULE} user_bob="bob-secret";',
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}

Run = Callable[..., tuple[int, Any]]


def allow(admin: AdminClient, kind: ResourceType, name: str) -> None:
    binding = AclBinding(
        kind, name, ResourcePatternType.LITERAL, "User:bob", "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW
    )
    admin.create_acls([binding])[binding].result(20)


async def prepare(servers: str) -> None:
    async with Admin(servers) as admin:
        (await admin.create_topics([NewTopic("orders", 2, 1), NewTopic("secret", 1, 1)])).all()
        both = [TopicPartition("orders", 0), TopicPartition("secret", 0)]
        for group_id in ("seen", "hidden"):
            offsets = {tp: OffsetAndMetadata(0) for tp in both}
            (await admin.alter_consumer_group_offsets(group_id, offsets)).all()


def joined(servers: str, group_id: str, protocol: str) -> Consumer:
    """A member that is assigned both topics, and has committed for `orders`."""
    config = {"bootstrap.servers": servers, "group.id": group_id, "group.protocol": protocol}
    consumer = Consumer(config)
    assigned: list[Any] = []
    consumer.subscribe(["orders", "secret"], on_assign=lambda _, partitions: assigned.extend(partitions))
    for _ in range(300):
        consumer.poll(0.1)
        if len(assigned) == 3:
            break
    assert len(assigned) == 3
    consumer.commit(offsets=[Position("orders", partition, 0) for partition in (0, 1)], asynchronous=False)
    return consumer


@pytest.fixture(scope="module")
def bob(apache_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The words that make a command ask as bob, who may describe some things."""
    with ApacheKafka({**PROPERTIES, **SETTINGS}, listeners={"SASL": "SASL_PLAINTEXT"}) as broker:
        asyncio.run(prepare(broker.bootstrap_servers))
        super_user = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for group_id in ("seen", "classic", "modern"):
            allow(super_user, ResourceType.GROUP, group_id)
        allow(super_user, ResourceType.TOPIC, "orders")
        consumers = [joined(broker.bootstrap_servers, "classic", "classic")]
        consumers.append(joined(broker.bootstrap_servers, "modern", "consumer"))
        path = tmp_path_factory.mktemp("bob") / "bob.properties"
        path.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={MODULE} username="bob" password="bob-secret";\n'
        )
        yield ["--bootstrap-server", broker.address("SASL"), "--command-config", str(path)]
        for consumer in consumers:
            consumer.close()


@pytest.fixture
def run(bob: list[str], capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> tuple[int, Any]:
        status = main(["groups", *words, *bob, "--output", "json"])
        return status, json.loads(capsys.readouterr().out)

    return call


def told(report: Any) -> list[tuple[Any, ...]]:
    return [(each["error"], each["group"], each["topic"], each["acl"]) for each in report["problems"]]


def acl(operation: str, resource_type: str, name: str | None) -> dict[str, str | None]:
    return {"operation": operation, "resource_type": resource_type, "name": name}


# K518-20: hidden groups are left out without a word, so that must be said
def test_that_groups_may_be_hidden_is_said(run: Run) -> None:
    status, report = run("list")
    assert (status, [row["group"] for row in report["groups"]]) == (0, ["classic", "modern", "seen"])
    assert "you need the ACL DESCRIBE on the cluster" in report["notes"][0]


# K88-20, K88-22, K1099-20, K1099-21
def test_every_group_shows_what_may_be_seen(run: Run) -> None:
    status, report = run("offsets", "seen", "hidden", "classic", "modern")
    assert status == 1
    rows = {(row["group"], row["topic"], row["partition"]): row["status"] for row in report["offsets"]}
    assert rows == {
        ("classic", "orders", 0): "ok",
        ("classic", "orders", 1): "ok",
        ("classic", "secret", 0): "not_authorized",
        ("modern", "orders", 0): "ok",
        ("modern", "orders", 1): "ok",
        ("seen", "orders", 0): "ok",
    }
    assert told(report) == [
        ("GROUP_AUTHORIZATION_FAILED", "hidden", None, acl("DESCRIBE", "GROUP", "hidden")),
        ("TOPIC_AUTHORIZATION_FAILED", "modern", None, acl("DESCRIBE", "TOPIC", None)),
        ("TOPIC_AUTHORIZATION_FAILED", None, "secret", acl("DESCRIBE", "TOPIC", "secret")),
    ]


def test_a_topic_that_is_named_is_not_left_out_silently(run: Run) -> None:
    status, report = run("offsets", "seen", "--topic", "secret")
    assert (status, report["offsets"]) == (1, [])
    assert told(report) == [("TOPIC_AUTHORIZATION_FAILED", None, "secret", acl("DESCRIBE", "TOPIC", "secret"))]


# GA-02: one cannot tell whether there is such a group
@pytest.mark.parametrize(
    ("words", "operation"),
    [
        ("members nope", "DESCRIBE"),
        ("describe nope --view state", "DESCRIBE"),
        ("delete seen --execute", "DELETE"),
        ("delete-offsets seen --topic orders --execute", "DELETE"),
        ("reset seen --topic orders --to-latest --execute", "READ"),
    ],
)
def test_the_missing_acl_is_the_one_for_what_was_tried(run: Run, words: str, operation: str) -> None:
    status, report = run(*words.split())
    group_id = words.split()[1]
    assert (status, told(report)) == (
        1,
        [("GROUP_AUTHORIZATION_FAILED", group_id, None, acl(operation, "GROUP", group_id))],
    )


def test_people_are_told_in_a_line(bob: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["groups", "offsets", "hidden", *bob]) == 1
    assert capsys.readouterr().err == (
        "error: hidden: FindCoordinator request for groupId `hidden` failed due to authorization failure; "
        "missing ACL: DESCRIBE on group hidden (GROUP_AUTHORIZATION_FAILED)\n"
    )
