"""ShareFetch (78): acquires records for a member of a share group, and takes its acknowledgements of earlier ones;
ShareAcknowledge (79) only does the latter (KIP-932).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from groupkeeper.broker.apis._access import may_topic, require_group, require_topic
from groupkeeper.broker.apis._groups import require_served
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.network.long_requests import each_in_turns, in_turns
from groupkeeper.broker.shares.fetch import ShareFetch, WantedRecords
from groupkeeper.broker.shares.sessions import FINAL_EPOCH, FIRST_EPOCH, ShareSession
from groupkeeper.coordinator.share_partition.batch import AcknowledgeType
from groupkeeper.coordinator.share_partition.partition import Acknowledgement
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import share_acknowledge_response as acknowledge_response
from groupkeeper.protocol.messages.share_fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.messages.share_fetch_response import LeaderIdAndEpoch, NodeEndpoint, PartitionData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from groupkeeper.protocol.messages.share_acknowledge_request import AcknowledgementBatch
    from groupkeeper.protocol.messages.share_fetch_request import AcknowledgementBatch as FetchAcknowledgementBatch

    N = TypeVar("N")
    TopicIdPartition = tuple[bytes, int]
    Batches = Sequence[AcknowledgementBatch] | Sequence[FetchAcknowledgementBatch]


_RENEW_SINCE = 2
_LONGEST_MEMBER_ID = 36


def _check_member(
    broker: Broker, call: Call, request: m.ShareFetchRequest | m.ShareAcknowledgeRequest
) -> tuple[str, str]:
    """The group and the member of the request.

    Raises `UnsupportedVersion` when share groups are off, `InvalidRequest`, `GroupAuthorizationFailed`.
    """
    require_served(broker, "share")
    if request.group_id is None:
        raise errors.InvalidRequest("Invalid group id in the request.")
    require_group(broker, call, Operation.READ, request.group_id)
    if not request.member_id or len(request.member_id) > _LONGEST_MEMBER_ID:
        raise errors.InvalidRequest("Invalid member id in the request.")
    return request.group_id, request.member_id


async def _acknowledge_each(
    broker: Broker,
    call: Call,
    request: m.ShareFetchRequest | m.ShareAcknowledgeRequest,
    acknowledged: Mapping[TopicIdPartition, Batches],
) -> dict[TopicIdPartition, errors.KafkaError | None]:
    """The outcome of the acknowledgements of each partition: the error, or None when they are stored."""

    async def outcome(one: tuple[TopicIdPartition, Batches]) -> errors.KafkaError | None:
        try:
            await _acknowledge(broker, call, request, *one)
        except errors.KafkaError as error:
            return error
        return None

    return dict(zip(acknowledged, await each_in_turns(broker, acknowledged.items(), outcome), strict=True))


async def _acknowledge(
    broker: Broker,
    call: Call,
    request: m.ShareFetchRequest | m.ShareAcknowledgeRequest,
    tp: TopicIdPartition,
    batches: Batches,
) -> None:
    topic_id, index = tp
    topic = broker.topics.by_id(topic_id)
    if topic is None:
        raise errors.UnknownTopicId
    acknowledgements = _checked(batches, may_renew=call.api_version >= _RENEW_SINCE, wants_renewal=request.is_renew_ack)
    require_topic(broker, call, Operation.READ, topic.name)
    assert request.group_id is not None
    assert request.member_id is not None
    log = topic.partition(index)
    if log is not None:
        log.placement.require_leader(call.node)
    led = broker.share_sessions.partitions.get(request.group_id, topic_id, index)
    if log is None or led is None:
        raise errors.UnknownTopicOrPartition
    await led.acknowledge(request.member_id, acknowledgements)


def _tell_leaders(
    broker: Broker,
    call: Call,
    responses: Mapping[TopicIdPartition, Any],
    leader: Callable[[int, int], Any],
    node: Callable[..., N],
) -> list[N]:
    """Sets the leaders of partitions that this node does not lead, as it sees them; returns their addresses."""
    leaders = set()
    for (topic_id, index), response in responses.items():
        if response.error_code != errors.NotLeaderOrFollower.code:
            continue
        topic = broker.topics.by_id(topic_id)
        log = None if topic is None else topic.partition(index)
        if log is not None:
            known = log.placement.known_to(call.node)
            response.current_leader = leader(known.leader, known.epoch)
            leaders.add(known.leader)
    return [node(*one) for one in broker.endpoints(call, leaders)] if leaders else []


def _checked(batches: Batches, *, may_renew: bool, wants_renewal: bool) -> list[Acknowledgement]:
    highest = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
    behind = -1
    acknowledgements = []
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        is_whole = len(types) == 1 or len(types) == last - first + 1
        if not behind < first <= last or not is_whole or not all(0 <= kind <= highest for kind in types):
            raise errors.InvalidRequest
        if AcknowledgeType.RENEW in types and not wants_renewal:
            raise errors.InvalidRequest
        behind = last
        acknowledgements.append(Acknowledgement(first, last, types))
    return acknowledgements


async def _by_topic(responses: Mapping[TopicIdPartition, N]) -> dict[bytes, list[N]]:
    """The responses grouped by topic, in the order of each topic's first partition."""
    grouped: dict[bytes, list[N]] = {}
    async for (topic_id, _), response in in_turns(responses.items()):
        grouped.setdefault(topic_id, []).append(response)
    return grouped


