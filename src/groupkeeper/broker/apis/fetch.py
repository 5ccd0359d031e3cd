"""Fetch (1): reads batches, and waits for them when there are too few; with sessions (KIP-227)."""

from __future__ import annotations

import asyncio
from operator import itemgetter

from groupkeeper.broker.apis._access import may_cluster, may_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.log.waiter import Waiter, wait_for
from groupkeeper.broker.placement.placement import Placement
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchRequest
from groupkeeper.protocol.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.log.partition_log import PartitionLog
    from groupkeeper.broker.network.fetch_sessions import FetchContext, PartitionKey, Responses

_TOPIC_IDS_SINCE = 13
_SESSIONS_SINCE = 7
_REPLICAS_SINCE = 11
"""The version from which consumers may read from followers (KIP-392)."""
_LEADERS_SINCE = 16
_OF_LEADERS = (errors.NotLeaderOrFollower, errors.FencedLeaderEpoch)
_READ_COMMITTED = 1
_TURN = 500
"""Partitions to read before other clients get a turn."""


async def handle(broker: Broker, call: Call, request: FetchRequest) -> FetchResponse:
    context = broker.fetch_sessions.context(request, call.received_ms, by_id=call.api_version >= _TOPIC_IDS_SINCE)
    for key in context.wanted if call.api_version >= _TOPIC_IDS_SINCE else ():
        if key.topic_id not in context.names and (topic := broker.topics.by_id(key.topic_id)) is not None:
            context.names[key.topic_id] = topic.name
    responses = await _read(broker, call, context)
    error, session_id, news = context.answer(responses, call.received_ms)
    leaders = {part.current_leader.leader_id for part in news.values() if part.error_code}
    endpoints = [NodeEndpoint(*one) for one in broker.endpoints(call, leaders)] if leaders else ()
    return FetchResponse(0, error, session_id, _by_topic(news), endpoints)


async def _read(broker: Broker, call: Call, context: FetchContext) -> Responses:
    request = call.message
    assert isinstance(request, FetchRequest)
    deadline = asyncio.get_running_loop().time() + request.max_wait_ms / 1000
    reading = _Reading(broker, call, context)
    await reading.pass_over()
    if reading.is_due or request.max_wait_ms <= 0:
        return reading.responses
    while (missing := reading.missing_bytes()) > 0:
        if not await wait_for(Waiter(missing), reading.logs, deadline):
            break
    again = _Reading(broker, call, context, reading.refused)
    await again.pass_over()
    return again.responses


def _by_topic(responses: Responses) -> list[FetchableTopicResponse]:
    """The topics of a response. The order of partitions is kept, so a topic may occur more than once."""
    topics: list[FetchableTopicResponse] = []
    parts: list[PartitionData] = []
    for key, part in responses.items():
        if not topics or (topics[-1].topic, topics[-1].topic_id) != key[:2]:
            parts = []
            topics.append(FetchableTopicResponse(key.topic, key.topic_id, parts))
        parts.append(part)
    return topics


def refuse(call: Call, request: FetchRequest, error: KafkaError) -> FetchResponse:
    if call.api_version >= _SESSIONS_SINCE:
        return FetchResponse(error_code=error.code)
    topics = [
        FetchableTopicResponse(
            topic.topic, topic.topic_id, [_refused(part.partition, error, None) for part in topic.partitions]
        )
        for topic in request.topics
    ]
    return FetchResponse(responses=topics)


