"""The placements of all partitions: of one node the same for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from groupkeeper.broker.placement.placement import NO_LEADER, Placement

Key = tuple[bytes, int]
"""Topic id and partition."""
Replicas = int | Sequence[Sequence[int]]
"""How many replicas each partition has, or the nodes of each."""
JOURNAL = "placements.journal"


class Placements:
    """The placements of a cluster of one node, and what those of more nodes share with them.

    Attributes:
        nodes: the ids of all nodes. running: of those that run. outdated: what nodes that are cut off know in its
        place. reads_by_rack: whether consumers are sent to a replica
        in their rack.
    """

    reads_by_rack = False

    def __init__(self, nodes: Sequence[int]) -> None:
        self.nodes = nodes
        self.running = set(nodes)
        self.outdated: dict[int, Set[int]] = {}
        self._first = Placement(nodes[:1], nodes[:1], nodes[0])

    def of(self, topic_id: bytes, index: int) -> Placement:
        """The placement of a partition; unless one is known, it is on the first node."""
        return self._first

    def reaches(self, node: int, leader: int) -> bool:
        """Whether a node's requests get to a leader."""
        return leader != NO_LEADER and (node == leader or self.outdated.keys().isdisjoint((node, leader)))

    def running_known_to(self, node: int) -> Set[int]:
        """The nodes that run, as far as a node knows."""
        return self.outdated.get(node, self.running)

    def assign(self, topic_id: bytes, indexes: range, replicas: Replicas) -> None:
        """Places new partitions. Raises `KafkaStorageError`."""

    def begin(self, topic_ids: Set[bytes]) -> None:
        """Opens the registry; what these topics don't have is left out. Raises OSError."""

    def change(self, changed: Mapping[Key, Placement]) -> None:
        """Replaces placements. Raises `KafkaStorageError`; then nothing has changed."""

    def nearest(self, placement: Placement, rack: str) -> int:
        """The replica that consumers in a rack should read from."""
        return placement.leader

    def forget(self, topic_id: bytes) -> None:
        """The topic was deleted."""

    def close(self) -> None:
        """Closes the registry."""
