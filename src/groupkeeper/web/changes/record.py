"""The journal as pages show it: read when it has changed, and filtered by the rights of the viewer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.operations.plans.journal import ChangeJournal, Head, JournalUnreadable, Recorded, Summary
from groupkeeper.operations.plans.model import Subject
from groupkeeper.web.access.people import Person
from groupkeeper.web.access.roles import Role


class ChangeRecord:
    """All changes of a journal. Clusters have the names that the server uses.

    Attributes:
        broken: number of unreadable lines in the file.
        problem: why the file could not be read, "" when it was.
    """

    def __init__(self, journal: ChangeJournal) -> None:
        self.journal = journal
        self.broken = 0
        self.problem = ""
        self._names: dict[str, str] = {}
        self._changes: list[Summary] = []
        self._read: object = None
        self._reading = asyncio.Lock()

    def know(self, snapshots: Sequence[ClusterSnapshot]) -> None:
        """Store the names of clusters by id: a cluster that is down reports no id."""
        for each in snapshots:
            if each.cluster_id is not None:
                if each.replaced is not None and self._names.get(each.replaced.before) == each.cluster:
                    del self._names[each.replaced.before]
                self._names[each.cluster_id] = each.cluster

    def cluster(self, head: Head) -> str | None:
        """The server's name of a change's cluster, None: it isn't watched, or not known."""
        return None if head.cluster_id is None else self._names.get(head.cluster_id)

    async def changes(self, person: Person) -> list[Summary]:
        """The changes that a user may see, the latest first: the user may see all of their groups."""
        await self._refresh()
        return [each for each in reversed(self._changes) if self.is_seen(person, each.head, each.names)]

    def is_seen(self, person: Person, head: Head, names: Sequence[str]) -> bool:
        """Whether a user may see a change; that of a transaction, which no role names, who sees all of its cluster."""
        if person.rights.sees_all:
            return True
        cluster = self.cluster(head)
        if cluster is None or head.subject is Subject.TRANSACTION:
            return cluster is not None and person.rights.sees_whole(cluster)
        return all(person.rights.may(Role.VIEW, cluster, each) for each in names)

    async def load(self, change_id: str) -> Recorded | None:
        """A change with everything in it. Raises JournalUnreadable."""
        return await asyncio.to_thread(self.journal.load, change_id)

    async def _refresh(self) -> None:
        async with self._reading:
            try:
                stamp = await asyncio.to_thread(self.journal.stamp)
                if stamp == self._read and not self.problem:
                    return
                self._changes, self.broken = await asyncio.to_thread(self.journal.summaries)
                self._read, self.problem = stamp, ""
            except JournalUnreadable as problem:
                self.problem = str(problem)
