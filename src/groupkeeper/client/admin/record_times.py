"""Timestamps of records at given offsets: the first batch from there on is read from the partition's leader."""

from __future__ import annotations

from collections.abc import Iterable

from groupkeeper.client.admin.log_offsets import LEADER_RETRIES, gives_up, locate_leaders
from groupkeeper.client.admin.types import Batch, Failure, Position, TopicPartition
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import UnexpectedAnswer
from groupkeeper.client.peer import Peer
from groupkeeper.client.routing import Located, Routed
from groupkeeper.client.timing import Deadline
from groupkeeper.protocol.errors import error_for
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from groupkeeper.protocol.messages.fetch_response import FetchResponse
from groupkeeper.protocol.record_batch import CorruptRecord, iter_headers, read_records

_LAST_VERSION_WITH_NAMES = 12
_CONSUMER_REPLICA_ID = -1
_BYTES_PER_PARTITION = 16 * 1024
"""Holds a batch of most producers; the answer always has one whole batch, so a larger one is asked for by itself."""

_MOST_WHOLE_BATCHES = 100
"""Of those, which may be a megabyte each, so many are read for each chunk of positions; the others stay unknown."""

_POSITIONS_PER_REQUEST = 500

Answer = int | None | Failure


class _Incomplete(UnexpectedAnswer):
    """The answer holds the beginning of a batch only."""


async def record_timestamps(
    cluster: Cluster, positions: Iterable[Position], timeout_ms: int | None
) -> Batch[Position, int | None]:
    """Admin.record_timestamps."""
    deadline = cluster.deadline("fetch", timeout_ms)

    async def locate(keys: list[Position], is_again: bool, deadline: Deadline) -> Located[Position]:
        by_place: dict[TopicPartition, list[Position]] = {}
        for key in keys:
            by_place.setdefault(TopicPartition(key.topic, key.partition), []).append(key)
        leaders = await locate_leaders(cluster, list(by_place), is_again, deadline)
        located: Located[Position] = Located()
        for peer, places in leaders.by_peer.items():
            located.by_peer[peer] = [key for place in places for key in by_place[place]]
        for place, failure in leaders.failed.items():
            located.failed.update(dict.fromkeys(by_place[place], failure))
        for place, failure in leaders.retry.items():
            located.retry.update(dict.fromkeys(by_place[place], failure))
        return located

    call: Routed[Position, int | None] = Routed(
        cluster, deadline, locate, _ask, chunk=_POSITIONS_PER_REQUEST, retries=LEADER_RETRIES, gives_up=gives_up
    )
    return await call.run(list(positions))


async def _ask(peer: Peer, keys: list[Position], deadline: Deadline) -> dict[Position, Answer]:
    """A request can ask for one offset of each partition: as many requests as a partition has positions here."""
    results: dict[Position, Answer] = {}
    whole_batches = _MOST_WHOLE_BATCHES
    left = keys
    while left:
        round_by_place: dict[TopicPartition, Position] = {}
        later: list[Position] = []
        for key in left:
            place = TopicPartition(key.topic, key.partition)
            if round_by_place.setdefault(place, key) is not key:
                later.append(key)
        found = await _fetch(peer, list(round_by_place.values()), deadline)
        for key, answer in found.items():
            if isinstance(answer, _Incomplete) and whole_batches:
                whole_batches -= 1
                results |= await _fetch(peer, [key], deadline)
            else:
                results[key] = answer
        left = later
    return results


async def _fetch(peer: Peer, keys: list[Position], deadline: Deadline) -> dict[Position, Answer]:
    topics: dict[str, list[FetchPartition]] = {}
    for key in keys:
        wanted = FetchPartition(key.partition, fetch_offset=key.offset, partition_max_bytes=_BYTES_PER_PARTITION)
        topics.setdefault(key.topic, []).append(wanted)
    request = FetchRequest(
        replica_id=_CONSUMER_REPLICA_ID, topics=[FetchTopic(topic, partitions=some) for topic, some in topics.items()]
    )
    answer = await peer.ask(
        FetchRequest, FetchResponse, lambda version: request, deadline, max_version=_LAST_VERSION_WITH_NAMES
    )
    key_by_place = {TopicPartition(key.topic, key.partition): key for key in keys}
    found: dict[Position, Answer] = {}
    if answer.error_code:
        found.update(dict.fromkeys(keys, error_for(answer.error_code)))
    for topic in answer.responses:
        for partition in topic.partitions:
            key = key_by_place[TopicPartition(topic.topic, partition.partition_index)]
            if partition.error_code:
                found[key] = error_for(partition.error_code)
            else:
                found[key] = _timestamp(partition.records or b"", key.offset)
    return found


def _timestamp(records: bytes, offset: int) -> Answer:
    """Of the first record from the offset on: ms, None without one, or why it cannot be read."""
    try:
        at = 0
        for pos, header in iter_headers(records):
            at = pos + header.size_in_bytes
            if header.is_control:  # a marker: no consumer sees it
                continue
            for record in read_records(records, pos):
                if record.offset >= offset:
                    return record.timestamp
        if at < len(records):
            return _Incomplete("the answer ends within a batch")
    except CorruptRecord as error:
        return UnexpectedAnswer(f"a record batch cannot be read: {error}")
    return None
