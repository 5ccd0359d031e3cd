"""Groups and topics are what they were after kill -9 of the broker. tests/durability kills it at any moment."""

from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from tests.conformance.brokers import RunningBroker, kinds_under_test, new_broker, wait_for
from tests.conformance.clients import CLIENTS, ConsumerOptions, Sent, TopicPartition
from tests.conformance.conftest import make_topic
from tests.conformance.member import Member

pytestmark = pytest.mark.timeout(120)

QUICK = {"log_level": 0, "reconnect.backoff.max.ms": 500}
"""A client that tries again before its request times out: it waits 10 s between attempts by default."""


@pytest.fixture(params=kinds_under_test())
def mortal(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    """A broker of the test's own, to be killed."""
    if request.param == "apache":
        request.getfixturevalue("apache_jars")
    made = new_broker(request.param)
    made.start()
    yield made
    made.stop()


def restart(broker: RunningBroker) -> None:
    broker.kill()
    broker.start()


def test_groups_come_back_as_they_were(mortal: RunningBroker) -> None:
    """GR-03, GP-04: members, generation and assignment; the members notice a pause and no rebalance."""
    admin = AdminClient({"bootstrap.servers": mortal.bootstrap_servers, **QUICK})
    make_topic(admin, "t", 4)
    options = ConsumerOptions(group="live", session_timeout_ms=20_000)

    def describe() -> Any:
        anew = AdminClient({"bootstrap.servers": mortal.bootstrap_servers, **QUICK})  # how they reconnect is their own
        found = anew.describe_consumer_groups(["live"], request_timeout=20)["live"].result(20)
        shares = {m.member_id: {p.partition for p in m.assignment.topic_partitions} for m in found.members}
        return found.state.name, found.partition_assignor, shares

    with (
        Member(CLIENTS["confluent"], mortal.bootstrap_servers, options, ["t"]) as a,
        Member(CLIENTS["confluent"], mortal.bootstrap_servers, options, ["t"]) as b,
    ):
        wait_for(lambda: len(a.assignment) == len(b.assignment) == 2, "the assignment")
        records = [Sent(b"%d" % i, partition=i % 4) for i in range(8)]
        CLIENTS["confluent"].produce(mortal.bootstrap_servers, "t", records)
        wait_for(lambda: len(a.records) == len(b.records) == 4, "the records")
        a.ask(lambda consumer: consumer.commit())
        before, changes = describe(), (len(a.assignments), len(b.assignments))
        restart(mortal)
        assert describe() == before
        CLIENTS["confluent"].produce(mortal.bootstrap_servers, "t", [Sent(b"new", partition=p) for p in range(4)])
        wait_for(lambda: len(a.records) == len(b.records) == 6, "the records after the restart")
        a.ask(lambda consumer: consumer.commit())
        assert (len(a.assignments), len(b.assignments)) == changes, "a rebalance"
        a.stop()
        b.stop()
    restart(mortal)
    assert describe()[0] == "EMPTY"
    consumer = CLIENTS["confluent"].consumer(mortal.bootstrap_servers, ConsumerOptions(group="live"))
    committed = {p: consumer.committed(TopicPartition("t", p)) for p in range(4)}
    consumer.close()
    assert {p: o for p, o in committed.items() if o is not None} == {p.partition: 3 for p in a.assignments[-1]}


def test_topics_come_back_as_they_were(mortal: RunningBroker) -> None:
    admin = AdminClient({"bootstrap.servers": mortal.bootstrap_servers, **QUICK})
    for name in ("kept", "gone"):
        make_topic(admin, name, 2)
    CLIENTS["confluent"].produce(mortal.bootstrap_servers, "kept", [Sent(b"one")])
    admin.delete_topics(["gone"])["gone"].result(20)
    (kept,) = admin.describe_topics(confluent_kafka.TopicCollection(["kept"])).values()
    cluster = admin.describe_cluster().result(20).cluster_id
    restart(mortal)
    (again,) = admin.describe_topics(confluent_kafka.TopicCollection(["kept"])).values()
    assert str(again.result(20).topic_id) == str(kept.result(20).topic_id)
    assert len(again.result(20).partitions) == 2
    assert "gone" not in admin.list_topics(timeout=10).topics
    assert admin.describe_cluster().result(20).cluster_id == cluster
    make_topic(admin, "gone", 1)  # the name is free, and empty
    consumer = CLIENTS["confluent"].consumer(mortal.bootstrap_servers, ConsumerOptions())
    assert consumer.bounds(TopicPartition("gone", 0)) == (0, 0)
    assert consumer.bounds(TopicPartition("kept", 0)) == (0, 1)
    consumer.close()
