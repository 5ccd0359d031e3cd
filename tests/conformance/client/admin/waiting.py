"""Brokers learn what the controller has changed a moment later."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(ask: Callable[[], Awaitable[T]], is_right: Callable[[T], bool]) -> T:
    """The first answer that is right; AssertionError with the last one after 10 s."""
    deadline = asyncio.get_running_loop().time() + 10
    while not is_right(answer := await ask()):
        assert asyncio.get_running_loop().time() < deadline, answer
        await asyncio.sleep(0.05)
    return answer
