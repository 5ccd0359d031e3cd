"""The fetches of one task, which reads partitions of one cluster concurrently. The next fetch is under way while the
previous one is decoded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from groupkeeper.client.addresses import parse_bootstrap_servers
from groupkeeper.client.admin.log_fetch import EMPTY_ANSWERS
from groupkeeper.client.admin.log_offsets import LEADER_RETRIES, locate_leaders
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Backoff, Deadline
from groupkeeper.client.errors import CallTimedOut, ClientError, ConnectionFailed
from groupkeeper.client.peer import Peer
from groupkeeper.client.security.choice import security_of
from groupkeeper.client.settings import Settings
from groupkeeper.pipeline.decode.batches import AbortedRange, Batches, CorruptBatch, RecordSet, read_batches
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.options import EARLIEST, ClusterOptions, ReadOptions
from groupkeeper.pipeline.kafka.planning import Range
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError, OffsetOutOfRange, TopicAuthorizationFailed, error_for
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.messages.fetch_response import PartitionData

_FETCH_BYTES = 16 * 1024 * 1024
_PARTITION_BYTES = 4 * 1024 * 1024
_WAIT_MS = 500
_SHORT_WAIT_MS = 50
"""The wait of a fetch while some partition's last answer was empty."""

_PARTITIONS_PER_FETCH = 500


class Fetched(NamedTuple):
    """Batches of several partitions: `sets` and `ranges` are by the set index of the batches."""

    batches: Batches
    sets: list[RecordSet]
    ranges: list[Range]

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Raises SourceError, with the partition, in place of CorruptBatch."""
        try:
            yield
        except CorruptBatch as error:
            raise _corrupt(self.ranges[error.index], error) from error


def fetch(
    ranges: Sequence[Range], options: ReadOptions, *, is_done: Callable[[Range], bool] = lambda found: False
) -> Iterator[Fetched]:
    """All batches of the ranges, in the order of offsets within each range. The ranges are of one cluster; a range is
    given up once `is_done` returns True for it. Raises SourceError.
    """
    reader = _LogReader(ranges, options, is_done)
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(reader.open())
        under_way = loop.create_task(reader.round())
        while (sets := loop.run_until_complete(under_way)) is not None:
            fetched = reader.take(sets)
            under_way = loop.create_task(reader.round())
            loop.run_until_complete(asyncio.sleep(0))  # so that the request is sent
            if fetched is not None:
                yield fetched
    finally:
        left = asyncio.all_tasks(loop)  # after an interruption, too
        for task in left:
            task.cancel()
        if left:  # without tasks, gather would look for a loop of this thread
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(reader.close())
        loop.close()


class _FetchAnswer(NamedTuple):
    """A broker's answer, by range. `failure`: an error after which leaders are looked up again; None: no error."""

    found: list[tuple[Range, RecordSet]]
    failure: Exception | None


