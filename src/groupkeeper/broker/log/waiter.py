"""Requests that wait until more is appended to logs."""

from __future__ import annotations

from asyncio import get_running_loop
from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

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


async def wait_until(log: Waited, is_decided: Callable[[], bool], deadline_s: float | None) -> None:
    """Returns when that is so, or at a time of the event loop's clock (None: never). Appends decide nothing: what
    replicas have, and who leads.
    """
    loop = get_running_loop()
    while not is_decided() and (deadline_s is None or loop.time() < deadline_s):
        waiter = Waiter(_ANY_NUMBER)
        timer = None if deadline_s is None else loop.call_at(deadline_s, waiter.wake)
        log.add_waiter(waiter)
        try:
            await waiter.woken
        finally:
            if timer is not None:
                timer.cancel()
            log.remove_waiter(waiter)
