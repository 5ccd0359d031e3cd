"""Read partitions' logs from offset to offset (Fetch), as bytes of whole batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from groupkeeper.client.admin.log_offsets import LEADER_RETRIES, gives_up, locate_leaders
from groupkeeper.client.admin.types import Batch, Failure, TopicPartition
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import UnexpectedAnswer
from groupkeeper.client.peer import Peer
from groupkeeper.client.routing import Located, Routed
from groupkeeper.client.timing import Deadline
from groupkeeper.protocol.errors import OffsetOutOfRange, error_for
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from groupkeeper.protocol.messages.fetch_response import FetchResponse

_LAST_VERSION_WITH_NAMES = 12
_CONSUMER_REPLICA_ID = -1
_BYTES_PER_PARTITION = 1024 * 1024
_BYTES_PER_REQUEST = 8 * 1024 * 1024
_PARTITIONS_PER_REQUEST = 50

Take = Callable[[TopicPartition, bytes], int | None]
"""Is given what was read, and tells the offset behind it; None: not one whole batch is in it."""


async def read_logs(
    cluster: Cluster, ranges: Mapping[TopicPartition, tuple[int, int]], take: Take, timeout_ms: int | None
) -> Batch[TopicPartition, None]:
    """Admin.read_logs."""
    at = {place: start for place, (start, end) in ranges.items() if start < end}
    result: Batch[TopicPartition, None] = Batch(dict.fromkeys(place for place in ranges if place not in at))

    async def locate(keys: list[TopicPartition], is_again: bool, deadline: Deadline) -> Located[TopicPartition]:
        return await locate_leaders(cluster, keys, is_again, deadline)

    async def ask(peer: Peer, keys: list[TopicPartition], deadline: Deadline) -> dict[TopicPartition, bytes | Failure]:
        return await _fetch(peer, {key: at[key] for key in keys}, deadline)

    while at:
        deadline = cluster.deadline("fetch", timeout_ms)
        call: Routed[TopicPartition, bytes] = Routed(
            cluster, deadline, locate, ask, chunk=_PARTITIONS_PER_REQUEST, retries=LEADER_RETRIES, gives_up=gives_up
        )
        read = await call.run(list(at))
        has_moved = bool(read.failed)
        result.failed.update(read.failed)
        for place in read.failed:
            del at[place]
        for place, records in read.done.items():
            behind = take(place, records) if records else None
            if behind is not None and behind > at[place]:
                at[place], has_moved = behind, True
            if at[place] >= ranges[place][1]:
                del at[place]
                result.done[place] = None
        if not has_moved:
            stuck = UnexpectedAnswer("the broker has no records where the log is said to go on")
            result.failed.update(dict.fromkeys(at, stuck))
            break
        # What was left out, as the answer was full, comes first in the next request.
        at = dict(sorted(at.items(), key=lambda item: bool(read.done.get(item[0]))))
    return result


async def _fetch(
    peer: Peer, offsets: Mapping[TopicPartition, int], deadline: Deadline
) -> dict[TopicPartition, bytes | Failure]:
    topics: dict[str, list[FetchPartition]] = {}
    for place, offset in offsets.items():
        wanted = FetchPartition(place.partition, fetch_offset=offset, partition_max_bytes=_BYTES_PER_PARTITION)
        topics.setdefault(place.topic, []).append(wanted)
    request = FetchRequest(
        replica_id=_CONSUMER_REPLICA_ID,
        max_bytes=_BYTES_PER_REQUEST,
        topics=[FetchTopic(topic, partitions=some) for topic, some in topics.items()],
    )
    answer = await peer.ask(
        FetchRequest, FetchResponse, lambda version: request, deadline, max_version=_LAST_VERSION_WITH_NAMES
    )
    if answer.error_code:
        return dict.fromkeys(offsets, error_for(answer.error_code))
    found: dict[TopicPartition, bytes | Failure] = {}
    for topic in answer.responses:
        for partition in topic.partitions:
            failure: Failure | None = error_for(partition.error_code) if partition.error_code else None
            if isinstance(failure, OffsetOutOfRange):
                failure = UnexpectedAnswer("the log was cut while it was read")
            place = TopicPartition(topic.topic, partition.partition_index)
            found[place] = failure if failure is not None else partition.records or b""
    return found
