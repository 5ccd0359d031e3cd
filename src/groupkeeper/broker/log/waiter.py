"""Requests that wait until more is appended to logs."""

from __future__ import annotations

from asyncio import get_running_loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future


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
