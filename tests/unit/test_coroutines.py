"""Coroutines whose results are waited for by code that is none."""

import asyncio
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from groupkeeper.coroutines import result_of, run_coroutine


async def thread_id() -> int:
    await asyncio.sleep(0)
    return threading.get_ident()


async def refused() -> None:
    raise ValueError("refused")


def test_without_a_loop_it_runs_in_this_thread() -> None:
    assert result_of(thread_id()) == threading.get_ident()


async def test_in_a_notebook_a_loop_runs_already() -> None:
    assert result_of(thread_id()) != threading.get_ident()
    with pytest.raises(ValueError, match="refused"):
        result_of(refused())


def test_an_interrupt_while_a_loop_starts_is_not_taken_for_a_cancelled_task(monkeypatch: pytest.MonkeyPatch) -> None:
    set_handler = signal.signal

    def set_and_interrupt(number: int, handler: Callable[..., Any]) -> Any:
        before = set_handler(number, handler)
        if number == signal.SIGINT and handler is not signal.default_int_handler:
            signal.raise_signal(signal.SIGINT)
        return before

    monkeypatch.setattr("asyncio.runners.signal.signal", set_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_coroutine(thread_id())
