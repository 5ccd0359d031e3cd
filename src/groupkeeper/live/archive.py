"""The history beside running collectors: written in a thread of its own, so that a slow disk delays nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from groupkeeper.live.following import Known
from groupkeeper.live.history import History, HistoryFailed, Noted, Sample
from groupkeeper.live.polling import Found

T = TypeVar("T")


class Archive:
    """Takes what collectors find. Where that fails, collecting goes on, and the next poll is noted again.

    Attributes:
        problem: why the last poll could not be noted; None: it was, or there is no history.
        failed: polls that could not be noted.
    """

    def __init__(self, history: History | None) -> None:
        self.problem: str | None = None
        self.failed = 0
        self._history = history
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="groupkeeper-history")

    @property
    def is_kept(self) -> bool:
        """Whether there is a history."""
        return self._history is not None

    async def known(self, cluster: str) -> Mapping[str, Known]:
        """What was known last of the groups of a cluster; nothing without a history."""
        history = self._history
        return {} if history is None else await self.ask(lambda: history.known(cluster))

    async def add(self, found: Found, at_ms: int) -> None:
        """Note what a poll found."""
        history = self._history
        if history is None:
            return
        try:
            await self.ask(lambda: history.add(found.snapshot, found.changes, at_ms))
            self.problem = None
        except HistoryFailed as failure:
            self.problem = str(failure)
            self.failed += 1

    async def of_group(self, cluster: str, group_id: str, since_ms: int) -> tuple[list[Sample], list[Noted]]:
        """What was noted of a group since then; nothing without a history, or where it can't be read."""
        history = self._history
        if history is None:
            return [], []
        try:
            return await self.ask(
                lambda: (history.samples(cluster, group_id, since_ms), history.changes(cluster, group_id, since_ms))
            )
        except HistoryFailed:
            return [], []

    async def keep(self, name: str, content: str) -> None:
        """Keep a text for after a restart; without a history it is forgotten."""
        history = self._history
        if history is not None:
            try:
                await self.ask(lambda: history.keep(name, content))
            except HistoryFailed as failure:
                self.problem = str(failure)

    async def ask(self, question: Callable[[], T]) -> T:
        """The answer to a question to the history, asked in its thread."""
        # Cancelled before the thread takes it up, it would never be answered: what the last poll found would be lost.
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, question))

    def close(self) -> None:
        """Wait for what is being written, and close the file."""
        self._thread.shutdown()
        if self._history is not None:
            self._history.close()
