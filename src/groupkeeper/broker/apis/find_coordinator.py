"""FindCoordinator (10): the node that coordinates a group, a transactional id or a share-partition."""

from __future__ import annotations

from base64 import urlsafe_b64decode

from groupkeeper.broker.apis._access import require_cluster, require_group, require_use
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.coordination.group_host import GroupHost
from groupkeeper.broker.coordination.transaction_host import TransactionHost
from groupkeeper.broker.placement.placement import NO_LEADER
from groupkeeper.broker.shares.state_host import ShareStateHost
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

_SEVERAL_KEYS_SINCE = 4
_SHARE_SINCE = 6
UUID_LENGTH = 16
_GROUP, _TRANSACTION, _SHARE = 0, 1, 2


async def handle(broker: Broker, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if call.api_version >= _SEVERAL_KEYS_SINCE:
        return FindCoordinatorResponse(
            coordinators=[_find(broker, call, request.key_type, key) for key in request.coordinator_keys]
        )
    found = _find(broker, call, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        # In this version Apache Kafka sends a message even without an error; in later versions it sends none.
        error_message=errors.error_for(found.error_code).message if found.error_code else "NONE",
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def refuse(call: Call, request: FindCoordinatorRequest, error: KafkaError) -> FindCoordinatorResponse:
    if call.api_version < _SEVERAL_KEYS_SINCE:
        return FindCoordinatorResponse(error_code=error.code, error_message=error.message, node_id=-1, port=-1)
    return FindCoordinatorResponse(coordinators=[_failure(key, error) for key in request.coordinator_keys])


def _find(broker: Broker, call: Call, key_type: int, key: str) -> Coordinator:
    try:
        _check(broker, call, key_type, key)
        host = _shard_host(broker, key_type)
        if not host.ensure_topic():
            # The topic now exists for the next request.
            raise errors.CoordinatorNotAvailable
        shard = host.shards[host.partition_of(key)]
        at = shard.log.placement
        known = at.known_to(call.node)
        if known.leader == NO_LEADER or (known is at and shard.has_resigned):
            raise errors.CoordinatorNotAvailable
    except KafkaError as error:
        return _failure(key, error)
    node = broker.endpoint(call.listener, known.leader)
    return Coordinator(key, node.node_id, node.host, node.port, 0, "")


def _shard_host(broker: Broker, key_type: int) -> GroupHost | TransactionHost | ShareStateHost:
    if key_type == _GROUP:
        return broker.groups
    return broker.share_states if key_type == _SHARE else broker.transactions


def _check(broker: Broker, call: Call, key_type: int, key: str) -> None:
    """Raises an error for an invalid request."""
    if key_type == _GROUP:
        require_group(broker, call, Operation.DESCRIBE, key)
    elif key_type == _TRANSACTION:
        require_use(broker, call, key, Operation.DESCRIBE)
    elif key_type == _SHARE and call.api_version >= _SHARE_SINCE:
        require_cluster(broker, call, Operation.CLUSTER_ACTION)
        if not _is_share_key(key):
            raise errors.InvalidRequest
    else:
        raise errors.InvalidRequest


def _is_share_key(key: str) -> bool:
    """Whether the key is `group:topic id:partition`; the group may have colons, the partition a sign."""
    group_id, topic_id, partition = ("", "", *key.rsplit(":", 2))[-3:]
    try:
        is_id = len(urlsafe_b64decode(topic_id + "==")) == UUID_LENGTH
    except ValueError:
        return False
    return bool(group_id) and is_id and partition.removeprefix("-").isdecimal()


def _failure(key: str, error: KafkaError) -> Coordinator:
    return Coordinator(key, -1, "", -1, error.code, "")
