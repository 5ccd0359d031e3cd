"""Bounds the number of open files for any number of partitions, and keeps descriptors free for them."""

from __future__ import annotations

import os
import resource
from errno import EMFILE, ENFILE

OUT_OF_DESCRIPTORS = (EMFILE, ENFILE)
_UNLIMITED = 1 << 20
_MOST = 4096


def descriptor_limit() -> int:
    """The most files and sockets that this process may open."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _UNLIMITED if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """Raises this process's soft limit to the hard one, as Java does at its start."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS refuses more than its kernel allows: the limit stays as it is
            return


class OpenFiles:
    """Descriptors of files that are read and appended to; the least recently used are closed when there are too many.

    A descriptor is valid until the next call of `descriptor`, so use it before anything else runs.
    """

    __slots__ = ("_descriptor_by_path", "_for_others", "limit")

    def __init__(self, limit: int | None = None) -> None:
        """`limit` None: a quarter of the process's descriptors."""
        of_process = descriptor_limit()
        self.limit = limit or min(of_process // 4, _MOST)
        # Besides log files, a few descriptors stay free for files that are open briefly: journals, indexes, modules.
        self._for_others = of_process - self.limit - 8 - of_process // 32
        self._descriptor_by_path: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._descriptor_by_path)

    def descriptor(self, path: str) -> int:
        """The open file at `path`; opens it, and creates it when it is absent. Raises OSError."""
        opened = self._descriptor_by_path.pop(path, None)
        if opened is None:
            while len(self._descriptor_by_path) >= self.limit:
                self.close_oldest()
            opened = self._open(path)
        # Insertion order is age: the path goes to the end.
        self._descriptor_by_path[path] = opened
        return opened

    def _open(self, path: str) -> int:
        while True:
            try:
                return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS or not self.close_oldest():
                    raise

    def close_oldest(self) -> bool:
        """Closes the least recently used file. Returns False if none is open."""
        oldest = next(iter(self._descriptor_by_path), None)
        if oldest is not None:
            self.close(oldest)
        return oldest is not None

    def leaves_reserve(self, opened: int) -> bool:
        """Whether one more socket like `opened` would leave enough descriptors free for log files."""
        try:
            # The system returns the lowest free number: all lower ones are in use.
            lowest_free = os.dup(opened)
        except OSError:
            return False
        os.close(lowest_free)
        if lowest_free < self._for_others:
            return True
        return lowest_free < self._for_others + sum(one < lowest_free for one in self._descriptor_by_path.values())

    def close(self, path: str) -> None:
        """Closes one file if it is open."""
        opened = self._descriptor_by_path.pop(path, None)
        if opened is not None:
            os.close(opened)

    def close_all(self) -> None:
        for path in list(self._descriptor_by_path):
            self.close(path)
