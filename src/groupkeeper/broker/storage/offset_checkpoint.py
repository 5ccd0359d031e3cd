"""Offsets of partitions in a text file of Apache Kafka's format: version, count, lines of `topic partition offset`."""

from __future__ import annotations

import asyncio
import threading
from logging import getLogger

from groupkeeper.broker.storage.directory import replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Offsets = dict[tuple[str, int], int]

_log = getLogger("groupkeeper.broker")

_VERSION = "0"


class OffsetCheckpoint:
    """Such a file; what is known of it is what it holds.

    Attributes:
        offsets: by topic and partition.
    """

    def __init__(self, path: str) -> None:
        """A file that is absent holds nothing; so does a damaged one, which is logged. Raises OSError."""
        self._path = path
        self.offsets: Offsets = {}
        self._writing = threading.Lock()
        self._asked = self._written = 0
        """Numbers of the last content that was asked for, and of the one in the file."""
        try:
            self.offsets = _read(path)
        except FileNotFoundError:
            pass
        except ValueError:
            _log.warning("%s is damaged and is treated as empty", path)

    def replace(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Writes the file in one step, unless it holds just these. Raises OSError; then it is as it was."""
        self._asked += 1
        self._write(self._asked, dict(offsets))

    async def replace_aside(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """The same in a thread: no request has to wait for the disk. Of several the last one that was called stays."""
        self._asked += 1
        await asyncio.to_thread(self._write, self._asked, dict(offsets))

    def _write(self, number: int, offsets: Offsets) -> None:
        with self._writing:
            if number < self._written:
                return
            if offsets != self.offsets:
                lines = [f"{topic} {index} {offset}" for (topic, index), offset in offsets.items()]
                replace_file(self._path, "\n".join([_VERSION, str(len(lines)), *lines]) + "\n")
            self.offsets, self._written = offsets, number

    def forget(self, topic: str, partitions: Iterable[int] | None = None) -> None:
        """Drops some partitions of a topic, or all. Raises OSError."""
        chosen = None if partitions is None else set(partitions)
        self.replace(
            {
                (name, index): offset
                for (name, index), offset in self.offsets.items()
                if name != topic or (chosen is not None and index not in chosen)
            }
        )


def _read(path: str) -> Offsets:
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()[2:]
    parts = [line.rsplit(" ", 2) for line in lines]
    return {(topic, int(index)): int(offset) for topic, index, offset in parts}