class _Reading:
    """One pass over the partitions of a request, by the limits of Apache Kafka.

    A batch that is larger than its partition's limit, or than the rest of the response's limit, is sent only for the
    first partition that has records, and alone; later partitions then have no records.

    Attributes:
        responses: the response for each partition. Unauthorized and missing partitions come last.
        refused: the unauthorized and missing ones; partitions deleted while the request waits keep their place.
        logs: partitions to wait for.
        is_due: whether the response need not wait: enough bytes, an error of a log, or nothing to wait for.
    """

    def __init__(
        self, broker: Broker, call: Call, context: FetchContext, refused_before: Collection[PartitionKey] | None = None
    ) -> None:
        request = call.message
        assert isinstance(request, FetchRequest)
        self.responses: Responses = {}
        self._broker = broker
        self._call = call
        self._size = 0
        self._room = min(request.max_bytes, broker.fronts[call.node].server.fetch_room)
        if broker.quotas.table:
            self._room = min(self._room, broker.quotas.largest_fetch(call))
        self._min_bytes = min(request.min_bytes, self._room)
        self._committed = request.isolation_level == _READ_COMMITTED
        self._is_replica = max(request.replica_id, request.replica_state.replica_id) >= 0
        self._reads_replicas = call.api_version >= _REPLICAS_SINCE and not self._is_replica
        self._rack = request.rack_id if broker.topics.placements.reads_by_rack else ""
        self._read_logs: list[tuple[PartitionLog, FetchPartition]] = []
        self._has_error = False
        self._context = context
        self._refused_before = refused_before

    async def pass_over(self) -> None:
        refused = []
        for number, (key, part) in enumerate(list(self._context.wanted.items()), 1):
            if number % _TURN == 0:
                await asyncio.sleep(0)
            try:
                log = self._log(key)
            except KafkaError as error:
                self.responses[key] = _refused(key.partition, error, [])
                is_known = self._refused_before is None or key in self._refused_before
                if is_known and not isinstance(error, errors.InconsistentTopicId):
                    refused.append((not isinstance(error, errors.UnknownTopicId), key))
                continue
            self.responses[key] = self._read(log, part)
        self.refused = [key for _, key in sorted(refused, key=itemgetter(0))]
        for key in self.refused:
            self.responses[key] = self.responses.pop(key)
        self.is_due = self._has_error or not self._read_logs or self._size >= self._min_bytes

    @property
    def logs(self) -> list[PartitionLog]:
        return [log for log, _ in self._read_logs]

    def missing_bytes(self) -> int:
        """How many bytes the response still waits for. Each partition counts up to its own limit."""
        missing = self._min_bytes
        for log, part in self._read_logs:
            try:
                self._require(self._known(log), part)
                ahead = log.bytes_ahead(part.fetch_offset, self._end_offset(log))
            except KafkaError:
                return 0
            if ahead is None:
                return 0
            missing -= min(ahead, part.partition_max_bytes)
        return missing

    def _log(self, key: PartitionKey) -> PartitionLog:
        by_id = self._call.api_version >= _TOPIC_IDS_SINCE
        topics = self._broker.topics
        topic = topics.by_id(key.topic_id) if by_id else topics.get(key.topic)
        name = topic.name if topic is not None else self._context.names.get(key.topic_id) if by_id else key.topic
        if self._is_replica and not may_cluster(self._broker, self._call, Operation.CLUSTER_ACTION):
            raise errors.TopicAuthorizationFailed
        if name is None:
            raise errors.UnknownTopicId  # the topic has no name to authorize
        if not self._is_replica and not may_topic(self._broker, self._call, Operation.READ, name):
            raise errors.TopicAuthorizationFailed
        if topic is None and topics.get(name) is not None:
            raise errors.InconsistentTopicId
        log = None if topic is None else topic.partition(key.partition)
        if log is None:
            raise errors.UnknownTopicOrPartition
        return log.seen_by(self._call.node)

    def _require(self, placement: Placement, part: FetchPartition) -> None:
        """Raises `KafkaError` if this node may not serve the partition, or the client's leader epoch is wrong."""
        if placement.leader == self._call.node and part.current_leader_epoch == -1:
            return
        require = placement.require_replica if self._reads_replicas else placement.require_leader
        require(self._call.node, part.current_leader_epoch)

    def _known(self, log: PartitionLog) -> Placement:
        """The log's placement as this node sees it."""
        placement = log.placement
        return placement.known_to(self._call.node) if placement.known_by_cut_off_node else placement

    def _end_offset(self, log: PartitionLog) -> int:
        return self._here(log, log.last_stable_offset if self._committed else log.high_watermark)

    def _here(self, log: PartitionLog, offset: int) -> int:
        """The offset, or this node's end offset if that is lower."""
        ends = log.placement.ends
        return min(offset, ends.get(self._call.node, offset)) if ends else offset

    def _read(self, log: PartitionLog, part: FetchPartition) -> PartitionData:
        try:
            found = self._found(log, part)
        except KafkaError as error:
            self._has_error = True
            refused = _refused(part.partition, error, None)
            if self._call.api_version >= _LEADERS_SINCE and isinstance(error, _OF_LEADERS):
                known = self._known(log)
                refused.current_leader = LeaderIdAndEpoch(known.leader, known.epoch)
            return refused
        self._read_logs.append((log, part))
        return found

    def _found(self, log: PartitionLog, part: FetchPartition) -> PartitionData:
        placement, node = self._known(log), self._call.node
        self._require(placement, part)
        if self._is_replica:
            raise errors.NotLeaderOrFollower  # no other broker has replicas
        response = PartitionData(
            partition_index=part.partition,
            high_watermark=self._here(log, log.high_watermark),
            last_stable_offset=self._here(log, log.last_stable_offset),
            log_start_offset=log.log_start_offset,
            aborted_transactions=[] if self._committed else None,
        )
        if self._rack and placement.leader == node:
            nearest = self._broker.topics.placements.nearest(placement, self._rack)
            if nearest != node:
                self._has_error = True  # like an error, it ends the wait
                response.preferred_read_replica = nearest
                return response
        if part.last_fetched_epoch >= 0:
            epoch, end = placement.end_of(part.last_fetched_epoch, log.log_end_offset)
            if epoch < 0:
                raise errors.OffsetOutOfRange(
                    f"The end of epoch {part.last_fetched_epoch} of {log.topic}-{log.index} is not known"
                )
            if epoch < part.last_fetched_epoch or part.fetch_offset > end:
                self._has_error = True  # like an error, it ends the wait
                response.aborted_transactions = None
                response.diverging_epoch = EpochEndOffset(epoch, end)
                return response
        limit = min(part.partition_max_bytes, self._room)
        response.records = records = log.read(
            part.fetch_offset, limit, at_least_one=self._size == 0, end_offset=self._end_offset(log)
        )
        self._size += len(records)
        self._room = max(self._room - len(records), 0)
        if self._committed:
            has_no_room = not records and limit > 0 and part.fetch_offset < log.last_stable_offset
            response.aborted_transactions = None if has_no_room else _aborted(log, part.fetch_offset, len(records))
        return response


def _aborted(log: PartitionLog, offset: int, size: int) -> list[AbortedTransaction]:
    """The aborted transactions among the returned records; as in Apache Kafka, possibly a few more."""
    if not log.producers.aborted:
        return []
    return [
        AbortedTransaction(one.producer_id, one.first_offset)
        for one in log.producers.aborted_between(offset, log.offset_after(offset, size))
    ]


def _refused(index: int, error: KafkaError, aborted: list[AbortedTransaction] | None) -> PartitionData:
    return PartitionData(index, error.code, -1, aborted_transactions=aborted)
