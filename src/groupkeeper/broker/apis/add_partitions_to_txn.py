"""AddPartitionsToTxn (24): clients add partitions to a transaction up to version 3, brokers add or verify from 4 on."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import all_of, may_topic
from groupkeeper.broker.apis._transactions import may_use, told_before
from groupkeeper.broker.authorizer import CLUSTER_NAME, Operation, ResourceType
from groupkeeper.broker.long_requests import in_turns
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.coordinator.transactions.transaction import TopicPartition
    from groupkeeper.protocol.primitives import RootMessage

    Codes = dict[TopicPartition, int]

_FENCED_SINCE = 2
_BATCHES_SINCE = 4


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.AddPartitionsToTxnRequest)
    if call.api_version < _BATCHES_SINCE:
        codes = await _add(broker, call, _only_transaction(request), is_client=True)
        return m.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await _topics(codes))
    if not broker.authorizer.allows(call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return m.AddPartitionsToTxnResponse(error_code=errors.ClusterAuthorizationFailed.code)
    added = await all_of(broker, (_add(broker, call, one, is_client=False) for one in request.transactions))
    return m.AddPartitionsToTxnResponse(
        results_by_transaction=[
            m.AddPartitionsToTxnResult(one.transactional_id, await _topics(codes))
            for one, codes in zip(request.transactions, added, strict=True)
        ]
    )


def refuse(call: Call, error: errors.KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, m.AddPartitionsToTxnRequest)
    if call.api_version >= _BATCHES_SINCE:
        return m.AddPartitionsToTxnResponse(error_code=error.code)
    topics = [
        m.AddPartitionsToTxnTopicResult(
            topic.name, [m.AddPartitionsToTxnPartitionResult(index, error.code) for index in topic.partitions]
        )
        for topic in request.v3_and_below_topics
    ]
    return m.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)


def _only_transaction(request: m.AddPartitionsToTxnRequest) -> m.AddPartitionsToTxnTransaction:
    return m.AddPartitionsToTxnTransaction(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _places(one: m.AddPartitionsToTxnTransaction) -> list[TopicPartition]:
    return [(topic.name, index) for topic in one.topics for index in topic.partitions]


async def _add(broker: Broker, call: Call, one: m.AddPartitionsToTxnTransaction, *, is_client: bool) -> Codes:
    """The outcome by partition; all are added, or none."""
    places = _places(one)
    if is_client and not may_use(broker, call, one.transactional_id):
        return dict.fromkeys(places, errors.TransactionalIdAuthorizationFailed.code)
    codes = {}
    async for place in in_turns(places):
        codes[place] = _check(broker, call, place, is_client=is_client)
    if any(codes.values()):
        return {place: code or errors.OperationNotAttempted.code for place, code in codes.items()}
    if one.verify_only:
        return {place: _verify(broker, call, one, place) for place in places}
    try:
        await broker.transactions.add_partitions(
            one.transactional_id, one.producer_id, one.producer_epoch, places, call
        )
    except errors.KafkaError as error:
        return dict.fromkeys(places, told_before(_FENCED_SINCE, call.api_version, error.code))
    return dict.fromkeys(places, NONE)


def _check(broker: Broker, call: Call, place: TopicPartition, *, is_client: bool) -> int:
    topic, index = place
    if is_client and (broker.is_internal(topic) or not may_topic(broker, call, Operation.WRITE, topic)):
        return errors.TopicAuthorizationFailed.code
    return NONE if broker.topics.partition(topic, index) is not None else errors.UnknownTopicOrPartition.code


def _verify(broker: Broker, call: Call, one: m.AddPartitionsToTxnTransaction, place: TopicPartition) -> int:
    try:
        shard = broker.transactions.shard_for_request(one.transactional_id, call.node)
        shard.verify_partition(one.transactional_id, one.producer_id, one.producer_epoch, place)
    except errors.KafkaError as error:
        return error.code
    return NONE


async def _topics(codes: Codes) -> list[m.AddPartitionsToTxnTopicResult]:
    topics: list[m.AddPartitionsToTxnTopicResult] = []
    by_name: dict[str, list[m.AddPartitionsToTxnPartitionResult]] = {}
    async for (name, index), code in in_turns(codes.items()):
        if name not in by_name:
            by_name[name] = []
            topics.append(m.AddPartitionsToTxnTopicResult(name, by_name[name]))
        by_name[name].append(m.AddPartitionsToTxnPartitionResult(index, code))
    return topics