_RECORD_LIMIT = 1
"""The acquire mode in which a member gets no more records than it requests."""


async def handle_fetch(broker: Broker, call: Call, request: m.ShareFetchRequest) -> m.ShareFetchResponse:
    _check_member(broker, call, request)
    if request.is_renew_ack:
        _check_renewal(request)
    acknowledged = {
        (topic.topic_id, part.partition_index): part.acknowledgement_batches
        async for topic, part in in_turns(_partitions(request))
    }
    if not any(acknowledged.values()):
        acknowledged = {}
    if acknowledged and request.share_session_epoch == FIRST_EPOCH:
        raise errors.InvalidRequest
    session = await _session(broker, call, request)
    results = await _acknowledge_each(broker, call, request, acknowledged)
    responses: dict[TopicIdPartition, PartitionData] = {}
    if not request.is_renew_ack and request.share_session_epoch != FINAL_EPOCH:
        responses = await _fetch(broker, call, request, session)
    async for tp, error in in_turns(results.items()):
        response = responses.setdefault(tp, PartitionData(tp[1]))
        if error is not None:
            response.acknowledge_error_code, response.acknowledge_error_message = error.code, error.message
    if request.share_session_epoch == FINAL_EPOCH:
        await broker.share_sessions.end(session)
    endpoints = _tell_leaders(broker, call, responses, LeaderIdAndEpoch, NodeEndpoint)
    return m.ShareFetchResponse(
        acquisition_lock_timeout_ms=_lock_duration_ms(broker, call, session.group_id),
        responses=[m.ShareFetchableTopicResponse(*topic) for topic in (await _by_topic(responses)).items()],
        node_endpoints=endpoints,
    )


def _partitions(request: m.ShareFetchRequest) -> Iterator[tuple[FetchTopic, FetchPartition]]:
    return ((topic, part) for topic in request.topics for part in topic.partitions)


def _check_renewal(request: m.ShareFetchRequest) -> None:
    """Raises `InvalidRequest` for a request that renews locks and fetches records."""
    wanted = {
        "maxBytes": request.max_bytes,
        "minBytes": request.min_bytes,
        "maxRecords": request.max_records,
        "maxWaitMs": request.max_wait_ms,
    }
    given = [name for name, value in wanted.items() if value != 0]
    if given:
        raise errors.InvalidRequest(f"{', '.join(given)} must be 0 in a request that renews acquisition locks.")


