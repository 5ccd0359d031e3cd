"""Requests that wait for appends to logs."""

from __future__ import annotations

from asyncio import Future, get_running_loop
from collections.abc import Callable, Iterable
from typing import Protocol

_ANY_NUMBER = 1 << 62


class Waited(Protocol):
    """A log that requests can wait for."""

    waiters: set[Waiter]


class Waiter:
    """A request that waits until a number of bytes has been appended to any of several partitions."""

    __slots__ = ("_missing_bytes", "woken")

    def __init__(self, missing_bytes: int) -> None:
        self._missing_bytes = missing_bytes
        self.woken: Future[None] = get_running_loop().create_future()

    def appended(self, size: int) -> None:
        self._missing_bytes -= size
        if self._missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


async def wait_for(waiter: Waiter, logs: Iterable[Waited], deadline_s: float | None) -> bool:
    """Waits until the waiter is woken, at most until `deadline_s` (the event loop's time; None: no limit). Returns
    False after the deadline.
    """
    loop = get_running_loop()
    timer = None if deadline_s is None else loop.call_at(deadline_s, waiter.wake)
    for log in logs:
        log.waiters.add(waiter)
    try:
        await waiter.woken
    finally:
        if timer is not None:
            timer.cancel()
        for log in logs:
            log.waiters.discard(waiter)
    return deadline_s is None or loop.time() < deadline_s


async def wait_until(log: Waited, is_decided: Callable[[], bool], deadline_s: float | None) -> None:
    """Waits until `is_decided()`, at most until `deadline_s` (the event loop's time; None: no limit). Looks again when
    leaders or replicas' ends change, not on appends.
    """
    while not is_decided() and (deadline_s is None or get_running_loop().time() < deadline_s):
        await wait_for(Waiter(_ANY_NUMBER), (log,), deadline_s)
