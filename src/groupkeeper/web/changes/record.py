"""The journal as pages show it: read in the background, and filtered by the rights of the viewer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.operations.plans.changes import MOST_CHANGES, MOST_NAMES, ChangeSummary, Head, KnownChanges, Recorded
from groupkeeper.operations.plans.journal import ChangeJournal, JournalUnreadable
from groupkeeper.operations.plans.model import Subject
from groupkeeper.operations.times import utc_text
from groupkeeper.web.access.people import Person
from groupkeeper.web.access.roles import Role

_EVERY_S = 2.0
_SLOWEST_S = 10.0
_PATIENCE_S = 3.0


class ChangeRecord:
    """The latest changes of a journal. Clusters have the names that the server uses.

    Attributes:
        broken: number of unreadable lines in the journal.
        left_out: number of older changes, which are not kept.
    """

    def __init__(self, journal: ChangeJournal) -> None:
        self.journal = journal
        self.broken = 0
        self.left_out = 0
        self._names: dict[str, str] = {}
        self._changes: list[ChangeSummary] = []
        self._known = KnownChanges(MOST_CHANGES, MOST_NAMES)
        self._failure = ""
        self._read_ms: int | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def is_failing(self) -> bool:
        """Whether the last reading of the journal failed."""
        return bool(self._failure)

    @property
    def problem(self) -> str:
        """Why changes of the journal may be missing here; "": it was just read."""
        if self._failure:
            since = "" if self._read_ms is None else f" since {utc_text(self._read_ms)}"
            return f"journal: not read{since}: {self._failure}"
        return "journal: not read yet" if self._read_ms is None else ""

    def said_to(self, person: Person) -> str:
        """`problem` for a user. Its reason names a path or brokers, and is only for users who see everything."""
        is_short = self._failure and not person.rights.sees_all
        return self.problem.removesuffix(f": {self._failure}") if is_short else self.problem

    def know(self, snapshots: Sequence[ClusterSnapshot]) -> None:
        """Stores the names of clusters by id: a cluster that is down reports no id."""
        for each in snapshots:
            if each.cluster_id is not None:
                if each.replaced is not None and self._names.get(each.replaced.before) == each.cluster:
                    del self._names[each.replaced.before]
                self._names[each.cluster_id] = each.cluster

    def cluster(self, head: Head) -> str | None:
        """The server's name of a change's cluster; None: it isn't watched, or unknown."""
        return None if head.cluster_id is None else self._names.get(head.cluster_id)

    async def changes(self, person: Person, group_id: str = "") -> list[ChangeSummary]:
        """The changes (or those of a group) whose groups the user may all see, the latest first. Does not read the
        journal.
        """

        def seen() -> list[ChangeSummary]:
            found = (each for each in reversed(changes) if not group_id or group_id in each.groups)
            return [each for each in found if self.is_seen(person, each.head, each.names)]

        changes = self._changes
        return await asyncio.to_thread(seen)

    def is_seen(self, person: Person, head: Head, names: Sequence[str]) -> bool:
        """Whether a user may see a change; that of a transaction needs the right to see the whole cluster."""
        if person.rights.sees_all:
            return True
        cluster = self.cluster(head)
        if cluster is None or head.subject is Subject.TRANSACTION:
            return cluster is not None and person.rights.sees_whole(cluster)
        return all(person.rights.may(Role.VIEW, cluster, each) for each in names)

    async def load(self, change_id: str) -> Recorded | None:
        """A change in full. Raises JournalUnreadable, at once if the last reading failed."""
        if self.problem:
            raise JournalUnreadable(self.problem)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await self.journal.loaded(change_id, self._known)
        except TimeoutError:
            raise JournalUnreadable(f"journal: {self.journal.name}: no answer in {_PATIENCE_S:g} s") from None

    async def run(self) -> None:
        """Reads new changes again and again: less often while that fails."""
        pause_s = _EVERY_S
        try:
            while True:
                await self.refresh()
                pause_s = min(2 * pause_s, _SLOWEST_S) if self._failure else _EVERY_S
                await asyncio.sleep(pause_s)
        finally:
            await self.journal.close()

    async def refresh(self, patience_s: float | None = None) -> None:
        """Reads new changes now; `patience_s`: the longest wait for that."""
        if self._reading is not None and not self._reading.done():  # it may have looked too early
            done, _ = await asyncio.wait([self._reading], timeout=patience_s)
            if not done:
                return
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        await asyncio.wait([self._reading], timeout=patience_s)

    async def _read(self) -> None:
        try:
            is_new = await self.journal.catch_up(self._known)
        except JournalUnreadable as problem:
            self._failure = str(problem)
            return
        if is_new:
            self._changes = await asyncio.to_thread(self._known.summaries)
            self.broken, self.left_out = self._known.broken, self._known.left_out
        self._failure, self._read_ms = "", time.time_ns() // 10**6