async def _session(broker: Broker, call: Call, request: m.ShareFetchRequest) -> ShareSession:
    """The member's session, with the partitions that the request adds and forgets."""
    assert request.group_id is not None
    assert request.member_id is not None
    sessions, epoch = broker.share_sessions, request.share_session_epoch
    if epoch == FIRST_EPOCH:
        try:
            session = sessions.begin(request.group_id, request.member_id, call.node)
        except errors.ShareSessionLimitReached:
            # A refused member retries at once: the delay slows it down, and there may be room afterwards.
            await asyncio.sleep(max(request.max_wait_ms, 0) / 1000)
            session = sessions.begin(request.group_id, request.member_id, call.node)
    else:
        session = sessions.require(request.group_id, request.member_id, call.node, epoch)
        if epoch == FINAL_EPOCH:
            return session
        session.advance()
    async for wanted, part in in_turns(_partitions(request)):
        topic = broker.topics.by_id(wanted.topic_id)
        tp = (wanted.topic_id, part.partition_index)
        if session.add(tp, None if topic is None else topic.name) and epoch != FIRST_EPOCH:
            session.unanswered.add(tp)
    forgotten = ((topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions)
    async for tp in in_turns(forgotten):
        session.forget(tp)
    return session


async def _fetch(
    broker: Broker, call: Call, request: m.ShareFetchRequest, session: ShareSession
) -> dict[TopicIdPartition, PartitionData]:
    """The response for each partition; partitions without changes are left out."""
    responses: dict[TopicIdPartition, PartitionData] = {}
    topics: dict[TopicIdPartition, str | None] = {}
    async for tp, name in in_turns(_rotated(session)):
        if name is None or may_topic(broker, call, Operation.READ, name):
            topics[tp] = name
        else:
            error = errors.TopicAuthorizationFailed()
            responses[tp] = PartitionData(tp[1], error.code, error.message)
    max_bytes = min(request.max_bytes, max(broker.fronts[call.node].server.fetch_room, 1))
    wanted = WantedRecords(
        session=session,
        topics=topics,
        max_wait_ms=request.max_wait_ms,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        max_records=request.max_records,
        batch_size=request.batch_size,
        is_strict=request.share_acquire_mode == _RECORD_LIMIT,
    )
    responses |= await ShareFetch(broker.share_sessions.partitions, wanted).run() if topics else {}
    if request.share_session_epoch == FIRST_EPOCH:
        return responses
    replies = {
        tp: response
        async for tp, response in in_turns(responses.items())
        if response.records or response.error_code or tp in session.unanswered
    }
    session.unanswered.difference_update(responses)
    session.unanswered.update(tp for tp, response in responses.items() if response.error_code)
    return replies


def _rotated(session: ShareSession) -> list[tuple[TopicIdPartition, str | None]]:
    """The session's partitions, in a rotated order: each time another one is first, so that none starves."""
    topics = list(session.topics.items())
    first = session.epoch % len(topics) if topics else 0
    return topics[first:] + topics[:first]


def _lock_duration_ms(broker: Broker, call: Call, group_id: str) -> int:
    return broker.group_configs.at(group_id, call.node).effective.group_share_record_lock_duration_ms


async def handle_acknowledge(
    broker: Broker, call: Call, request: m.ShareAcknowledgeRequest
) -> m.ShareAcknowledgeResponse:
    group_id, member_id = _check_member(broker, call, request)
    if request.share_session_epoch == FIRST_EPOCH:
        raise errors.InvalidShareSessionEpoch
    session = broker.share_sessions.require(group_id, member_id, call.node, request.share_session_epoch)
    if request.share_session_epoch != FINAL_EPOCH:
        session.advance()
    acknowledged = {
        (topic.topic_id, part.partition_index): part.acknowledgement_batches
        for topic in request.topics
        for part in topic.partitions
    }
    results = await _acknowledge_each(broker, call, request, acknowledged)
    if request.share_session_epoch == FINAL_EPOCH:
        await broker.share_sessions.end(session)
    responses = {tp: _acknowledged(tp[1], error) for tp, error in results.items()}
    endpoints = _tell_leaders(
        broker, call, responses, acknowledge_response.LeaderIdAndEpoch, acknowledge_response.NodeEndpoint
    )
    return m.ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=_lock_duration_ms(broker, call, group_id),
        responses=[m.ShareAcknowledgeTopicResponse(*topic) for topic in (await _by_topic(responses)).items()],
        node_endpoints=endpoints,
    )


def _acknowledged(index: int, error: KafkaError | None) -> acknowledge_response.PartitionData:
    result = () if error is None else (error.code, error.message)
    return acknowledge_response.PartitionData(index, *result)
