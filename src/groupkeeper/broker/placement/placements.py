"""The placements of all partitions; with one node all partitions have the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from groupkeeper.broker.placement.placement import NO_LEADER, Placement

Key = tuple[bytes, int]
"""Topic id and partition."""
Replicas = int | Sequence[Sequence[int]]
"""The number of replicas of each partition, or the replicas of each."""
JOURNAL = "placements.journal"


class Placements:
    """The placements of a cluster of one node, and base of those of several nodes.

    Attributes:
        nodes: the ids of all nodes. running: the ids of running nodes. running_by_cut_off_node: the running nodes as
        each cut-off node sees them. reads_by_rack: whether consumers are sent to a replica in their rack.
    """

    reads_by_rack = False

    def __init__(self, nodes: Sequence[int]) -> None:
        self.nodes = nodes
        self.running = set(nodes)
        self.running_by_cut_off_node: dict[int, Set[int]] = {}
        self._first = Placement(nodes[:1], nodes[:1], nodes[0])

    def of(self, topic_id: bytes, index: int) -> Placement:
        """The placement of a partition; one that isn't registered is on the first node."""
        return self._first

    def reaches(self, node: int, leader: int) -> bool:
        """Whether a node can reach a leader: neither is cut off, or both are the same."""
        return leader != NO_LEADER and (
            node == leader or self.running_by_cut_off_node.keys().isdisjoint((node, leader))
        )

    def running_known_to(self, node: int) -> Set[int]:
        """The running nodes, as a node sees them."""
        return self.running_by_cut_off_node.get(node, self.running)

    def assign(self, topic_id: bytes, indexes: range, replicas: Replicas) -> None:
        """Places new partitions. Raises `KafkaStorageError`."""

    def begin(self, topic_ids: Set[bytes]) -> None:
        """Opens the registry, without partitions of topics that are not in `topic_ids`. Raises OSError."""

    def change(self, changed: Mapping[Key, Placement]) -> None:
        """Replaces placements. Raises `KafkaStorageError`; then nothing has changed."""

    def nearest(self, placement: Placement, rack: str) -> int:
        """The replica that consumers in a rack should read from."""
        return placement.leader

    def forget(self, topic_id: bytes) -> None:
        """Removes a deleted topic."""
