"""Coroutines for code that is none, also in notebooks, whose own thread runs an event loop already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


def result_of(coroutine: Coroutine[Any, Any, T]) -> T:
    """Waits for it, as `asyncio.run` does."""
    return beside_loops(partial(asyncio.run, coroutine))


def results_of(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Waits for all of them at the same time."""

    async def gathered() -> list[T]:
        return await asyncio.gather(*coroutines)

    return result_of(gathered())


def beside_loops(work: Callable[[], T]) -> T:
    """Does work that runs an event loop of its own: where this thread runs one, in another thread."""
    if not _runs_a_loop():
        return work()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
