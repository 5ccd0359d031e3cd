"""Groups of real consumers: members join, leave, crash and come back, and every partition has exactly one owner."""

import time
from collections.abc import Sequence

import pytest
from confluent_kafka.admin import AdminClient
from tests.conformance.brokers import RunningBroker, wait_for
from tests.conformance.clients import CLIENTS, Client, ConsumerOptions, Sent, TopicPartition
from tests.conformance.member import Member, MemberProgram

PARTITIONS = 6
EVERY_STRATEGY = [(client, strategy) for client in CLIENTS.values() for strategy in client.strategies]


def all_of(topic: str) -> set[TopicPartition]:
    return {TopicPartition(topic, p) for p in range(PARTITIONS)}


def wait_for_shares(members: Sequence[Member | MemberProgram], topic: str, timeout: float = 30) -> None:
    """Until the members own all partitions, each of them once and every member its fair share."""

    def is_shared() -> bool:
        owned = [p for m in members for p in m.assignment]
        fair = {PARTITIONS // len(members)}
        return len(owned) == PARTITIONS and set(owned) == all_of(topic) and {len(m.assignment) for m in members} == fair

    wait_for(is_shared, f"{len(members)} members sharing {topic}", timeout)


def group_state(admin: AdminClient, group: str) -> tuple[str, int]:
    found = admin.describe_consumer_groups([group], request_timeout=20)[group].result(20)
    return found.state.name, len(found.members)


@pytest.mark.parametrize(("client", "strategy"), EVERY_STRATEGY, ids=lambda v: getattr(v, "name", v))
def test_members_join_and_leave(
    broker: RunningBroker, admin: AdminClient, topic: str, client: Client, strategy: str
) -> None:
    options = ConsumerOptions(group=topic, strategy=strategy)
    with Member(client, broker.bootstrap_servers, options, [topic]) as a:
        wait_for_shares([a], topic)
        with Member(client, broker.bootstrap_servers, options, [topic]) as b:
            wait_for_shares([a, b], topic)
            with Member(client, broker.bootstrap_servers, options, [topic]) as c:
                wait_for_shares([a, b, c], topic)
                assert wait_for(lambda: group_state(admin, topic) == ("STABLE", 3), "a stable group of three")
                b.stop()
                wait_for_shares([a, c], topic)
                c.stop()
        wait_for_shares([a], topic)
        a.stop()
    wait_for(lambda: group_state(admin, topic) == ("EMPTY", 0), "an empty group")


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_nothing_is_lost_or_repeated_across_rebalances(
    broker: RunningBroker, topic: str, client: Client, strategy: str
) -> None:
    """Members that commit before they give partitions away hand over at exactly that offset."""
    if strategy not in client.strategies:
        pytest.skip(f"{client.name} has no {strategy}")
    options = ConsumerOptions(group=topic, strategy=strategy, auto_commit=True)
    client.produce(broker.bootstrap_servers, topic, [Sent(b"%d" % i, partition=i % PARTITIONS) for i in range(600)])
    with (
        Member(client, broker.bootstrap_servers, options, [topic]) as a,
        Member(client, broker.bootstrap_servers, options, [topic]) as b,
    ):
        wait_for_shares([a, b], topic)
        wait_for(lambda: len(a.records) + len(b.records) >= 600, "the first records")
        b.stop()
        client.produce(
            broker.bootstrap_servers, topic, [Sent(b"%d" % i, partition=i % PARTITIONS) for i in range(600, 1200)]
        )
        wait_for(lambda: len(a.records) + len(b.records) >= 1200, "the later records")
        a.stop()
    values = [int(r.value or b"-1") for m in (a, b) for r in m.records]
    assert set(values) == set(range(1200))
    # A member that lost partitions without a chance to commit may read again, but these left in order.
    assert len(values) == len(set(values))


def test_partitions_of_a_crashed_member_go_to_the_others(
    broker: RunningBroker, admin: AdminClient, topic: str, client: Client
) -> None:
    options = ConsumerOptions(group=topic, session_timeout_ms=2000)
    with (
        Member(client, broker.bootstrap_servers, options, [topic]) as a,
        MemberProgram(client, broker.bootstrap_servers, options, [topic]) as b,
    ):
        wait_for_shares([a, b], topic)
        b.kill()
        began = time.monotonic()
        wait_for_shares([a], topic)
        assert time.monotonic() - began > 1.0, "taken away before the session timed out"
        assert group_state(admin, topic) == ("STABLE", 1)
        a.stop()


def test_a_static_member_comes_back_without_a_rebalance(
    broker: RunningBroker, admin: AdminClient, topic: str, client: Client
) -> None:
    first = ConsumerOptions(group=topic, instance_id="one", session_timeout_ms=20_000)
    second = ConsumerOptions(group=topic, instance_id="two", session_timeout_ms=20_000)
    with Member(client, broker.bootstrap_servers, second, [topic]) as b:
        with Member(client, broker.bootstrap_servers, first, [topic]) as a:
            wait_for_shares([a, b], topic)
            a.stop()
        owned, seen = a.assignments[-1], len(b.assignments)
        assert group_state(admin, topic) == ("STABLE", 2)  # a static member doesn't leave when it is closed
        with Member(client, broker.bootstrap_servers, first, [topic]) as again:
            wait_for(lambda: again.assignment == owned, "the same partitions as before")
            found = admin.describe_consumer_groups([topic])[topic].result(20)
            assert {m.group_instance_id for m in found.members} == {"one", "two"}
            assert len(b.assignments) == seen, "the other member was rebalanced"
            again.stop()
        b.stop()


def test_a_second_owner_of_an_instance_id_fences_the_first(broker: RunningBroker, topic: str) -> None:
    options = ConsumerOptions(group=topic, instance_id="twin", session_timeout_ms=20_000)
    client = CLIENTS["confluent"]
    with Member(client, broker.bootstrap_servers, options, [topic]) as a:
        wait_for_shares([a], topic)
        with Member(client, broker.bootstrap_servers, options, [topic]) as b:
            wait_for_shares([b], topic)
            wait_for(lambda: a.error is not None, "the end of the first")
            assert "FENCED" in str(a.error) or "fenced" in str(a.error)
            b.stop()


def test_a_group_of_all_libraries_together(broker: RunningBroker, admin: AdminClient, topic: str) -> None:
    """Range is the one strategy that all three libraries call by the same name and compute alike."""
    options = ConsumerOptions(group=topic, strategy="range")
    servers = broker.bootstrap_servers
    with (
        Member(CLIENTS["confluent"], servers, options, [topic]) as a,
        Member(CLIENTS["kafka-python"], servers, options, [topic]) as b,
        Member(CLIENTS["aiokafka"], servers, options, [topic]) as c,
    ):
        members = [a, b, c]
        wait_for_shares(members, topic)
        CLIENTS["aiokafka"].produce(servers, topic, [Sent(b"%d" % i, partition=i % PARTITIONS) for i in range(60)])
        wait_for(lambda: sum(len(m.records) for m in members) == 60, "each record once")
        assert all(TopicPartition(r.topic, r.partition) in m.assignment for m in members for r in m.records)
        assert group_state(admin, topic) == ("STABLE", 3)
        for m in members:
            m.stop()


def test_strategies_that_do_not_meet_are_refused(broker: RunningBroker, admin: AdminClient, topic: str) -> None:
    with Member(CLIENTS["confluent"], broker.bootstrap_servers, ConsumerOptions(topic, "range"), [topic]) as a:
        wait_for_shares([a], topic)
        with Member(CLIENTS["confluent"], broker.bootstrap_servers, ConsumerOptions(topic, "roundrobin"), [topic]) as b:
            wait_for(lambda: b.error is not None, "INCONSISTENT_GROUP_PROTOCOL")
            assert "INCONSISTENT_GROUP_PROTOCOL" in str(b.error)
        assert a.assignment == all_of(topic)
        a.stop()
