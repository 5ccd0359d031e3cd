"""Produce (0): appends record batches, idempotent producers included."""

from __future__ import annotations

from groupkeeper.broker.produced import check_produced
from groupkeeper.protocol.errors import (
    InvalidRequiredAcks,
    InvalidTopicException,
    KafkaError,
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.topics import Topic
    from groupkeeper.protocol.primitives import RootMessage

KEY = 0
VERSIONS = (3, 13)

_TOPIC_IDS_SINCE = 13
_ADMIN_CLIENT_ID = "__admin_client"


async def handle(broker: Broker, call: Call) -> RootMessage | None:
    request = call.message
    assert isinstance(request, ProduceRequest)
    if request.acks not in (0, 1, -1):
        raise InvalidRequiredAcks
    answers = [_append_topic(broker, call, wanted) for wanted in request.topic_data]
    return None if request.acks == 0 else ProduceResponse(answers)


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, ProduceRequest)
    return ProduceResponse(
        [
            TopicProduceResponse(
                topic.name, topic.topic_id, [_refused(part.index, error) for part in topic.partition_data]
            )
            for topic in request.topic_data
        ]
    )


def _append_topic(broker: Broker, call: Call, wanted: TopicProduceData) -> TopicProduceResponse:
    by_id = call.api_version >= _TOPIC_IDS_SINCE
    topic = broker.topics.by_id(wanted.topic_id) if by_id else broker.topics.get(wanted.name)
    answers = []
    for part in wanted.partition_data:
        try:
            if topic is None:
                raise UnknownTopicId if by_id else UnknownTopicOrPartition
            answers.append(_append(broker, call, topic, part))
        except KafkaError as error:
            answers.append(_refused(part.index, error))
    return TopicProduceResponse(wanted.name, wanted.topic_id, answers)


def _append(broker: Broker, call: Call, topic: Topic, part: PartitionProduceData) -> PartitionProduceResponse:
    log = topic.partition(part.index)
    if log is None:
        raise UnknownTopicOrPartition
    if topic.is_internal and call.client_id != _ADMIN_CLIENT_ID:
        raise InvalidTopicException(f"Cannot append to internal topic {topic.name}")
    records = check_produced(part.records, log, call.api_version, call.received_ms)
    base_offset = log.append(records, call.received_ms)
    stamped = log.config.message_timestamp_type == "LogAppendTime"
    return PartitionProduceResponse(
        part.index,
        base_offset=base_offset,
        log_append_time_ms=call.received_ms if stamped else -1,
        log_start_offset=log.log_start_offset,
    )


def _refused(index: int, error: KafkaError) -> PartitionProduceResponse:
    record_errors = [BatchIndexAndErrorMessage(at, why) for at, why in getattr(error, "record_errors", ())]
    message = error.message if error.message != error.text else None
    return PartitionProduceResponse(index, error.code, -1, record_errors=record_errors, error_message=message)
