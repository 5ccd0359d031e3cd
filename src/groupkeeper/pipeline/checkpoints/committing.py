"""Commits progress of queries to groups of their own, in a thread of its own.

Reporting progress never blocks and never raises. Only the latest uncommitted progress is kept, so an unreachable
cluster costs no memory.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import GroupState, OffsetAndMetadata, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.pipeline.checkpoints.form import ByCluster, of_cluster, offsets_of, other_clusters
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.protocol import OFFSETS_TOPIC
from groupkeeper.protocol.errors import KafkaError, UnknownTopicOrPartition

_LOG = logging.getLogger("groupkeeper.spark")
_PATIENCE = "default.api.timeout.ms"
_LONGEST_PAUSE_S = 60.0


class _SameThreadExecutor(ThreadPoolExecutor):
    """Looks up addresses in the calling thread: no thread can start while the program exits, which is when
    the last progress is committed.
    """

    def submit(self, call: Callable[..., Any], /, *given: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(call(*given, **more))
        except OSError as error:
            done.set_exception(error)
        return done


class CommitProgress(NamedTuple):
    """The progress of a query. `sources`: for each source, the offsets to read next, in Spark's form."""

    query_id: str
    batch_id: int
    sources: Sequence[str]


class Committer:
    """Commits progress to groups, at most once in `interval_s` seconds.

    A group that has members, or offsets of another query or program, gets none; this is logged once. `takes_over`:
    offsets of another Spark query may be replaced. `cluster`: how queries call this cluster.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        properties: Mapping[str, str] | None = None,
        *,
        interval_s: float = 5.0,
        takes_over: bool = False,
        cluster: str | None = None,
    ) -> None:
        self._cluster = cluster
        self._servers = bootstrap_servers
        self._properties = {_PATIENCE: "20000", **(properties or {})}
        self._interval_s = interval_s
        self._takes_over = takes_over
        self._due: dict[str, CommitProgress] = {}
        self._refused: dict[str, str] = {}
        self._logged: dict[str, str] = {}
        self._noted: set[tuple[str, str]] = set()
        self._changed = threading.Condition()
        self._is_hurried = self._is_closed = self._is_busy = False
        self._thread: threading.Thread | None = None

    def put(self, group_id: str, progress: CommitProgress) -> None:
        """Queues this progress to be committed to the group; replaces earlier progress that is still queued."""
        with self._changed:
            if self._is_closed or self._refused.get(group_id) == progress.query_id:
                return
            self._due[group_id] = progress
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="groupkeeper-commits", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def hurry(self) -> None:
        """Commits the queued progress without waiting for the interval."""
        with self._changed:
            self._is_hurried = True
            self._changed.notify_all()

    def close(self, timeout_s: float = 5.0) -> bool:
        """Accepts no more progress, and waits at most `timeout_s` until the rest is committed. False: some is not."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_s)
        return not self._due and not self._is_busy

    def _work(self) -> None:
        loop = asyncio.new_event_loop()
        loop.set_default_executor(_SameThreadExecutor())
        pause_s = 0.0
        while (taken := self._next(pause_s)) is not None:
            left = loop.run_until_complete(self._commit(taken))
            with self._changed:
                self._is_busy = False
                for group_id, progress in left.items():
                    self._due.setdefault(group_id, progress)  # unless there is later progress
            if len(left) == len(taken):
                pause_s = min(_LONGEST_PAUSE_S, max(2 * pause_s, self._interval_s))
            else:
                pause_s = self._interval_s
            if left and self._is_closed:
                return

    def _next(self, pause_s: float) -> dict[str, CommitProgress] | None:
        """Waits for queued progress and for the end of the pause, and takes it; None: closed, and nothing is queued."""
        until = time.monotonic() + pause_s
        with self._changed:
            while True:
                wait_s = until - time.monotonic()
                is_ready = wait_s <= 0 or self._is_hurried or self._is_closed
                if self._due and is_ready:
                    break
                if self._is_closed:
                    return None
                self._changed.wait(max(wait_s, 0) if self._due else None)
            self._is_hurried, self._is_busy = False, True
            taken, self._due = self._due, {}
            return taken

    async def _commit(self, taken: Mapping[str, CommitProgress]) -> dict[str, CommitProgress]:
        """Commits the progress; returns the part to try again."""
        try:
            async with Admin(self._servers, properties=self._properties) as admin:
                return await self._commit_by(admin, taken)
        except (ClientError, KafkaError, OSError) as error:
            self._say("", f"{self._servers}: progress cannot be committed, it is tried again: {error}")
            return dict(taken)

    async def _commit_by(self, admin: Admin, taken: Mapping[str, CommitProgress]) -> dict[str, CommitProgress]:
        described, fetched = await asyncio.gather(
            admin.describe_consumer_groups(taken), admin.list_consumer_group_offsets(dict.fromkeys(taken))
        )
        left: dict[str, CommitProgress] = {}
        self._logged.pop("", None)
        for group_id, progress in taken.items():
            group = described.done.get(group_id)
            if group_id in fetched.failed:
                self._say(group_id, f"{fetched.failed[group_id]}")
                left[group_id] = progress
            elif group is not None and (group.members or group.group_state is GroupState.NOT_READY):
                self._refuse(group_id, progress, "it has members")
            elif why := self._strange(fetched.done[group_id].done, progress):
                self._refuse(group_id, progress, why)
            elif not await self._alter(admin, group_id, progress):
                left[group_id] = progress
        return left

    async def _alter(self, admin: Admin, group_id: str, progress: CommitProgress) -> bool:
        """Commits one group's progress. False: try again later."""
        metadata = metadata_of(progress.query_id, progress.batch_id)
        try:
            known = [offsets_of(source, f"query {progress.query_id}") for source in progress.sources]
        except SourceError as error:
            self._say(group_id, str(error))
            return True
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        try:
            names = await self._names(admin, known)
            for each in filter(None, known):
                for tp, offset in self._committed(group_id, each, names).items():
                    if tp not in offsets or offset < offsets[tp].offset:
                        offsets[tp] = OffsetAndMetadata(offset, None, metadata)
            if not offsets:
                return True
            batch = await admin.alter_consumer_group_offsets(group_id, offsets)
        except KafkaError as error:
            self._say(group_id, str(error))
            return False
        for tp, failure in batch.failed.items():
            self._say(group_id, f"{tp.topic}-{tp.partition}: {type(failure).__name__}: {failure}")
        if not batch.failed:
            self._logged.pop(group_id, None)
        return all(isinstance(failure, UnknownTopicOrPartition) for failure in batch.failed.values())

    async def _names(self, admin: Admin, known: Sequence[ByCluster | None]) -> list[str]:
        """The names by which queries may call this cluster: the given one, and its id."""
        if not any(name is not None for each in known for name in each or ()):
            return []
        found = self._cluster, (await admin.describe_cluster()).cluster_id
        return [each for each in found if each is not None]

    def _committed(self, group_id: str, source: ByCluster, names: Sequence[str]) -> dict[TopicPartition, int]:
        """The offsets of a source to commit: those in this cluster, without the offsets topic."""
        own = of_cluster(source, names)
        if own is None and source:
            why = other_clusters(source, names)
            self._note(group_id, f"{why}: give its name there, as CommitsToKafka(…, cluster=NAME)")
        if any(tp.topic == OFFSETS_TOPIC for tp in own or ()):
            self._note(
                group_id,
                f"the query's offsets of {OFFSETS_TOPIC} are not committed: each commit would be a record more for "
                "it to read; 'groupkeeper spark lag' shows them, by its checkpoint",
            )
        return {tp: offset for tp, offset in (own or {}).items()
                if offset is not None and tp.topic != OFFSETS_TOPIC}  # fmt: skip

    def _strange(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None], progress: CommitProgress
    ) -> str | None:
        """Why the offsets in the group are not from this query; None: they are."""
        for tp, commit in offsets.items():
            if commit is None:
                continue
            query_id = _query_of(commit.metadata)
            if query_id is None:
                return f"its offset of {tp.topic}-{tp.partition} was committed by something else"
            if query_id != progress.query_id and not self._takes_over:
                return f"its offset of {tp.topic}-{tp.partition} is of another query, {query_id}"
        return None

    def _refuse(self, group_id: str, progress: CommitProgress, why: str) -> None:
        with self._changed:
            self._refused[group_id] = progress.query_id
        self._say(
            group_id,
            f"query {progress.query_id} is not committed to it: {why}; choose another group for the query, or delete "
            "this one's offsets, and start the query again",
        )

    def _note(self, group_id: str, text: str) -> None:
        """Logs a lasting fact, once for each group."""
        if (group_id, text) not in self._noted:
            self._noted.add((group_id, text))
            _LOG.warning("%s", f"group {group_id}: {text}")

    def _say(self, group_id: str, text: str) -> None:
        """Logs a failure, but not again while it stays the same."""
        if self._logged.get(group_id) != text:
            self._logged[group_id] = text
            _LOG.warning("%s", f"group {group_id}: {text}" if group_id else text)


def metadata_of(query_id: str | None, batch_id: int | None) -> str:
    """The metadata that is committed with a query's offsets."""
    return json.dumps({"query": query_id, "batch": batch_id})


def _query_of(metadata: str) -> str | None:
    """The id of the query that committed an offset with this metadata; None: no query did."""
    try:
        found: Any = json.loads(metadata)
    except ValueError:
        return None
    query_id = found.get("query") if isinstance(found, dict) and "batch" in found else None
    return query_id if isinstance(query_id, str) else None
