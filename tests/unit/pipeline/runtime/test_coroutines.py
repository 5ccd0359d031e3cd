"""Coroutines whose results are waited for by code that is none."""

import asyncio
import threading

import pytest

from groupkeeper.pipeline.runtime.coroutines import result_of


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
