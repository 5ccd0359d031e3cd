"""The common part of describing consumer, share and streams groups: authorization, and the requests to coordinators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from groupkeeper.broker.apis._groups import may, may_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import GroupAuthorizationFailed, KafkaError, TopicAuthorizationFailed
from groupkeeper.protocol.primitives import Message


class Described(Protocol):
    """What the described groups of all three types have."""

    error_code: int
    group_id: str
    authorized_operations: int


Group = TypeVar("Group", bound=Described)

_HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


async def describe_visible(
    broker: Broker,
    call: Call,
    request_of: Callable[[list[str]], Message],
    failure_of: Callable[[str, KafkaError], Group],
    topics_of: Callable[[Group], Iterable[str]],
) -> Sequence[Group]:
    """The requested groups, in the call's order, as its caller may see them.

    Args:
        request_of: the request to the coordinator of some of the groups. failure_of: a group that is not described,
        with the reason. topics_of: the topics in the description of a group.
    """
    request = call.message
    described: dict[str, Group] = {}
    for group_id in request.group_ids:  # type: ignore[attr-defined]
        if not may(broker, call, Operation.DESCRIBE, group_id):
            described[group_id] = failure_of(group_id, GroupAuthorizationFailed())
    visible = [one for one in request.group_ids if one not in described]  # type: ignore[attr-defined]
    for group_ids in broker.groups.split_by_shard(visible):
        response = await broker.groups.ask(group_ids[0], request_of(group_ids), call)
        for group in response.groups:  # type: ignore[attr-defined]
            is_hidden = not group.error_code and not _may_see(broker, call, topics_of(group))
            if is_hidden:
                described[group.group_id] = failure_of(group.group_id, TopicAuthorizationFailed(_HIDDEN_TOPICS))
                continue
            if not group.error_code and request.include_authorized_operations:  # type: ignore[attr-defined]
                group.authorized_operations = broker.authorizer.allowed_group_operations(call, group.group_id)
            described[group.group_id] = group
    return [described[group_id] for group_id in request.group_ids]  # type: ignore[attr-defined]


def _may_see(broker: Broker, call: Call, topics: Iterable[str]) -> bool:
    return all(may_topic(broker, call, Operation.DESCRIBE, topic) for topic in topics)
