"""Real clients with `group.protocol=consumer`, among themselves and beside classic ones (KIP-848)."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from tests.conformance.brokers import RunningBroker, wait_for
from tests.conformance.clients import CLIENTS, Client, ConsumerOptions, Sent
from tests.conformance.java_member import JavaMember
from tests.conformance.member import Member

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


def listed(admin: AdminClient, group: str) -> Any:
    return next(one for one in admin.list_consumer_groups().result(20).valid if one.group_id == group)


def group_type(admin: AdminClient, group: str) -> str:
    return str(listed(admin, group).type.name)


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


NEW_PROTOCOL: dict[str, Any] = {
    "group.protocol": "consumer",
    "session.timeout.ms": None,
    "heartbeat.interval.ms": None,
    "partition.assignment.strategy": None,
}


class Flow:
    """Records to a topic, and the members that read them; every record has a value of its own."""

    def __init__(self, broker: RunningBroker, admin: AdminClient, topic: str, stack: ExitStack) -> None:
        self._stack = stack
        self._broker = broker
        self._admin = admin
        self._topic = topic
        self._sent = 0
        self.members: list[Member | JavaMember] = []

    def member(self, client: Client, **extra: object) -> Member:
        """A member of the group named like the topic, not yet among `members`."""
        options = ConsumerOptions(group=self._topic, extra=extra)
        return Member(client, self._broker.bootstrap_servers, options, [self._topic])

    def java_member(self) -> JavaMember:
        """The Java consumer with the new protocol, not yet among `members`."""
        return JavaMember(self._broker.bootstrap_servers, self._topic, self._topic, group_protocol="consumer")

    def group_type(self) -> str:
        return group_type(self._admin, self._topic)

    def of_all_libraries(self) -> list[Member]:
        """A classic member of each, not yet among `members`."""
        return [self.member(CLIENTS[name]) for name in sorted(CLIENTS)]

    def join(self, *members: Member | JavaMember) -> None:
        """They are among `members` until they `leave`, at the latest at the end of the block."""
        for member in members:
            self._stack.enter_context(member)
        self.members += members
        self.share()
        self.send_and_commit()

    def leave(self, member: Member | JavaMember) -> None:
        member.stop()
        self.members.remove(member)

    def stop(self) -> None:
        for member in self.members:
            member.stop()

    def share(self) -> None:
        """Waits until the members own all partitions, each of them once, nobody has none, and the group is Stable: else
        members of the classic protocol may be about to give up what they have not committed.
        """

        def is_shared() -> bool:
            owned = [partition.partition for member in self.members for partition in member.assignment]
            has_all = sorted(owned) == list(range(PARTITIONS)) and all(member.assignment for member in self.members)
            return has_all and listed(self._admin, self._topic).state.name == "STABLE"

        wait_for(is_shared, "the assignment", 90)

    def send_and_commit(self) -> None:
        """Each record of another batch is read once and by one member; nothing else is. Then all is committed."""
        before = {member: len(member.records) for member in self.members}
        values = [b"%d" % (self._sent + index) for index in range(10 * PARTITIONS)]
        self._sent += len(values)
        records = [Sent(value, partition=index % PARTITIONS) for index, value in enumerate(values)]
        CLIENTS["confluent"].produce(self._broker.bootstrap_servers, self._topic, records)

        def read() -> list[bytes | None]:
            return [one.value for member in self.members for one in member.records[before[member] :]]

        wait_for(lambda: len(read()) >= len(values), "the records", 60)
        for member in self.members:
            member.commit()
        assert sorted(read(), key=str) == sorted(values, key=str)


@pytest.fixture
def flow(broker: RunningBroker, admin: AdminClient, topic: str) -> Iterator[Flow]:
    with ExitStack() as stack:
        yield Flow(broker, admin, topic, stack)


@pytest.mark.timeout(240)
def test_members_of_all_libraries_migrate_without_losing_or_repeating(flow: Flow) -> None:
    # GM-03, GM-04, GM-07, GO-06
    flow.join(*flow.of_all_libraries())
    new = flow.member(CLIENTS["confluent"], **NEW_PROTOCOL)
    flow.join(new)
    assert flow.group_type() == "CONSUMER"
    flow.leave(new)
    flow.share()
    assert flow.group_type() == "CLASSIC"
    flow.send_and_commit()
    flow.stop()


@pytest.mark.timeout(400)
def test_the_java_consumer_among_members_of_all_libraries(flow: Flow, apache_jars: None) -> None:
    # GM-02, GM-03, GM-04, GM-07, GO-06, K1099-12
    flow.join(*flow.of_all_libraries())
    java = flow.java_member()
    flow.join(java)
    assert flow.group_type() == "CONSUMER"
    librdkafka = flow.member(CLIENTS["confluent"], **NEW_PROTOCOL)
    flow.join(librdkafka)
    for leaving, kind in ((librdkafka, "CONSUMER"), (java, "CLASSIC")):
        flow.leave(leaving)
        flow.share()
        assert flow.group_type() == kind
        flow.send_and_commit()
    flow.stop()


@pytest.mark.timeout(400)
def test_java_members_take_a_group_over_and_give_it_back(flow: Flow, apache_jars: None) -> None:
    # GM-03, GM-07, GO-06: each classic member in turn makes place, as in an upgrade of a fleet, and comes back.
    old = flow.of_all_libraries()
    flow.join(*old)
    new: list[JavaMember] = []
    for leaving in old:
        flow.leave(leaving)
        new.append(flow.java_member())
        flow.join(new[-1])
    assert flow.group_type() == "CONSUMER"
    for name, java in zip(sorted(CLIENTS), new, strict=True):
        flow.leave(java)
        flow.join(flow.member(CLIENTS[name]))
    assert flow.group_type() == "CLASSIC"
    flow.stop()
