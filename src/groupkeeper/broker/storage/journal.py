"""A small registry on disk: a file of JSON lines. A change is appended before it is acknowledged; each start compacts
the file.
"""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from logging import getLogger

from groupkeeper.broker.settings.table import InvalidSetting
from groupkeeper.broker.storage.directory import replace_file
from groupkeeper.protocol.errors import KafkaStorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_log = getLogger("groupkeeper.broker")


class Journal:
    """`read`, then `begin`, then `write` any number of times.

    Attributes:
        path: the file's path.
        subject: what the file holds, for messages to people: `topic registry`.
    """

    def __init__(self, path: str, subject: str, *, is_private: bool = False) -> None:
        """With `is_private`, only the broker's own user can read the file."""
        self.path = path
        self._is_private = is_private
        self.subject = subject
        self._file = -1
        self._size = 0
        self._is_torn = False

    def read(self) -> list[dict[str, Any]]:
        """The entries, oldest first; an incomplete last line is ignored. Raises `InvalidSetting` for other damage."""
        try:
            with open(self.path, encoding="utf-8") as file:
                lines = file.read().split("\n")
        except FileNotFoundError:
            return []
        except UnicodeDecodeError as error:
            raise InvalidSetting(f"{self.path} is damaged: it is not UTF-8 text at byte {error.start}") from None
        rest = lines.pop()
        entries = []
        for number, line in enumerate(lines, 1):
            try:
                entries.append(json.loads(line))
            except ValueError:
                # After a power failure, a page that was not yet on disk is full of zeros.
                if rest or number < len(lines) or "\0" not in line:
                    raise InvalidSetting(f"{self.path}: line {number} is damaged") from None
                rest = line
        if rest:
            _log.warning("%s: ignoring the incomplete last line, its change was never acknowledged", self.path)
        return entries

    def begin(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Replaces the whole file by these entries, and opens it for `write`. Raises OSError."""
        replace_file(
            self.path, "".join(json.dumps(entry) + "\n" for entry in entries), mode=0o600 if self._is_private else 0o666
        )
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._size, self._is_torn = os.fstat(self._file).st_size, False

    def write(self, entry: Mapping[str, Any]) -> None:
        """Appends an entry, completely or not at all; it survives a power failure. Raises `KafkaStorageError`."""
        line = (json.dumps(entry) + "\n").encode()
        try:
            if self._is_torn:  # a failed write left part of a line: nothing may follow it
                os.ftruncate(self._file, self._size)
            self._is_torn = True
            if os.write(self._file, line) != len(line):
                raise OSError(errno.ENOSPC, "the disk is full")
            os.fdatasync(self._file)
        except OSError as error:
            with suppress(OSError):  # if this fails, the next write does it
                os.ftruncate(self._file, self._size)
                self._is_torn = False
            raise KafkaStorageError(f"cannot write the {self.subject}: {error.strerror}") from error
        self._is_torn = False
        self._size += len(line)

    def close(self) -> None:
        """Closes the file; does nothing when it isn't open."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
