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
    """Writes the results of collectors to the history. After a failure collecting continues, and the next poll is
    written again.

    Attributes:
        problem: why the last poll could not be written; None: it was written, or there is no history.
        failed: number of polls that could not be written.
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
        """The last known state of a cluster's groups; nothing without a history."""
        history = self._history
        return {} if history is None else await self.ask(lambda: history.known(cluster))

    async def add(self, found: Found, at_ms: int) -> None:
        """Store the result of a poll."""
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
        """The samples and changes of a group since then; none without a history, or if it can't be read."""
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
        """Store a text that survives a restart; without a history it is lost."""
        history = self._history
        if history is not None:
            try:
                await self.ask(lambda: history.keep(name, content))
            except HistoryFailed as failure:
                self.problem = str(failure)

    async def ask(self, question: Callable[[], T]) -> T:
        """The result of a call on the history, made in its thread."""
        # A call that is cancelled before the thread starts it would never run: the result of the last poll would be
        # lost.
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, question))

    def close(self) -> None:
        """Wait for what is being written, and close the file."""
        self._thread.shutdown()
        if self._history is not None:
            self._history.close()
