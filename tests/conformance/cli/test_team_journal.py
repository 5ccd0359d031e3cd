"""Two machines share a journal in a topic of Apache Kafka, and of the broker here; also with logins and ACLs."""

import asyncio
from pathlib import Path

import pytest
from tests.conformance.brokers import PROPERTIES, RunningBroker
from tests.team_journal import JOURNAL_ACLS, MODULE, Login, Scene, as_user, check_two_machines, check_two_users
from tools.apache_kafka import ApacheKafka

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(180)]

USERS = ("anna", "bob", *(one.lower() for one in JOURNAL_ACLS))
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": " ".join([MODULE, *(f'user_{one}="{one}-secret"' for one in USERS)])
    + ";",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def test_one_machine_is_killed_and_the_other_takes_the_change_back(
    broker: RunningBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    anybody = Login(broker.bootstrap_servers)
    scene = Scene(anybody)
    asyncio.run(scene.set_up())
    check_two_machines(scene, anybody, anybody, 1, tmp_path, monkeypatch, capsys)


@pytest.mark.usefixtures("apache_jars")
def test_two_users_with_the_acls_that_are_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ApacheKafka({**PROPERTIES, **SETTINGS}, listeners={"SASL": "SASL_PLAINTEXT"}) as kafka:
        logins = {name: as_user(kafka.address("SASL"), name) for name in USERS}
        check_two_users(Login(kafka.bootstrap_servers), logins, tmp_path, monkeypatch, capsys)
