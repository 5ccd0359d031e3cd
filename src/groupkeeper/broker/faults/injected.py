"""Injected faults, for tests of applications: requests that are late, lost or refused, a coordinator that moves, a
member whose session ends (docs/testing.md).
"""

from __future__ import annotations

import asyncio
import copy
import math
import random
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, TypedDict, TypeVar, Unpack

from groupkeeper.broker.api_table import TABLE, Api
from groupkeeper.broker.call import Call
from groupkeeper.broker.coordination.group_host import GroupHost
from groupkeeper.broker.coordination.transaction_host import TransactionHost
from groupkeeper.broker.faults.unkind import Unkindness
from groupkeeper.broker.network.closing import CloseConnection
from groupkeeper.broker.network.connection import Connection
from groupkeeper.protocol.errors import BY_CODE, GroupIdNotFound, KafkaError, UnknownMemberId
from groupkeeper.protocol.framing import api_name
from groupkeeper.protocol.primitives import RootMessage

T = TypeVar("T")
ErrorName = str | int | type[KafkaError] | KafkaError

_PATIENCE_S = 30.0


class Which(TypedDict, total=False):
    """The requests of an API that a fault hits; all given conditions must hold. Without conditions it hits every
    request.

    Keys:
        nth: only the nth request, counted from 1 since the fault was made. every: each k-th request.
        node: only requests to this node.
        times: at most this many requests. probability: of a hit, 0 to 1; `seed` (default 0) makes hits reproducible.
        where: requests for which this function returns True; it is called with a `groupkeeper.broker.call.Call`.
    """

    nth: int
    every: int
    node: int
    times: int
    probability: float
    seed: int
    where: Callable[[Call], bool]


_COUNTED = ("nth", "every", "times")
_KEYS = frozenset(Which.__annotations__)


@dataclass(frozen=True, slots=True)
class _Effect:
    delay_s: float = 0.0
    throttle_ms: int = 0
    error: KafkaError | None = None
    drops: bool = False
    disconnects: bool = False
    executes: bool = False
    until: asyncio.Event | None = None


class Fault(AbstractContextManager["Fault"]):
    """A fault that is in force until `remove`, or until the end of its `with` block.

    Attributes:
        hits: how many requests it has hit.
        seen: how many requests it could have hit: those of its API for which `where` holds.
    """

    def __init__(self, faults: Faults, api_key: int | None, effect: _Effect, which: Which) -> None:
        _check(which)
        self.hits = 0
        self.seen = 0
        self.effect = effect
        self._faults = faults
        self._api_key = api_key
        self._which = which
        self._chance = random.Random(which.get("seed", 0))
        self._changed = threading.Condition()

    def __repr__(self) -> str:
        name = "any API" if self._api_key is None else api_name(self._api_key)
        return f"<Fault of {name}: {self.hits} hits of {self.seen}>"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Ends the fault for later requests; does nothing if it was removed already."""
        self._faults.uninstall(self)

    def wait_for_hits(self, count: int = 1, timeout_s: float = _PATIENCE_S) -> None:
        """Blocks until `count` requests were hit. Raises TimeoutError. In the broker's own thread, call it by
        `asyncio.to_thread`.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self.hits >= count, timeout_s):
                raise TimeoutError(f"{self!r}: no {count} hits within {timeout_s:g} s")

    def takes(self, call: Call) -> bool:
        """Counts a request; returns whether the fault hits it."""
        which = self._which
        is_here = which.get("node", call.node) == call.node and self._api_key in (None, call.api_key)
        if not is_here or ("where" in which and not which["where"](call)):
            return False
        self.seen += 1
        hit = (
            self.hits < which.get("times", self.hits + 1)
            and which.get("nth", self.seen) == self.seen
            and self.seen % which.get("every", 1) == 0
            and ("probability" not in which or self._chance.random() < which["probability"])
        )
        if hit:
            with self._changed:
                self.hits += 1
                self._changed.notify_all()
        return hit


class FaultMove(AbstractContextManager["FaultMove"]):
    """A coordinator that is unavailable: its partition is unloaded, and loaded again when it returns.

    Attributes:
        partition: of `__consumer_offsets` or `__transaction_state`.
    """

    def __init__(self, faults: Faults, host: GroupHost | TransactionHost, partition: int) -> None:
        self.partition = partition
        self._faults = faults
        self._host = host

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.come_back()

    @property
    def hits(self) -> int:
        """How many requests were refused since the coordinator left."""
        return self._host.refused_by_absence.get(self.partition, 0)

    def come_back(self) -> None:
        """Brings the coordinator back, loaded from the log; does nothing if it is back."""
        self._faults.in_loop(lambda: self._host.elect(self.partition))


class Faulty(Protocol):
    """The part of a broker that faults need."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop of the running broker; None while it doesn't run."""

    @property
    def groups(self) -> GroupHost: ...

    @property
    def transactions(self) -> TransactionHost: ...

    def take_faults(self, faults: Faults | None) -> None:
        """Sets the faults that may hit requests; None: no fault is active."""


