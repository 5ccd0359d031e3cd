"""Output for people at a terminal only: colour, and the progress of long work."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self, TextIO

_PATIENCE_S = 1.0
"""Work that ends within this time shows no progress."""

_INTERVAL_S = 0.2


def has_colour(stream: TextIO | None, wish: str) -> bool:
    """Whether to write colours. `wish` is always, never or auto: on a terminal, unless NO_COLOR is set."""
    if wish != "auto":
        return wish == "always"
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal."""
    return stream is not None and stream.isatty()


def columns_of(stream: TextIO | None) -> int:
    """The width of the stream's terminal in characters, 0 when it is no terminal."""
    if stream is None or not is_terminal(stream):
        return 0
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


def has_last_line() -> bool:
    """Whether standard error is a terminal whose last line can be written again."""
    return is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"


def draw(terminal: TextIO, line: str) -> None:
    """Writes the last line of a terminal again, as much of it as fits; "" removes it."""
    import shutil

    with contextlib.suppress(OSError):
        terminal.write(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}")
        terminal.flush()


class Progress:
    """A progress line on standard error, shown when a step takes long; nothing is shown when that is no terminal.

    `clear` takes it away before anything else is written, and `paused` keeps it away while a question stands.
    """

    def __init__(self) -> None:
        self._is_on = has_last_line()
        self._started = time.monotonic()
        self._text = ""
        self._shown = ""
        self._counted, self._counted_from = "", 0.0
        self._is_paused = False
        self._ticking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._is_on:
            self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        self.clear()

    def say(self, text: str) -> None:
        """Sets the text of the progress line; "" removes it."""
        self._text = text
        if not text:
            self.clear()

    def count(self, text: str, done: int, total: int) -> None:
        """Sets the text with the count and the estimated time left."""
        now = time.monotonic()
        if text != self._counted:
            self._counted, self._counted_from = text, now
        left_s = (now - self._counted_from) * (total - done) / done if done else 0.0
        self._text = f"{text}: {done} of {total}" + (f", {left_s:.0f} s left" if left_s >= 1 else "")

    def clear(self) -> None:
        """Removes the progress line."""
        if self._shown:
            self._shown = ""
            draw(sys.stderr, "")

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Shows no progress until the block ends."""
        self.clear()
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    async def _tick(self) -> None:
        await asyncio.sleep(_PATIENCE_S)
        while True:
            if self._text and not self._is_paused:
                line = f"{self._text} ({int(time.monotonic() - self._started)} s)"
                if line != self._shown:
                    self._shown = line
                    draw(sys.stderr, line)
            await asyncio.sleep(_INTERVAL_S)
