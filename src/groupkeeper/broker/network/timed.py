"""Measures the time that work takes, without its waits."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from time import perf_counter
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Timed(Generator[Any, Any, T], Generic[T]):
    """An awaitable that wraps other work.

    Attributes:
        seconds: the time that the work has taken so far.
    """

    def __init__(self, work: Awaitable[T]) -> None:
        self.seconds = 0.0
        self._steps = work.__await__()

    def __await__(self) -> Generator[Any, Any, T]:
        return self

    def send(self, value: Any) -> Any:
        began = perf_counter()
        try:
            return self._steps.send(value)
        finally:
            self.seconds += perf_counter() - began

    def throw(self, *error: Any) -> Any:
        began = perf_counter()
        try:
            return self._steps.throw(*error)
        finally:
            self.seconds += perf_counter() - began
