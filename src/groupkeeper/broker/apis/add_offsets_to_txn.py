"""AddOffsetsToTxn (25): makes a group's partition of the offsets topic part of a transaction."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import may
from groupkeeper.broker.apis._transactions import may_use, told_before
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.coordination.runtime import OFFSETS_TOPIC
from groupkeeper.protocol import errors
from groupkeeper.protocol.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from groupkeeper.protocol.primitives import RootMessage

_FENCED_SINCE = 2


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, AddOffsetsToTxnRequest)
    try:
        if not may_use(broker, call, request.transactional_id):
            raise errors.TransactionalIdAuthorizationFailed
        if not may(broker, call, Operation.READ, request.group_id):
            raise errors.GroupAuthorizationFailed
        if not broker.groups.ensure_topic():
            raise errors.CoordinatorNotAvailable
        partition = (OFFSETS_TOPIC, broker.groups.partition_of(request.group_id))
        await broker.transactions.add_partitions(
            request.transactional_id, request.producer_id, request.producer_epoch, (partition,), call
        )
    except errors.KafkaError as error:
        return AddOffsetsToTxnResponse(error_code=told_before(_FENCED_SINCE, call.api_version, error.code))
    return AddOffsetsToTxnResponse()
