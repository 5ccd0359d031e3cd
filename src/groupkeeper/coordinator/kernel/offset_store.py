"""Committed offsets by group, and pending offsets that wait for the end of their transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias

from groupkeeper.protocol.messages import OffsetCommitKey, OffsetCommitValue
from groupkeeper.protocol.primitives import ZERO_UUID


class CommittedOffset(NamedTuple):
    """An offset as it was committed."""

    committed_offset: int
    """The next offset to read; consumers treat a negative one as no offset."""
    leader_epoch: int
    """−1: the commit has none."""
    metadata: str
    """The committer's text; empty: none."""
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    """None: the commit did not name its own retention."""
    topic_id: bytes = ZERO_UUID
    """Zero: the commit has none."""
    log_offset: int = -1
    """Where the record is in the log; orders plain commits and transactions."""


OffsetsByTopic: TypeAlias = Mapping[str, Mapping[int, CommittedOffset]]
"""Topic → partition → offset; topics without offsets are absent."""

TopicPartition: TypeAlias = tuple[str, int]

_NOTHING: OffsetsByTopic = {}
_new_tuple: Final = tuple.__new__
"""Makes an offset in half the time: a start stores them by the million."""


class OffsetView(Protocol):
    """The read-only view of the offsets for handlers."""

    @property
    def count(self) -> int:
        """Committed offsets of all groups (NumOffsets)."""

    def of_group(self, group_id: str) -> OffsetsByTopic:
        """Committed offsets; empty for a group without any."""

    def find(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None: ...

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has an offset for the partition."""

    def pending_of_group(self, group_id: str) -> Mapping[TopicPartition, Mapping[int, CommittedOffset]]:
        """Offsets of open transactions, by partition and producer id."""


class OffsetStore:
    """The mutable store behind `OffsetView`; written by replay only."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._pending: dict[str, dict[TopicPartition, dict[int, CommittedOffset]]] = {}
        self._groups_by_producer: dict[int, set[str]] = {}
        self.count = 0
        """Committed offsets of all groups (NumOffsets)."""

    def of_group(self, group_id: str) -> OffsetsByTopic:
        return self._committed.get(group_id, _NOTHING)

    def find(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self.of_group(group_id).get(topic, {}).get(partition)

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return (topic, partition) in self._pending.get(group_id, {})

    def pending_of_group(self, group_id: str) -> Mapping[TopicPartition, Mapping[int, CommittedOffset]]:
        return self._pending.get(group_id, {})

    def put(self, key: OffsetCommitKey, value: OffsetCommitValue, log_offset: int, producer_id: int) -> None:
        """Stores an offset record: as committed, or as pending if it belongs to a producer's transaction."""
        expire_ms = None if value.expire_timestamp == -1 else value.expire_timestamp
        offset = _new_tuple(
            CommittedOffset,
            (
                value.offset,
                value.leader_epoch,
                value.metadata,
                value.commit_timestamp,
                expire_ms,
                value.topic_id,
                log_offset,
            ),
        )
        if producer_id < 0:
            self._commit(key.group, key.topic, key.partition, offset)
            return
        partitions = self._pending.setdefault(key.group, {})
        partitions.setdefault((key.topic, key.partition), {})[producer_id] = offset
        self._groups_by_producer.setdefault(producer_id, set()).add(key.group)

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Removes the committed offset and all pending ones."""
        topics = self._committed.get(group_id, {})
        if topics.get(topic, {}).pop(partition, None) is not None:
            self.count -= 1
            if not topics[topic]:
                del topics[topic]
            if not topics:
                del self._committed[group_id]
        pending = self._pending.get(group_id, {})
        if pending.pop((topic, partition), None) is not None and not pending:
            del self._pending[group_id]

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Commits or drops a producer's pending offsets."""
        for group_id in sorted(self._groups_by_producer.pop(producer_id, ())):
            partitions = self._pending.get(group_id, {})
            for topic, partition in [tp for tp, producers in partitions.items() if producer_id in producers]:
                offset = partitions[topic, partition].pop(producer_id)
                if not partitions[topic, partition]:
                    del partitions[topic, partition]
                present = self.find(group_id, topic, partition)
                if is_commit and (present is None or present.log_offset < offset.log_offset):
                    self._commit(group_id, topic, partition, offset)
            if not partitions:
                self._pending.pop(group_id, None)

    def _commit(self, group_id: str, topic: str, partition: int, offset: CommittedOffset) -> None:
        try:
            partitions = self._committed[group_id][topic]
        except KeyError:
            partitions = self._committed.setdefault(group_id, {}).setdefault(topic, {})
        if partition not in partitions:
            self.count += 1
        partitions[partition] = offset
