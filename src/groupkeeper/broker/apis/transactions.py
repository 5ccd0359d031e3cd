"""InitProducerId (22), AddPartitionsToTxn (24), AddOffsetsToTxn (25), EndTxn (26), WriteTxnMarkers (27),
DescribeTransactions (65) and ListTransactions (66).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import copy

from groupkeeper.broker.apis._access import may_cluster, may_topic, may_use, require_cluster, require_group, require_use
from groupkeeper.broker.apis._groups import all_of
from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.coordination.pending_replication import PendingReplication
from groupkeeper.broker.coordination.topics_view import regex_error
from groupkeeper.broker.coordination.transaction_marker import Marker
from groupkeeper.broker.network.long_requests import in_turns
from groupkeeper.coordinator.transactions.views import STATE_NAMES
from groupkeeper.protocol import OFFSETS_TOPIC, errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE, InvalidProducerEpoch, KafkaError, ProducerFenced
from groupkeeper.protocol.messages import describe_transactions_response, list_transactions_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.coordinator.transactions.transaction import TopicPartition

    Codes = dict[TopicPartition, int]


_FENCED_SINCE = 2
_INIT_FENCED_SINCE = 4


async def handle_init(broker: Broker, call: Call, request: m.InitProducerIdRequest) -> m.InitProducerIdResponse:
    """A producer id for idempotent producers, and the next epoch for transactional ones. Version 6, with two-phase
    commit (KIP-939), is unstable in Kafka 4.4, and served only if the configuration enables it.
    """
    if request.transactional_id is not None:
        require_use(broker, call, request.transactional_id)
    if request.enable2_pc:
        # Two-phase commit is off, as it is by default in Apache Kafka.
        raise errors.TransactionalIdAuthorizationFailed
    if request.keep_prepared_txn:
        raise errors.UnsupportedVersion
    if (request.producer_id < 0) != (request.producer_epoch < 0) or request.transactional_id == "":
        raise errors.InvalidRequest
    if request.transactional_id is None:
        if not _may_write_at_all(broker, call):
            raise errors.ClusterAuthorizationFailed
        return m.InitProducerIdResponse(producer_id=broker.new_producer_id(), producer_epoch=0)
    response = await broker.transactions.ask(request.transactional_id, request, call)
    assert isinstance(response, m.InitProducerIdResponse)
    if response.error_code:
        return _refused(_code_for_version(_INIT_FENCED_SINCE, call.api_version, response.error_code))
    return response


def refuse_init(call: Call, request: m.InitProducerIdRequest, error: KafkaError) -> m.InitProducerIdResponse:
    return _refused(error.code)


def _may_write_at_all(broker: Broker, call: Call) -> bool:
    return may_cluster(broker, call, Operation.IDEMPOTENT_WRITE) or broker.authorizer.allows_any(
        call, Operation.WRITE, ResourceType.TOPIC
    )


def _refused(code: int) -> m.InitProducerIdResponse:
    return m.InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


_BATCHES_SINCE = 4


async def handle_add_partitions(
    broker: Broker, call: Call, request: m.AddPartitionsToTxnRequest
) -> m.AddPartitionsToTxnResponse:
    """Adds partitions to a transaction: for clients up to version 3; from version 4 for brokers, or verifies them."""
    if call.api_version < _BATCHES_SINCE:
        codes = await _add(broker, call, _only_transaction(request), is_client=True)
        return m.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await _topics(codes))
    require_cluster(broker, call, Operation.CLUSTER_ACTION)
    added = await all_of(broker, (_add(broker, call, one, is_client=False) for one in request.transactions))
    return m.AddPartitionsToTxnResponse(
        results_by_transaction=[
            m.AddPartitionsToTxnResult(one.transactional_id, await _topics(codes))
            for one, codes in zip(request.transactions, added, strict=True)
        ]
    )


def refuse_add_partitions(
    call: Call, request: m.AddPartitionsToTxnRequest, error: errors.KafkaError
) -> m.AddPartitionsToTxnResponse:
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


async def _add(broker: Broker, call: Call, one: m.AddPartitionsToTxnTransaction, *, is_client: bool) -> Codes:
    """The outcome by partition; all are added, or none."""
    tps = [(topic.name, index) for topic in one.topics for index in topic.partitions]
    if is_client and not may_use(broker, call, one.transactional_id):
        return dict.fromkeys(tps, errors.TransactionalIdAuthorizationFailed.code)
    codes = {}
    async for tp in in_turns(tps):
        codes[tp] = _check(broker, call, tp, is_client=is_client)
    if any(codes.values()):
        return {tp: code or errors.OperationNotAttempted.code for tp, code in codes.items()}
    if one.verify_only:
        return {tp: _verify(broker, call, one, tp) for tp in tps}
    try:
        await broker.transactions.add_partitions(one.transactional_id, one.producer_id, one.producer_epoch, tps, call)
    except errors.KafkaError as error:
        return dict.fromkeys(tps, _code_for_version(_FENCED_SINCE, call.api_version, error.code))
    return dict.fromkeys(tps, NONE)


def _check(broker: Broker, call: Call, tp: TopicPartition, *, is_client: bool) -> int:
    topic, index = tp
    if is_client and (broker.is_internal(topic) or not may_topic(broker, call, Operation.WRITE, topic)):
        return errors.TopicAuthorizationFailed.code
    return NONE if broker.topics.partition(topic, index) is not None else errors.UnknownTopicOrPartition.code


def _verify(broker: Broker, call: Call, one: m.AddPartitionsToTxnTransaction, tp: TopicPartition) -> int:
    try:
        shard = broker.transactions.shard_for_request(one.transactional_id, call.node)
        shard.verify_partition(one.transactional_id, one.producer_id, one.producer_epoch, tp)
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


async def handle_add_offsets(
    broker: Broker, call: Call, request: m.AddOffsetsToTxnRequest
) -> m.AddOffsetsToTxnResponse:
    """Makes a group's partition of the offsets topic part of a transaction."""
    try:
        require_use(broker, call, request.transactional_id)
        require_group(broker, call, Operation.READ, request.group_id)
        if not broker.groups.ensure_topic():
            raise errors.CoordinatorNotAvailable
        partition = (OFFSETS_TOPIC, broker.groups.partition_of(request.group_id))
        await broker.transactions.add_partitions(
            request.transactional_id, request.producer_id, request.producer_epoch, (partition,), call
        )
    except errors.KafkaError as error:
        return m.AddOffsetsToTxnResponse(error_code=_code_for_version(_FENCED_SINCE, call.api_version, error.code))
    return m.AddOffsetsToTxnResponse()


