"""An admin client for code that isn't asyncio: the calls run in a loop of its own, in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any, Self, TypeVar

from groupkeeper.client.errors import ClientClosed, IllegalArgument

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import TracebackType

    from groupkeeper.api.admin import Admin

T = TypeVar("T")


class Blocking:
    """The part of SyncAdmin that is the same for all calls. Its calls may be made from several threads."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    @property
    def principal(self) -> str:
        """The client's principal for brokers, `User:name`; empty: it has no login, or only brokers know it (tokens)."""
        return self._admin.principal

    def __enter__(self) -> Self:
        self._process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="groupkeeper-admin", daemon=True)
        self._thread.start()
        try:
            self._run(self._admin.__aenter__())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection, and end the thread. Calls that are under way fail with ClientClosed.

        Closing twice is harmless.
        """
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        if self._process != os.getpid():  # a fork has neither the thread nor connections of its own
            self._loop = self._thread = None
            return
        try:
            self._run(self._end())
        finally:
            self._loop = self._thread = None
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _end(self) -> None:
        await self._admin.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)  # calls of other threads: they have failed

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        """Runs a call in the loop; returns its result, or raises its exception. Ctrl-C ends the call, too."""
        if self._loop is None or threading.current_thread() is self._thread:
            call.close()
            if self._loop is None:
                raise ClientClosed("the client isn't connected: use it as `with SyncAdmin(…) as admin:`, or connect it")
            raise RuntimeError("a function that a call was given must not make another call of the same client")
        if self._process != os.getpid():
            call.close()
            raise IllegalArgument("this client belongs to the parent process: make one in each process")
        running = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return running.result()
        except BaseException:
            running.cancel()
            raise
