"""WriteTxnMarkers (27): ends transactions in partitions; for operators that abort a hanging one."""

from __future__ import annotations

import asyncio

from groupkeeper.broker.apis._access import may_cluster, require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.coordination.runtime import OFFSETS_TOPIC
from groupkeeper.broker.coordination.transaction_marker import Marker
from groupkeeper.broker.coordination.unsettled import Unsettled
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE, KafkaError, NotLeaderOrFollower, RequestTimedOut, UnknownTopicOrPartition
from groupkeeper.protocol.primitives import RootMessage

_Lagging = list[tuple[m.WritableTxnMarkerPartitionResult, Unsettled]]
"""Markers that replicas in sync lack, with what is to be answered."""


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.WriteTxnMarkersRequest)
    if not may_cluster(broker, call, Operation.ALTER):
        require_cluster(broker, call, Operation.CLUSTER_ACTION)
    lagging: _Lagging = []
    answer = m.WriteTxnMarkersResponse([_write(broker, marker, call.node, lagging) for marker in request.markers])
    deadline_s = asyncio.get_running_loop().time() + broker.config.request_timeout_ms / 1000
    for result, written in lagging:
        if not await written.decided(deadline_s):
            result.error_code = RequestTimedOut.code
        elif written.has_moved:
            result.error_code = NotLeaderOrFollower.code
    return answer


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


def _write(broker: Broker, wanted: m.WritableTxnMarker, node: int, lagging: _Lagging) -> m.WritableTxnMarkerResult:
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
                [_write_one(broker, topic.name, index, marker, node, lagging) for index in topic.partition_indexes],
            )
            for topic in wanted.topics
        ],
    )


def _write_one(
    broker: Broker, topic: str, index: int, marker: Marker, node: int, lagging: _Lagging
) -> m.WritableTxnMarkerPartitionResult:
    log = broker.topics.partition(topic, index)
    result = m.WritableTxnMarkerPartitionResult(index, NONE)
    try:
        if log is None or (topic == OFFSETS_TOPIC and not broker.groups.shards):
            raise UnknownTopicOrPartition
        log.placement.require_leader(node)
        written = broker.transactions.write_marker((topic, index), marker)
        if written is not None:
            lagging.append((result, written))
    except KafkaError as error:
        result.error_code = error.code
    return result
