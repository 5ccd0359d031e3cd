"""The common part of describing consumer, share and streams groups: authorization, and the requests to coordinators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from groupkeeper.broker.apis._groups import may, may_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.kernel.failures import failure_of
from groupkeeper.protocol.errors import GroupAuthorizationFailed, TopicAuthorizationFailed
from groupkeeper.protocol.primitives import Message


class Described(Protocol):
    """What the described groups of all three types have."""

    error_code: int
    group_id: str
    authorized_operations: int


Group = TypeVar("Group", bound=Described)

_HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def describe_visible(
    broker: Broker,
    call: Call,
    request_of: Callable[[list[str]], Message],
    described_as: Callable[[int, str | None, str], Group],
    topics_of: Callable[[Group], Iterable[str]],
) -> Sequence[Group]:
    """The requested groups, in the call's order, as its caller may see them.

    Args:
        request_of: the request to the coordinator of some of the groups. described_as: the class of a group in the
        answer. topics_of: the topics in the description of a group.
    """
    request = call.message
    group_ids: Sequence[str] = request.group_ids  # type: ignore[attr-defined]
    described: dict[str, Group] = {}
    visible = [one for one in group_ids if may(broker, call, Operation.DESCRIBE, one)]
    for part in broker.groups.split_by_shard(visible):
        response = broker.groups.reply(part[0], request_of(part), call)
        for group in response.groups:  # type: ignore[attr-defined]
            is_hidden = not group.error_code and not _may_see(broker, call, topics_of(group))
            if is_hidden:
                error = TopicAuthorizationFailed(_HIDDEN_TOPICS)
                described[group.group_id] = failure_of(described_as, group.group_id, error)
                continue
            if not group.error_code and request.include_authorized_operations:  # type: ignore[attr-defined]
                group.authorized_operations = broker.authorizer.allowed_group_operations(call, group.group_id)
            described[group.group_id] = group
    return [described.get(one) or failure_of(described_as, one, GroupAuthorizationFailed()) for one in group_ids]


def _may_see(broker: Broker, call: Call, topics: Iterable[str]) -> bool:
    return all(may_topic(broker, call, Operation.DESCRIBE, topic) for topic in topics)
