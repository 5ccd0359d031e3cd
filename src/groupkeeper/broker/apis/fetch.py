"""Fetch (1): reads batches, and waits for them when there are too few; with sessions (KIP-227)."""

from __future__ import annotations

import asyncio

from groupkeeper.broker.apis._groups import may_topic
from groupkeeper.broker.apis.list_offsets import check_leader_epoch
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.topic_log import Waiter
from groupkeeper.protocol.errors import KafkaError, TopicAuthorizationFailed, UnknownTopicId, UnknownTopicOrPartition
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from groupkeeper.protocol.messages.fetch_response import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from groupkeeper.protocol.record_batch import iter_headers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.topic_log import PartitionLog
    from groupkeeper.broker.topics import Topic
    from groupkeeper.protocol.primitives import RootMessage

KEY = 1
VERSIONS = (4, 18)

_TOPIC_IDS_SINCE = 13
_SESSIONS_SINCE = 7
_READ_COMMITTED = 1


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, FetchRequest)
    by_id = call.api_version >= _TOPIC_IDS_SINCE
    context = broker.fetch_sessions.context(request, call.received_ms, by_id=by_id)
    answers = await _read(broker, call, context.topics, by_id=by_id)
    session_id, topics = context.answer(answers, call.received_ms)
    return FetchResponse(session_id=session_id, responses=topics)


async def _read(
    broker: Broker, call: Call, topics: Sequence[FetchTopic], *, by_id: bool
) -> list[FetchableTopicResponse]:
    request = call.message
    assert isinstance(request, FetchRequest)
    deadline = asyncio.get_running_loop().time() + request.max_wait_ms / 1000
    while True:
        reading = _Reading(broker, call, topics, by_id=by_id)
        if reading.is_due or request.max_wait_ms <= 0:
            return reading.answers
        if not await _wait(reading.logs, request.min_bytes - reading.size, deadline):
            return _Reading(broker, call, topics, by_id=by_id).answers


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, FetchRequest)
    if call.api_version >= _SESSIONS_SINCE:
        return FetchResponse(error_code=error.code)
    topics = [
        FetchableTopicResponse(
            topic.topic, topic.topic_id, [_refused(part.partition, error) for part in topic.partitions]
        )
        for topic in request.topics
    ]
    return FetchResponse(responses=topics)


async def _wait(logs: list[PartitionLog], missing_bytes: int, deadline: float) -> bool:
    """Whether enough was appended, or something happened to a partition, before the deadline."""
    waiter = Waiter(missing_bytes)
    loop = asyncio.get_running_loop()
    timer = loop.call_at(deadline, waiter.wake)
    for log in logs:
        log.add_waiter(waiter)
    try:
        await waiter.woken
    finally:
        timer.cancel()
        for log in logs:
            log.remove_waiter(waiter)
    return loop.time() < deadline


class _Reading:
    """One pass over the partitions of a request.

    Attributes:
        answers: the topics of the response.
        logs: partitions to wait for.
        size: bytes of batches that were found.
        is_due: whether the answer need not wait: enough bytes, an error, or nothing to wait for.
    """

    def __init__(self, broker: Broker, call: Call, topics: Sequence[FetchTopic], *, by_id: bool) -> None:
        request = call.message
        assert isinstance(request, FetchRequest)
        self.answers: list[FetchableTopicResponse] = []
        self.logs: list[PartitionLog] = []
        self.size = 0
        self.by_id = by_id
        self._has_error = False
        self._broker = broker
        self._call = call
        self._room = min(request.max_bytes, broker.config.fetch_max_bytes)
        self._committed = request.isolation_level == _READ_COMMITTED
        for wanted in topics:
            self.answers.append(self._read_topic(wanted))
        self.is_due = self._has_error or self.size >= request.min_bytes or not self.logs

    def _read_topic(self, wanted: FetchTopic) -> FetchableTopicResponse:
        topics = self._broker.topics
        topic = topics.by_id(wanted.topic_id) if self.by_id else topics.get(wanted.topic)
        parts = []
        # GA-03: an unknown id has no name to ask about.
        name = wanted.topic if topic is None else topic.name
        may_read = (topic is None and self.by_id) or may_topic(self._broker, self._call, Operation.READ, name)
        for part in wanted.partitions:
            try:
                if not may_read:
                    raise TopicAuthorizationFailed
                parts.append(self._read(self._log(topic, part.partition), part))
            except KafkaError as error:
                self._has_error = True
                parts.append(_refused(part.partition, error))
        return FetchableTopicResponse(wanted.topic, wanted.topic_id, parts)

    def _log(self, topic: Topic | None, index: int) -> PartitionLog:
        if topic is None:
            raise UnknownTopicId if self.by_id else UnknownTopicOrPartition
        log = topic.partition(index)
        if log is None:
            raise UnknownTopicOrPartition
        return log

    def _read(self, log: PartitionLog, part: FetchPartition) -> PartitionData:
        check_leader_epoch(part.current_leader_epoch)
        stable_offset = log.last_stable_offset
        end = stable_offset if self._committed else log.high_watermark
        records = log.read(
            part.fetch_offset, min(part.partition_max_bytes, self._room), at_least_one=self.size == 0, end_offset=end
        )
        self.size += len(records)
        self._room = max(self._room - len(records), 0)
        self.logs.append(log)
        return PartitionData(
            partition_index=part.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=_aborted(log, part.fetch_offset, records) if self._committed else None,
            records=records,
        )


def _aborted(log: PartitionLog, offset: int, records: bytes) -> list[AbortedTransaction]:
    """The aborted transactions that have records among those that are sent."""
    if not log.producers.aborted:
        return []
    end_offset = offset
    for _, header in iter_headers(records):
        end_offset = header.next_offset
    return [
        AbortedTransaction(one.producer_id, one.first_offset)
        for one in log.producers.aborted_between(offset, end_offset)
    ]


def _refused(index: int, error: KafkaError) -> PartitionData:
    is_unknown = isinstance(error, UnknownTopicId | UnknownTopicOrPartition)
    return PartitionData(index, error.code, -1, aborted_transactions=[] if is_unknown else None)
