"""The check of OffsetCommit, TxnOffsetCommit and OffsetDelete before the coordinator is called: whether the partitions
exist.
"""

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
        topic, partition: the classes of the response. has_ids: whether its topics have ids, too. partitions: the
            refused partitions, as responses.
    """

    def __init__(
        self, topic: Callable[..., Any], partition: Callable[[int, int], object], *, has_ids: bool = True
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.has_ids = has_ids
        self.partitions: dict[tuple[Any, ...], list[Any]] = {}

    def add(self, topic: Any, partitions: Iterable[Any], error: type[KafkaError] | KafkaError) -> None:
        refused = self.partitions.setdefault(self._key(topic), [])
        refused += [self.partition(one.partition_index, error.code) for one in partitions]

    def _key(self, topic: Any) -> tuple[Any, ...]:
        return (topic.name, topic.topic_id) if self.has_ids else (topic.name,)

    def topics(self, others: Iterable[Any] = ()) -> list[Any]:
        """The response's topics, in Apache Kafka's order: those refused here, then those that the coordinator answers
        (`others`). A topic of both is the coordinator's, with the partitions of both.
        """
        found = {key: self.topic(*key, partitions) for key, partitions in self.partitions.items()}
        for topic in others:
            key = self._key(topic)
            if key in found:
                topic.partitions = [*found[key].partitions, *topic.partitions]
            found[key] = topic
        return [*found.values()]


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
            topic.name = found.name
            if refused.has_ids:
                topic.topic_id = found.topic_id
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
