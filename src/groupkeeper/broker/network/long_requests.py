"""Processes long requests in parts, between which other clients get a turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from copy import copy
from itertools import chain
from typing import Any, Final, TypeVar

from groupkeeper.broker.base import BrokerBase
from groupkeeper.broker.call import Call
from groupkeeper.protocol.primitives import Message, RootMessage

Path = tuple[str, ...]
R = TypeVar("R")
T = TypeVar("T")

_PART = 500
"""Elements of a part, which take a few milliseconds."""

_OF_NUMBERS = frozenset((1, 9, 24, 27, 34, 35, 43, 45, 46, 61, 68, 78, 79, 90))
"""Keys of APIs whose long requests have arrays of numbers. Elements of other APIs have names or several fields."""

_PRODUCE = 0
_SPARE_ROOM = 50_000
"""Elements that any long request may have, whatever its size."""

_ARRAYS = {
    2: "topics.partitions > topics.partitions",
    8: "topics.partitions > topics.partitions",
    9: "groups.topics.partition_indexes > groups.topics.partitions, topics.partition_indexes > topics.partitions",
    10: "coordinator_keys > coordinators",
    13: "members > members",
    15: "groups > groups",
    21: "topics.partitions > topics.partitions",
    23: "topics.partitions > topics.partitions",
    24: "transactions > results_by_transaction",
    27: "markers.topics.partition_indexes > markers.topics.partitions",
    28: "topics.partitions > topics.partitions",
    30: "creations > results",
    31: "filters > filter_results",
    32: "resources > results",
    34: "dirs.topics.partitions > results.partitions",
    42: "groups_names > results",
    43: "topic_partitions.partitions > replica_election_results.partition_result",
    45: "topics.partitions > responses.partitions",
    46: "topics.partition_indexes > topics.partitions",
    47: "topics.partitions > topics.partitions",
    49: "entries > entries",
    55: "topics.partitions > topics.partitions",
    61: "topics.partition_indexes > topics.partitions",
    65: "transactional_ids > transaction_states",
    69: "group_ids > groups",
    77: "group_ids > groups",
    83: "topics.partitions > results.partitions",
    84: "topics.partitions > results.partitions",
    85: "topics.partitions > results.partitions",
    86: "topics.partitions > results.partitions",
    87: "topics.partitions > results.partitions",
    89: "group_ids > groups",
    90: "groups.topics.partitions > groups.topics.partitions",
}
"""By API key: the path of a request's array with independent elements, and of the array of their responses."""


_LONG = 1 << 16
LEAST_LONG: Final = 1 << 14
"""The smallest size in bytes of a long request: 4,000 numbers."""


def is_long(api_key: int, size: int) -> bool:
    """Whether a request of `size` bytes may have so many elements that it must be processed in parts."""
    return size > (LEAST_LONG if api_key in _OF_NUMBERS else _LONG)


def room_of(api_key: int, size: int) -> int:
    """How many elements a request of `size` bytes may have: only a malicious one has shorter elements."""
    if api_key == _PRODUCE:  # each element has a batch
        return size // 32
    return _SPARE_ROOM + size // (4 if api_key in _OF_NUMBERS else 16)


async def in_parts(call: Call, carry_out: Callable[[Call], Awaitable[RootMessage | None]]) -> RootMessage | None:
    """Processes a request part by part, and returns the joined response."""
    whole: Any = None
    wanted, given = _arrays_of(call)
    for _, message in _parts(call.message, wanted):
        part = copy(call)
        part.message = message  # type: ignore[assignment]
        response: Any = await carry_out(part)
        if response is None or getattr(response, "error_code", None):
            return response  # type: ignore[no-any-return]
        if whole is None:
            whole = response
        else:
            _join(whole, response, given)
            if hasattr(whole, "throttle_time_ms"):
                whole.throttle_time_ms = max(whole.throttle_time_ms, response.throttle_time_ms)
        await asyncio.sleep(0)
    return whole  # type: ignore[no-any-return]


async def in_turns(elements: Iterable[T]) -> AsyncIterator[T]:
    """Yields the elements, and regularly gives other clients a turn: for requests that cannot be split in parts."""
    for number, element in enumerate(elements, 1):
        yield element
        if number % _PART == 0:
            await asyncio.sleep(0)


async def each_in_turns(broker: BrokerBase, elements: Iterable[T], do: Callable[[T], Awaitable[R]]) -> list[R]:
    """The results of `do` for each element, with turns for other clients. Waits for lagging replicas concurrently."""
    if broker.answers_may_wait:
        return list(await asyncio.gather(*map(do, elements)))
    return [await do(element) async for element in in_turns(elements)]


def _arrays_of(call: Call) -> tuple[Path, Path]:
    for pair in _ARRAYS.get(call.api_key, "").split(", "):
        wanted, _, given = pair.partition(" > ")
        path = tuple(wanted.split("."))
        if wanted and getattr(call.message, path[0]):
            return path, tuple(given.split("."))
    return (), ()


def _parts(struct: Message, path: Path) -> Iterator[tuple[int, Message]]:
    """Splits a struct into copies with a part of the array at `path` each; yields element count and copy."""
    elements = getattr(struct, path[0]) if path else ()
    if not elements or (len(path) == 1 and len(elements) <= _PART):
        yield len(elements) if elements else 1, struct
        return
    parts: Iterable[tuple[int, Any]] = ((1, one) for one in elements)
    if len(path) > 1:
        parts = chain.from_iterable(_parts(one, path[1:]) for one in elements)
    taken: list[Any] = []
    total = 0
    is_whole = True
    for size, part in parts:
        if taken and total + size > _PART:
            yield total, _with(struct, path[0], taken)
            taken, total, is_whole = [], 0, False
        taken.append(part)
        total += size
    yield total, struct if is_whole else _with(struct, path[0], taken)


def _with(struct: Message, name: str, elements: list[Any]) -> Message:
    changed = copy(struct)
    setattr(changed, name, elements)
    return changed


def _join(struct: Message, other: Message, path: Path) -> None:
    """Appends the array of another struct. Merges the responses to two parts of one split element."""
    name, *rest = path
    elements, more = getattr(struct, name), getattr(other, name)
    if not isinstance(elements, list):
        elements = list(elements)
        setattr(struct, name, elements)
    if rest and elements and more and _have_same_head(elements[-1], more[0], rest[0]):
        _join(elements[-1], more[0], tuple(rest))
        more = more[1:]
    elements.extend(more)


def _have_same_head(one: Message, other: Message, tail: str) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in one.__slots__ if name != tail)
