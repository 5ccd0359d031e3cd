"""ShareAcknowledge (79): acknowledges records that a member of a share group has acquired (KIP-932)."""

from __future__ import annotations

from groupkeeper.broker.apis._shares import acknowledge, by_topic, check_member, tell_leaders
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.shares.sessions import FINAL_EPOCH, FIRST_EPOCH
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import InvalidShareSessionEpoch, KafkaError
from groupkeeper.protocol.messages.share_acknowledge_response import LeaderIdAndEpoch, NodeEndpoint, PartitionData
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.ShareAcknowledgeRequest)
    group_id, member_id = check_member(broker, call, request)
    if request.share_session_epoch == FIRST_EPOCH:
        raise InvalidShareSessionEpoch
    session = broker.share_sessions.require(group_id, member_id, call.node, request.share_session_epoch)
    if request.share_session_epoch != FINAL_EPOCH:
        session.advance()
    acknowledged = {
        (topic.topic_id, part.partition_index): part.acknowledgement_batches
        for topic in request.topics
        for part in topic.partitions
    }
    results = await acknowledge(broker, call, request, acknowledged)
    if request.share_session_epoch == FINAL_EPOCH:
        await broker.share_sessions.end(session)
    answers = {place: _answer(place[1], error) for place, error in results.items()}
    endpoints = tell_leaders(broker, call, answers, LeaderIdAndEpoch, NodeEndpoint)
    return m.ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=broker.group_configs.of(group_id).effective.group_share_record_lock_duration_ms,
        responses=[m.ShareAcknowledgeTopicResponse(*topic) for topic in (await by_topic(answers)).items()],
        node_endpoints=endpoints,
    )


def _answer(index: int, error: KafkaError | None) -> PartitionData:
    return PartitionData(index) if error is None else PartitionData(index, error.code, error.message)
