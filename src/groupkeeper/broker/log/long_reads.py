"""Threads for large batches, and for long requests and responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class LongReads:
    """Decompresses and reads large batches in one thread, so that other clients are served meanwhile, and only one
    batch is decompressed at a time. Long requests have several threads.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = ThreadPoolExecutor(threads, "groupkeeper-long-reads")

    async def run(self, read: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs `read` in the thread and returns its result; `read` must use no data that may change meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(read, *args, **kwargs))

    def close(self) -> None:
        """Cancels reads that have not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)
