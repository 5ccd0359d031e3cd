"""Calls on many keys, each answered by the broker that owns the key: its coordinator or its leader.

One chunk of keys is one request. A retried chunk doesn't delay the others: each has its own backoff and its own
lookups, until the deadline of the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from groupkeeper.client import errors
from groupkeeper.client.batch import Batch, Failure
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Backoff, Deadline
from groupkeeper.client.peer import Peer
from groupkeeper.protocol.errors import KafkaError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")

COORDINATOR_LOAD_IN_PROGRESS = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16

_CHUNKS_IN_FLIGHT = 8
"""Requests of one call in flight at one broker: keep it busy, bound memory, and don't let it block other brokers."""

_UNBATCHED_IN_FLIGHT = 16
"""Requests of one chunk in flight, for brokers that accept one key per request."""


class Located(Generic[K]):
    """The result of a lookup: keys by broker, keys that failed for good, and keys to look up again."""

    __slots__ = ("by_peer", "failed", "retry")

    def __init__(self) -> None:
        self.by_peer: dict[Peer, list[K]] = {}
        self.failed: dict[K, Failure] = {}
        self.retry: dict[K, Failure] = {}


class Retries(NamedTuple):
    """Retriable error codes: retried at the `same_broker`, or `after_lookup` of the broker."""

    same_broker: frozenset[int] = frozenset({COORDINATOR_LOAD_IN_PROGRESS})
    after_lookup: frozenset[int] = frozenset({COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})


COORDINATOR_RETRIES = Retries()

Locate = Callable[[list[K], bool], Awaitable[Located[K]]]
"""Finds the brokers of keys; the flag is true when cached brokers were wrong."""

Ask = Callable[[Peer, list[K]], Awaitable[dict[K, V | Failure]]]
"""Sends one request for some keys to one broker, and returns the result of each key."""


