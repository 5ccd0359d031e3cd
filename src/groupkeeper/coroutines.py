"""Running coroutines from plain code, also in notebooks, whose own thread runs an event loop already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


def run_coroutine(
    coroutine: Coroutine[Any, Any, T], loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> T:
    """Runs the coroutine to its end, as `asyncio.run` does, but each Ctrl-C raises KeyboardInterrupt.

    asyncio forgets a Ctrl-C that comes while it starts, though not to cancel its task: it raises CancelledError.
    """
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(coroutine)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def result_of(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs the coroutine to its end; in another thread, if this one already runs a loop."""
    return beside_loops(partial(run_coroutine, coroutine))


def results_of(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Runs all coroutines at the same time, and waits for them."""

    async def gathered() -> list[T]:
        return await asyncio.gather(*coroutines)

    return result_of(gathered())


def beside_loops(work: Callable[[], T]) -> T:
    """Calls `work`, which runs an event loop of its own; in another thread, if this one already runs a loop."""
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
