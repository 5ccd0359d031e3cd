"""A lease that keeps other runs out of a directory on a file system without locks: its holder renews it regularly.

Each renewal creates the file with the next number, which only one writer can do. So no run takes over while the holder
is alive, two never take over at once, and a holder that was suspended for too long notices that it has lost the lease.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from py4j.protocol import Py4JError

from groupkeeper.pipeline.errors import SourceError

LEASES = "_groupkeeper/leases"
HOLDS_S = 120.0
"""The clocks of the machines that write to a directory may differ by a fraction of it."""

_NAME = re.compile(r"(\d{10})\.json")
_KEPT = 2


class Busy(SourceError):
    """Another run writes to the directory."""


class Shared(Protocol):
    """The part of `files.Files` that a lease needs."""

    def names(self, path: str) -> list[str]: ...
    def read(self, path: str) -> str: ...
    def write_new(self, path: str, text: str) -> bool: ...
    def remove(self, path: str) -> None: ...


class Lease:
    """The right to write to a directory, for `holds_s` seconds at a time.

    `files` reach the directory, `place` is its name in messages, `clock` returns seconds since 1970.
    """

    def __init__(
        self, files: Shared, place: str, *, holds_s: float = HOLDS_S, clock: Callable[[], float] = time.time
    ) -> None:
        self._files = files
        self._place = place
        self._holds_s = holds_s
        self._clock = clock
        self._id = uuid.uuid4().hex
        self._number = 0
        self._until = 0.0

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Takes the lease, and renews it in a thread until the block ends. Raises Busy when another run has it."""
        self.take()
        ended = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(ended,), daemon=True)
        keeper.start()
        try:
            yield
        finally:
            ended.set()
            keeper.join()
            self.release()

    def take(self) -> None:
        """Takes the lease. Raises Busy when another run has it."""
        last, found = self._last()
        if found is not None and found["until"] > self._clock() and found["id"] != self._id:
            raise Busy(
                f"{self._place}: another run writes to it (process {found['pid']} at {found['host']}): wait for its "
                f"end, or choose another; if it was killed, for {self._holds_s:g} s"
            )
        self._number = last
        if not self._say(self._clock() + self._holds_s):
            raise Busy(f"{self._place}: another run has begun to write to it at the same moment: wait for its end")

    def check(self) -> None:
        """Raises Busy when this run had the lease and it has expired."""
        if self._number and self._clock() >= self._until:
            raise Busy(f"{self._place}: this run was suspended, and another may be writing there now: run it again")

    def renew(self) -> None:
        """Renews the lease. Raises Busy when another run has taken it."""
        if not self._say(self._clock() + self._holds_s):
            self._until = 0.0
            self.check()

    def release(self) -> None:
        """Releases the lease, so that others may take it at once. Does nothing if it is no longer held."""
        if self._until:
            self._say(0.0)
            self._until = 0.0

    def _keep(self, ended: threading.Event) -> None:
        while not ended.wait(self._holds_s / 4):
            try:
                self.renew()
            except Busy:
                return
            except (OSError, Py4JError, SourceError):
                continue  # an error of the file system is reported by the next write

    def _last(self) -> tuple[int, dict[str, Any] | None]:
        numbers = sorted(int(match[1]) for name in self._files.names(LEASES) if (match := _NAME.fullmatch(name)))
        if not numbers:
            return 0, None
        return numbers[-1], json.loads(self._files.read(_path(numbers[-1])))

    def _say(self, until: float) -> bool:
        word = {"id": self._id, "host": socket.gethostname(), "pid": os.getpid(), "until": until}
        if not self._files.write_new(_path(self._number + 1), json.dumps(word)):
            return False
        self._number, self._until = self._number + 1, until
        if self._number > _KEPT:
            self._files.remove(_path(self._number - _KEPT))
        return True


def _path(number: int) -> str:
    return f"{LEASES}/{number:010}.json"
