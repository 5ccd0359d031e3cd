"""Produce (0): appends record batches, idempotent producers included."""

from __future__ import annotations

from groupkeeper.broker.apis._access import require_topic
from groupkeeper.broker.apis._transactions import may_use, writer_error
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.log.produced import RefusedRecords, check_produced
from groupkeeper.broker.network.connection import CloseConnection
from groupkeeper.protocol.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidRequiredAcks,
    InvalidTopicException,
    InvalidTxnState,
    KafkaError,
    NotCoordinator,
    NotEnoughReplicas,
    OutOfOrderSequenceNumber,
    TransactionAbortable,
    TransactionalIdAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from groupkeeper.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from groupkeeper.protocol.messages.produce_response import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from groupkeeper.protocol.record_batch import read_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.log.partition_log import PartitionLog
    from groupkeeper.broker.log.topics import Topic
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


class _NotInTransaction(InvalidTxnState):
    """The partition is not part of the producer's transaction."""


async def handle(broker: Broker, call: Call) -> RootMessage | None:
    request = call.message
    assert isinstance(request, ProduceRequest)
    if request.acks not in (0, 1, -1):
        raise InvalidRequiredAcks
    if any(_is_transactional(part.records) for topic in request.topic_data for part in topic.partition_data):
        # If one batch is transactional, the whole request depends on it.
        transactional_id = request.transactional_id
        if transactional_id is None or not may_use(broker, call, transactional_id):
            raise TransactionalIdAuthorizationFailed
    answers = [_append_topic(broker, call, wanted) for wanted in request.topic_data]
    return None if request.acks == 0 else ProduceResponse(answers)


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, ProduceRequest)
    if request.acks == 0:
        # The producer waits for no answer; it learns of the error by the closed connection.
        raise CloseConnection(f"a Produce request without acknowledgement failed: {error.name}")
    return ProduceResponse(
        [
            TopicProduceResponse(
                topic.name, topic.topic_id, [_refused(part.index, error) for part in topic.partition_data]
            )
            for topic in request.topic_data
        ]
    )


def _is_transactional(records: bytes | None) -> bool:
    """Whether the first batch is transactional; batches of old formats never are."""
    if records is None or len(records) <= _ATTRIBUTES_AT or records[_MAGIC_AT] < 2:
        return False
    return bool(records[_ATTRIBUTES_AT] & _TRANSACTIONAL)


def _append_topic(broker: Broker, call: Call, wanted: TopicProduceData) -> TopicProduceResponse:
    by_id = call.api_version >= _TOPIC_IDS_SINCE
    topic = broker.topics.by_id(wanted.topic_id) if by_id else broker.topics.get(wanted.name)
    answers = []
    for part in wanted.partition_data:
        log = topic.partition(part.index) if topic is not None else None
        try:
            if topic is None and by_id:
                raise UnknownTopicId
            require_topic(broker, call, Operation.WRITE, wanted.name if topic is None else topic.name)
            if topic is None or log is None:
                raise UnknownTopicOrPartition
            answers.append(_append(broker, call, topic, log, part))
        except KafkaError as error:
            answers.append(_refused(part.index, error, log))
    return TopicProduceResponse(wanted.name, wanted.topic_id, answers)


def _append(
    broker: Broker, call: Call, topic: Topic, log: PartitionLog, part: PartitionProduceData
) -> PartitionProduceResponse:
    if topic.is_internal and call.client_id != _ADMIN_CLIENT_ID:
        raise InvalidTopicException
    records = check_produced(part.records, log, call.api_version, call.received_ms)
    if _is_transactional(records):
        _admit(broker, call, log, read_header(records))
    base_offset = log.append(records, call.received_ms)
    stamped = log.config.message_timestamp_type == "LogAppendTime"
    return PartitionProduceResponse(
        part.index,
        base_offset=base_offset,
        log_append_time_ms=call.received_ms if stamped else -1,
        log_start_offset=log.log_start_offset,
    )


def _admit(broker: Broker, call: Call, log: PartitionLog, header: BatchHeader) -> None:
    """Asks the transaction coordinator. What follows is the append, within the same plain call, so that no batch gets
    into a transaction that has ended meanwhile. Raises `KafkaError` (Kafka 4.3.1 ReplicaManager).
    """
    request = call.message
    assert isinstance(request, ProduceRequest)
    transactional_id = request.transactional_id
    assert transactional_id is not None
    if header.producer_id < 0:
        return
    adds = call.api_version >= _ADDS_SINCE
    log.producers.expect(header)
    try:
        broker.transactions.admit(log, transactional_id, header.producer_id, header.producer_epoch, adds=adds)
    except TransactionAbortable as error:
        raise error if call.api_version >= _ABORTABLE_SINCE else _NotInTransaction() from error
    except (CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator) as error:
        raise NotEnoughReplicas from error
    except ConcurrentTransactions as error:
        raise error if adds else NotEnoughReplicas() from error
    except KafkaError as error:
        raise writer_error(error) from error
    log.producers.check_expected(header, begins_with_0=adds)


def _refused(index: int, error: KafkaError, log: PartitionLog | None = None) -> PartitionProduceResponse:
    if isinstance(error, _NotInTransaction):
        return PartitionProduceResponse(index, error.code, -1, error_message=_NOT_ADDED)
    is_from_log = isinstance(error, InvalidProducerEpoch | InvalidTxnState | OutOfOrderSequenceNumber | RefusedRecords)
    start = log.log_start_offset if log is not None and is_from_log else -1
    if not isinstance(error, RefusedRecords):
        # Only errors of single records have a message (Kafka 4.3.1 ReplicaManager).
        return PartitionProduceResponse(index, error.code, -1, log_start_offset=start)
    return PartitionProduceResponse(
        index,
        error.reason.code,
        -1,
        log_start_offset=start,
        record_errors=[BatchIndexAndErrorMessage(at, why) for at, why in error.record_errors],
        error_message=error.message,
    )