async def handle_end(broker: Broker, call: Call, request: m.EndTxnRequest) -> m.EndTxnResponse:
    """Commits or aborts a transaction; from version 5 on the response has the epoch of the next one (KIP-890)."""
    require_use(broker, call, request.transactional_id)
    response = await broker.transactions.ask(request.transactional_id, request, call)
    assert isinstance(response, m.EndTxnResponse)
    if response.error_code:
        return m.EndTxnResponse(error_code=_code_for_version(_FENCED_SINCE, call.api_version, response.error_code))
    return response


_Lagging = list[tuple[m.WritableTxnMarkerPartitionResult, PendingReplication]]
"""Results whose markers in-sync replicas still lack, with these markers."""


async def handle_markers(broker: Broker, call: Call, request: m.WriteTxnMarkersRequest) -> m.WriteTxnMarkersResponse:
    """Writes transaction markers for operators who abort a hanging transaction."""
    if not may_cluster(broker, call, Operation.ALTER):
        require_cluster(broker, call, Operation.CLUSTER_ACTION)
    lagging: _Lagging = []
    response = m.WriteTxnMarkersResponse([_write(broker, marker, call.node, lagging) for marker in request.markers])
    deadline_s = asyncio.get_running_loop().time() + broker.config.request_timeout_ms / 1000
    for result, written in lagging:
        if not await written.wait_until_decided(deadline_s):
            result.error_code = errors.RequestTimedOut.code
        elif written.has_moved:
            result.error_code = errors.NotLeaderOrFollower.code
    return response


