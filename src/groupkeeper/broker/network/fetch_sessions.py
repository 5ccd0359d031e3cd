"""Fetch sessions (KIP-227): clients that fetch many partitions send and receive only changes.

A request with epoch 0 opens a session; its response is complete, and has the session id. Later requests have this id,
epochs 1, 2, ... and only new, changed or forgotten partitions; their responses have only partitions with changes. Epoch
−1 requests no session, and closes the given one. As Apache Kafka 4.4.0's FetchSession.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from groupkeeper.java_numbers import INT_MAX
from groupkeeper.protocol.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchRequest
    from groupkeeper.protocol.messages.fetch_response import PartitionData

    Responses = dict["PartitionKey", PartitionData]

NO_SESSION = 0
_INITIAL_EPOCH = 0
_FINAL_EPOCH = -1
_EVICTABLE_AFTER_MS = 120_000
_UNKNOWN = -1


class PartitionKey(NamedTuple):
    """A partition, by the name or the id of its topic; the other field is empty."""

    topic: str
    topic_id: bytes
    partition: int


def _wanted(request: FetchRequest) -> dict[PartitionKey, FetchPartition]:
    """The partitions of a request: if a partition is named twice, its last entry counts."""
    return {
        PartitionKey(topic.topic, topic.topic_id, part.partition): part
        for topic in request.topics
        for part in topic.partitions
    }


class _Cached:
    """The client's fetch parameters of a partition, and the values of the last response."""

    __slots__ = ("high_watermark", "log_start_offset", "wanted")

    def __init__(self, wanted: FetchPartition) -> None:
        self.wanted = wanted
        self.high_watermark = _UNKNOWN
        self.log_start_offset = _UNKNOWN

    def has_news(self, response: PartitionData) -> bool:
        """Whether the response must include the partition; stores the values that the client gets."""
        news = bool(
            response.error_code
            or response.records
            or response.high_watermark != self.high_watermark
            or response.log_start_offset != self.log_start_offset
            or response.diverging_epoch.epoch >= 0
        )
        # Every response repeats an error; the first success after an error is sent too.
        self.high_watermark = _UNKNOWN if response.error_code else response.high_watermark
        self.log_start_offset = response.log_start_offset
        return news


class FetchSession:
    """One client's partitions, in the order in which they are read: partitions that had records come last next time."""

    def __init__(self, session_id: int, now_ms: int, *, by_id: bool) -> None:
        self.session_id = session_id
        """Positive."""
        self.epoch = 1
        """The epoch that the next request must have."""
        self.by_id = by_id
        """Whether the session names topics by id, which never changes."""
        self.names: dict[bytes, str] = {}
        """The names of topics with known ids, kept when the topics are deleted."""
        self.created_ms = now_ms
        """For eviction, as the next."""
        self.used_ms = now_ms
        self._partitions: dict[PartitionKey, _Cached] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def take(self, request: FetchRequest) -> None:
        """Applies the new, changed and forgotten partitions of a request."""
        for key, part in _wanted(request).items():
            cached = self._partitions.get(key)
            if cached is None:
                self._partitions[key] = _Cached(part)
            else:
                cached.wanted = part
        for forgotten in request.forgotten_topics_data:
            self.names.pop(forgotten.topic_id, None)
            for index in forgotten.partitions:
                self._partitions.pop(PartitionKey(forgotten.topic, forgotten.topic_id, index), None)

    def wanted(self) -> dict[PartitionKey, FetchPartition]:
        """All its partitions, as in a full request."""
        return {key: cached.wanted for key, cached in self._partitions.items()}

    def begin(self, wanted: Mapping[PartitionKey, FetchPartition], responses: Responses) -> None:
        """Stores the partitions of the request that opens the session, in the order of its response."""
        for key, response in responses.items():
            self._partitions[key] = cached = _Cached(wanted[key])
            cached.has_news(response)

    def news(self, responses: Responses) -> Responses:
        """The part of a full response that has changed since the last one."""
        return {key: response for key, response in responses.items() if self._is_news(key, response)}

    def _is_news(self, key: PartitionKey, response: PartitionData) -> bool:
        cached = self._partitions.get(key)
        if cached is None:
            return False
        if response.records:
            self._partitions[key] = self._partitions.pop(key)
        return cached.has_news(response)


