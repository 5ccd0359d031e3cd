"""OffsetForLeaderEpoch (23): where an epoch of a partition's leader ends."""

from __future__ import annotations

from groupkeeper.broker.apis._access import may_cluster, require_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError, KafkaStorageError, UnknownTopicOrPartition
from groupkeeper.protocol.messages.offset_for_leader_epoch_response import EpochEndOffset
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.OffsetForLeaderEpochRequest)
    topics = []
    may_all = may_cluster(broker, call, Operation.CLUSTER_ACTION)
    for wanted in request.topics:
        parts = []
        for part in wanted.partitions:
            try:
                if not may_all:
                    require_topic(broker, call, Operation.DESCRIBE, wanted.topic)
                parts.append(_end(broker.topics.partition(wanted.topic, part.partition), part, call.node))
            except KafkaError as error:
                parts.append(EpochEndOffset(error.code, part.partition))
        topics.append(m.OffsetForLeaderTopicResult(wanted.topic, parts))
    return m.OffsetForLeaderEpochResponse(topics=topics)


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, m.OffsetForLeaderEpochRequest)
    return m.OffsetForLeaderEpochResponse(
        topics=[
            m.OffsetForLeaderTopicResult(
                topic.topic, [EpochEndOffset(error.code, part.partition) for part in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _end(log: PartitionLog | None, part: m.OffsetForLeaderPartition, node: int) -> EpochEndOffset:
    if log is None:
        raise UnknownTopicOrPartition
    log = log.seen_by(node)
    placement = log.placement.known_to(node)
    placement.require_leader(node, part.current_leader_epoch)
    if log.failure is not None:
        raise KafkaStorageError
    return EpochEndOffset(0, part.partition, *placement.end_of(part.leader_epoch, log.log_end_offset))
