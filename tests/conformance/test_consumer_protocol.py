"""Real clients with `group.protocol=consumer`, among themselves and beside classic ones (KIP-848)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from tests.conformance.brokers import RunningBroker

pytestmark = pytest.mark.conformance
PARTITIONS = 6
PATIENCE_S = 40.0


@contextmanager
def consumer(broker: RunningBroker, topic: str, protocol: str) -> Iterator[Consumer]:
    """A member of the group named like the topic."""
    member = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": topic,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    member.subscribe([topic])
    try:
        yield member
    finally:
        member.close()


def poll_until(members: list[Consumer], is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_done():
        assert time.monotonic() < deadline, [len(member.assignment()) for member in members]
        for member in members:
            member.poll(0.1)


def share(members: list[Consumer]) -> None:
    """Polls until the members own all partitions, each of them once and everybody as many as the others."""

    def is_shared() -> bool:
        owned = [partition.partition for member in members for partition in member.assignment()]
        sizes = {len(member.assignment()) for member in members}
        return sorted(owned) == list(range(PARTITIONS)) and sizes == {PARTITIONS // len(members)}

    poll_until(members, is_shared)


def group_type(admin: AdminClient, group: str) -> str:
    listed = admin.list_consumer_groups().result(20).valid
    return next(str(one.type.name) for one in listed if one.group_id == group)


def test_a_group_migrates_up_and_down_under_its_members(broker: RunningBroker, admin: AdminClient, topic: str) -> None:
    # GN-06, GM-03, GM-04, GM-07
    with consumer(broker, topic, "classic") as old:
        share([old])
        with consumer(broker, topic, "consumer") as new:
            share([old, new])
            assert group_type(admin, topic) == "CONSUMER"
            with consumer(broker, topic, "consumer") as third:
                share([old, new, third])
        share([old])
        assert group_type(admin, topic) == "CLASSIC"


def test_members_of_the_new_protocol_alone(broker: RunningBroker, admin: AdminClient, topic: str) -> None:
    # GN-06, GN-13, GN-16
    with ExitStack() as stack:
        members = [stack.enter_context(consumer(broker, topic, "consumer")) for _ in range(3)]
        share(members)
    assert group_type(admin, topic) == "CONSUMER"