class Faults:
    """The faults of one broker: `broker.faults`. May be used from any thread.

    An API is named as Kafka names it (`"Produce"`, `"JoinGroup"`), or given by its key; None is every API. Several
    faults may hit the same request: delays add up, and the first that ends the request wins.
    """

    def __init__(self, broker: Faulty) -> None:
        self._broker = broker
        self._installed: tuple[Fault, ...] = ()
        self._unkindness: Unkindness | None = None
        self._lock = threading.Lock()

    # ------------------------------------------------------------------ requests

    def delay(self, api: str | int | None, delay_ms: float, *, executes: bool = False, **which: Unpack[Which]) -> Fault:
        """Requests wait before they are processed; with `executes` they are processed first, and the response waits."""
        return self._install(api, _Effect(delay_s=_milliseconds(delay_ms) / 1000, executes=executes), which)

    def drop(self, api: str | int | None, *, executes: bool = False, **which: Unpack[Which]) -> Fault:
        """The request gets no response, nor does any later one on its connection, which stays open, as if packets were
        lost. With `executes` the request is processed, and only the response is lost.
        """
        return self._install(api, _Effect(drops=True, executes=executes), which)

    def hold(self, api: str | int | None, *, executes: bool = False, **which: Unpack[Which]) -> Fault:
        """Requests wait until the fault is removed; with `None` and `node` this simulates a suspended node."""
        return self._install(api, _Effect(until=asyncio.Event(), executes=executes), which)

    def disconnect(self, api: str | int | None, *, executes: bool = False, **which: Unpack[Which]) -> Fault:
        """The connection is closed instead of a response; with `executes` after the request was processed."""
        return self._install(api, _Effect(disconnects=True, executes=executes), which)

    def error(
        self, api: str | int | None, error: ErrorName, *, executes: bool = False, **which: Unpack[Which]
    ) -> Fault:
        """The response is an error, given by Kafka's name, code, or exception. In a response without a top-level error,
        each item of the request gets it. With `executes` the request is processed nevertheless.
        """
        return self._install(api, _Effect(error=_error_of(error), executes=executes), which)

    def throttle(self, api: str | int | None, throttle_time_ms: int, **which: Unpack[Which]) -> Fault:
        """The response has this `throttle_time_ms`, and the connection is muted as long, as by a quota (KIP-219)."""
        return self._install(api, _Effect(throttle_ms=int(_milliseconds(throttle_time_ms))), which)

    def unkind(self, seed: int) -> Unkindness:
        """Replies that are legal but rare, by chance, until `clear`: short, empty and reordered ones, throttling,
        leaders and coordinators that are briefly elsewhere, connections that end.
        """
        with self._lock:
            self._unkindness = Unkindness(seed, lambda group_id: self._move(self._broker.groups, group_id, 0))
            self._set(self._installed)
            return self._unkindness

    def clear(self) -> None:
        """Removes all faults on requests. Requests that already wait, and muted connections, stay so."""
        with self._lock:
            self._unkindness = None
            removed = self._installed
            self._set(())
        for fault in removed:
            self._release(fault)

    # ------------------------------------------------------------------ coordinators

    def move_coordinator(self, group_id: str, *, away_ms: int | None = 0) -> FaultMove:
        """The coordinator of a group fails over: waiting calls get NOT_COORDINATOR, state that isn't in the log is
        lost, and the groups of its partition are loaded again. For `away_ms`, or with None until `FaultMove.come_back`,
        FindCoordinator answers COORDINATOR_NOT_AVAILABLE.

        Raises `NotCoordinator` when there is no `__consumer_offsets` yet.
        """
        return self.in_loop(lambda: self._move(self._broker.groups, group_id, away_ms))

    def move_transaction_coordinator(self, transactional_id: str, *, away_ms: int | None = 0) -> FaultMove:
        """As `move_coordinator`, for the coordinator of a transactional id."""
        return self.in_loop(lambda: self._move(self._broker.transactions, transactional_id, away_ms))

    def expire_session(self, group_id: str, member: str | None = None) -> list[str]:
        """Expires the session of a member as if it had sent nothing for its session timeout; returns the ids of the
        removed members.

        `member` is a member id, a group instance id or a client id; None is every member. A member whose JoinGroup or
        SyncGroup waits for others keeps its session. Raises `GroupIdNotFound`, `UnknownMemberId`.
        """
        return self.in_loop(lambda: self._expire(group_id, member))

    def _move(self, host: GroupHost | TransactionHost, key: str, away_ms: int | None) -> FaultMove:
        partition = host.partition_of(key)
        host.resign(partition)
        if away_ms == 0:
            host.elect(partition)
        elif away_ms is not None:
            asyncio.get_running_loop().call_later(away_ms / 1000, host.elect, partition)
        return FaultMove(self, host, partition)

    def _expire(self, group_id: str, member: str | None) -> list[str]:
        shard = self._broker.groups.shard_of(group_id)
        before = shard.members_of(group_id)
        if before is None:
            raise GroupIdNotFound(f"group {group_id} is not found, or has no members")
        named = [one for one, names in before.items() if member is None or member == one or member in names]
        if not named:
            raise UnknownMemberId(f"group {group_id} has no member {member}")
        for member_id in named:
            shard.expire_session(group_id, member_id)
        after = shard.members_of(group_id) or {}
        return [member_id for member_id in named if member_id not in after]

    # ------------------------------------------------------------------ at work

    async def handle(self, api: Api, call: Call, connection: Connection) -> RootMessage | None:
        """The API's response to a request, as faults that hit it have it. Raises `KafkaError`, `CloseConnection`."""
        if self._unkindness is None:
            return await self._handle(api, call, connection)
        return await self._unkindness.serve(call, connection, lambda: self._handle(api, call, connection))

    async def _handle(self, api: Api, call: Call, connection: Connection) -> RootMessage | None:
        effects = [fault.effect for fault in self._installed if fault.takes(call)]
        for effect in effects:
            if not effect.executes:
                await _befall(effect, call)
        response = await api.handle(self._broker, call, call.message)
        for effect in effects:
            if effect.executes:
                await _befall(effect, call)
        throttle_time_ms = max((effect.throttle_ms for effect in effects), default=0)
        if throttle_time_ms:
            connection.mute(throttle_time_ms / 1000)
            if response is not None and "throttle_time_ms" in response.__slots__:
                response = copy.copy(response)  # other callers may have the same object
                response.throttle_time_ms = throttle_time_ms  # type: ignore[attr-defined]
        return response

    def uninstall(self, fault: Fault) -> None:
        with self._lock:
            self._set(tuple(one for one in self._installed if one is not fault))
        self._release(fault)

    def in_loop(self, action: Callable[[], T]) -> T:
        """Runs `action` in the broker's event loop. Raises RuntimeError when the broker isn't running."""
        loop = self._broker.loop
        if loop is None:
            raise RuntimeError("the broker is not running")
        try:
            if asyncio.get_running_loop() is loop:
                return action()
        except RuntimeError:
            pass  # no event loop in this thread

        async def run() -> T:
            return action()

        return asyncio.run_coroutine_threadsafe(run(), loop).result(_PATIENCE_S)

    def _release(self, fault: Fault) -> None:
        if fault.effect.until is not None and self._broker.loop is not None:
            self.in_loop(fault.effect.until.set)

    def _install(self, api: str | int | None, effect: _Effect, which: Which) -> Fault:
        fault = Fault(self, _key_of(api), effect, which)
        with self._lock:
            self._set((*self._installed, fault))
        return fault

    def _set(self, installed: tuple[Fault, ...]) -> None:
        self._installed = installed
        self._broker.take_faults(self if installed or self._unkindness else None)


