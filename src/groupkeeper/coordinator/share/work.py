"""Work that the coordinator of a share group gives to the share coordinator, as values.

The coordinator's driver does the work later, in the order of the requests. When the turn of some work comes, the driver
asks `Coordinator.share_work_due` which part of it remains, and carries out the returned result first. It passes the
share-partitions that failed to `Coordinator.share_work_done`, which is another operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from groupkeeper.coordinator.kernel.result import GroupCall, Work
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.protocol.errors import KafkaError


@dataclass(frozen=True, slots=True)
class InitializeShares(Work):
    """Initialize share-partitions at a start offset; −1 leaves the offset to their first reader.

    `call` is the AlterShareGroupOffsets request that waits for it; None when a heartbeat found new partitions.
    """

    group_id: str
    state_epoch: int
    start_offsets: Mapping[bytes, Mapping[int, int]]
    """By topic id and partition."""
    call: GroupCall | None = None

    def share_partitions(self) -> Iterator[SharePartitionKey]:
        """The share-partitions."""
        for topic_id, offsets in self.start_offsets.items():
            for partition in offsets:
                yield SharePartitionKey(self.group_id, topic_id, partition)


@dataclass(frozen=True, slots=True)
class DeleteShares(Work):
    """Delete the state of share-partitions. `call` is the DeleteShareGroupOffsets or DeleteGroups request that
    waits.
    """

    partitions: Mapping[str, Mapping[bytes, frozenset[int]]]
    """By group id and topic id."""
    call: GroupCall
    changes: Mapping[str, int] = field(default_factory=dict)
    """By the id of a group to delete, `ShareGroup.partition_changes` after the request's own change."""
    in_use: Mapping[str, frozenset[bytes]] = field(default_factory=dict)
    """Topic ids by group id that are not deleted, because members may have been assigned them meanwhile."""

    def to_delete(self) -> Iterator[tuple[str, Mapping[bytes, frozenset[int]]]]:
        """Group ids, with the partitions to delete by topic id."""
        for group_id, topics in self.partitions.items():
            kept = self.in_use.get(group_id, frozenset())
            yield group_id, {topic_id: some for topic_id, some in topics.items() if topic_id not in kept}

    def share_partitions(self) -> Iterator[SharePartitionKey]:
        """The share-partitions."""
        for group_id, topics in self.to_delete():
            for topic_id, partitions in topics.items():
                for partition in sorted(partitions):
                    yield SharePartitionKey(group_id, topic_id, partition)


ShareWork: TypeAlias = InitializeShares | DeleteShares
ShareErrors: TypeAlias = Mapping[SharePartitionKey, KafkaError]
"""The share-partitions for which the work failed, and why."""
