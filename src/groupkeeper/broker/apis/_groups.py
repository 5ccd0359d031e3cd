"""The common code of the group APIs."""

from __future__ import annotations

from asyncio import gather
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from copy import copy
from itertools import chain
from typing import Any, TypeVar

from groupkeeper.broker.apis._access import may_group
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.refusals import refuse
from groupkeeper.protocol.errors import GroupAuthorizationFailed, KafkaError, UnsupportedVersion
from groupkeeper.protocol.framing import response_class
from groupkeeper.protocol.messages import DeleteGroupsResponse
from groupkeeper.protocol.primitives import Message, RootMessage

T = TypeVar("T")


async def ask(broker: Broker, call: Call, operation: Operation, group_id: str, request: Message) -> Message:
    """The coordinator's response, or its refusal for a principal that may not do `operation`."""
    if not may_group(broker, call, operation, group_id):
        return refuse(request, GroupAuthorizationFailed())
    return await broker.groups.ask(group_id, request, call)


async def ask_each(
    broker: Broker,
    call: Call,
    operation: Operation,
    request: RootMessage,
    name: str,
    refused: Callable[[str, KafkaError], T],
    *,
    id_of: Callable[[Any], str] = str,
    known: Callable[[Any], Any] | None = None,
    parks: bool = False,
) -> Any:
    """The coordinators' response about several groups, in their order: of several responses the first, with all
    groups. A group whose coordinator is late, or that the caller may not access, does not affect the others.

    Args:
        request: may be modified. name: its array of groups. refused: the response for a group that the caller may not
        access. id_of: the id of an element. known: the element to send to its coordinator; None: unchanged.
        parks: whether coordinators may park the request.
    """
    asked = getattr(request, name)
    if len(asked) == 1 and may_group(broker, call, operation, group_id := id_of(asked[0])):  # the usual case
        if known is not None:
            setattr(request, name, [known(asked[0])])
        if parks or broker.answers_may_wait:
            return await broker.groups.ask(group_id, request, call)
        return broker.groups.reply(group_id, request, call)
    allowed = [at for at, one in enumerate(asked) if may_group(broker, call, operation, id_of(one))]
    parts = broker.groups.split_by_shard(allowed, lambda at: id_of(asked[at]))
    asking = []
    for indexes in parts:
        part = copy(request)
        setattr(part, name, [asked[at] if known is None else known(asked[at]) for at in indexes])
        asking.append(broker.groups.ask(id_of(asked[indexes[0]]), part, call))
    responses: list[Any] = await all_of(broker, asking)
    if len(allowed) == len(asked) and len(responses) == 1:
        return responses[0]
    whole = responses[0] if responses else response_class(request.API_KEY)()
    array = "results" if isinstance(whole, DeleteGroupsResponse) else "groups"
    found = dict(zip(chain.from_iterable(parts), chain(*[getattr(one, array) for one in responses]), strict=True))
    about = [found.get(at) or refused(id_of(one), GroupAuthorizationFailed()) for at, one in enumerate(asked)]
    setattr(whole, array, about)
    return whole


async def all_of(broker: Broker, answering: Iterable[Awaitable[T]]) -> list[T]:
    """The coordinators' responses. Waits for late coordinators concurrently."""
    return await gather(*answering) if broker.answers_may_wait else [await one for one in answering]


def at_once(answering: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never waits, without a task; returns its result."""
    try:
        answering.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise AssertionError("it waits")


_FEATURES = {"consumer": "group.version", "share": "share.version", "streams": "streams.version"}


def require_served(broker: Broker, group_type: str) -> None:
    """Raises `UnsupportedVersion` unless requests of this type of group (`consumer`, `share`, `streams`) are served."""
    is_allowed = group_type == "share" or group_type in broker.config.group_coordinator_rebalance_protocols
    if not is_allowed or broker.config.features.get(_FEATURES[group_type], 1) < 1:
        raise UnsupportedVersion
