"""A disk that fails as it is told to: writes that end early, pages that were not written yet when the power failed."""

import errno
import os
import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

_USERS = (
    "log.compaction",
    "log.partition_log",
    "log.segment",
    "log.segment_files",
    "log.segment_index",
    "log.topics",
    "storage.directory",
    "storage.journal",
)
_SECTOR = 512
_FAILING_WRITES = 0.8
_LOST_ENTRIES = 0.3
_LOST_SECTORS = 0.3


class Disk:
    """Stands in the broker's storage for the module `os`.

    What was written is there after the end of a process. After a power failure that holds for what was synced; of the
    rest a file has any sectors, and a folder any files.

    Attributes:
        trouble: the error number of most writes; 0 for none.
        spares_journals: whether these succeed all the same: a few bytes may have room where a batch has none.
        is_gone: whether all writes fail.
        tears: whether a part is written first, and can't be cut off.
        written: bytes of batches.
        removed_in_loop: folders that were removed while all clients waited.
    """

    def __init__(self, chance: random.Random) -> None:
        self.trouble = 0
        self.spares_journals = False
        self.is_gone = False
        self.tears = False
        self.written = 0
        self.removed_in_loop: list[str] = []
        self._chance = chance
        self._synced_bytes: dict[str, int] = {}
        self._synced_entries: dict[str, set[str]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """The broker has no other one."""
        with ExitStack() as stack:
            for user in _USERS:
                stack.enter_context(patch(f"groupkeeper.broker.{user}.os", self))
            stack.enter_context(patch("groupkeeper.broker.log.topics.shutil", self))
            yield

    # ------------------------------------------------------------------ what the broker calls

    def _require_health(self, descriptor: int = -1, data: bytes = b"") -> None:
        if self.is_gone:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if self.trouble and self._chance.random() < _FAILING_WRITES:
            if self.tears and data:
                os.write(descriptor, data[: self._chance.randrange(len(data))])
            raise OSError(self.trouble, os.strerror(self.trouble))

    def writev(self, descriptor: int, parts: tuple[bytes, ...]) -> int:
        self._require_health(descriptor, b"".join(parts))
        written = os.writev(descriptor, parts)
        self.written += written
        return written

    def write(self, descriptor: int, data: bytes) -> int:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".log"):
            return self.writev(descriptor, (data,))
        if self.is_gone or not self.spares_journals:
            self._require_health(descriptor, data)
        return os.write(descriptor, data)

    def ftruncate(self, descriptor: int, length: int) -> None:
        if self.trouble and self.tears:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.ftruncate(descriptor, length)

    def fsync(self, descriptor: int) -> None:
        if self.is_gone or not self.spares_journals:
            self._require_health()
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if os.path.isdir(path):
            self._synced_entries[path] = set(os.listdir(path))
        else:
            self._synced_bytes[path] = os.fstat(descriptor).st_size

    fdatasync = fsync

    def rename(self, source: str, target: str) -> None:
        """What is synced of a file has its new name, and so has the folder's entry: folders are journaled."""
        if os.path.isdir(source):
            self._require_health()
        os.rename(source, target)
        _rename(self._synced_bytes, source, target)
        _rename(self._synced_entries, source, target)
        folder, name = os.path.split(source)
        entries = self._synced_entries.get(folder, set())
        if name in entries:
            entries.remove(name)
            entries.add(os.path.basename(target))

    replace = rename

    def rmtree(self, path: str, *, ignore_errors: bool) -> None:
        if threading.current_thread() is threading.main_thread():
            self.removed_in_loop.append(path)
        shutil.rmtree(path, ignore_errors=ignore_errors)

    # ------------------------------------------------------------------ the power fails

    def lose_power(self, root: Path) -> None:
        """What was not synced under `root` is there in part."""
        for folder, names, files in os.walk(root, topdown=True):
            entries = self._synced_entries.get(folder, set())
            for name in sorted(names):
                if name not in entries and self._chance.random() < _LOST_ENTRIES:
                    shutil.rmtree(os.path.join(folder, name))
                    names.remove(name)
            names.sort()
            for name in sorted(files):
                path = os.path.join(folder, name)
                if name not in entries and self._chance.random() < _LOST_ENTRIES:
                    os.unlink(path)
                else:
                    self._lose_pages(path)
            self._synced_entries[folder] = set(os.listdir(folder))

    def _lose_pages(self, path: str) -> None:
        content = Path(path).read_bytes()
        synced = min(self._synced_bytes.get(path, 0), len(content))
        kept = bytearray(content[: self._chance.randint(synced, len(content))])
        begin = synced
        while begin < len(kept):
            end = min(begin - begin % _SECTOR + _SECTOR, len(kept))
            if self._chance.random() < _LOST_SECTORS:
                kept[begin:end] = bytes(end - begin)
            begin = end
        if kept != content:
            Path(path).write_bytes(kept)
        self._synced_bytes[path] = len(kept)


def _rename(known: dict[str, Any], source: str, target: str) -> None:
    for path in [one for one in known if one == source or one.startswith(source + os.sep)]:
        known[target + path[len(source) :]] = known.pop(path)