def refuse_markers(call: Call, request: m.WriteTxnMarkersRequest, error: KafkaError) -> m.WriteTxnMarkersResponse:
    return m.WriteTxnMarkersResponse(
        [
            m.WritableTxnMarkerResult(
                marker.producer_id,
                [
                    m.WritableTxnMarkerTopicResult(
                        topic.name,
                        [m.WritableTxnMarkerPartitionResult(index, error.code) for index in topic.partition_indexes],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _write(broker: Broker, wanted: m.WritableTxnMarker, node: int, lagging: _Lagging) -> m.WritableTxnMarkerResult:
    marker = Marker(
        wanted.producer_id,
        wanted.producer_epoch,
        wanted.transaction_result,
        wanted.coordinator_epoch,
        wanted.transaction_version,
    )
    return m.WritableTxnMarkerResult(
        wanted.producer_id,
        [
            m.WritableTxnMarkerTopicResult(
                topic.name,
                [_write_one(broker, topic.name, index, marker, node, lagging) for index in topic.partition_indexes],
            )
            for topic in wanted.topics
        ],
    )


def _write_one(
    broker: Broker, topic: str, index: int, marker: Marker, node: int, lagging: _Lagging
) -> m.WritableTxnMarkerPartitionResult:
    log = broker.topics.partition(topic, index)
    result = m.WritableTxnMarkerPartitionResult(index, NONE)
    try:
        if log is None or (topic == OFFSETS_TOPIC and not broker.groups.shards):
            raise errors.UnknownTopicOrPartition
        log.placement.require_leader(node)
        written = broker.transactions.write_marker((topic, index), marker)
        if written is not None:
            lagging.append((result, written))
    except KafkaError as error:
        result.error_code = error.code
    return result


async def handle_describe(
    broker: Broker, call: Call, request: m.DescribeTransactionsRequest
) -> m.DescribeTransactionsResponse:
    described: dict[str, describe_transactions_response.TransactionState] = {}
    for transactional_id in request.transactional_ids:
        if not transactional_id:
            described[transactional_id] = _failure(transactional_id, errors.InvalidRequest())
        elif not may_use(broker, call, transactional_id, Operation.DESCRIBE):
            described[transactional_id] = _failure(transactional_id, errors.TransactionalIdAuthorizationFailed())
    known = [one for one in dict.fromkeys(request.transactional_ids) if one not in described]
    for ids in broker.transactions.split_by_shard(known):
        part = copy(request)
        part.transactional_ids = ids
        response = await broker.transactions.ask(ids[0], part, call)
        assert isinstance(response, m.DescribeTransactionsResponse)
        for found in response.transaction_states:
            if found.topics:
                topics = (one for one in found.topics if may_topic(broker, call, Operation.DESCRIBE, one.topic))
                found.topics = list(topics)
            described[found.transactional_id] = found
    return m.DescribeTransactionsResponse(transaction_states=[described[one] for one in request.transactional_ids])


def refuse_describe(
    call: Call, request: m.DescribeTransactionsRequest, error: KafkaError
) -> m.DescribeTransactionsResponse:
    return m.DescribeTransactionsResponse(
        transaction_states=[_failure(transactional_id, error) for transactional_id in request.transactional_ids]
    )


def _failure(transactional_id: str, error: KafkaError) -> describe_transactions_response.TransactionState:
    return describe_transactions_response.TransactionState(error_code=error.code, transactional_id=transactional_id)


async def handle_list(broker: Broker, call: Call, request: m.ListTransactionsRequest) -> m.ListTransactionsResponse:
    matches = _matcher(request.transactional_id_pattern)
    found: list[list_transactions_response.TransactionState] = []
    unknown = [name async for name in in_turns(request.state_filters) if name not in STATE_NAMES]
    # Remove unknown state names; if none is left, an empty one stays as a filter that matches nothing.
    known = copy(request)
    known.state_filters = sorted(STATE_NAMES.intersection(request.state_filters)) or [""] * bool(unknown)
    for shard in broker.transactions.shards_on(call.node):
        response = shard.ask(known, call.api_version)
        assert isinstance(response, m.ListTransactionsResponse)
        if response.error_code:
            return response
        found += response.transaction_states
    return m.ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=[
            one
            for one in found
            if matches(one.transactional_id) and may_use(broker, call, one.transactional_id, Operation.DESCRIBE)
        ],
    )


def _matcher(pattern: str | None) -> Callable[[str], object]:
    """Tests whether a whole id matches a pattern; None matches all. Raises `InvalidRegularExpression`."""
    if not pattern:
        return lambda _: True
    reason = regex_error(pattern)
    if reason is not None:
        raise errors.InvalidRegularExpression(reason)
    import re2

    compiled = re2.compile(pattern)
    return lambda transactional_id: compiled.fullmatch(transactional_id) is not None


def _code_for_version(since_version: int, version: int, code: int) -> int:
    """Replaces PRODUCER_FENCED by INVALID_PRODUCER_EPOCH for versions before `since_version`, which lack it."""
    is_unknown = code == ProducerFenced.code and version < since_version
    return InvalidProducerEpoch.code if is_unknown else code