async def _befall(effect: _Effect, call: Call) -> None:
    if effect.delay_s:
        await asyncio.sleep(effect.delay_s)
    if effect.until is not None:
        await effect.until.wait()
    if effect.drops:
        # Wait until the connection ends: the client would take a later response for the missing one.
        await asyncio.get_running_loop().create_future()
    if effect.disconnects:
        raise CloseConnection(f"a fault was wanted for {api_name(call.api_key)}")
    if effect.error is not None:
        raise type(effect.error)(effect.error.message)


def _check(which: Which) -> None:
    unknown = which.keys() - _KEYS
    if unknown:
        raise TypeError(f"{', '.join(sorted(unknown))}: a fault has {', '.join(sorted(_KEYS))}")
    for key in _COUNTED:
        if which.get(key, 1) < 1:  # type: ignore[operator]
            raise ValueError(f"{key} counts from 1")
    if not 0 <= which.get("probability", 0) <= 1:
        raise ValueError("probability is between 0 and 1")


def _key_of(api: str | int | None) -> int | None:
    if api is None or (isinstance(api, int) and api in TABLE):
        return api
    for key in TABLE:
        if api_name(key) == api:
            return key
    raise ValueError(f"no API {api!r} is served: {', '.join(map(api_name, TABLE))}")


def _error_of(error: ErrorName) -> KafkaError:
    if isinstance(error, KafkaError):
        return error
    if isinstance(error, type):
        return error()
    for known in BY_CODE.values():
        if error in (known.name, known.code):
            return known()
    raise ValueError(f"Kafka has no error {error!r}; a name is like NOT_COORDINATOR, a code like 16")


def _milliseconds(time_ms: float) -> float:
    if isinstance(time_ms, bool) or not isinstance(time_ms, int | float) or not 0 <= time_ms < math.inf:
        raise ValueError(f"{time_ms!r} is not a number of milliseconds: 0 or more, as 5000 for five seconds")
    return time_ms
