"""ShareFetch (78): acquires records for a member of a share group, and takes its acknowledgements of earlier ones
(KIP-932).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from groupkeeper.broker.apis._groups import may_topic
from groupkeeper.broker.apis._shares import acknowledge, by_topic, check_member, tell_leaders
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.long_requests import in_turns
from groupkeeper.broker.shares.fetch import WantedRecords, fetch
from groupkeeper.broker.shares.sessions import FINAL_EPOCH, FIRST_EPOCH, ShareSession
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import InvalidRequest, KafkaError, ShareSessionLimitReached, TopicAuthorizationFailed
from groupkeeper.protocol.messages.share_fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.messages.share_fetch_response import LeaderIdAndEpoch, NodeEndpoint, PartitionData
from groupkeeper.protocol.primitives import RootMessage

Place = tuple[bytes, int]

_RECORD_LIMIT = 1
"""The acquire mode in which a member gets no more records than it requests."""


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.ShareFetchRequest)
    check_member(broker, call, request)
    if request.is_renew_ack:
        _check_renewal(request)
    acknowledged = {
        (topic.topic_id, part.partition_index): part.acknowledgement_batches
        async for topic, part in in_turns(_partitions(request))
    }
    if not any(acknowledged.values()):
        acknowledged = {}
    if acknowledged and request.share_session_epoch == FIRST_EPOCH:
        raise InvalidRequest
    session = await _session(broker, call, request)
    results = await acknowledge(broker, call, request, acknowledged)
    answers: dict[Place, PartitionData] = {}
    if not request.is_renew_ack and request.share_session_epoch != FINAL_EPOCH:
        answers = await _fetch(broker, call, request, session)
    async for place, error in in_turns(results.items()):
        _add_result(answers.setdefault(place, PartitionData(place[1])), error)
    if request.share_session_epoch == FINAL_EPOCH:
        await broker.share_sessions.end(session)
    endpoints = tell_leaders(broker, call, answers, LeaderIdAndEpoch, NodeEndpoint)
    return m.ShareFetchResponse(
        acquisition_lock_timeout_ms=broker.group_configs.of(
            session.group_id
        ).effective.group_share_record_lock_duration_ms,
        responses=[m.ShareFetchableTopicResponse(*topic) for topic in (await by_topic(answers)).items()],
        node_endpoints=endpoints,
    )


def _partitions(request: m.ShareFetchRequest) -> Iterator[tuple[FetchTopic, FetchPartition]]:
    return ((topic, part) for topic in request.topics for part in topic.partitions)


def _check_renewal(request: m.ShareFetchRequest) -> None:
    """A request that renews locks fetches nothing."""
    wanted = {
        "maxBytes": request.max_bytes,
        "minBytes": request.min_bytes,
        "maxRecords": request.max_records,
        "maxWaitMs": request.max_wait_ms,
    }
    given = [name for name, value in wanted.items() if value != 0]
    if given:
        raise InvalidRequest(f"{', '.join(given)} must be 0 in a request that renews acquisition locks.")


async def _session(broker: Broker, call: Call, request: m.ShareFetchRequest) -> ShareSession:
    """The member's session, with the partitions that the request adds and forgets."""
    assert request.group_id is not None
    assert request.member_id is not None
    sessions, epoch = broker.share_sessions, request.share_session_epoch
    if epoch == FIRST_EPOCH:
        try:
            session = sessions.begin(request.group_id, request.member_id, call.node)
        except ShareSessionLimitReached:
            # A refused member retries at once: this slows it down, and there may be room after the delay.
            await asyncio.sleep(max(request.max_wait_ms, 0) / 1000)
            session = sessions.begin(request.group_id, request.member_id, call.node)
    else:
        session = sessions.require(request.group_id, request.member_id, call.node, epoch)
        if epoch == FINAL_EPOCH:
            return session
        session.advance()
    async for wanted, part in in_turns(_partitions(request)):
        topic = broker.topics.by_id(wanted.topic_id)
        place = (wanted.topic_id, part.partition_index)
        if session.add(place, None if topic is None else topic.name) and epoch != FIRST_EPOCH:
            session.unanswered.add(place)
    forgotten = ((topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions)
    async for place in in_turns(forgotten):
        session.forget(place)
    return session


async def _fetch(
    broker: Broker, call: Call, request: m.ShareFetchRequest, session: ShareSession
) -> dict[Place, PartitionData]:
    """The response for each partition; partitions without changes are left out."""
    answers: dict[Place, PartitionData] = {}
    topics: dict[Place, str | None] = {}
    async for place, name in in_turns(_rotated(session)):
        if name is None or may_topic(broker, call, Operation.READ, name):
            topics[place] = name
        else:
            error = TopicAuthorizationFailed()
            answers[place] = PartitionData(place[1], error.code, error.message)
    max_bytes = min(request.max_bytes, max(broker.front(call.node).server.fetch_room, 1))
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
    answers |= await fetch(broker.share_sessions.partitions, wanted) if topics else {}
    if request.share_session_epoch == FIRST_EPOCH:
        return answers
    replies = {
        place: answer
        async for place, answer in in_turns(answers.items())
        if answer.records or answer.error_code or place in session.unanswered
    }
    session.unanswered.difference_update(answers)
    session.unanswered.update(place for place, answer in answers.items() if answer.error_code)
    return replies


def _rotated(session: ShareSession) -> list[tuple[Place, str | None]]:
    """The session's partitions; each time another partition comes first, so that none starves."""
    topics = list(session.topics.items())
    first = session.epoch % len(topics) if topics else 0
    return topics[first:] + topics[:first]


def _add_result(answer: PartitionData, error: KafkaError | None) -> None:
    if error is not None:
        answer.acknowledge_error_code = error.code
        answer.acknowledge_error_message = error.message
