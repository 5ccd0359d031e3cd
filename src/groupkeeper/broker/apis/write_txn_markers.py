"""WriteTxnMarkers (27): ends transactions in partitions; for operators that abort a hanging one."""

from __future__ import annotations

from groupkeeper.broker.apis._access import may_cluster, require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.coordination.runtime import OFFSETS_TOPIC
from groupkeeper.broker.coordination.transaction_marker import Marker
from groupkeeper.protocol.errors import NONE, KafkaError, UnknownTopicOrPartition
from groupkeeper.protocol.messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from groupkeeper.protocol.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, WriteTxnMarkersRequest)
    if not may_cluster(broker, call, Operation.ALTER):
        require_cluster(broker, call, Operation.CLUSTER_ACTION)
    return WriteTxnMarkersResponse([_write(broker, marker, call.node) for marker in request.markers])


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, WriteTxnMarkersRequest)
    return WriteTxnMarkersResponse(
        [
            WritableTxnMarkerResult(
                marker.producer_id,
                [
                    WritableTxnMarkerTopicResult(
                        topic.name,
                        [WritableTxnMarkerPartitionResult(index, error.code) for index in topic.partition_indexes],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _write(broker: Broker, wanted: WritableTxnMarker, node: int) -> WritableTxnMarkerResult:
    marker = Marker(
        wanted.producer_id,
        wanted.producer_epoch,
        wanted.transaction_result,
        wanted.coordinator_epoch,
        wanted.transaction_version,
    )
    return WritableTxnMarkerResult(
        wanted.producer_id,
        [
            WritableTxnMarkerTopicResult(
                topic.name,
                [
                    WritableTxnMarkerPartitionResult(index, _write_one(broker, topic.name, index, marker, node))
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
