"""DescribeProducers (61): the state of idempotent producers in a partition."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import may_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.DescribeProducersRequest)
    topics = []
    for wanted in request.topics:
        if may_topic(broker, call, Operation.READ, wanted.name):
            parts = [
                _describe(broker.topics.partition(wanted.name, index), index, call.node)
                for index in wanted.partition_indexes
            ]
        else:
            parts = [
                m.PartitionResponse(index, errors.TopicAuthorizationFailed.code) for index in wanted.partition_indexes
            ]
        topics.append(m.TopicResponse(wanted.name, parts))
    return m.DescribeProducersResponse(topics=topics)


def refuse(call: Call, error: errors.KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, m.DescribeProducersRequest)
    return m.DescribeProducersResponse(
        topics=[
            m.TopicResponse(topic.name, [m.PartitionResponse(index, error.code) for index in topic.partition_indexes])
            for topic in request.topics
        ]
    )


def _describe(log: PartitionLog | None, index: int, node: int) -> m.PartitionResponse:
    if log is None:
        return m.PartitionResponse(index, errors.UnknownTopicOrPartition.code)
    if node not in log.placement.replicas:
        return m.PartitionResponse(index, errors.NotLeaderOrFollower.code)
    states = [
        m.ProducerState(
            producer_id,
            producer.epoch,
            producer.last_sequence,
            producer.last_timestamp,
            producer.coordinator_epoch,
            -1 if producer.transaction_start is None else producer.transaction_start,
        )
        for producer_id, producer in log.producers.items()
    ]
    return m.PartitionResponse(index, active_producers=states)