class _LogReader:
    def __init__(self, ranges: Sequence[Range], options: ReadOptions, is_done: Callable[[Range], bool]) -> None:
        self._options = options
        self._is_done = is_done
        self._cluster_options: ClusterOptions = options.clusters[ranges[0].cluster]
        properties = self._cluster_options.properties
        settings = Settings.of_properties(properties)
        self._cluster = Cluster(
            parse_bootstrap_servers(self._cluster_options.bootstrap_servers), settings, security_of(properties)
        )
        self._name = ranges[0].name
        # A partition that was cut is here more than once: a fetch takes one range of a partition at a time.
        self._waiting = sorted(ranges, key=lambda each: (each.topic, each.partition, each.start), reverse=True)
        self._open: dict[TopicPartition, Range] = {}
        self._limit_by_key: dict[TopicPartition, int] = {}
        self._empty_answers: dict[TopicPartition, int] = {}
        self._fetch_bytes = int(properties.get("fetch.max.bytes", _FETCH_BYTES))
        self._partition_bytes = int(properties.get("max.partition.fetch.bytes", _PARTITION_BYTES))
        self._turn = 0

    async def open(self) -> None:
        try:
            await self._cluster.connect(self._cluster.deadline("connect", None))
        except ClientError as error:
            raise SourceError(f"cluster {self._name}: {error}") from error

    async def close(self) -> None:
        await self._cluster.close()

    async def round(self) -> list[tuple[Range, RecordSet]] | None:
        """Records that one broker returned, never empty; None when everything is read. Raises SourceError."""
        deadline = self._cluster.deadline("fetch", self._options.poll_timeout_ms)
        backoff = self._cluster.backoff()
        is_again = False
        last: Exception | None = None
        while self._fill():
            try:
                found, last = await self._ask_next(is_again, deadline)
                if found:
                    return found
                is_again = last is not None
                if last is None and not deadline.has_passed:
                    continue  # nothing yet: the broker has waited already
                await backoff.pause(deadline, last)
            except CallTimedOut as error:
                raise self._stuck(last or error) from error
            except ConnectionFailed as error:
                last, is_again = error, True
                await self._pause(backoff, deadline, error)
            except ClientError as error:
                raise SourceError(f"cluster {self._name}: {error}") from error
        return None

    def take(self, sets: list[tuple[Range, RecordSet]]) -> Fetched | None:
        """The whole batches that were fetched, None if there are none; the next fetches begin after them. Raises
        SourceError.
        """
        ranges = [found for found, _ in sets]
        record_sets = [each for _, each in sets]
        try:
            batches = read_batches(record_sets, verify=self._options.checks_crcs)
        except CorruptBatch as error:
            raise _corrupt(ranges[error.index], error) from error
        for found, next_offset in zip(ranges, batches.next_offsets, strict=True):
            self._advance(found, next_offset)
        return Fetched(batches, record_sets, ranges) if len(batches.at) else None

    def _advance(self, found: Range, next_offset: int | None) -> None:
        tp = TopicPartition(found.topic, found.partition)
        if next_offset is None:  # a batch larger than the limit, cut off by a broker before 0.10.1
            self._limit_by_key[tp] = 2 * self._limit_by_key.get(tp, self._partition_bytes)
        elif next_offset >= found.end or self._is_done(found):
            del self._open[tp]
        else:
            self._open[tp] = found._replace(start=max(found.start, next_offset))

    def _fill(self) -> bool:
        """Opens further ranges; returns whether anything is left to read."""
        kept = []
        while self._waiting and len(self._open) < _PARTITIONS_PER_FETCH:
            found = self._waiting.pop()
            tp = TopicPartition(found.topic, found.partition)
            if tp in self._open:
                kept.append(found)
            elif not self._is_done(found):
                self._open[tp] = found
        self._waiting += reversed(kept)
        return bool(self._open)

    async def _ask_next(self, is_again: bool, deadline: Deadline) -> _FetchAnswer:
        """Asks the next of the partitions' leaders, in turn; `is_again`: looks up leaders again first."""
        located = await locate_leaders(self._cluster, list(self._open), is_again, deadline)
        for tp, failure in located.failed.items():
            raise self._refused(tp, failure)
        if not located.by_peer:
            return _FetchAnswer([], next(iter(located.retry.values())))
        self._turn += 1
        peers = list(located.by_peer)
        peer = peers[self._turn % len(peers)]
        return await self._ask(peer, located.by_peer[peer], deadline)

    async def _ask(self, peer: Peer, keys: list[TopicPartition], deadline: Deadline) -> _FetchAnswer:
        shift = self._turn % len(keys)
        keys = keys[shift:] + keys[:shift]  # so that full partitions don't starve those after them
        answer = await peer.ask(m.FetchResponse, self._request(keys), deadline)
        if answer.error_code:
            raise SourceError(f"cluster {self._name}: {_reason(error_for(answer.error_code))}")
        found: list[tuple[Range, RecordSet]] = []
        last: Exception | None = None
        empty: list[TopicPartition] = []
        for topic in answer.responses:
            for partition in topic.partitions:
                tp = TopicPartition(topic.topic, partition.partition_index)
                if partition.error_code:
                    last = await self._failed(peer, tp, error_for(partition.error_code), deadline) or last
                elif partition.records:
                    self._empty_answers.pop(tp, None)
                    found.append((self._open[tp], _record_set(self._open[tp], partition)))
                elif self._readable_end(partition) >= self._open[tp].end:
                    empty.append(tp)
        if not found:  # so nothing was left out because of a size limit
            for tp in empty:
                self._note_empty(tp)
        return _FetchAnswer(found, last)

    def _note_empty(self, tp: TopicPartition) -> None:
        """One empty answer proves nothing; after several, compaction must have removed all records of the range."""
        self._empty_answers[tp] = self._empty_answers.get(tp, 0) + 1
        if self._empty_answers[tp] >= EMPTY_ANSWERS:
            del self._empty_answers[tp]
            self._advance(self._open[tp], self._open[tp].end)

    def _readable_end(self, partition: PartitionData) -> int:
        """The offset up to which the broker returns records."""
        return partition.last_stable_offset if self._cluster_options.reads_committed else partition.high_watermark

    def _request(self, keys: list[TopicPartition]) -> m.FetchRequest:
        topics: dict[str, list[FetchPartition]] = {}
        for tp in keys:
            limit = self._limit_by_key.get(tp, self._partition_bytes)
            offset = self._open[tp].start
            topics.setdefault(tp.topic, []).append(
                FetchPartition(tp.partition, fetch_offset=offset, partition_max_bytes=limit)
            )
        return m.FetchRequest(
            max_wait_ms=_SHORT_WAIT_MS if self._empty_answers else _WAIT_MS,
            min_bytes=1,
            max_bytes=self._fetch_bytes,
            isolation_level=int(self._cluster_options.reads_committed),
            topics=[FetchTopic(topic=topic, partitions=partitions) for topic, partitions in topics.items()],
        )

    async def _failed(
        self, peer: Peer, tp: TopicPartition, failure: KafkaError, deadline: Deadline
    ) -> KafkaError | None:
        """Returns a failure that can be retried; None if the range was adjusted. Raises SourceError for others."""
        if isinstance(failure, OffsetOutOfRange):
            await self._skip_lost(peer, tp, deadline)
            return None
        if failure.code in LEADER_RETRIES.after_lookup | LEADER_RETRIES.same_broker:
            return failure
        raise self._refused(tp, failure)

    async def _skip_lost(self, peer: Peer, tp: TopicPartition, deadline: Deadline) -> None:
        """Moves a range to the log start, which has risen since the read was planned. Raises SourceError if that counts
        as data loss, and if the log was truncated.
        """
        found = self._open[tp]
        partition = m.ListOffsetsPartition(tp.partition, timestamp=EARLIEST)
        answer = await peer.ask(
            m.ListOffsetsResponse,
            m.ListOffsetsRequest(replica_id=-1, topics=[m.ListOffsetsTopic(tp.topic, [partition])]),
            deadline,
        )
        first = answer.topics[0].partitions[0]
        if first.error_code:
            raise self._refused(tp, error_for(first.error_code))
        if first.offset <= found.start:
            raise SourceError(f"{found}: offset {found.start} is beyond the end of the log, which has been cut since")
        if self._options.fails_on_data_loss:
            raise SourceError(
                f"{found}: offsets {found.start} to {min(first.offset, found.end) - 1} were removed while they were to "
                f"be read, the log starts at {first.offset} now: set failOnDataLoss=false to read the rest"
            )
        self._advance(found, first.offset)

    def _refused(self, tp: TopicPartition, failure: Exception) -> SourceError:
        found = self._open[tp]
        return SourceError(f"{found}, offset {found.start}: {_reason(failure)}")

    def _stuck(self, error: Exception) -> SourceError:
        found = next(iter(self._open.values()))
        return SourceError(
            f"{found}, offset {found.start}: nothing could be read for {self._options.poll_timeout_ms} ms "
            f"(kafkaConsumer.pollTimeoutMs): {_reason(error)}"
        )

    async def _pause(self, backoff: Backoff, deadline: Deadline, last: Exception) -> None:
        try:
            await backoff.pause(deadline, last)
        except CallTimedOut as error:
            raise self._stuck(last) from error


def _corrupt(found: Range, error: CorruptBatch) -> SourceError:
    return SourceError(f"{found}, offset {error.offset}: corrupt batch: {error}")


def _record_set(found: Range, partition: PartitionData) -> RecordSet:
    aborted = [AbortedRange(each.producer_id, each.first_offset) for each in partition.aborted_transactions or ()]
    return RecordSet(partition.records or b"", found.start, found.end, aborted)


def _reason(failure: Exception) -> str:
    if isinstance(failure, TopicAuthorizationFailed):
        return "not authorized: the principal needs Read on the topic"
    name = type(failure).__name__
    return f"{name}: {failure}" if isinstance(failure, KafkaError) else str(failure) or name
