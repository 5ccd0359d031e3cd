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
from groupkeeper.live.following import Following
from groupkeeper.live.model import ClusterSnapshot, not_polled
from groupkeeper.live.polling import Found, Wanted, poll, unreached
from groupkeeper.live.waits import Waits
from groupkeeper.protocol.errors import KafkaError

_READING_SHARE = 0.25
"""The fraction of the interval for reading times of records, the only part of a poll without a bound of its own."""

_LEAST_PAUSE_SHARE = 0.1
"""The fraction of the interval for the pause after a poll that takes longer than the interval."""


class Schedule(NamedTuple):
    """``interval_s`` is between the beginnings of two polls."""

    interval_s: float = 15.0
    wanted: Wanted = Wanted()


class Collector:
    """One cluster. ``open_admin`` makes a client that isn't connected yet.

    Attributes:
        snapshot: the result of the last poll; complete, and never changed.
    """

    def __init__(self, cluster: str, open_admin: Callable[[], Admin], schedule: Schedule, archive: Archive) -> None:
        self.cluster = cluster
        self.snapshot: ClusterSnapshot = not_polled(cluster)
        self._open_admin = open_admin
        self._schedule = schedule
        self._archive = archive
        self._admin: Admin | None = None
        self._following: Following | None = None
        self._hurry = asyncio.Event()
        self._waits = Waits(reads_records=schedule.wanted.reads_records)

    async def poll(self) -> ClusterSnapshot:
        """Look at the cluster now. A cluster that cannot be polled has a snapshot, too, with the problem."""
        if self._following is None:
            self._following = Following(await self._archive.known(self.cluster))
        began, began_ms, polls = time.monotonic(), time.time_ns() // 1_000_000, self.snapshot.polls
        try:
            found = await poll(
                await self._connected(),
                self.cluster,
                self._schedule.wanted,
                self._following,
                self._waits,
                polls.ended(began_ms, is_success=True),
                within_s=_READING_SHARE * self._schedule.interval_s,
            )
        except (ClientError, KafkaError) as failure:
            await self.close()  # perhaps the brokers have other addresses by now
            failed = polls.ended(began_ms, is_success=False)
            found = Found(unreached(self.snapshot, failure, failed, time.monotonic() - began), [])
        self.snapshot = found.snapshot
        await self._archive.add(found, began_ms)
        return found.snapshot

    async def _connected(self) -> Admin:
        if self._admin is None:
            self._admin = await self._open_admin().__aenter__()
        return self._admin

    async def run(self, tell: Callable[[ClusterSnapshot], Awaitable[None]]) -> None:
        """Poll without end; ``tell`` is called with each snapshot."""
        interval_s = self._schedule.interval_s
        try:
            while True:
                began = time.monotonic()
                await tell(await self.poll())
                rest_s = interval_s - (time.monotonic() - began)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(rest_s, _LEAST_PAUSE_SHARE * interval_s)):
                        await self._hurry.wait()
                self._hurry.clear()
        finally:
            await self.close()

    def hurry(self) -> None:
        """Let the next poll begin at once, or when that is over which is under way: something was changed."""
        self._hurry.set()

    async def close(self) -> None:
        """Hang up. The next poll connects again."""
        if self._admin is not None:
            admin, self._admin = self._admin, None
            await admin.close()
