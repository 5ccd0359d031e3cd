"""The common code of ShareFetch and ShareAcknowledge: the checks of the sender and of its acknowledgements."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import may, may_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.features import feature_level
from groupkeeper.broker.long_requests import each_in_turns, in_turns
from groupkeeper.coordinator.share_partition.batch import AcknowledgeType
from groupkeeper.coordinator.share_partition.partition import Acknowledgement
from groupkeeper.protocol import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.protocol.messages.share_acknowledge_request import AcknowledgementBatch, ShareAcknowledgeRequest
    from groupkeeper.protocol.messages.share_fetch_request import AcknowledgementBatch as FetchAcknowledgementBatch
    from groupkeeper.protocol.messages.share_fetch_request import ShareFetchRequest

    N = TypeVar("N")
    Place = tuple[bytes, int]
    Batches = Sequence[AcknowledgementBatch] | Sequence[FetchAcknowledgementBatch]

RENEW_SINCE = 2
_LONGEST_MEMBER_ID = 36


def check_member(broker: Broker, call: Call, request: ShareFetchRequest | ShareAcknowledgeRequest) -> tuple[str, str]:
    """The group and the member of the request.

    Raises `UnsupportedVersion` when share groups are off, `InvalidRequest`, `GroupAuthorizationFailed`.
    """
    if feature_level(broker.config, "share.version") == 0:
        raise errors.UnsupportedVersion
    if request.group_id is None:
        raise errors.InvalidRequest("Invalid group id in the request.")
    if not may(broker, call, Operation.READ, request.group_id):
        raise errors.GroupAuthorizationFailed
    if not request.member_id or len(request.member_id) > _LONGEST_MEMBER_ID:
        raise errors.InvalidRequest("Invalid member id in the request.")
    return request.group_id, request.member_id


async def acknowledge(
    broker: Broker,
    call: Call,
    request: ShareFetchRequest | ShareAcknowledgeRequest,
    acknowledged: Mapping[Place, Batches],
) -> dict[Place, errors.KafkaError | None]:
    """The outcome of the acknowledgements of each partition: the error, or None when they are stored."""

    async def outcome(one: tuple[Place, Batches]) -> errors.KafkaError | None:
        try:
            await _acknowledge(broker, call, request, *one)
        except errors.KafkaError as error:
            return error
        return None

    return dict(zip(acknowledged, await each_in_turns(broker, acknowledged.items(), outcome), strict=True))


async def _acknowledge(
    broker: Broker, call: Call, request: ShareFetchRequest | ShareAcknowledgeRequest, place: Place, batches: Batches
) -> None:
    topic_id, index = place
    topic = broker.topics.by_id(topic_id)
    if topic is None:
        raise errors.UnknownTopicId
    acknowledgements = _checked(batches, may_renew=call.api_version >= RENEW_SINCE, wants_renewal=request.is_renew_ack)
    if not may_topic(broker, call, Operation.READ, topic.name):
        raise errors.TopicAuthorizationFailed
    assert request.group_id is not None
    assert request.member_id is not None
    log = topic.partition(index)
    if log is not None:
        log.placement.require_leader(call.node)
    led = broker.share_sessions.partitions.get(request.group_id, topic_id, index)
    if log is None or led is None:
        raise errors.UnknownTopicOrPartition
    await led.acknowledge(request.member_id, acknowledgements)


def tell_leaders(
    broker: Broker, call: Call, answers: Mapping[Place, Any], leader: Callable[[int, int], Any], node: Callable[..., N]
) -> list[N]:
    """Names the leaders of partitions that this node does not lead, as far as it knows them; returns where they are."""
    leaders = set()
    for (topic_id, index), answer in answers.items():
        if answer.error_code != errors.NotLeaderOrFollower.code:
            continue
        topic = broker.topics.by_id(topic_id)
        log = None if topic is None else topic.partition(index)
        if log is not None:
            known = log.placement.known_to(call.node)
            answer.current_leader = leader(known.leader, known.epoch)
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


async def by_topic(answers: Mapping[Place, N]) -> dict[bytes, list[N]]:
    """The answers to partitions, grouped by their topic, in the order of the first one."""
    grouped: dict[bytes, list[N]] = {}
    async for (topic_id, _), answer in in_turns(answers.items()):
        grouped.setdefault(topic_id, []).append(answer)
    return grouped
