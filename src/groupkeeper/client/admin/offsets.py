"""Committed offsets of groups: fetch (KIP-88, KIP-709), commit, delete (KIP-496)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress

from groupkeeper.client.admin.coordinators import of_one_group, routed
from groupkeeper.client.admin.types import Batch, CommittedOffsets, Failure, OffsetAndMetadata, TopicPartition
from groupkeeper.client.batch import batch_of, failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import MissingResult, UnsupportedBatching, UnsupportedVersion
from groupkeeper.client.peer import Peer
from groupkeeper.client.router import COORDINATOR_RETRIES, one_by_one
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import error_for
from groupkeeper.protocol.primitives import columns_of

GROUPS_PER_FETCH = 400
"""Groups of one OffsetFetch request: hundreds, so that the answer stays well below a megabyte or so."""

_LAST_VERSION_WITH_NAMES = 9
"""Of OffsetFetch and OffsetCommit: from version 10 on topics go by id."""

COMMIT_RETRIES = COORDINATOR_RETRIES._replace(here=COORDINATOR_RETRIES.here | {27})
"""A commit waits for a rebalance to end, too."""

_COLUMNS = 5
"""Index, offset, epoch, metadata and error code of a partition in an answer."""

_PARTITION_CODES_OF_V1 = (0, 3, 29)
"""In OffsetFetch version 1 any other code on a partition is an error of the whole group."""

Interned = dict[tuple[tuple[str, tuple[int, ...]], ...], tuple[TopicPartition, ...]]
"""Groups mostly have the same partitions: the same objects by topics and indexes are faster and half the memory."""

Wanted = Mapping[str, list[TopicPartition] | None]
GroupOffsets = Batch[TopicPartition, OffsetAndMetadata | None]


async def list_consumer_group_offsets(
    cluster: Cluster,
    groups: Mapping[str, Iterable[TopicPartition] | None],
    require_stable: bool,
    timeout_ms: int | None,
) -> Batch[str, GroupOffsets]:
    """Admin.list_consumer_group_offsets."""
    wanted = {group_id: None if tps is None else list(dict.fromkeys(tps)) for group_id, tps in groups.items()}
    fetched = await list_committed_offsets(cluster, wanted, require_stable, timeout_ms)
    return Batch(
        {group_id: _by_partition(columns, wanted[group_id]) for group_id, columns in fetched.done.items()},
        fetched.failed,
    )


def _by_partition(columns: CommittedOffsets, wanted: list[TopicPartition] | None) -> GroupOffsets:
    new = tuple.__new__  # the constructors of named tuples take three times as long, and this runs for every offset
    partitions, committed, epochs, texts, failed = columns
    offsets = {
        topic_partition: None
        if offset < 0
        else new(OffsetAndMetadata, (offset, None if epoch < 0 else epoch, text or ""))
        for topic_partition, offset, epoch, text in zip(partitions, committed, epochs, texts, strict=True)
    }
    for topic_partition in wanted or ():
        if topic_partition not in offsets and topic_partition not in failed:
            failed[topic_partition] = MissingResult(f"the reply has no offset of {topic_partition}")
    return Batch(offsets, failed)


async def list_committed_offsets(
    cluster: Cluster, wanted: Wanted, require_stable: bool, timeout_ms: int | None
) -> Batch[str, CommittedOffsets]:
    """Admin.list_committed_offsets, of some or all (None) partitions of groups."""
    deadline = cluster.deadline("listConsumerGroupOffsets", timeout_ms)
    interned: Interned = {}

    async def fetch(peer: Peer, group_ids: list[str]) -> dict[str, CommittedOffsets | Failure]:
        some = {group_id: wanted[group_id] for group_id in group_ids}
        return await _fetch(peer, some, require_stable, deadline, interned)

    async def ask(peer: Peer, group_ids: list[str], deadline: Deadline) -> dict[str, CommittedOffsets | Failure]:
        try:
            return await fetch(peer, group_ids)
        except UnsupportedBatching:

            async def ask_one(group_id: str) -> CommittedOffsets | Failure:
                return (await fetch(peer, [group_id]))[group_id]

            return dict(await one_by_one(group_ids, ask_one))

    return await routed(cluster, deadline, ask, chunk=GROUPS_PER_FETCH).run(list(wanted))


async def _fetch(
    peer: Peer, wanted: Wanted, require_stable: bool, deadline: Deadline, interned: Interned
) -> dict[str, CommittedOffsets | Failure]:
    asked_in = 0

    def build(version: int) -> m.OffsetFetchRequest:
        nonlocal asked_in
        asked_in = version
        return _fetch_request(version, wanted, require_stable)

    answer = await peer.ask(m.OffsetFetchResponse, build, deadline, max_version=_LAST_VERSION_WITH_NAMES)
    results: dict[str, CommittedOffsets | Failure] = {}
    for group in answer.groups:
        if group.error_code:
            results[group.group_id] = error_for(group.error_code)
        elif group.group_id in wanted:
            results[group.group_id] = _columns(group.topics, interned)
    if asked_in < 8:
        [group_id] = wanted
        code = _group_code_of_v1(answer) if asked_in < 2 else answer.error_code
        results[group_id] = error_for(code) if code else _columns(answer.topics, interned)
    return results


def _fetch_request(version: int, wanted: Wanted, require_stable: bool) -> m.OffsetFetchRequest:
    if version < 8 and len(wanted) > 1:
        raise UnsupportedBatching(
            f"Broker does not support batching groups for fetch offset request on version {version}"
        )
    if version < 2 and None in wanted.values():
        raise UnsupportedVersion(
            f"The broker only supports OffsetFetchRequest v{version}, but we need v2 or newer to request all topic "
            "partitions."
        )
    is_stable = require_stable and version >= 7  # Dropped on older brokers
    if version >= 8:
        return m.OffsetFetchRequest(
            groups=[
                m.OffsetFetchRequestGroup(
                    group_id=group_id,
                    topics=None
                    if partitions is None
                    else [
                        m.OffsetFetchRequestTopics(name=topic, partition_indexes=indexes)
                        for topic, indexes in by_topic(partitions).items()
                    ],
                )
                for group_id, partitions in wanted.items()
            ],
            require_stable=is_stable,
        )
    [(group_id, partitions)] = wanted.items()
    topics = None
    if partitions is not None:
        topics = [m.OffsetFetchRequestTopic(topic, indexes) for topic, indexes in by_topic(partitions).items()]
    return m.OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=is_stable)


def _group_code_of_v1(answer: m.OffsetFetchResponse) -> int:
    codes = (partition.error_code for topic in answer.topics for partition in topic.partitions)
    return next((code for code in codes if code not in _PARTITION_CODES_OF_V1), 0)


def _columns(
    topics: Sequence[m.OffsetFetchResponseTopics | m.OffsetFetchResponseTopic], interned: Interned
) -> CommittedOffsets:
    parts = [(topic.name, columns_of(topic.partitions)) for topic in topics if topic.partitions]
    key = tuple([(name, tuple(columns[0])) for name, columns in parts])
    partitions = interned.get(key)
    if partitions is None:
        places = [TopicPartition(name, index) for name, indexes in key for index in indexes]
        partitions = interned[key] = tuple(places)
    if len(parts) == 1:
        _, offsets, epochs, texts, codes = parts[0][1][:_COLUMNS]
    else:
        _, offsets, epochs, texts, codes = [
            [value for _, columns in parts for value in columns[place]] for place in range(_COLUMNS)
        ]
    if any(codes):
        return _without_failed(partitions, offsets, epochs, texts, codes)
    # The constructors of named tuples take three times as long, and this runs for every group.
    return tuple.__new__(CommittedOffsets, (partitions, offsets, epochs, texts, {}))


def _without_failed(
    partitions: Sequence[TopicPartition],
    offsets: Sequence[int],
    epochs: Sequence[int],
    texts: Sequence[str | None],
    codes: Sequence[int],
) -> CommittedOffsets:
    failed: dict[TopicPartition, Failure] = {
        topic_partition: error_for(code) for topic_partition, code in zip(partitions, codes, strict=True) if code
    }
    well = [not code for code in codes]
    return CommittedOffsets(
        tuple(compress(partitions, well)),
        list(compress(offsets, well)),
        list(compress(epochs, well)),
        list(compress(texts, well)),
        failed,
    )


async def alter_consumer_group_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: int | None
) -> Batch[TopicPartition, None]:
    """Admin.alter_consumer_group_offsets."""
    deadline = cluster.deadline("alterConsumerGroupOffsets", timeout_ms)

    async def ask(
        peer: Peer, group_ids: list[str], deadline: Deadline
    ) -> dict[str, Batch[TopicPartition, None] | Failure]:
        return {group_id: await commit_offsets(peer, group_id, offsets, deadline)}

    return await of_one_group(cluster, deadline, group_id, ask, COMMIT_RETRIES)


async def commit_offsets(
    peer: Peer, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline: Deadline
) -> Batch[TopicPartition, None] | Failure:
    """One OffsetCommit request; a retriable code fails the whole group."""
    from groupkeeper.protocol.messages.offset_commit_request import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )
    from groupkeeper.protocol.messages.offset_commit_response import OffsetCommitResponse

    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for topic_partition, committed in offsets.items():
        epoch = -1 if committed.leader_epoch is None else committed.leader_epoch
        topics.setdefault(topic_partition.topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=topic_partition.partition,
                committed_offset=committed.offset,
                committed_leader_epoch=epoch,
                committed_metadata=committed.metadata,
            )
        )
    # Generation −1 and no ids, the defaults, are a commit from outside of the group.
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=parts) for topic, parts in topics.items()],
    )
    answer = await peer.ask(OffsetCommitResponse, request, deadline, max_version=_LAST_VERSION_WITH_NAMES)
    codes = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in answer.topics
        for partition in topic.partitions
    }
    if not any(codes.values()) and codes.keys() == offsets.keys():  # mostly so, and this runs for every group
        return Batch(dict.fromkeys(offsets))
    answers = {TopicPartition(*place): failure_of(code) for place, code in codes.items()}
    for failure in answers.values():
        if failure is not None and failure.code in COMMIT_RETRIES.here | COMMIT_RETRIES.elsewhere:
            return failure
    return batch_of(offsets, answers, 'Offset commit result for partition "{}" was not in the response')


async def delete_consumer_group_offsets(
    cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition], timeout_ms: int | None
) -> Batch[TopicPartition, None]:
    """Admin.delete_consumer_group_offsets."""
    deadline = cluster.deadline("deleteConsumerGroupOffsets", timeout_ms)
    wanted = list(dict.fromkeys(partitions))

    async def ask(
        peer: Peer, group_ids: list[str], deadline: Deadline
    ) -> dict[str, Batch[TopicPartition, None] | Failure]:
        return {group_id: await delete_offsets(peer, group_id, wanted, deadline)}

    return await of_one_group(cluster, deadline, group_id, ask)


async def delete_offsets(
    peer: Peer, group_id: str, partitions: list[TopicPartition], deadline: Deadline
) -> Batch[TopicPartition, None] | Failure:
    """One OffsetDelete request."""
    from groupkeeper.protocol.messages.offset_delete_request import (
        OffsetDeleteRequest,
        OffsetDeleteRequestPartition,
        OffsetDeleteRequestTopic,
    )
    from groupkeeper.protocol.messages.offset_delete_response import OffsetDeleteResponse

    request = OffsetDeleteRequest(
        group_id,
        [
            OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(index) for index in indexes])
            for topic, indexes in by_topic(partitions).items()
        ],
    )
    answer = await peer.ask(OffsetDeleteResponse, request, deadline)
    if answer.error_code:
        return error_for(answer.error_code)
    answers = {
        TopicPartition(topic.name, partition.partition_index): failure_of(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }
    return batch_of(partitions, answers, 'Offset deletion result for partition "{}" was not included in the response')


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition indexes by topic, in the order given."""
    indexes: dict[str, list[int]] = {}
    for topic, index in partitions:
        indexes.setdefault(topic, []).append(index)
    return indexes
