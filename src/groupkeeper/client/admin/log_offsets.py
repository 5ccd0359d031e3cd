"""Offsets of partitions' logs (ListOffsets), from each partition's leader."""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.client.admin.arguments import keyed
from groupkeeper.client.admin.types import Batch, Failure, ListedOffset, OffsetSpec, TopicPartition
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import UnsupportedVersion
from groupkeeper.client.peer import Peer
from groupkeeper.client.router import Ask, Located, Retries, Routed, V
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError, LeaderNotAvailable, UnknownTopicOrPartition, error_for

_PARTITIONS_PER_REQUEST = 5000
_CONSUMER_REPLICA_ID = -1

LEADER_RETRIES = Retries(
    # OFFSET_NOT_AVAILABLE, UNKNOWN_LEADER_EPOCH, REQUEST_TIMED_OUT: the broker is the leader, but isn't ready.
    same_broker=frozenset({78, 75, 7}),
    # The leader has moved, or its metadata is not everywhere yet.
    after_lookup=frozenset({3, 5, 6, 9, 13, 56, 72, 74, 100}),
)

_TOPIC_PATIENCE_S = 1.0
"""How long a topic may be unknown: a new one is known to every broker much sooner."""

_LEADER_PATIENCE_S = 5.0
"""How long a partition may be without a leader: an election takes less, and a dead partition must not hang the call."""

_RETRIABLE_TOPIC_CODES = (3, 5)

_NEEDS = {
    OffsetSpec.max_timestamp(): 7,
    OffsetSpec.earliest_local(): 8,
    OffsetSpec.latest_tiered(): 9,
    OffsetSpec.earliest_pending_upload(): 11,
}
"""Lowest version of ListOffsets by what is asked for."""


class LogOffsetCalls:
    """The call of Admin about offsets of logs."""

    _cluster: Cluster

    async def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, read_committed: bool = False, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, ListedOffset]:
        """Offsets of partitions by spec (earliest, latest, timestamp …), from each partition's leader.

        A timestamp later than every record's gives offset −1. Moved leaders are followed; a partition that stays
        without a leader fails with LeaderNotAvailable after 5 s, an unknown one with UnknownTopicOrPartition after
        1 s. `read_committed`: latest is the last stable offset. UnsupportedVersion for specs that the broker doesn't
        support.
        """
        keyed(specs, TopicPartition, "specs", OffsetSpec)
        deadline = self._cluster.deadline("listOffsets", timeout_ms)

        async def ask(peer: Peer, keys: list[TopicPartition]) -> dict[TopicPartition, ListedOffset | Failure]:
            return await _ask(peer, {key: specs[key] for key in keys}, read_committed, deadline)

        return await of_leaders(self._cluster, deadline, ask, chunk=_PARTITIONS_PER_REQUEST).run(list(specs))


def of_leaders(
    cluster: Cluster, deadline: Deadline, ask: Ask[TopicPartition, V], *, chunk: int
) -> Routed[TopicPartition, V]:
    """Makes a call on partitions, each sent to its leader."""

    async def locate(keys: list[TopicPartition], is_again: bool) -> Located[TopicPartition]:
        return await locate_leaders(cluster, keys, is_again, deadline)

    return Routed(
        cluster, deadline, locate, ask, chunk=chunk, retries=LEADER_RETRIES, should_stop_retrying=should_stop_retrying
    )


def should_stop_retrying(failure: Failure, elapsed_s: float) -> bool:
    """Whether to stop retrying: the topic was unknown, or the partition had no leader, for too long."""
    if isinstance(failure, UnknownTopicOrPartition):
        return elapsed_s >= _TOPIC_PATIENCE_S
    return isinstance(failure, LeaderNotAvailable) and elapsed_s >= _LEADER_PATIENCE_S


async def locate_leaders(
    cluster: Cluster, keys: list[TopicPartition], is_again: bool, deadline: Deadline
) -> Located[TopicPartition]:
    """Finds the leaders of partitions: cached ones, others by Metadata (all by Metadata if `is_again`)."""
    leaders = cluster.leaders
    topics = {key.topic for key in keys if is_again or leaders.get(key, -1) < 0}
    failure_by_topic: dict[str, Failure] = {}
    fresh: dict[tuple[str, int], int] = {}
    if topics:
        try:
            known = (await cluster.metadata(topics, deadline)).topics
        except KafkaError as refused:
            known, failure_by_topic = [], dict.fromkeys(topics, refused)
        for topic in known:
            if topic.name is not None and topic.error_code:
                failure_by_topic[topic.name] = error_for(topic.error_code)
            for partition in topic.partitions:
                fresh[topic.name or "", partition.partition_index] = partition.leader_id
    located: Located[TopicPartition] = Located()
    for key in keys:
        failure = failure_by_topic.get(key.topic)
        leader = fresh.get(key) if key.topic in topics else leaders.get(key)
        peer = None if leader is None or leader < 0 else cluster.peer_by_id(leader)
        if failure is not None and getattr(failure, "code", None) not in _RETRIABLE_TOPIC_CODES:
            located.failed[key] = failure
        elif peer is not None:
            located.by_peer.setdefault(peer, []).append(key)
        elif failure is not None:
            located.retry[key] = failure
        elif leader is None:
            located.retry[key] = UnknownTopicOrPartition()
        else:
            located.retry[key] = LeaderNotAvailable()
    return located


async def _ask(
    peer: Peer, specs: Mapping[TopicPartition, OffsetSpec], read_committed: bool, deadline: Deadline
) -> dict[TopicPartition, ListedOffset | Failure]:
    results: dict[TopicPartition, ListedOffset | Failure] = {}

    def build(version: int) -> m.ListOffsetsRequest:
        if read_committed and version < 2:
            raise UnsupportedVersion(
                f"The broker only supports ListOffsets v{version}, but we need v2 or newer to read committed offsets."
            )
        topics: dict[str, list[m.ListOffsetsPartition]] = {}
        for key, spec in specs.items():
            needed = _NEEDS.get(spec, 0)
            if version < needed:
                results[key] = peer.unsupported(m.ListOffsetsResponse, needed)
            else:
                partition = m.ListOffsetsPartition(key.partition, timestamp=spec.timestamp)
                topics.setdefault(key.topic, []).append(partition)
        if not topics:
            raise _NothingToAsk
        return m.ListOffsetsRequest(
            replica_id=_CONSUMER_REPLICA_ID,
            isolation_level=int(read_committed),
            topics=[m.ListOffsetsTopic(topic, partitions) for topic, partitions in topics.items()],
            timeout_ms=deadline.left_ms(),
        )

    try:
        response = await peer.ask(m.ListOffsetsResponse, build, deadline)
    except _NothingToAsk:
        return results
    for topic in response.topics:
        for partition in topic.partitions:
            key = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code:
                results[key] = error_for(partition.error_code)
            else:
                epoch = partition.leader_epoch
                results[key] = ListedOffset(partition.offset, partition.timestamp, None if epoch < 0 else epoch)
    return results


class _NothingToAsk(Exception):
    """The broker's version supports no spec of the request."""
