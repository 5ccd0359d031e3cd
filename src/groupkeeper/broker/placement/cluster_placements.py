"""The placements of a cluster of several nodes: a registry on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import zip_longest
from typing import Any

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.placement.change import ElectionTerms, changed
from groupkeeper.broker.placement.placement import Placement
from groupkeeper.broker.placement.placements import JOURNAL, Key, Placements, Replicas
from groupkeeper.broker.storage.directory import StorageDirectory
from groupkeeper.broker.storage.journal import registry


class ClusterPlacements(Placements):
    """The placements of several nodes. Assigns replicas round-robin to nodes and racks."""

    def __init__(
        self, directory: StorageDirectory, racks: Mapping[int, str | None], *, reads_by_rack: bool = False
    ) -> None:
        """Reads the registry; `racks` of all nodes. Raises `InvalidSetting`."""
        super().__init__(list(racks))
        self.reads_by_rack = reads_by_rack
        self._racks = racks
        self._round = _from_rack_to_rack(racks)
        self._by_partition: dict[Key, Placement] = {}
        self._journal = registry(directory, JOURNAL, "placements of partitions")
        self._journal.replay(self._replay)
        self._next = len(self._by_partition)

    def begin(self, topic_ids: Set[bytes]) -> None:
        known = {key: one for key, one in self._by_partition.items() if key[0] in topic_ids}
        self._by_partition = known
        for one in known.values():  # at a start all nodes run
            terms = ElectionTerms(one.epochs[-1][1], self.nodes, 1, has_eligible=False, is_unclean=True)
            one.copy_from(changed(one, one, terms))
            one.copy_from(changed(one, one.with_isr(sorted(one.replicas)), terms))
        self._journal.begin([{"nodes": list(self.nodes)}, *([_entry(known)] if known else [])])

    def of(self, topic_id: bytes, index: int) -> Placement:
        first = self._first
        return self._by_partition.setdefault((topic_id, index), Placement(first.replicas, first.isr, first.leader))

    def assign(self, topic_id: bytes, indexes: range, replicas: Replicas) -> None:
        lists = self._spread(len(indexes), replicas) if isinstance(replicas, int) else replicas
        new = {}
        for index, nodes in zip(indexes, lists, strict=True):
            isr = [node for node in nodes if node in self.running]
            ends = {node: 0 for node in nodes if node not in isr}
            new[topic_id, index] = Placement(nodes, isr, isr[0], ends=ends)
        self._journal.write(_entry(new))
        self._by_partition.update(new)

    def _spread(self, count: int, factor: int) -> Iterator[Sequence[int]]:
        running = [node for node in self._round if node in self.running]
        stopped = [node for node in self._round if node not in self.running]
        for first in range(self._next, self._next + count):
            at = first % len(running)
            yield [*running[at:], *running[:at], *stopped][:factor]
        self._next += count

    def nearest(self, placement: Placement, rack: str) -> int:
        near = [one for one in placement.isr if self._racks[one] == rack and one in self.running]
        return placement.leader if placement.leader in near or not near else near[0]

    def change(self, changed: Mapping[Key, Placement]) -> None:
        self._journal.write(_entry(changed))
        for key, placement in changed.items():
            self.of(*key).copy_from(placement)

    def forget(self, topic_id: bytes) -> None:
        for key in [key for key in self._by_partition if key[0] == topic_id]:
            del self._by_partition[key]

    def _replay(self, entry: dict[str, Any]) -> None:
        if "nodes" in entry:
            missing = set(entry["nodes"]) - set(self.nodes)
            if missing:
                raise InvalidSetting(f"the cluster has nodes {entry['nodes']}: give --brokers {len(entry['nodes'])}")
            return
        for topic_id, index, replicas, isr, leader, epoch, epochs, *moving in entry["placed"]:
            key = bytes.fromhex(topic_id), index
            known = [(one, first) for one, first in epochs]
            self._by_partition[key] = Placement(replicas, isr, leader, epoch, known, {}, *moving)


def _entry(placements: Mapping[Key, Placement]) -> dict[str, Any]:
    rows = []
    for (topic_id, index), one in placements.items():
        row = [topic_id.hex(), index, list(one.replicas), [*one.isr, *one.eligible], one.leader, one.epoch]
        moving = [list(one.adding), list(one.removing)] if one.is_moving else []
        rows.append([*row, [list(epoch) for epoch in one.epochs], *moving])
    return {"placed": rows}


def _from_rack_to_rack(racks: Mapping[int, str | None]) -> list[int]:
    by_rack: dict[str | None, list[int]] = {}
    for node, rack in racks.items():
        by_rack.setdefault(rack, []).append(node)
    return [node for turn in zip_longest(*by_rack.values()) for node in turn if node is not None]
