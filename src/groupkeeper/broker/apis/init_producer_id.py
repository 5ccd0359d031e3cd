"""InitProducerId (22): an id for idempotent producers, and the next epoch for transactional ones.

Version 6, with two-phase commit (KIP-939), is unstable in Kafka 4.4 and served only if asked for in the configuration.
"""

from __future__ import annotations

from groupkeeper.broker.apis._access import may_cluster
from groupkeeper.broker.apis._transactions import may_use, told_before
from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol import errors
from groupkeeper.protocol.messages import InitProducerIdRequest, InitProducerIdResponse
from groupkeeper.protocol.primitives import RootMessage

_FENCED_SINCE = 4


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, InitProducerIdRequest)
    if request.transactional_id is not None and not may_use(broker, call, request.transactional_id):
        return _refused(errors.TransactionalIdAuthorizationFailed.code)
    if request.enable2_pc:
        # Two-phase commit is off, as it is by default in Apache Kafka.
        return _refused(errors.TransactionalIdAuthorizationFailed.code)
    if request.keep_prepared_txn:
        return _refused(errors.UnsupportedVersion.code)
    if (request.producer_id < 0) != (request.producer_epoch < 0) or request.transactional_id == "":
        return _refused(errors.InvalidRequest.code)
    if request.transactional_id is None:
        if not _may_write_at_all(broker, call):
            return _refused(errors.ClusterAuthorizationFailed.code)
        return InitProducerIdResponse(producer_id=broker.new_producer_id(), producer_epoch=0)
    answer = await broker.transactions.ask(request.transactional_id, request, call)
    assert isinstance(answer, InitProducerIdResponse)
    if answer.error_code:
        return _refused(told_before(_FENCED_SINCE, call.api_version, answer.error_code))
    return answer


def _may_write_at_all(broker: Broker, call: Call) -> bool:
    return may_cluster(broker, call, Operation.IDEMPOTENT_WRITE) or broker.authorizer.allows_any(
        call, Operation.WRITE, ResourceType.TOPIC
    )


def _refused(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
