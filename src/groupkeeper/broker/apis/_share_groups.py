"""The common code of the APIs of share groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Protocol, TypeVar

from groupkeeper.broker.apis._groups import may, may_topic
from groupkeeper.broker.authorizer import CLUSTER_NAME, Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.long_requests import in_turns
from groupkeeper.broker.shares.state import coordinator_key
from groupkeeper.coordinator.refusals import refuse
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.protocol import errors
from groupkeeper.protocol.primitives import RootMessage


class Partition(Protocol):
    """A share-partition's part of a request."""

    partition: int


D = TypeVar("D", bound=Partition)
D_co = TypeVar("D_co", bound=Partition, covariant=True)
P = TypeVar("P")


class Topic(Protocol[D_co]):
    """A topic's part of a request."""

    topic_id: bytes

    @property
    def partitions(self) -> Sequence[D_co]: ...


class StateRequest(Protocol[D_co]):
    """A request to the share coordinator."""

    group_id: str

    @property
    def topics(self) -> Sequence[Topic[D_co]]: ...


def trouble_of(broker: Broker) -> errors.KafkaError | None:
    """The error for every request of share groups if they are not served; None if they are."""
    return errors.UnsupportedVersion() if broker.config.features.get("share.version", 1) < 1 else None


async def ask_without_hidden(
    broker: Broker, call: Call, operation: Operation, hidden: Callable[[Any], Any]
) -> RootMessage:
    """The group coordinator's reply to a request about topics; for those that the caller may not read, `hidden` makes
    the results.
    """
    request: Any = copy(call.message)
    trouble = trouble_of(broker)
    if trouble is None and not may(broker, call, operation, request.group_id):
        trouble = errors.GroupAuthorizationFailed()
    if trouble is not None:
        response: Any = refuse(request, trouble)
    else:
        readable, results = [], []
        async for topic in in_turns(request.topics):
            if may_topic(broker, call, Operation.READ, topic.topic_name):
                readable.append(topic)
            else:
                results.append(hidden(topic))
        request.topics = readable
        response = await broker.groups.ask(request.group_id, request, call)
        if results and not response.error_code:
            response.responses = [*results, *response.responses]
    assert isinstance(response, RootMessage)
    return response


async def ask_share_coordinator(
    broker: Broker,
    call: Call,
    request: StateRequest[D],
    operate: Callable[[SharePartitionKey, D], P],
    failure: Callable[[int, int, str], P],
) -> list[tuple[bytes, list[P]]]:
    """The results of an operation on every share-partition of a request, by topic id.

    Args:
        operate: performs the operation on one share-partition and returns the result; raises `KafkaError`.
        failure: makes the result from partition, error code and message.
    """
    if not broker.authorizer.allows(call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return fail_all(request, errors.ClusterAuthorizationFailed(), failure)
    trouble = trouble_of(broker)
    if trouble is not None:
        return fail_all(request, trouble, failure)
    answers = []
    for topic in request.topics if request.group_id else ():
        results = []
        for one in topic.partitions:
            key = SharePartitionKey(request.group_id, topic.topic_id, one.partition)
            try:
                # FindCoordinator creates the topic
                broker.share_states.shard_for_request(coordinator_key(key), call.node)
                await broker.share_states.ready(key)
                results.append(operate(key, one))
            except errors.KafkaError as error:
                results.append(failure(one.partition, error.code, error.message))
        if results:
            answers.append((topic.topic_id, results))
    return answers


def fail_all(
    request: StateRequest[D], error: errors.KafkaError, failure: Callable[[int, int, str], P]
) -> list[tuple[bytes, list[P]]]:
    """The results of a request to the share coordinator that failed as a whole."""
    return [
        (topic.topic_id, [failure(one.partition, error.code, error.message) for one in topic.partitions])
        for topic in request.topics
    ]
