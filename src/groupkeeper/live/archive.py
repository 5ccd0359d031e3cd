"""Writes the history while collectors run: in a thread of its own, so that a slow disk delays nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from groupkeeper.live.cluster_poll import Polled
from groupkeeper.live.history import GroupSample, History, HistoryFailed, Noted
from groupkeeper.live.model import ClusterSnapshot, not_polled
from groupkeeper.live.standings import KnownGroup

T = TypeVar("T")


class Archive:
    """Writes the results of collectors to the history. After a failure collecting continues, and the next poll is
    written again, with the texts that could not be.

    Attributes:
        problem: why the last poll could not be written; None: it was written, or there is no history.
        since_ms: when that began.
        failed: number of polls that could not be written.
    """

    def __init__(self, history: History | None) -> None:
        self.problem: str | None = None
        self.since_ms = 0
        self.failed = 0
        self._to_keep: dict[str, str] = {}
        self._history = history
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="groupkeeper-history")

    @property
    def is_kept(self) -> bool:
        """Whether there is a history."""
        return self._history is not None

    async def known(self, cluster: str) -> tuple[ClusterSnapshot, Mapping[str, KnownGroup]]:
        """The last known state of a cluster and of its groups; empty without a history."""
        nothing: tuple[ClusterSnapshot, Mapping[str, KnownGroup]] = not_polled(cluster), {}
        return await self._ask(lambda history: (history.last(cluster), history.known(cluster)), nothing)

    async def known_of(self, cluster_id: str) -> Mapping[str, KnownGroup]:
        """The last known state of the groups of the cluster with this id."""
        return await self._ask(lambda history: history.known_of(cluster_id), {})

    async def add(self, found: Polled, at_ms: int) -> None:
        """Stores the result of a poll."""
        try:
            await self._ask(lambda history: history.add(found.snapshot, found.changes, at_ms), None)
            self.problem = None
            await self._keep_all()
        except HistoryFailed as failure:
            self._failed(failure)
            self.failed += 1

    def _failed(self, failure: HistoryFailed) -> None:
        if self.problem is None:
            self.since_ms = time.time_ns() // 1_000_000
        self.problem = str(failure)

    async def _keep_all(self) -> None:
        if texts := dict(self._to_keep):
            await self._ask(lambda history: history.keep(texts), None)
            self._to_keep = {name: text for name, text in self._to_keep.items() if text != texts.get(name)}

    async def of_group(
        self, cluster: str, group_id: str, since_ms: int, until_ms: int
    ) -> tuple[list[GroupSample], list[Noted]]:
        """The samples and changes of a group between these times; empty without a history. Raises HistoryFailed."""
        which = (cluster, group_id, since_ms, until_ms)
        nothing: tuple[list[GroupSample], list[Noted]] = [], []
        return await self._ask(lambda history: (history.samples(*which), history.changes(*which)), nothing)

    async def keep(self, texts: Mapping[str, str]) -> None:
        """Stores texts that survive a restart, all or none; without a history they are lost."""
        self._to_keep |= texts
        try:
            await self._keep_all()
        except HistoryFailed as failure:
            self._failed(failure)

    async def _ask(self, question: Callable[[History], T], without: T) -> T:
        """Calls the history in its thread, and returns the result; `without`: the result without a history."""
        if self._history is None:
            return without
        # A call that is cancelled before the thread starts it would never run: the result of the last poll would be
        # lost.
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, question, self._history))

    def close(self) -> None:
        """Waits for pending writes, and closes the file."""
        self._thread.shutdown()
        if self._history is not None:
            self._history.close()
