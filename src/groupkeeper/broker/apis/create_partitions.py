"""CreatePartitions (37)."""

from __future__ import annotations

import asyncio
from collections import Counter

from groupkeeper.broker.apis._access import require_topic
from groupkeeper.broker.apis.create_topics import MAX_PARTITIONS, TOO_LARGE, check_assignments
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.long_requests import in_turns
from groupkeeper.broker.quotas.client_quotas import Mutations
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import RootMessage

_STRICT_SINCE = 3


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.CreatePartitionsRequest)
    occurrences = Counter(topic.name for topic in request.topics)
    twice = [name for name, count in occurrences.items() if count > 1]
    results = [_refused(name, errors.InvalidRequest("Duplicate topic name.")) for name in twice]
    mutations = broker.quotas.mutations(call, strict_since=_STRICT_SINCE)
    room = MAX_PARTITIONS
    async for topic in in_turns(request.topics):
        if occurrences[topic.name] == 1:
            try:
                require_topic(broker, call, Operation.ALTER, topic.name)
                room -= _grow(broker, topic, mutations, room, validate_only=request.validate_only)
                results.append(m.CreatePartitionsTopicResult(topic.name))
                await asyncio.sleep(0)
            except errors.KafkaError as error:
                results.append(_refused(topic.name, error))
    return m.CreatePartitionsResponse(mutations.throttle_ms, results)


def refuse(call: Call, error: errors.KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, m.CreatePartitionsRequest)
    return m.CreatePartitionsResponse(results=[_refused(topic.name, error) for topic in request.topics])


def _refused(name: str, error: errors.KafkaError) -> m.CreatePartitionsTopicResult:
    return m.CreatePartitionsTopicResult(name, error.code, None if error.message == error.text else error.message)


def _grow(
    broker: Broker, wanted: m.CreatePartitionsTopic, mutations: Mutations, room: int, *, validate_only: bool
) -> int:
    """How many partitions are new; at most `room`."""
    topic = broker.topics.get(wanted.name)
    if topic is None:
        raise errors.UnknownTopicOrPartition
    count = len(topic.partitions)
    if wanted.count == count:
        raise errors.InvalidPartitions(f"Topic already has {count} partition(s).")
    if wanted.count < count:
        raise errors.InvalidPartitions(
            f"The topic {wanted.name} currently has {count} partition(s); {wanted.count} would not be an increase."
        )
    if wanted.assignments is not None:
        added = wanted.count - count
        if len(wanted.assignments) != added:
            raise errors.InvalidReplicaAssignment(
                f"Attempted to add {added} additional partition(s), but only {len(wanted.assignments)} assignment(s) "
                "were specified."
            )
        replicas = [one.broker_ids for one in wanted.assignments]
        factor = len(topic.partitions[0].placement.replicas)
        check_assignments(broker.topics.placements, replicas, count, factor)
    if wanted.count - count > room:
        raise errors.PolicyViolation(TOO_LARGE)  # Apache Kafka says UNKNOWN_SERVER_ERROR
    mutations.count(wanted.count - count)
    if not validate_only:
        assigned = None if wanted.assignments is None else [one.broker_ids for one in wanted.assignments]
        broker.topics.grow(topic, wanted.count, assigned)
    return wanted.count - count
