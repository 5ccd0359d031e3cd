"""Offsets of partitions in a text file of Apache Kafka's format: version, count, lines of `topic partition offset`.
A line with a checksum follows.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping
from logging import getLogger

from groupkeeper.broker.storage.directory import replace_file, with_checksum, without_checksum

Offsets = dict[tuple[str, int], int]

_log = getLogger("groupkeeper.broker")

_VERSION = "0"


class OffsetCheckpoint:
    """An offset checkpoint file, with its content in memory.

    Attributes:
        offsets: the offsets in the file, by topic and partition.
    """

    def __init__(self, path: str) -> None:
        """Reads the file. An absent file counts as empty, and so does a damaged one, with a warning. Raises OSError."""
        self._path = path
        self.offsets: Offsets = {}
        self._writing = threading.Lock()
        self._asked = self._written = 0
        """The numbers of the latest requested write, and of the write that the file has."""
        try:
            self.offsets = _read(path)
        except FileNotFoundError:
            pass
        except ValueError:
            _log.warning("%s is damaged and is treated as empty", path)

    def replace(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Replaces the file atomically, unless it has exactly these offsets. Raises OSError; then the file is
        unchanged.
        """
        self._asked += 1
        self._write(self._asked, dict(offsets))

    async def replace_aside(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Like `replace`, but in a thread, so that requests don't wait for the disk. Of concurrent calls, the latest
        one wins.
        """
        self._asked += 1
        await asyncio.to_thread(self._write, self._asked, dict(offsets))

    def _write(self, number: int, offsets: Offsets) -> None:
        with self._writing:
            if number < self._written:
                return
            if offsets != self.offsets:
                lines = [f"{topic} {index} {offset}" for (topic, index), offset in offsets.items()]
                replace_file(self._path, with_checksum("\n".join([_VERSION, str(len(lines)), *lines, ""])))
            self.offsets, self._written = offsets, number

    def forget(self, topic: str, partitions: Iterable[int] | None = None) -> None:
        """Removes the offsets of these partitions of a topic; None: of all its partitions. Raises OSError."""
        chosen = None if partitions is None else set(partitions)
        self.replace(
            {
                (name, index): offset
                for (name, index), offset in self.offsets.items()
                if name != topic or (chosen is not None and index not in chosen)
            }
        )


def _read(path: str) -> Offsets:
    with open(path, "rb") as file:
        _, count, *lines = without_checksum(file.read()).splitlines()
    if int(count) != len(lines):
        raise ValueError(f"{len(lines)} lines of {count}")
    parts = [line.rsplit(" ", 2) for line in lines]
    return {(topic, int(index)): int(offset) for topic, index, offset in parts}
