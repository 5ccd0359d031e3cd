"""Waiting for what another thread, process or task does: as long as it takes, up to a deadline."""

import asyncio
import time
from collections.abc import Callable


def until(is_so: Callable[[], object], what: object = "", *, within_s: float = 60) -> None:
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


async def becomes(is_so: Callable[[], object], *, within_s: float = 30) -> None:
    """The same of what other tasks of this loop do."""
    deadline = asyncio.get_running_loop().time() + within_s
    while not is_so():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.001)
