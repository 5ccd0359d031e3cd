"""Offsets of partitions in a text file of Apache Kafka's format: version, count, lines of `topic partition offset`."""

from __future__ import annotations

from groupkeeper.broker.storage.directory import replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_VERSION = "0"


def read_checkpoint(path: str) -> dict[tuple[str, int], int]:
    """The offsets by topic and partition; none when the file is absent. Raises ValueError for a damaged line."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()[2:]
    except FileNotFoundError:
        return {}
    parts = [line.rsplit(" ", 2) for line in lines]
    return {(topic, int(index)): int(offset) for topic, index, offset in parts}


def write_checkpoint(path: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Replaces the file in one step. Raises OSError."""
    lines = [f"{topic} {index} {offset}" for (topic, index), offset in offsets.items()]
    replace_file(path, "\n".join([_VERSION, str(len(lines)), *lines]) + "\n")
