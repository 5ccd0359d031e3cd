"""Produce (0): appends record batches, idempotent producers included."""

from __future__ import annotations

import asyncio
from itertools import chain
from time import perf_counter

from groupkeeper.broker.apis._access import may_use, require_topic
from groupkeeper.broker.apis._committed import LEADERS_SINCE, Uncommitted, committed, set_leader
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.produced import Produced, RefusedRecords
from groupkeeper.broker.log.topics import Topic
from groupkeeper.broker.network.closing import CloseConnection
from groupkeeper.protocol import errors
from groupkeeper.protocol.compression import MAX_DECOMPRESSED
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from groupkeeper.protocol.messages.produce_response import (
    BatchIndexAndErrorMessage,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from groupkeeper.protocol.primitives import RootMessage
from groupkeeper.protocol.record import BatchHeader

_ABORTABLE_SINCE = 11
_ADDS_SINCE = 12
_TOPIC_IDS_SINCE = 13
_NOT_ADDED = "Partition was not added to the transaction"
_MAGIC_AT = 16
_ATTRIBUTES_AT = 22
_TRANSACTIONAL = 0x10
_ADMIN_CLIENT_ID = "__admin_client"
_USUAL_RATIO = 64
"""Decompressed bytes allowed for each byte of a request, in addition to the limit of a single batch."""
_TURN_S = 0.01


class _NotInTransaction(errors.InvalidTxnState):
    """The partition is not part of the producer's transaction."""


async def handle(broker: Broker, call: Call, request: ProduceRequest) -> RootMessage | None:
    _require_allowed(broker, call, request)
    room: int | None = None
    turn_end = perf_counter() + _TURN_S
    responses = []
    leaders: list[int] = []
    waiting: list[Uncommitted] = []
    late: list[tuple[Produced, PartitionProduceResponse]] = []
    for wanted in request.topic_data:
        parts = []
        by_id = call.api_version >= _TOPIC_IDS_SINCE
        topic = broker.topics.by_id(wanted.topic_id) if by_id else broker.topics.get(wanted.name)
        for part in wanted.partition_data:
            if perf_counter() >= turn_end:
                await asyncio.sleep(0)
                turn_end = perf_counter() + _TURN_S
            log = topic.partition(part.index) if topic is not None else None
            log = log.seen_by(call.node) if log is not None else None
            parts.append(response := PartitionProduceResponse(part.index))
            try:
                produced = _produced(broker, call, topic, log, wanted, part)
                if not produced.read():
                    room = _room_for(request) if room is None else room
                    await broker.topics.long_reads.run(produced.read_all, min(room, MAX_DECOMPRESSED))
                    room -= len(produced.content)
                if not _append(broker, call, produced, response, waiting):
                    late.append((produced, response))
            except KafkaError as error:
                leaders += _refuse(response, error, log, call)
        responses.append(TopicProduceResponse(wanted.name, wanted.topic_id, parts))
    if late:
        refused = await asyncio.gather(*[_append_added(broker, call, *one, waiting) for one in late])
        leaders += chain(*refused)
    if waiting:
        await committed(waiting, request.timeout_ms)
        leaders += [one.refuse_with_leader(call) for one in waiting if one.has_moved]
    if leaders:
        return _with_leaders(broker, call, responses, leaders)
    return None if request.acks == 0 else ProduceResponse(responses)


def _with_leaders(
    broker: Broker, call: Call, responses: list[TopicProduceResponse], leaders: list[int]
) -> ProduceResponse:
    """The response, with the addresses of the nodes that lead moved partitions."""
    request = call.message
    assert isinstance(request, ProduceRequest)
    if request.acks == 0:
        raise CloseConnection(f"a Produce request without acknowledgement failed: {errors.NotLeaderOrFollower.name}")
    endpoints = broker.endpoints(call, leaders) if call.api_version >= LEADERS_SINCE else ()
    return ProduceResponse(responses, 0, [NodeEndpoint(*one) for one in endpoints])


def _require_allowed(broker: Broker, call: Call, request: ProduceRequest) -> None:
    if request.acks not in (0, 1, -1):
        raise errors.InvalidRequiredAcks
    if _has_transactional(request):  # then the whole request needs the transactional id
        transactional_id = request.transactional_id
        if transactional_id is None or not may_use(broker, call, transactional_id):
            raise errors.TransactionalIdAuthorizationFailed


def _has_transactional(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for part in topic.partition_data:
            if _is_transactional(part.records):
                return True
    return False


def _room_for(request: ProduceRequest) -> int:
    """The limit of decompressed bytes of all large batches of a request."""
    size = sum(len(part.records or b"") for topic in request.topic_data for part in topic.partition_data)
    return MAX_DECOMPRESSED + _USUAL_RATIO * size


def refuse(call: Call, request: ProduceRequest, error: KafkaError) -> ProduceResponse:
    if request.acks == 0:
        # The producer waits for no response; a closed connection signals the error.
        raise CloseConnection(f"a Produce request without acknowledgement failed: {error.name}")
    return ProduceResponse(
        [
            TopicProduceResponse(
                topic.name,
                topic.topic_id,
                [PartitionProduceResponse(part.index, error.code, -1) for part in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


def _is_transactional(records: bytes | None) -> bool:
    """Whether the first batch is transactional; batches of old formats never are."""
    if records is None or len(records) <= _ATTRIBUTES_AT or records[_MAGIC_AT] < 2:
        return False
    return bool(records[_ATTRIBUTES_AT] & _TRANSACTIONAL)


def _produced(
    broker: Broker,
    call: Call,
    topic: Topic | None,
    log: PartitionLog | None,
    wanted: TopicProduceData,
    part: PartitionProduceData,
) -> Produced:
    """The batch for a partition, with a checked header. Raises `KafkaError`."""
    if topic is None and call.api_version >= _TOPIC_IDS_SINCE:
        raise errors.UnknownTopicId
    require_topic(broker, call, Operation.WRITE, wanted.name if topic is None else topic.name)
    if topic is None or log is None:
        raise errors.UnknownTopicOrPartition
    if topic.is_internal and call.client_id != _ADMIN_CLIENT_ID:
        raise errors.InvalidTopicException
    return Produced(part.records, log, call.api_version)


def _append(
    broker: Broker, call: Call, produced: Produced, response: PartitionProduceResponse, waiting: list[Uncommitted]
) -> bool:
    """Appends a batch. Returns False, without appending, while replicas of the transaction coordinator lack the
    partition. Raises `KafkaError`.
    """
    request = call.message
    assert isinstance(request, ProduceRequest)
    log = produced.log
    placement = log.placement
    if placement.leader != call.node:
        raise errors.NotLeaderOrFollower
    if request.acks == -1 and len(placement.isr) < log.config.min_insync_replicas:
        placement.require_in_sync(log.config.min_insync_replicas)
    produced.admit(call.received_ms)
    if produced.header.is_transactional and not _admit(broker, call, log, produced.header):
        return False
    response.base_offset = log.append(produced.records, call.received_ms, produced.header)
    if log.config.message_timestamp_type == "LogAppendTime":
        response.log_append_time_ms = call.received_ms
    response.log_start_offset = log.log_start_offset
    if request.acks == -1 and placement.held_high_watermark is not None:
        waiting.append(Uncommitted(response, produced, call.node))
    return True


async def _append_added(
    broker: Broker, call: Call, produced: Produced, response: PartitionProduceResponse, waiting: list[Uncommitted]
) -> list[int]:
    """Waits for replicas of the transaction coordinator, then appends. Returns as `_refuse`."""
    request = call.message
    assert isinstance(request, ProduceRequest)
    assert request.transactional_id is not None
    try:
        while not _append(broker, call, produced, response, waiting):
            await broker.transactions.until_added(request.transactional_id)
    except (errors.CoordinatorNotAvailable, errors.NotCoordinator):
        return _refuse(response, errors.NotEnoughReplicas(), produced.log, call)
    except KafkaError as error:
        return _refuse(response, error, produced.log, call)
    return []


def _admit(broker: Broker, call: Call, log: PartitionLog, header: BatchHeader) -> bool:
    """Asks the transaction coordinator. The append follows within the same plain call, so that no batch gets into a
    transaction that has ended. Returns False if the coordinator must be asked again after `until_added`. Raises
    `KafkaError` (Kafka 4.4.0 ReplicaManager).
    """
    request = call.message
    assert isinstance(request, ProduceRequest)
    transactional_id = request.transactional_id
    assert transactional_id is not None
    if header.producer_id < 0:
        return True
    adds = call.api_version >= _ADDS_SINCE
    log.producers.expect(header)
    try:
        is_added = broker.transactions.admit(
            log, transactional_id, header.producer_id, header.producer_epoch, adds=adds
        )
    except errors.TransactionAbortable as error:
        raise error if call.api_version >= _ABORTABLE_SINCE else _NotInTransaction() from error
    except (errors.CoordinatorLoadInProgress, errors.CoordinatorNotAvailable, errors.NotCoordinator) as error:
        raise errors.NotEnoughReplicas from error
    except errors.ConcurrentTransactions as error:
        raise error if adds else errors.NotEnoughReplicas() from error
    except errors.ProducerFenced as error:
        raise errors.InvalidProducerEpoch from error  # as Kafka 4.4.0's AddPartitionsToTxnManager
    if is_added:
        log.producers.check_expected(header, begins_with_0=adds)
    return is_added


def _refuse(response: PartitionProduceResponse, error: KafkaError, log: PartitionLog | None, call: Call) -> list[int]:
    """Sets an error in the response; returns the leader to be named in the response, if any."""
    response.error_code, response.base_offset = error.code, -1
    if isinstance(error, _NotInTransaction):
        response.error_message = _NOT_ADDED
        return []
    if log is None:
        return []
    if isinstance(error, errors.NotLeaderOrFollower):
        return [set_leader(response, log, call)]
    if isinstance(
        error, errors.InvalidProducerEpoch | errors.InvalidTxnState | errors.OutOfOrderSequenceNumber | RefusedRecords
    ):
        response.log_start_offset = log.log_start_offset
    if isinstance(error, RefusedRecords):  # only errors of single records have a message (Kafka 4.4.0 ReplicaManager)
        response.error_code = error.reason.code
        response.record_errors = [BatchIndexAndErrorMessage(at, why) for at, why in error.record_errors]
        response.error_message = error.message
    return []