class Routed(Generic[K, V]):
    """A call on many keys."""

    def __init__(
        self,
        cluster: Cluster,
        deadline: Deadline,
        locate: Locate[K],
        ask: Ask[K, V],
        *,
        chunk: int,
        retries: Retries = COORDINATOR_RETRIES,
        should_stop_retrying: Callable[[Failure, float], bool] | None = None,
    ) -> None:
        """`should_stop_retrying(failure, seconds since the start)`: whether to stop retrying a retriable failure."""
        self._cluster = cluster
        self._deadline = deadline
        self._locate = locate
        self._ask = ask
        self._chunk = chunk
        self._retries = retries
        self._should_stop_retrying = should_stop_retrying
        self._batch: Batch[K, V] = Batch()
        self._causes: dict[K, Failure] = {}  # why keys were retried: for the error after a timeout
        self._slots: dict[Peer, asyncio.Semaphore] = {}
        self._group = asyncio.TaskGroup()

    async def run(self, keys: Sequence[K]) -> Batch[K, V]:
        """Every key's result or failure, in the order of the keys."""
        unique = list(dict.fromkeys(keys))
        async with self._group:
            await self._find(unique, False, self._cluster.backoff())
        done, failed = self._batch.done, self._batch.failed
        return Batch(
            {key: done[key] for key in unique if key in done}, {key: failed[key] for key in unique if key in failed}
        )

    async def _find(self, keys: list[K], is_again: bool, backoff: Backoff) -> None:
        while keys:
            try:
                located = await self._locate(keys, is_again)
            except errors.CallTimedOut as error:
                self._time_out(keys, dict.fromkeys(keys, error))
                return
            except errors.Unrepresentable as error:
                for part in self._halves(keys, error):
                    self._group.create_task(self._find(part, is_again, backoff.copy()))
                return
            except (errors.ClientError, KafkaError) as error:
                self._fail(dict.fromkeys(keys, error))
                return
            self._fail(located.failed)
            for peer, owned in located.by_peer.items():
                for start in range(0, len(owned), self._chunk):
                    chunk = owned[start : start + self._chunk]
                    self._group.create_task(self._send_chunk(peer, chunk, backoff.copy()))
            self._causes.update(located.retry)
            keys, is_again = self._keep_retriable(located.retry), True
            if keys and not await self._may_retry(keys, located.retry, backoff):
                return

    async def _send_chunk(self, peer: Peer, keys: list[K], backoff: Backoff) -> None:
        """Send a chunk to one broker until every key has its result, its failure, or another broker."""
        slots = self._slots.setdefault(peer, asyncio.Semaphore(_CHUNKS_IN_FLIGHT))
        while keys:
            try:
                async with slots:
                    results = await self._ask(peer, keys)
            except (errors.ConnectionFailed, errors.CallTimedOut) as error:
                failures: dict[K, Failure] = dict.fromkeys(keys, error)
                if isinstance(error, errors.ConnectionFailed):
                    self._causes.update(failures)
                await self._move(failures, backoff)
                return
            except (errors.ResponseTooLarge, errors.Unrepresentable) as error:
                for part in self._halves(keys, error):
                    self._group.create_task(self._send_chunk(peer, part, backoff.copy()))
                return
            except (errors.ClientError, KafkaError) as error:
                self._fail(dict.fromkeys(keys, error))
                return
            same_broker, after_lookup = self._sort(keys, results)
            if after_lookup:
                self._group.create_task(self._move(after_lookup, backoff.copy()))
            keys = self._keep_retriable(same_broker)
            if keys and not await self._may_retry(keys, same_broker, backoff):
                return

    async def _move(self, causes: dict[K, Failure], backoff: Backoff) -> None:
        keys = self._keep_retriable(causes)
        if keys and await self._may_retry(keys, causes, backoff):
            await self._find(keys, True, backoff)

    def _sort(self, keys: list[K], results: dict[K, V | Failure]) -> tuple[dict[K, Failure], dict[K, Failure]]:
        same_broker: dict[K, Failure] = {}
        after_lookup: dict[K, Failure] = {}
        done, failed, retries = self._batch.done, self._batch.failed, self._retries
        for key in keys:
            try:
                result = results[key]
            except KeyError:
                failed[key] = errors.MissingResult(f"{self._deadline.name}: the reply has no result for {key}")
                continue
            if not isinstance(result, Exception):
                done[key] = result  # the usual case; this runs for every group
            elif isinstance(result, KafkaError):
                if result.code in retries.same_broker:
                    same_broker[key] = self._causes[key] = result
                elif result.code in retries.after_lookup:
                    after_lookup[key] = self._causes[key] = result
                else:
                    failed[key] = result
            elif isinstance(result, errors.ConnectionFailed):
                after_lookup[key] = self._causes[key] = result
            elif isinstance(result, errors.CallTimedOut):
                after_lookup[key] = result
            elif isinstance(result, errors.ClientError):
                failed[key] = result
            else:
                done[key] = result
        return same_broker, after_lookup

    def _halves(self, keys: list[K], error: errors.ClientError) -> tuple[list[K], ...]:
        """The keys in two parts, so that one bad key doesn't fail the rest; () for a single key, which fails."""
        if len(keys) == 1:
            self._fail({keys[0]: error})
            return ()
        half = len(keys) // 2
        return keys[:half], keys[half:]

    def _fail(self, failures: dict[K, Failure]) -> None:
        self._batch.failed.update(failures)

    def _keep_retriable(self, causes: dict[K, Failure]) -> list[K]:
        """The keys to retry; the others fail, as `should_stop_retrying` decides."""
        if self._should_stop_retrying is None:
            return list(causes)
        elapsed_s = self._deadline.elapsed_s()
        final = {key: cause for key, cause in causes.items() if self._should_stop_retrying(cause, elapsed_s)}
        self._fail(final)
        return [key for key in causes if key not in final]

    async def _may_retry(self, keys: list[K], causes: dict[K, Failure], backoff: Backoff) -> bool:
        try:
            await backoff.pause(self._deadline)
        except errors.CallTimedOut:
            self._time_out(keys, causes)
            return False
        return True

    def _time_out(self, keys: list[K], causes: Mapping[K, Failure]) -> None:
        for key in keys:
            cause = causes[key]
            if isinstance(cause, errors.CallTimedOut):
                cause = self._causes.get(key, cause)
            self._fail({key: self._deadline.timed_out(cause)})


async def batched(
    keys: Sequence[K], ask: Callable[[Sequence[K]], Awaitable[dict[K, V | Failure]]]
) -> dict[K, V | Failure]:
    """Sends one request for all keys, or one per key to a broker that accepts no more (UnsupportedBatching)."""
    try:
        return await ask(keys)
    except errors.UnsupportedBatching:

        async def ask_one(key: K) -> V | Failure:
            return (await ask([key]))[key]

        return dict(await one_by_one(keys, ask_one))


async def one_by_one(keys: Sequence[K], ask: Callable[[K], Awaitable[V]]) -> dict[K, V | Failure]:
    """Sends one request per key, several at a time, to brokers that accept one key per request."""
    results: dict[K, V | Failure] = {}
    queue = iter(keys)

    async def work() -> None:
        for key in queue:
            try:
                results[key] = await ask(key)
            except (errors.ClientError, KafkaError) as error:
                results[key] = error

    async with asyncio.TaskGroup() as group:
        for _ in range(min(len(keys), _UNBATCHED_IN_FLIGHT)):
            group.create_task(work())
    return results
