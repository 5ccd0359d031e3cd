"""Collectors: each polls one cluster on its schedule, and holds its latest snapshot."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.errors import ClientError
from groupkeeper.live.archive import Archive
from groupkeeper.live.cluster_poll import Polled, Unlisted, WantedGroups, poll, unreached
from groupkeeper.live.model import ClusterSnapshot, OtherCluster, Polls, not_polled
from groupkeeper.live.standings import Following
from groupkeeper.live.waits import Waits
from groupkeeper.protocol.errors import KafkaError

_WAITING_SHARE = 0.25
"""The fraction of the interval that a poll waits for its slow parts: see `poll`."""

_LEAST_PAUSE_SHARE = 0.1
"""The fraction of the interval for the pause after a poll that takes longer than the interval."""


Tell = Callable[[ClusterSnapshot], Awaitable[None]]


class Told(NamedTuple):
    """Functions that get each snapshot: `first` before it is written to the history, `then` after."""

    first: Tell
    then: Tell


class Schedule(NamedTuple):
    """The times of polls. `interval_s` is between the beginnings of two polls."""

    interval_s: float = 15.0
    wanted: WantedGroups = WantedGroups()


class Collector:
    """Polls one cluster. `open_admin` makes a client that isn't connected yet.

    Attributes:
        snapshot: the result of the last poll; complete, and never changed.
    """

    def __init__(self, cluster: str, open_admin: Callable[[], Admin], schedule: Schedule, archive: Archive) -> None:
        self.cluster = cluster
        self.snapshot: ClusterSnapshot = not_polled(cluster)
        self._before = self.snapshot
        self._cluster_id: str | None = None
        self._replaced: OtherCluster | None = None
        self._open_admin = open_admin
        self._schedule = schedule
        self._archive = archive
        self._admin: Admin | None = None
        self._following: Following | None = None
        self._hurry = asyncio.Event()
        self._unlisted = Unlisted()
        self._waits = self._new_waits()

    def _new_waits(self) -> Waits:
        wanted = self._schedule.wanted
        return Waits(reads_records=wanted.reads_records, short_ms=wanted.short_ms)

    def look_from(self, short_ms: int) -> None:
        """Sets `WantedGroups.short_ms` from the next poll on."""
        wanted = self._schedule.wanted._replace(short_ms=short_ms)
        self._schedule = self._schedule._replace(wanted=wanted)
        self._waits.short_ms = short_ms

    async def poll(self, show: Tell | None = None) -> ClusterSnapshot:
        """Poll the cluster now. If that fails, the snapshot has the problem. `show` gets the snapshot before it is
        written to the history.
        """
        if self._following is None:
            await self._remember()
        began, began_ms, polls = time.monotonic(), time.time_ns() // 1_000_000, self._before.polls
        try:
            found = await self._found(polls.ended(began_ms, is_success=True))
            if self._is_another(found.snapshot.cluster_id, began_ms):
                await self._begin_anew(found.snapshot.cluster_id or "")
                found = await self._found(polls.ended(began_ms, is_success=True))
            found = found._replace(snapshot=found.snapshot._replace(replaced=self._replaced))
        except (ClientError, KafkaError) as failure:
            await self.close()  # perhaps the brokers have other addresses by now
            failed = polls.ended(began_ms, is_success=False)
            found = Polled(unreached(self._before, failure, failed, time.monotonic() - began), [])
        self.snapshot = self._before = found.snapshot
        try:
            if show is not None:
                await show(found.snapshot)
        finally:
            await self._archive.add(found, began_ms)
        return found.snapshot

    async def _found(self, polls: Polls) -> Polled:
        assert self._following is not None
        within_s = _WAITING_SHARE * self._schedule.interval_s
        admin, wanted, following = await self._connected(), self._schedule.wanted, self._following
        return await poll(admin, self.cluster, wanted, following, self._unlisted, self._waits, polls, within_s=within_s)

    async def _remember(self) -> None:
        """Loads the state of an earlier run from the history."""
        last, known = await self._archive.known(self.cluster)
        self._cluster_id, self._replaced = last.cluster_id, last.replaced
        self._before = self._before._replace(polls=last.polls, last=last if last.is_up else None)
        self._following = Following(known)

    def _is_another(self, cluster_id: str | None, at_ms: int) -> bool:
        """Whether the cluster id has changed: the addresses lead to another cluster now."""
        before = self._cluster_id
        if cluster_id is None or cluster_id == before:
            return False
        self._cluster_id = cluster_id
        if before is not None:
            self._replaced = OtherCluster(before, at_ms)
        return before is not None

    async def _begin_anew(self, cluster_id: str) -> None:
        """Drops all state about the other cluster."""
        await self._end_late()
        self._following = Following(await self._archive.known_of(cluster_id))
        self._waits = self._new_waits()

    async def _connected(self) -> Admin:
        if self._admin is None:
            self._admin = await self._open_admin().__aenter__()
        return self._admin

    async def run(self, told: Told) -> None:
        """Poll without end."""
        interval_s = self._schedule.interval_s
        try:
            while True:
                began = time.monotonic()
                await told.then(await self.poll(told.first))
                rest_s = interval_s - (time.monotonic() - began)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(rest_s, _LEAST_PAUSE_SHARE * interval_s)):
                        await self._hurry.wait()
                self._hurry.clear()
        finally:
            await self.close()

    def hurry(self) -> None:
        """Polls at once, or right after the current poll, because something was changed."""
        self._hurry.set()

    async def close(self) -> None:
        """Close the connections. The next poll opens new ones."""
        await self._end_late()
        if self._admin is not None:
            admin, self._admin = self._admin, None
            await admin.close()

    async def _end_late(self) -> None:
        """Ends the work that the last poll did not wait for."""
        await self._unlisted.end()
        await self._waits.end()
