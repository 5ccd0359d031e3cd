"""The common code of the transaction APIs."""

from __future__ import annotations

from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import InvalidProducerEpoch, KafkaError, ProducerFenced


def may_use(broker: Broker, call: Call, transactional_id: str, operation: Operation = Operation.WRITE) -> bool:
    """Whether the caller may do the operation with the transactional id."""
    return broker.authorizer.allows(call, operation, ResourceType.TRANSACTIONAL_ID, transactional_id)


def code_for_version(since_version: int, version: int, code: int) -> int:
    """Replaces PRODUCER_FENCED by INVALID_PRODUCER_EPOCH for versions before `since_version`, which lack it."""
    is_unknown = code == ProducerFenced.code and version < since_version
    return InvalidProducerEpoch.code if is_unknown else code


def writer_error(error: KafkaError) -> KafkaError:
    """Replaces PRODUCER_FENCED by INVALID_PRODUCER_EPOCH, as for writers in Kafka 4.4.0's AddPartitionsToTxnManager."""
    return InvalidProducerEpoch() if isinstance(error, ProducerFenced) else error
