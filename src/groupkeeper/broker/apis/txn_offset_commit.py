"""TxnOffsetCommit (28): commits offsets as part of a transaction; they are pending until it ends."""

from __future__ import annotations

from collections.abc import Awaitable
from copy import copy

from groupkeeper.broker.apis._access import require_group, require_use
from groupkeeper.broker.apis._commits import Refused, known_topics
from groupkeeper.broker.apis._groups import at_once
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.offsets.commit import FIRST_TRANSACTIONAL_COMMIT_VERSION_WITH_TOPIC_IDS
from groupkeeper.coordinator.refusals import refuse_transactional_commit
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m

_LOADING_SINCE = 2
_ABORTABLE_SINCE = 4
_ADDS_SINCE = 5


def reply(
    broker: Broker, call: Call, request: m.TxnOffsetCommitRequest
) -> m.TxnOffsetCommitResponse | Awaitable[m.TxnOffsetCommitResponse]:
    answering = _answer(broker, call, request)
    return answering if broker.answers_may_wait else at_once(answering)


async def _answer(broker: Broker, call: Call, request: m.TxnOffsetCommitRequest) -> m.TxnOffsetCommitResponse:
    require_use(broker, call, request.transactional_id)
    require_group(broker, call, Operation.READ, request.group_id)
    refused = Refused(m.TxnOffsetCommitResponseTopic, m.TxnOffsetCommitResponsePartition)
    is_by_id = call.api_version >= FIRST_TRANSACTIONAL_COMMIT_VERSION_WITH_TOPIC_IDS
    accepted = known_topics(broker, call, request.topics, refused, is_by_id=is_by_id)
    if not accepted:
        return m.TxnOffsetCommitResponse(topics=refused.topics())
    allowed_request = copy(request)
    allowed_request.topics = accepted
    response = await _commit(broker, call, allowed_request)
    response.topics = refused.topics(response.topics)
    return response


def refuse(call: Call, request: m.TxnOffsetCommitRequest, error: errors.KafkaError) -> m.TxnOffsetCommitResponse:
    if isinstance(error, errors.CoordinatorLoadInProgress) and call.api_version < _LOADING_SINCE:
        # Old producers cannot handle COORDINATOR_LOAD_IN_PROGRESS.
        error = errors.CoordinatorNotAvailable()
    return refuse_transactional_commit(request, error)


async def _commit(broker: Broker, call: Call, request: m.TxnOffsetCommitRequest) -> m.TxnOffsetCommitResponse:
    try:
        if not request.group_id:
            raise errors.InvalidGroupId
        while not _admit(broker, call, request):
            await broker.transactions.until_added(request.transactional_id)
    except errors.KafkaError as error:
        return refuse(call, request, error)
    response = await broker.groups.ask(request.group_id, request, call)
    assert isinstance(response, m.TxnOffsetCommitResponse)
    return response


def _admit(broker: Broker, call: Call, request: m.TxnOffsetCommitRequest) -> bool:
    """Asks the transaction coordinator to verify the transaction. The commit follows within the same plain call.
    Returns False if the coordinator must be asked again after `until_added`.
    """
    shard = broker.groups.shard_for_request(request.group_id, call.node)
    shard.require_active()
    adds = call.api_version >= _ADDS_SINCE
    try:
        return broker.transactions.admit(
            shard.log, request.transactional_id, request.producer_id, request.producer_epoch, adds=adds
        )
    except errors.TransactionAbortable as error:
        raise error if call.api_version >= _ABORTABLE_SINCE else errors.InvalidTxnState() from error
    except errors.ProducerFenced as error:
        raise errors.InvalidProducerEpoch from error  # as Kafka 4.4.0's AddPartitionsToTxnManager
