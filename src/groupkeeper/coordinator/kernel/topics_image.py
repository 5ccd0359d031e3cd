"""The topics of the cluster as a value: the topics that groups assign, as the driver saw them at one time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b

from groupkeeper.coordinator.kernel.soft import SoftChange


@dataclass(frozen=True)
class TopicShape:
    """A topic for assignments. `racks` has the racks of each partition's replicas; empty when unknown."""

    name: str
    topic_id: bytes
    partition_count: int
    racks: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def digest(self) -> bytes:
        """A digest of everything in a topic whose change makes groups rebalance."""
        racks = "".join(f"{index}:{','.join(sorted(racks))};" for index, racks in enumerate(self.racks))
        text = f"{self.name}\0{self.partition_count}\0{racks}".encode()
        return blake2b(self.topic_id + text, digest_size=8).digest()


@dataclass(frozen=True)
class TopicsImage:
    """All topics by name. Versions grow with every change, also across restarts.

    Attributes:
        version: of this image; −1 before the driver provided one.
        version_with_new_topics: version of the latest image with a topic that the image before did not have.
    """

    version: int = -1
    version_with_new_topics: int = -1
    topics: Mapping[str, TopicShape] = field(default_factory=dict)

    @cached_property
    def name_by_id(self) -> Mapping[bytes, str]:
        """Names by topic id."""
        return {topic.topic_id: topic.name for topic in self.topics.values()}

    def named(self, partitions: Mapping[bytes, Collection[int]]) -> list[tuple[bytes, str, list[int]]]:
        """Partitions by topic id, as sorted (id, name, partitions); deleted topics have no name, and are left out."""
        names = self.name_by_id
        return [(one, names[one], sorted(partitions[one])) for one in sorted(partitions) if one in names]

    def ids_of(self, names: Iterable[str]) -> frozenset[bytes]:
        """The ids of the named topics that exist."""
        return frozenset(topic.topic_id for name in names if (topic := self.topics.get(name)) is not None)

    def metadata_hash(self, names: Iterable[str]) -> int:
        """A 64-bit fingerprint of the topics of these names; 0 when none of them exists."""
        known = sorted(name for name in names if name in self.topics)
        if not known:
            return 0
        digest = blake2b(digest_size=8)
        for name in known:
            digest.update(self.topics[name].digest)
        return int.from_bytes(digest.digest(), "big", signed=True)


@dataclass(frozen=True, slots=True)
class TopicsChange(SoftChange):
    """The topics changed; applied by `Coordinator.apply`."""

    image: TopicsImage
