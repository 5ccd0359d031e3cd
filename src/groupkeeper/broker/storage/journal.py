"""A small registry on disk: a file of JSON lines. A change is appended before it is acknowledged; each start compacts
the file. Each line has a checksum; the first one has the number of entries after the last compaction.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from logging import getLogger
from typing import Any

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.storage.directory import StorageDirectory, replace_file, with_checksum, without_checksum
from groupkeeper.protocol.errors import KafkaStorageError

_log = getLogger("groupkeeper.broker")

_LEFT = "entries left by the start"
_MALFORMED = (ValueError, LookupError, TypeError, AttributeError)


class RegistryJournal:
    """`replay`, then `begin`, then `write` any number of times.

    Attributes:
        path: the file's path.
        subject: the name of the content in messages, for example `topic registry`.
    """

    def __init__(self, path: str, subject: str, *, is_private: bool = False) -> None:
        """With `is_private`, only the broker's own user can read the file."""
        self.path = path
        self._is_private = is_private
        self.subject = subject
        self._file = -1
        self._size = 0
        self._is_torn = False

    def replay(self, take: Callable[[dict[str, Any]], object]) -> None:
        """Calls `take` with each entry, oldest first; an incomplete last line is ignored.

        Raises `InvalidSetting` for other damage, and for an entry that `take` cannot use.
        """
        try:
            with open(self.path, "rb") as file:
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return
        if lines == [b""]:
            _log.warning("%s is empty: the %s that it held are gone", self.path, self.subject)
        rest = lines.pop()
        left = 0
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(without_checksum(line))
                if _LEFT in entry:
                    left = entry[_LEFT]
                else:
                    take(entry)
            except InvalidSetting as error:
                raise InvalidSetting(f"{self.path}: line {number}: {error}") from None
            except _MALFORMED:
                # After a power failure, a page that was not flushed is full of zeros.
                has_zeros = b"\0\0" in line or line[:1] == b"\0"
                if rest or number < len(lines) or not has_zeros:
                    raise InvalidSetting(
                        f"{self.path}: line {number} is damaged: restore the file from a backup, "
                        "or remove the line, which undoes its change"
                    ) from None
                rest = line
        if left >= max(len(lines), 1):
            raise InvalidSetting(
                f"{self.path} is damaged: it has {len(lines) - 1} of {left} entries; restore it from a backup, "
                "or remove its first line to go on with these"
            )
        if rest:
            _log.warning("%s: ignoring the incomplete last line, its change was never acknowledged", self.path)

    def begin(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Replaces the whole file by these entries, and opens it for `write`. Raises OSError."""
        lines = list(map(_line, entries))
        text = "".join([_line({_LEFT: len(lines)}), *lines])
        replace_file(self.path, text, mode=0o600 if self._is_private else 0o666)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._size, self._is_torn = os.fstat(self._file).st_size, False

    def write(self, entry: Mapping[str, Any]) -> None:
        """Appends an entry, completely or not at all; it survives a power failure. Raises `KafkaStorageError`."""
        line = _line(entry).encode()
        try:
            if self._is_torn:  # a failed write left part of a line: nothing may follow it
                os.ftruncate(self._file, self._size)
            self._is_torn = True
            if os.write(self._file, line) != len(line):
                raise OSError(errno.ENOSPC, "the disk is full")
            os.fdatasync(self._file)
        except OSError as error:
            with suppress(OSError):  # if this fails, the next write repairs it
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


def registry(directory: StorageDirectory, name: str, subject: str, *, is_private: bool = False) -> RegistryJournal:
    """The registry with this file name in a directory, which closes it."""
    journal = RegistryJournal(directory.file(name), subject, is_private=is_private)
    directory.opened.callback(journal.close)
    return journal


def _line(entry: Mapping[str, Any]) -> str:
    return with_checksum(json.dumps(entry) + " ")