class FetchContext:
    """One request and its session.

    Attributes:
        wanted: the partitions to read.
        names: the known names of topics requested by id, kept in the session.
    """

    def __init__(
        self,
        sessions: FetchSessions,
        request: FetchRequest,
        session: FetchSession | None = None,
        *,
        by_id: bool,
        opens: bool = False,
    ) -> None:
        self.wanted = _wanted(request) if session is None else session.wanted()
        self.names: dict[bytes, str] = {} if session is None else session.names
        self._sessions = sessions
        self._session = session
        self._by_id = by_id
        self._opens = opens
        self._epoch = 0 if session is None else session.epoch

    def answer(self, responses: Responses, now_ms: int) -> tuple[int, int, Responses]:
        """Error code, session id and partitions of the response."""
        if self._session is not None:
            if self._session.epoch != self._epoch:  # another request of the session came meanwhile
                return InvalidFetchSessionEpoch.code, self._session.session_id, {}
            return 0, self._session.session_id, self._session.news(responses)
        session = self._sessions.open(len(responses), now_ms, by_id=self._by_id) if self._opens else None
        if session is None:
            return 0, NO_SESSION, responses
        session.begin(self.wanted, responses)
        session.names = self.names
        return 0, session.session_id, responses


class FetchSessions:
    """The sessions of all clients: at most `max.incremental.fetch.session.cache.slots`."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}  # the least recently used comes first

    def __len__(self) -> int:
        return len(self._sessions)

    def context(self, request: FetchRequest, now_ms: int, *, by_id: bool) -> FetchContext:
        """The context of a request. Raises `FetchSessionIdNotFound`, `InvalidFetchSessionEpoch`,
        `FetchSessionTopicIdError`.
        """
        if request.session_epoch in (_INITIAL_EPOCH, _FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            return FetchContext(self, request, by_id=by_id, opens=request.session_epoch == _INITIAL_EPOCH)
        session = self._sessions.get(request.session_id)
        if session is None:
            raise FetchSessionIdNotFound
        if session.epoch != request.session_epoch:
            raise InvalidFetchSessionEpoch
        if session.by_id != by_id:
            raise FetchSessionTopicIdError
        session.take(request)
        if not len(session):
            del self._sessions[session.session_id]
            return FetchContext(self, request, by_id=by_id)
        session.epoch = 1 if session.epoch == INT_MAX else session.epoch + 1
        session.used_ms = now_ms
        self._sessions[session.session_id] = self._sessions.pop(session.session_id)
        return FetchContext(self, request, session, by_id=by_id)

    def open(self, size: int, now_ms: int, *, by_id: bool) -> FetchSession | None:
        """A new session for this many partitions; None when there is no room for it."""
        if len(self._sessions) >= self._slots and not self._evict(size, now_ms):
            return None
        session = FetchSession(self._new_id(), now_ms, by_id=by_id)
        self._sessions[session.session_id] = session
        return session

    def _evict(self, size: int, now_ms: int) -> bool:
        """Makes room by closing a session that was unused for long, or the smallest old session if that is smaller than
        the new one.
        """
        victim = next(iter(self._sessions.values()), None)
        if victim is None:
            return False
        if now_ms - victim.used_ms <= _EVICTABLE_AFTER_MS:
            old = [one for one in self._sessions.values() if now_ms - one.created_ms > _EVICTABLE_AFTER_MS]
            victim = min(old, key=len, default=None)
            if victim is None or len(victim) >= size:
                return False
        del self._sessions[victim.session_id]
        return True

    def _new_id(self) -> int:
        while True:
            drawn = int.from_bytes(os.urandom(4)) & INT_MAX
            if drawn != NO_SESSION and drawn not in self._sessions:
                return drawn
