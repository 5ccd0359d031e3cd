"""The audit log: logins, what was asked for, and whether it was allowed."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
)
from confluent_kafka.admin import ResourceType as ResourceType_
from tests.broker.security.logins import of_librdkafka
from tests.patience import until

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker import Broker
from groupkeeper.broker.authorizer import Operation, ResourceType, RuleAuthorizer
from groupkeeper.testing.background import BackgroundBroker

USERS = {"alice": "alice-secret"}


def lines(path: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(one.pop("time").endswith("Z") for one in found)
    return found


def login(broker: BackgroundBroker, password: str) -> dict[str, Any]:
    return of_librdkafka(broker.bootstrap_servers, "alice", password) | {"client.id": "app"}


@pytest.mark.parametrize("has_allowed", [True, False])
def test_logins_and_decisions(tmp_path: Path, has_allowed: bool) -> None:
    path = tmp_path / "audit.jsonl"
    properties = {"groupkeeper.audit.file": str(path), "groupkeeper.audit.allowed": str(has_allowed).lower()}
    authorizer = RuleAuthorizer()
    authorizer.allow(Operation.DESCRIBE, ResourceType.TOPIC, "orders")
    with BackgroundBroker(properties=properties, users=USERS, authorizer=authorizer) as broker:
        AdminClient(login(broker, "alice-secret")).list_topics("orders", timeout=20)
        wrong = Producer(login(broker, "a wrong one"))
        with pytest.raises(KafkaException):
            wrong.list_topics(timeout=1)
        until(lambda: "Invalid username or password" in path.read_text())
    found = lines(path)
    assert "wrong one" not in path.read_text()
    asked = {"principal": "User:alice", "host": "127.0.0.1", "listener": "SASL_PLAINTEXT"}
    about = {"client_id": "app", "api": "Metadata", "resource_type": "TOPIC", "resource": "orders"}
    good = {"event": "login", **asked, "by": "PLAIN", "allowed": True, "reason": None}
    bad = {**good, "principal": None, "allowed": False}
    bad["reason"] = "SASL PLAIN: Authentication failed: Invalid username or password"
    describe = {"event": "request", **asked, **about, "operation": "DESCRIBE", "allowed": True}
    denied = {**describe, "operation": "CREATE", "allowed": False}
    assert bad in found
    assert denied in found
    assert (good in found) == (describe in found) == has_allowed
    assert has_allowed or not any(one["allowed"] for one in found)


async def test_a_file_that_is_moved_away(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with Broker(properties={"groupkeeper.audit.file": str(path)}) as broker:
        assert broker.audit is not None
        broker.audit.login("L", "/h", "PLAIN", "User:a\n", None)
        path.rename(tmp_path / "old")
        broker.audit.login("L", "/h", "PLAIN", "User:b", None)
        assert broker.audit is not None
    assert [one["principal"] for one in lines(tmp_path / "old") + lines(path)] == ["User:a\n", "User:b"]
    assert broker.audit is None


async def test_a_file_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(InvalidSetting, match=r"groupkeeper\.audit\.file=.*: Is a directory"):
        await Broker(properties={"groupkeeper.audit.file": str(tmp_path)}).start()
    async with Broker(properties={"groupkeeper.audit.file": "/dev/full"}) as broker:
        assert broker.audit is not None
        for _ in range(3):
            broker.audit.login("L", "/h", "PLAIN", "User:a", None)
    assert caplog.text.count("the audit log cannot be written") == 1


async def test_a_folder_that_is_moved_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    async with Broker(properties={"groupkeeper.audit.file": str(folder / "audit.jsonl")}) as broker:
        assert broker.audit is not None
        for turn in range(2):  # it is said each time that it begins, and not for every line
            folder.rename(tmp_path / f"old-{turn}")
            for _ in range(2):
                broker.audit.login("L", "/h", "PLAIN", "User:a", None)
            assert caplog.text.count("the audit log cannot be written") == turn + 1
            folder.mkdir()
            broker.audit.login("L", "/h", "PLAIN", "User:b", None)
    assert [one["principal"] for one in lines(folder / "audit.jsonl")] == ["User:b"]
    assert "Traceback" not in caplog.text


def test_acls_are_changed_while_it_is_on(tmp_path: Path) -> None:
    properties = {
        "groupkeeper.audit.file": str(tmp_path / "audit.jsonl"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with BackgroundBroker(properties=properties) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        given = (ResourceType_.TOPIC, "t", ResourcePatternType.LITERAL, "User:a", "*", AclOperation.READ)
        (made,) = admin.create_acls([AclBinding(*given, AclPermissionType.ALLOW)]).values()
        made.result(20)
        wanted = AclBindingFilter(*given, AclPermissionType.ALLOW)
        assert len(admin.describe_acls(wanted).result(20)) == 1
        (deleted,) = admin.delete_acls([wanted]).values()
        assert len(deleted.result(20)) == 1
