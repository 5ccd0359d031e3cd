"""ACLs in one line of text, for tests and the command line."""

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from tests.broker.security.logins import of_librdkafka

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker import Broker
from groupkeeper.broker.authorizer import Authorizer
from groupkeeper.broker.security.acl_texts import acls_of
from groupkeeper.broker.security.acls import Acl
from groupkeeper.testing.background import BackgroundBroker

TOPIC, GROUP, CLUSTER = 2, 3, 4
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3


@pytest.mark.parametrize(
    ("line", "acls"),
    [
        ("alice READ GROUP billing-*", [Acl(GROUP, "billing-", PREFIXED, "User:alice", "*", 3, ALLOW)]),
        ("User:CN=a all topic *", [Acl(TOPIC, "*", LITERAL, "User:CN=a", "*", 2, ALLOW)]),
        ("DENY * WRITE TOPIC t FROM 10.0.0.0/8", [Acl(TOPIC, "t", LITERAL, "User:*", "10.0.0.0/8", 4, DENY)]),
        (
            "allow bob READ,DELETE GROUP a group",
            [Acl(GROUP, "a group", LITERAL, "User:bob", "*", one, ALLOW) for one in (3, 6)],
        ),
        ("bob ALTER CLUSTER", [Acl(CLUSTER, "kafka-cluster", LITERAL, "User:bob", "*", 7, ALLOW)]),
        ("bob ALTER CLUSTER FROM ::1", [Acl(CLUSTER, "kafka-cluster", LITERAL, "User:bob", "::1", 7, ALLOW)]),
    ],
)
def test_lines(line: str, acls: list[Acl]) -> None:
    assert acls_of(line) == acls


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "expected"),
        ("alice READ", "expected"),
        ("alice READ GROUPS g", "GROUPS is unknown, expected one of TOPIC, GROUP, "),
        ("alice LOOK GROUP g", "LOOK is unknown, expected one of ALL, READ, "),
        ("alice READ GROUP", "Invalid empty resource name"),
        ("alice READ CLUSTER mine", "kafka-cluster"),
    ],
)
def test_lines_that_are_none(line: str, says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        acls_of(line)


def test_a_broker_with_users_and_acls() -> None:
    users = {"alice": "alice-secret", "bob": "bob-secret"}
    with BackgroundBroker(users=users, acls=["alice CREATE,DESCRIBE TOPIC a-*"]) as broker:
        for user, topics in (("alice", ["a-1"]), ("bob", [])):
            client = AdminClient(of_librdkafka(broker.bootstrap_servers, user, users[user]))
            for name in ("a-1", "b"):
                if name in topics:
                    client.create_topics([NewTopic(name, 1, 1)])[name].result(20)
                else:
                    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
                        client.create_topics([NewTopic(name, 1, 1)])[name].result(20)
            assert list(client.list_topics(timeout=20).topics) == topics


def test_either_acls_or_an_authorizer() -> None:
    with pytest.raises(InvalidSetting, match="either"):
        Broker(acls=["alice READ TOPIC t"], authorizer=Authorizer())
