"""WriteTxnMarkers (27): ends transactions in partitions; for operators that abort a hanging one."""

from __future__ import annotations

from groupkeeper.broker.apis._access import may_cluster, require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.coordination.runtime import OFFSETS_TOPIC
from groupkeeper.broker.coordination.transaction_marker import Marker
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE, KafkaError, UnknownTopicOrPartition
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.WriteTxnMarkersRequest)
    if not may_cluster(broker, call, Operation.ALTER):
        require_cluster(broker, call, Operation.CLUSTER_ACTION)
    return m.WriteTxnMarkersResponse([_write(broker, marker, call.node) for marker in request.markers])


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, m.WriteTxnMarkersRequest)
    return m.WriteTxnMarkersResponse(
        [
            m.WritableTxnMarkerResult(
                marker.producer_id,
                [
                    m.WritableTxnMarkerTopicResult(
                        topic.name,
                        [m.WritableTxnMarkerPartitionResult(index, error.code) for index in topic.partition_indexes],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _write(broker: Broker, wanted: m.WritableTxnMarker, node: int) -> m.WritableTxnMarkerResult:
    marker = Marker(
        wanted.producer_id,
        wanted.producer_epoch,
        wanted.transaction_result,
        wanted.coordinator_epoch,
        wanted.transaction_version,
    )
    return m.WritableTxnMarkerResult(
        wanted.producer_id,
        [
            m.WritableTxnMarkerTopicResult(
                topic.name,
                [
                    m.WritableTxnMarkerPartitionResult(index, _write_one(broker, topic.name, index, marker, node))
                    for index in topic.partition_indexes
                ],
            )
            for topic in wanted.topics
        ],
    )


def _write_one(broker: Broker, topic: str, index: int, marker: Marker, node: int) -> int:
    log = broker.topics.partition(topic, index)
    if log is None or (topic == OFFSETS_TOPIC and not broker.groups.shards):
        return UnknownTopicOrPartition.code
    try:
        log.placement.require_leader(node)
        broker.transactions.write_marker((topic, index), marker)
    except KafkaError as error:
        return error.code
    return NONE
