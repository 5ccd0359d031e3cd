"""A listener that lets queries of Structured Streaming commit to groups, as consumers do:

spark.streams.addListener(CommitsToKafka("kafka:9092"))
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from groupkeeper.pipeline.checkpoints.committing import CommitProgress, Committer

_AGAIN_S = 3600.0
"""A query without new records commits again after this time, so that its group's offsets don't expire."""


def group_of(name: str | None, query_id: str) -> str | None:
    """The default group of a query."""
    return f"spark-{name or query_id}"


class CommitsToKafka(StreamingQueryListener):
    """Commits the offsets that the queries of a session have reached, to a group for each: `group_of(name, id)` gets
    the query's name (None: it has none) and its id; if it returns None, the query is not committed.

    `properties` are the Kafka client's, by their Java names. Failures neither slow nor fail a query: they are logged to
    `groupkeeper.spark`. A group that has members, or offsets of something else, is left as it is. `takes_over`: offsets
    of another query (as after a start with a new checkpoint) may be replaced. `cluster`: the name by which queries that
    read several clusters with the source `groupkeeper` call this one; None: its id.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        properties: Mapping[str, str] | None = None,
        group_of: Callable[[str | None, str], str | None] = group_of,
        interval_s: float = 5.0,
        takes_over: bool = False,
        cluster: str | None = None,
    ) -> None:
        self._group_of = group_of
        self._committer = Committer(
            bootstrap_servers, properties, interval_s=interval_s, takes_over=takes_over, cluster=cluster
        )
        self._last: dict[str, tuple[float, str, CommitProgress]] = {}
        """By the id of a query's run: the time of its last report, its group, and its progress."""
        atexit.register(self.close)

    def close(self) -> None:
        """Commits the remaining progress, for a few seconds at most. This also happens at the end of the program."""
        self._committer.close()
        atexit.unregister(self.close)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Does nothing: no batch is done yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Queues the offsets of a finished batch."""
        progress = event.progress
        query_id = str(progress.id)
        group_id = self._group_of(progress.name, query_id)
        if group_id is not None:
            sources = [source.endOffset for source in progress.sources if source.endOffset]
            self._put(str(progress.runId), group_id, CommitProgress(query_id, progress.batchId, sources))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Commits the last offsets again if they are old."""
        run_id = str(event.runId)
        last = self._last.get(run_id)
        if last is not None and time.monotonic() - last[0] >= _AGAIN_S:
            self._put(run_id, *last[1:])

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Commits at once: the program may end right after the query."""
        self._last.pop(str(event.runId), None)
        self._committer.hurry()

    def _put(self, run_id: str, group_id: str, progress: CommitProgress) -> None:
        self._last[run_id] = (time.monotonic(), group_id, progress)
        self._committer.put(group_id, progress)
