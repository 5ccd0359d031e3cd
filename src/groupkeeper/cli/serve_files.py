"""The files of `groupkeeper serve` for rules, tokens and roles: read at the start, and again when they change."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from groupkeeper.cli.framework.commands import UsageMistake

_LOG = logging.getLogger("groupkeeper.serve")
_LOOK_S = 5.0

T = TypeVar("T")


def read_file(option: str, path: str, read: Callable[[str], T]) -> T:
    """Reads the file of an option by `read`. Raises UsageMistake."""
    try:
        return read(path)
    except OSError as problem:
        raise UsageMistake(f"argument {option}: cannot read {path!r}: {problem.strerror}") from None
    except ValueError as problem:
        raise UsageMistake(f"argument {option}: {problem}") from None


class ServedFile(NamedTuple):
    """A file. `take` reads and applies it; raises UsageMistake, and changes nothing then."""

    path: str
    take: Callable[[], None]


class ServedFiles:
    """Reads files again when they change, or on request. An invalid file is reported, and its earlier content stays in
    effect.
    """

    def __init__(self, files: Sequence[ServedFile]) -> None:
        self._files = files
        self._seen = [_state(each.path) for each in files]
        self._problems: dict[str, str] = {}
        self._asked = asyncio.Event()

    def notes(self) -> list[str]:
        """Why files are not in effect."""
        return [
            f"{path} has changed, but its previous content is in use: {why}." for path, why in self._problems.items()
        ]

    async def run(self) -> None:
        """Checks files again and again, and at SIGHUP reads all of them, with the files that they name."""
        if self._files:  # without any, a terminal that is closed ends the program as usual
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._asked.set)
        while True:
            try:
                async with asyncio.timeout(_LOOK_S):
                    await self._asked.wait()
            except TimeoutError:
                pass
            is_asked = self._asked.is_set()
            self._asked.clear()
            for number, file in enumerate(self._files):
                state = _state(file.path)
                if is_asked or state != self._seen[number]:
                    self._seen[number] = state
                    self._take(file)

    def _take(self, file: ServedFile) -> None:
        try:
            file.take()
        except UsageMistake as mistake:
            self._problems[file.path] = str(mistake)
            _LOG.warning(f"{file.path} is not used as it is now: {mistake}")
        else:
            self._problems.pop(file.path, None)
            _LOG.info(f"{file.path} was read again")


def _state(path: str) -> tuple[int, int, int] | None:
    """A value that changes when a file is written or replaced; None: the file cannot be checked."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
