"""A request of which a topic is refused reaches the coordinator as it came, but for that topic."""

import pytest
from tests.unit.broker.peer import Denies, Peer

from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.coordination.runtime import GroupRuntime
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import Message

NAMES = ("t", "u")
"""Topics of the requests; u is refused."""


@pytest.fixture
def passed_on(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """The requests that have reached coordinators."""
    heard: list[Message] = []

    class Heard(GroupRuntime):
        def reply(self, group_id: str, request: Message, call: Call) -> Message:
            heard.append(request)
            return super().reply(group_id, request, call)

    monkeypatch.setattr("groupkeeper.broker.broker.GroupRuntime", Heard)
    return heard


def filled(message: Message, **given: object) -> Message:
    """The message with a value of its own in each field; `given`: those whose values are given."""
    for number, name in enumerate(message.__slots__, start=7):
        default = getattr(message, name)
        if name in given:
            setattr(message, name, given[name])
        elif isinstance(default, bool):
            setattr(message, name, True)
        elif isinstance(default, int):
            setattr(message, name, number)
        elif isinstance(default, str) or default is None:
            setattr(message, name, f"value {number}")
    return message


def fields(message: Message) -> dict[str, object]:
    return {name: getattr(message, name) for name in message.__slots__ if name != "topics"}


def names(message: object) -> list[str]:
    return [topic.name for topic in message.topics]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("version", "absent"), [(2, {"group_instance_id": None}), (9, {"retention_time_ms": -1})])
async def test_a_commit(passed_on: list[Message], version: int, absent: dict[str, object]) -> None:
    topics = _topics(m.OffsetCommitRequestTopic, m.OffsetCommitRequestPartition)
    sent = filled(m.OffsetCommitRequest(), topics=topics, **absent)
    async with Broker() as broker:
        await _peer(broker).ask(sent, version)  # type: ignore[arg-type]
    (found,) = passed_on
    assert (fields(found), names(found)) == (fields(sent), ["t"])


async def test_a_commit_in_a_transaction(passed_on: list[Message]) -> None:
    topics = _topics(m.TxnOffsetCommitRequestTopic, m.TxnOffsetCommitRequestPartition)
    async with Broker() as broker:
        peer = _peer(broker)
        producer = await peer.ask(m.InitProducerIdRequest("x", 60_000), 5)
        known = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        sent = filled(m.TxnOffsetCommitRequest(), transactional_id="x", topics=topics, **known)
        await peer.ask(sent, 5)  # type: ignore[arg-type]
    (found,) = passed_on
    assert (fields(found), names(found)) == (fields(sent), ["t"])


async def test_a_fetch(passed_on: list[Message]) -> None:
    topics = [m.OffsetFetchRequestTopics(name, partition_indexes=[0]) for name in NAMES]
    group = filled(m.OffsetFetchRequestGroup(), topics=topics)
    sent = m.OffsetFetchRequest(groups=[group], require_stable=True)  # type: ignore[list-item]
    async with Broker() as broker:
        await _peer(broker).ask(sent, 9)
    (found,) = passed_on
    assert isinstance(found, m.OffsetFetchRequest)
    assert found.require_stable
    assert (fields(found.groups[0]), names(found.groups[0])) == (fields(group), ["t"])


def _topics(topic: type, partition: type) -> list[object]:
    return [topic(name, partitions=[partition(0, 5)]) for name in NAMES]


def _peer(broker: Broker) -> Peer:
    for name in NAMES:
        broker.topics.create(name, 1, {})
    broker.groups.ensure_topic()
    broker.transactions.ensure_topic()
    broker.authorizer = Denies((Operation.READ, ResourceType.TOPIC, "u"), (Operation.DESCRIBE, ResourceType.TOPIC, "u"))
    return Peer(broker)
