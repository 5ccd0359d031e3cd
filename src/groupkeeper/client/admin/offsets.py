"""Committed offsets of groups: fetch (KIP-88, KIP-709), commit, delete (KIP-496)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import compress

from groupkeeper.client.admin.arguments import keyed, mapped, of_kind, one_group, partitions_each, several
from groupkeeper.client.admin.coordinators import routed
from groupkeeper.client.admin.types import Batch, CommittedOffsets, Failure, OffsetAndMetadata, TopicPartition
from groupkeeper.client.batch import batch_of, failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import MissingResult, UnsupportedBatching, UnsupportedVersion
from groupkeeper.client.peer import Peer
from groupkeeper.client.router import COORDINATOR_RETRIES, Retries, batched, one_by_one
from groupkeeper.client.topology import by_topic
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import error_for
from groupkeeper.protocol.primitives import columns_of

GROUPS_PER_FETCH = 400
"""Groups per OffsetFetch request: hundreds, so that the response stays below about a megabyte."""

_GROUPS_PER_CHUNK = 200
"""Groups whose commits are retried together: few tasks, but still several chunks in flight at each broker."""

COMMIT_RETRIES = COORDINATOR_RETRIES._replace(same_broker=COORDINATOR_RETRIES.same_broker | {27})
"""Also retries REBALANCE_IN_PROGRESS (27): a commit waits for the end of a rebalance."""

_COLUMNS = 5
"""Index, offset, epoch, metadata and error code of a partition in a response."""

_PARTITION_CODES_OF_V1 = (0, 3, 29)
"""In OffsetFetch version 1 any other code on a partition is an error of the whole group."""

Interned = dict[tuple[tuple[str, tuple[int, ...]], ...], tuple[TopicPartition, ...]]
"""Tuples of partitions by topics and indexes. Most groups have the same ones: sharing is fast and halves the memory."""

Wanted = Mapping[str, list[TopicPartition] | None]
GroupOffsets = Batch[TopicPartition, OffsetAndMetadata | None]
Outcome = Batch[TopicPartition, None]
OfGroup = Callable[[Peer, str], Awaitable[Outcome | Failure]]


class OffsetCalls:
    """Calls of Admin about committed offsets."""

    _cluster: Cluster

    async def list_consumer_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[str, Batch[TopicPartition, OffsetAndMetadata | None]]:
        """Committed offsets of many groups at once (KIP-88, KIP-709).

        None as a group's partitions: all that have a committed offset; an empty collection: none at all. A partition
        that was requested and has no offset is `None` in the inner `done`; one that the broker refused is
        in the inner `failed`. A group that doesn't exist has no offsets, which is not an error.
        `require_stable`: a partition with a pending transactional offset fails with UnstableOffsetCommit (KIP-447);
        brokers before 2.5 ignore it.
        """
        wanted = partitions_each(groups)
        fetched = await self._list_offsets(wanted, require_stable, timeout_ms)
        return Batch(
            {group_id: _by_partition(columns, wanted[group_id]) for group_id, columns in fetched.done.items()},
            fetched.failed,
        )

    async def list_committed_offsets(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Batch[str, CommittedOffsets]:
        """All committed offsets of groups, by column: for very many groups, if few offsets are accessed singly."""
        return await self._list_offsets(dict.fromkeys(several(group_ids, "group_ids")), False, timeout_ms)

    async def _list_offsets(
        self, wanted: Wanted, require_stable: bool, timeout_ms: int | None
    ) -> Batch[str, CommittedOffsets]:
        """Lists the offsets of the given or (None) all partitions of each group."""
        deadline = self._cluster.deadline("listConsumerGroupOffsets", timeout_ms)
        interned: Interned = {}

        async def ask(peer: Peer, group_ids: list[str]) -> dict[str, CommittedOffsets | Failure]:
            async def fetch(keys: Sequence[str]) -> dict[str, CommittedOffsets | Failure]:
                some = {group_id: wanted[group_id] for group_id in keys}
                return await _fetch(peer, some, require_stable, deadline, interned)

            return await batched(group_ids, fetch)

        return await routed(self._cluster, deadline, ask, chunk=GROUPS_PER_FETCH).run(list(wanted))

    async def alter_consumer_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, None]:
        """Commit offsets for a group without members. In a group with members each partition fails with
        UnknownMemberId.
        """
        keyed(offsets, TopicPartition, "offsets", OffsetAndMetadata)
        many = await self.alter_offsets_of_groups({one_group(group_id): offsets}, timeout_ms=timeout_ms)
        return many.result(group_id)

    async def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, None]:
        """Delete committed offsets (KIP-496): GroupSubscribedToTopic per partition of a topic that is in use.

        Raises the KafkaError of the whole group: GroupIdNotFound, NonEmptyGroup, InvalidGroupId,
        GroupAuthorizationFailed. UnsupportedVersion when the broker is older than 2.4.
        """
        wanted = of_kind(partitions, TopicPartition, "partitions")
        many = await self.delete_offsets_of_groups({one_group(group_id): wanted}, timeout_ms=timeout_ms)
        return many.result(group_id)

    async def alter_offsets_of_groups(
        self,
        offsets: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]],
        *,
        tell: Callable[[], None] | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[str, Batch[TopicPartition, None]]:
        """`alter_consumer_group_offsets` of many groups: one request for each, many in flight. `tell` is called
        after each group's commit.
        """
        for group_id, own in mapped(offsets, "offsets").items():
            keyed(own, TopicPartition, f"offsets[{group_id!r}]", OffsetAndMetadata)
        deadline = self._cluster.deadline("alterConsumerGroupOffsets", timeout_ms)

        async def ask(peer: Peer, group_id: str) -> Outcome | Failure:
            return await _commit(peer, group_id, offsets[group_id], deadline)

        return await self._each(deadline, offsets, ask, COMMIT_RETRIES, tell)

    async def delete_offsets_of_groups(
        self,
        partitions: Mapping[str, Iterable[TopicPartition]],
        *,
        tell: Callable[[], None] | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[str, Batch[TopicPartition, None]]:
        """`delete_consumer_group_offsets` of many groups: one request for each, many in flight.

        An error of a whole group is in the outer `failed`.
        """
        wanted = {
            group_id: list(dict.fromkeys(several(own, f"partitions[{group_id!r}]")))
            for group_id, own in mapped(partitions, "partitions").items()
        }
        deadline = self._cluster.deadline("deleteConsumerGroupOffsets", timeout_ms)

        async def ask(peer: Peer, group_id: str) -> Outcome | Failure:
            return await _delete(peer, group_id, wanted[group_id], deadline)

        return await self._each(deadline, wanted, ask, COORDINATOR_RETRIES, tell)

    async def _each(
        self,
        deadline: Deadline,
        group_ids: Iterable[str],
        of_group: OfGroup,
        retries: Retries,
        tell: Callable[[], None] | None,
    ) -> Batch[str, Outcome]:
        """A request carries one group; requests are pipelined to each coordinator."""

        async def ask(peer: Peer, keys: list[str]) -> dict[str, Outcome | Failure]:
            async def ask_one(group_id: str) -> Outcome | Failure:
                response = await of_group(peer, group_id)
                if tell is not None and not isinstance(response, Exception):
                    tell()
                return response

            return dict(await one_by_one(keys, ask_one))

        return await routed(self._cluster, deadline, ask, chunk=_GROUPS_PER_CHUNK, retries=retries).run(list(group_ids))


def _by_partition(columns: CommittedOffsets, wanted: list[TopicPartition] | None) -> GroupOffsets:
    new = tuple.__new__  # the constructors of named tuples take three times as long, and this runs for every offset
    partitions, committed, epochs, texts, failed = columns
    offsets = {
        tp: None if offset < 0 else new(OffsetAndMetadata, (offset, None if epoch < 0 else epoch, text or ""))
        for tp, offset, epoch, text in zip(partitions, committed, epochs, texts, strict=True)
    }
    for tp in wanted or ():
        if tp not in offsets and tp not in failed:
            failed[tp] = MissingResult(f"the reply has no offset of {tp}")
    return Batch(offsets, failed)


async def _fetch(
    peer: Peer, wanted: Wanted, require_stable: bool, deadline: Deadline, interned: Interned
) -> dict[str, CommittedOffsets | Failure]:
    asked_in = 0

    def build(version: int) -> m.OffsetFetchRequest:
        nonlocal asked_in
        asked_in = version
        return _fetch_request(version, wanted, require_stable)

    response = await peer.ask(m.OffsetFetchResponse, build, deadline)
    results: dict[str, CommittedOffsets | Failure] = {}
    for group in response.groups:
        if group.error_code:
            results[group.group_id] = error_for(group.error_code)
        elif group.group_id in wanted:
            results[group.group_id] = _columns(group.topics, interned)
    if asked_in < 8:
        [group_id] = wanted
        code = _group_code_of_v1(response) if asked_in < 2 else response.error_code
        results[group_id] = error_for(code) if code else _columns(response.topics, interned)
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


def _group_code_of_v1(response: m.OffsetFetchResponse) -> int:
    codes = (partition.error_code for topic in response.topics for partition in topic.partitions)
    return next((code for code in codes if code not in _PARTITION_CODES_OF_V1), 0)


def _columns(
    topics: Sequence[m.OffsetFetchResponseTopics | m.OffsetFetchResponseTopic], interned: Interned
) -> CommittedOffsets:
    parts = [(topic.name, columns_of(topic.partitions)) for topic in topics if topic.partitions]
    key = tuple([(name, tuple(columns[0])) for name, columns in parts])
    partitions = interned.get(key)
    if partitions is None:
        tps = [TopicPartition(name, index) for name, indexes in key for index in indexes]
        partitions = interned[key] = tuple(tps)
    if len(parts) == 1:
        _, offsets, epochs, texts, codes = parts[0][1][:_COLUMNS]
    else:
        _, offsets, epochs, texts, codes = [
            [value for _, columns in parts for value in columns[column]] for column in range(_COLUMNS)
        ]
    if any(codes):
        return _without_failed(partitions, offsets, epochs, texts, codes)
    return CommittedOffsets(partitions, offsets, epochs, texts, {})


def _without_failed(
    partitions: Sequence[TopicPartition],
    offsets: Sequence[int],
    epochs: Sequence[int],
    texts: Sequence[str | None],
    codes: Sequence[int],
) -> CommittedOffsets:
    failed: dict[TopicPartition, Failure] = {
        tp: error_for(code) for tp, code in zip(partitions, codes, strict=True) if code
    }
    well = [not code for code in codes]
    return CommittedOffsets(
        tuple(compress(partitions, well)),
        list(compress(offsets, well)),
        list(compress(epochs, well)),
        list(compress(texts, well)),
        failed,
    )


async def _commit(
    peer: Peer, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline: Deadline
) -> Outcome | Failure:
    """Sends one OffsetCommit request. A retriable code of a partition fails the whole group."""
    topics = by_topic(
        (tp.topic, m.OffsetCommitRequestPartition(tp.partition, offset, -1 if epoch is None else epoch, metadata))
        for tp, (offset, epoch, metadata) in offsets.items()
    )
    # The defaults, generation −1 and no ids, make a commit from outside the group.
    request = m.OffsetCommitRequest(
        group_id=group_id,
        topics=[m.OffsetCommitRequestTopic(name=topic, partitions=parts) for topic, parts in topics.items()],
    )
    response = await peer.ask(m.OffsetCommitResponse, request, deadline)
    codes = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
    if not any(codes.values()) and codes.keys() == offsets.keys():  # the usual case; this runs for every group
        return Batch(dict.fromkeys(offsets))
    results = {TopicPartition(*key): failure_of(code) for key, code in codes.items()}
    for failure in results.values():
        if failure is not None and failure.code in COMMIT_RETRIES.same_broker | COMMIT_RETRIES.after_lookup:
            return failure
    return batch_of(offsets, results, 'Offset commit result for partition "{}" was not in the response')


async def _delete(peer: Peer, group_id: str, partitions: list[TopicPartition], deadline: Deadline) -> Outcome | Failure:
    """One OffsetDelete request."""
    request = m.OffsetDeleteRequest(
        group_id,
        [
            m.OffsetDeleteRequestTopic(topic, [m.OffsetDeleteRequestPartition(index) for index in indexes])
            for topic, indexes in by_topic(partitions).items()
        ],
    )
    response = await peer.ask(m.OffsetDeleteResponse, request, deadline)
    if response.error_code:
        return error_for(response.error_code)
    results = {
        TopicPartition(topic.name, partition.partition_index): failure_of(partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    }
    return batch_of(partitions, results, 'Offset deletion result for partition "{}" was not included in the response')
