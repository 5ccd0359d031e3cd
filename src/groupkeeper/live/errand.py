"""Work that may take longer than a poll waits: it goes on, and a later poll gets its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Errand(Generic[Result]):
    """One kind of work, at most one piece at a time. A poll waits for the piece of an earlier poll instead of
    restarting it, as slow work would then never end.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[Result] | None = None

    async def result(self, begin: Callable[[], Coroutine[Any, Any, Result]], within_s: float) -> Result | None:
        """Waits for the work of an earlier call, then for new work, together for at most `within_s`.

        Returns the latest result; None: nothing has ended yet. Raises the work's exceptions.
        """
        clock = asyncio.get_running_loop().time
        until_s, found = clock() + within_s, None
        while True:
            is_new = self._task is None
            self._task = self._task or asyncio.create_task(begin())
            await asyncio.wait([self._task], timeout=max(0, until_s - clock()))
            if not self._task.done():
                return found
            task, self._task = self._task, None
            found = task.result()
            if is_new:
                return found

    async def end(self) -> None:
        """Cancels the work under way."""
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
