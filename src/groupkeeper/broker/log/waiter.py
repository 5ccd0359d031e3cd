"""Requests that wait until more is appended to logs."""

from __future__ import annotations

from asyncio import get_running_loop
from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable, Iterable

_ANY_NUMBER = 1 << 62


class Waited(Protocol):
    """A log."""

    def add_waiter(self, waiter: Waiter) -> None: ...

    def remove_waiter(self, waiter: Waiter) -> None: ...


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
    """Waits until a log, or something else, wakes the waiter, or until a time of the event loop's clock (None: for
    ever); returns whether it is before that.
    """
    loop = get_running_loop()
    timer = None if deadline_s is None else loop.call_at(deadline_s, waiter.wake)
    for log in logs:
        log.add_waiter(waiter)
    try:
        await waiter.woken
    finally:
        if timer is not None:
            timer.cancel()
        for log in logs:
            log.remove_waiter(waiter)
    return deadline_s is None or loop.time() < deadline_s


async def wait_until(log: Waited, is_decided: Callable[[], bool], deadline_s: float | None) -> None:
    """Returns when that is so, or at a time of the event loop's clock (None: never). Appends decide nothing: what
    replicas have, and who leads.
    """
    while not is_decided() and (deadline_s is None or get_running_loop().time() < deadline_s):
        await wait_for(Waiter(_ANY_NUMBER), (log,), deadline_s)
