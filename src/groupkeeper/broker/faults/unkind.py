"""Legal responses that Apache Kafka rarely sends: a client that cannot handle them has a bug (docs/testing.md).

Everything here is legal. All refusals are retriable, and no two consecutive requests of the same API are affected, so
that a client with one retry succeeds.
"""

from __future__ import annotations

import asyncio
import copy
import math
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

from groupkeeper.broker.call import Call
from groupkeeper.broker.network.connection import Connection
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.fetch_response import FetchResponse, PartitionData
from groupkeeper.protocol.primitives import Message, RootMessage
from groupkeeper.protocol.record_batch import iter_headers

_HIT = 0.3
_LONGEST_THROTTLE_MS = 30
_CLOSE_AFTER_S = 0.002
_OF_COORDINATORS = (errors.NotCoordinator, errors.CoordinatorLoadInProgress, errors.CoordinatorNotAvailable)
_OF_LEADERS = (errors.NotLeaderOrFollower,)
_PRODUCE, _LIST_OFFSETS, _METADATA, _FIND_COORDINATOR, _LIST_GROUPS, _API_VERSIONS = 0, 2, 3, 10, 16, 18
_SPARED = frozenset({_API_VERSIONS, 17, 36})
"""APIs that open a connection: ApiVersions, SaslHandshake, SaslAuthenticate."""

_ERRORS: dict[int, tuple[type[KafkaError], ...]] = {
    **dict.fromkeys((_PRODUCE, _LIST_OFFSETS), _OF_LEADERS),
    # OffsetCommit, OffsetFetch, JoinGroup, Heartbeat, LeaveGroup, SyncGroup, DescribeGroups, DeleteGroups,
    # OffsetDelete, ConsumerGroupHeartbeat, ConsumerGroupDescribe
    **dict.fromkeys((8, 9, 11, 12, 13, 14, 15, 42, 47, 68, 69), _OF_COORDINATORS),
    _FIND_COORDINATOR: (errors.CoordinatorNotAvailable,),
    _LIST_GROUPS: (errors.CoordinatorLoadInProgress,),
}
_UNORDERED = {_LIST_OFFSETS: "topics", _METADATA: "topics", _LIST_GROUPS: "groups"}


class Unkindness:
    """Chooses the requests that get such a response: the same ones for the same seed and requests.

    Attributes:
        hits: how many requests it has hit.
    """

    def __init__(self, seed: int, move_coordinators: Callable[[str], object]) -> None:
        self.hits = 0
        self._chance = random.Random(seed)
        self._move_coordinators = move_coordinators
        self._was_hit: dict[int, bool] = {}

    async def serve(
        self, call: Call, connection: Connection, respond: Callable[[], Awaitable[RootMessage | None]]
    ) -> RootMessage | None:
        """The response to a request, possibly unkind. Raises `KafkaError`."""
        key = call.api_key
        is_hit = key not in _SPARED and not self._was_hit.get(key) and self._chance.random() < _HIT
        self._was_hit[key] = is_hit
        if not is_hit:
            return await respond()
        self.hits += 1
        self._refuse(call)
        response = await respond()
        return None if response is None else self._changed(call, connection, response)

    def _refuse(self, call: Call) -> None:
        refusals = _ERRORS.get(call.api_key)
        if refusals and self._chance.random() < 0.5:
            raise self._chance.choice(refusals)
        if refusals is _OF_COORDINATORS and self._chance.random() < 0.2:
            with suppress(KafkaError):
                self._move_coordinators(str(self._chance.random()))

    def _changed(self, call: Call, connection: Connection, response: RootMessage) -> RootMessage:
        response = copy.copy(response)  # other callers may have the same object
        chance = self._chance
        if chance.random() < 0.3 and "throttle_time_ms" in response.__slots__:
            throttle_ms = chance.randint(1, _LONGEST_THROTTLE_MS)
            response.throttle_time_ms = throttle_ms  # type: ignore[attr-defined]
            connection.mute(throttle_ms / 1000)
        elif chance.random() < 0.3:
            asyncio.get_running_loop().call_later(_CLOSE_AFTER_S, connection.close_if_idle, math.inf)
        if isinstance(response, FetchResponse):
            self._shorten(response)
        name = _UNORDERED.get(call.api_key)
        if name is not None:
            setattr(response, name, self._shuffled(getattr(response, name)))
        return response

    def _shuffled(self, some: list[Message]) -> list[Message]:
        """The items in another order, and within topics also the partitions."""
        shuffled = [copy.copy(one) for one in some]
        self._chance.shuffle(shuffled)
        for one in shuffled:
            if "partitions" in one.__slots__:
                one.partitions = self._chance.sample(one.partitions, len(one.partitions))  # type: ignore[attr-defined]
        return shuffled

    def _shorten(self, response: FetchResponse) -> None:
        """Omits some partitions as if the response were full, truncates others, and replies NOT_LEADER_OR_FOLLOWER for
        some.
        """
        is_empty = self._chance.random() < 0.2  # as for a throttled client
        topics = []
        for topic in response.responses:
            changed = copy.copy(topic)
            changed.partitions = [self._less(part, is_empty=is_empty) for part in topic.partitions]
            topics.append(changed)
        response.responses = topics

    def _less(self, part: PartitionData, *, is_empty: bool) -> PartitionData:
        lot = self._chance.random()
        if part.error_code == 0 and lot < 0.15:
            return PartitionData(part.partition_index, errors.NotLeaderOrFollower.code, -1, aborted_transactions=None)
        records = part.records or b""
        if not records:
            return part
        part = copy.copy(part)
        if is_empty or lot < 0.4:
            part.records = b""
        elif lot < 0.8:
            first = next((header.size_in_bytes for _, header in iter_headers(records)), len(records))
            part.records = records[: self._chance.randint(min(first, len(records)), len(records))]
        return part
