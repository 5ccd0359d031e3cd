"""The check of OffsetCommit and TxnOffsetCommit before the coordinator is called: whether the partitions exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.topics import Topic
from groupkeeper.protocol.errors import KafkaError, TopicAuthorizationFailed, UnknownTopicId, UnknownTopicOrPartition

_READ: Final = Operation.READ
_TOPIC: Final = ResourceType.TOPIC


class Refused:
    """Partitions that are refused without asking the coordinator, by name and id of their topic.

    Attributes:
        topic, partition: the classes of the response. partitions: the refused partitions, as responses.
    """

    def __init__(self, topic: Callable[[str, bytes, list[Any]], Any], partition: Callable[[int, int], object]) -> None:
        self.topic = topic
        self.partition = partition
        self.partitions: dict[tuple[str, bytes], list[Any]] = {}

    def add(self, topic: Any, partitions: Iterable[Any], error: type[KafkaError] | KafkaError) -> None:
        refused = self.partitions.setdefault((topic.name, topic.topic_id), [])
        refused += [self.partition(one.partition_index, error.code) for one in partitions]

    def topics(self, others: Iterable[Any] = ()) -> list[Any]:
        """The response's topics, in Apache Kafka's order: partitions refused here, then the coordinator's answers."""
        refused = {tp: self.topic(*tp, partitions) for tp, partitions in self.partitions.items()}
        return joined(refused, others, lambda topic: (topic.name, topic.topic_id))


def joined(refused: dict[Any, Any], answered: Iterable[Any], key: Callable[[Any], object]) -> list[Any]:
    """The topics that are refused here, then those that the coordinator answers. A topic of both is the coordinator's,
    with the partitions of both.
    """
    for topic in answered:
        before = refused.get(key(topic))
        if before is not None:
            topic.partitions = [*before.partitions, *topic.partitions]
        refused[key(topic)] = topic
    return [*refused.values()]


def known_topics(
    broker: Broker, call: Call, topics: Iterable[Any], refused: Refused, *, is_by_id: bool = False
) -> list[Any]:
    """The topics of a request that exist and that the caller may read, without missing partitions; adds others to
    `refused`. Each gets both its name and its id, as the id is stored with the offset, whatever the request has.
    """
    known = []
    for topic in topics:
        partitions = topic.partitions
        try:
            found = _resolve(broker, call, topic, is_by_id=is_by_id)
        except KafkaError as error:
            refused.add(topic, partitions, error)
            continue
        count = len(found.partitions)
        for one in partitions:
            if not 0 <= one.partition_index < count:
                unknown = [one for one in partitions if not 0 <= one.partition_index < count]
                refused.add(found, unknown, UnknownTopicOrPartition)
                topic.partitions = [one for one in partitions if 0 <= one.partition_index < count]
                break
        if topic.partitions:
            topic.name, topic.topic_id = found.name, found.topic_id
            known.append(topic)
    return known


def _resolve(broker: Broker, call: Call, topic: Any, *, is_by_id: bool) -> Topic:
    """Finds an existing topic that the caller may read. Raises `KafkaError`."""
    found = broker.topics.by_id(topic.topic_id) if is_by_id else broker.topics.get(topic.name)
    if is_by_id and found is None:
        raise UnknownTopicId
    name = topic.name if found is None else found.name
    if not broker.authorizer.allows(call, _READ, _TOPIC, name):
        raise TopicAuthorizationFailed
    if found is None:
        raise UnknownTopicOrPartition
    return found
