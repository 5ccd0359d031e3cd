"""A bounded number of open files for any number of partitions."""

from __future__ import annotations

import os


class OpenFiles:
    """Descriptors of files that are read and appended to; the least recently used are closed when there are too many.

    A descriptor is valid until the next call of `descriptor`, so use it before anything else runs.
    """

    __slots__ = ("_descriptor_by_path", "limit")

    def __init__(self, limit: int = 512) -> None:
        self.limit = limit
        self._descriptor_by_path: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._descriptor_by_path)

    def descriptor(self, path: str) -> int:
        """The open file at `path`; opens it, and creates it when it is absent. Raises OSError."""
        opened = self._descriptor_by_path.pop(path, None)
        if opened is None:
            while len(self._descriptor_by_path) >= self.limit:
                oldest = next(iter(self._descriptor_by_path))
                os.close(self._descriptor_by_path.pop(oldest))
            opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        # Insertion order is age: the path goes to the end.
        self._descriptor_by_path[path] = opened
        return opened

    def close(self, path: str) -> None:
        """Closes one file if it is open."""
        opened = self._descriptor_by_path.pop(path, None)
        if opened is not None:
            os.close(opened)

    def close_all(self) -> None:
        for path in list(self._descriptor_by_path):
            self.close(path)
