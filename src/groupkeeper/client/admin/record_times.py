"""The first records at or after given offsets, read from the partitions' leaders."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from groupkeeper.client.admin.log_fetch import FetchedBatches, Isolation, LogFetch, Read
from groupkeeper.client.admin.log_offsets import LEADER_RETRIES, locate_leaders, should_stop_retrying
from groupkeeper.client.admin.types import Batch, Failure, FirstRecord, Position, TopicPartition
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import CallTimedOut, ConnectionFailed, UnexpectedResponse
from groupkeeper.client.peer import Peer
from groupkeeper.client.router import Located, Routed
from groupkeeper.protocol.errors import OffsetOutOfRange
from groupkeeper.protocol.record_batch import CorruptRecord, iter_headers, read_records

_BYTES_PER_PARTITION = 16 * 1024
"""Enough for one batch of most producers; a partition with larger batches is fetched again with a higher limit."""

_POSITIONS_PER_CHUNK = 500

Outcome = FirstRecord | None | Failure


async def first_records(
    cluster: Cluster, positions: Iterable[Position], isolation: Isolation, timeout_ms: int | None
) -> Batch[Position, FirstRecord | None]:
    """Admin.first_records."""

    async def locate(keys: list[Position], is_again: bool) -> Located[Position]:
        by_place: dict[TopicPartition, list[Position]] = {}
        for key in keys:
            by_place.setdefault(TopicPartition(key.topic, key.partition), []).append(key)
        leaders = await locate_leaders(cluster, list(by_place), is_again, deadline)
        located: Located[Position] = Located()
        for peer, tps in leaders.by_peer.items():
            located.by_peer[peer] = [key for tp in tps for key in by_place[tp]]
        for tp, failure in leaders.failed.items():
            located.failed.update(dict.fromkeys(by_place[tp], failure))
        for tp, failure in leaders.retry.items():
            located.retry.update(dict.fromkeys(by_place[tp], failure))
        return located

    async def ask(peer: Peer, keys: list[Position]) -> dict[Position, Outcome]:
        fetch = LogFetch(peer, lambda: cluster.deadline("fetch", timeout_ms), _BYTES_PER_PARTITION, isolation)
        return await _Search(keys).run(fetch)

    wanted = list(dict.fromkeys(positions))
    found: Batch[Position, FirstRecord | None] = Batch()
    left = wanted
    while left:
        deadline = cluster.deadline("fetch", timeout_ms)
        call: Routed[Position, FirstRecord | None] = Routed(
            cluster, deadline, locate, ask,
            chunk=_POSITIONS_PER_CHUNK, retries=LEADER_RETRIES, should_stop_retrying=should_stop_retrying,
        )  # fmt: skip
        read = await call.run(left)
        found.done.update(read.done)
        # The timeout is for each request, also for the lookup of a leader that moved late in a long call.
        left = [key for key, why in read.failed.items() if read.done and isinstance(why, CallTimedOut)]
        again = set(left)
        found.failed.update((key, why) for key, why in read.failed.items() if key not in again)
    return Batch(
        {key: found.done[key] for key in wanted if key in found.done},
        {key: found.failed[key] for key in wanted if key in found.failed},
    )


class _Search:
    """The unanswered positions of one chunk by partition, and the offset up to which each partition was read."""

    def __init__(self, keys: Iterable[Position]) -> None:
        self._left: dict[TopicPartition, deque[Position]] = {}
        for key in sorted(keys):
            self._left.setdefault(TopicPartition(key.topic, key.partition), deque()).append(key)
        self._read_to: dict[TopicPartition, int] = {}
        self._results: dict[Position, Outcome] = {}

    async def run(self, fetch: LogFetch) -> dict[Position, Outcome]:
        """A result for each position; results so far are kept when the broker fails later."""
        while self._left:
            try:
                read = await fetch.round({tp: self._next(tp) for tp in self._left})
            except (ConnectionFailed, CallTimedOut) as error:
                if not self._results:
                    raise
                for tp in self._left:
                    self._fail(tp, error)
                return self._results
            for tp, found in read.items():
                self._take(tp, found)
            self._left = {tp: left for tp, left in self._left.items() if left}
        return self._results

    def _next(self, tp: TopicPartition) -> int:
        """The next offset to read: no record before it answers one of the unanswered positions."""
        offset = self._left[tp][0].offset
        return max(offset, self._read_to.get(tp, offset))

    def _take(self, tp: TopicPartition, read: Read) -> None:
        left = self._left[tp]
        if isinstance(read, FetchedBatches):
            self._match(tp, read)
        elif isinstance(read, int):
            while left and left[0].offset <= read:
                self._results[left.popleft()] = None
        elif isinstance(read, OffsetOutOfRange):
            self._results[left.popleft()] = read
        else:
            self._fail(tp, read)

    def _fail(self, tp: TopicPartition, why: Failure) -> None:
        left = self._left[tp]
        while left:
            self._results[left.popleft()] = why

    def _match(self, tp: TopicPartition, batches: FetchedBatches) -> None:
        """Answer the positions that these batches decide."""
        left = self._left[tp]
        begin = end = self._next(tp)
        aborted = deque(batches.aborted)
        aborting: set[int] = set()
        try:
            for pos, header in iter_headers(batches.data):
                if not left:
                    return
                end = max(end, header.next_offset)
                while aborted and aborted[0][0] <= header.last_offset:
                    aborting.add(aborted.popleft()[1])
                if header.is_control:  # a marker, which no consumer sees, ends the transaction of its producer
                    aborting.discard(header.producer_id)
                    continue
                is_aborted = header.is_transactional and header.producer_id in aborting
                if is_aborted or header.last_offset < left[0].offset:
                    continue
                for record in read_records(batches.data, pos, header=header):
                    while left and left[0].offset <= record.offset:
                        self._results[left.popleft()] = FirstRecord(
                            record.offset, record.timestamp, header.has_log_append_time, header.is_transactional
                        )
        except CorruptRecord as error:
            why = UnexpectedResponse(f"a record batch cannot be read: {error}")
            while left and left[0].offset < end:
                self._results[left.popleft()] = why
            if end == begin:
                self._fail(tp, why)
        if end == begin:
            self._fail(tp, UnexpectedResponse(f"the batches of the reply are before offset {begin}"))
        self._read_to[tp] = end
