"""Partitions and nodes of a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class TopicPartition(NamedTuple):
    """A partition of a topic. Its text is Kafka's: `orders-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(values: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """The values of each topic, such as its partitions, in the order given."""
    found: dict[str, list[T]] = {}
    for topic, value in values:
        found.setdefault(topic, []).append(value)
    return found


class Node(NamedTuple):
    """A broker: its id, the address it advertises, and its rack (None when it has none)."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        rack = "null" if self.rack is None else self.rack
        return f"{self.host}:{self.port} (id: {self.id} rack: {rack} isFenced: false)"  # as Apache's texts have it
