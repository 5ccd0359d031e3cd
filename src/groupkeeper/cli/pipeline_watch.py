"""What is said while a job of the pipeline runs: lines, and at a terminal one that says how far it is."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator

from groupkeeper.cli.output import complain
from groupkeeper.cli.terminal import is_terminal
from groupkeeper.pipeline.jobs.watch import Problem, Watch
from groupkeeper.pipeline.report.words import amount, duration

__all__ = ["Screen"]

_INTERVAL_S = 0.5


class Screen(Watch):
    """Writes to standard error. `tasks` gives how many tasks of the work under way are done, and how many there are;
    None where nobody knows.
    """

    def __init__(self) -> None:
        self.tasks: Callable[[], tuple[int, int] | None] = lambda: None
        self._has_line = is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"
        self._began = time.monotonic()
        self._phase_began = self._began
        self._doing = ""
        self._records = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """While this lasts, a terminal's last line says what goes on."""
        if not self._has_line:
            yield
            return
        ticker = threading.Thread(target=self._tick, daemon=True)
        ticker.start()
        try:
            yield
        finally:
            self._ended.set()
            ticker.join()
            self._erase()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    def doing(self, text: str, records: int = 0) -> None:
        """What goes on from now on, and how many records that is about."""
        with self._lock:
            self._doing, self._records, self._phase_began = text, records, time.monotonic()
        if not self._has_line and text:
            self.say(text)

    def say(self, text: str) -> None:
        """A line that stays."""
        with self._lock:
            self._erase()
            complain(f"{text}\n")

    def reading(self, records: int) -> None:
        self.doing(f"reading {amount(records)} records" if records else "nothing new to read", records)

    def making(self, tables: int) -> None:
        if self._has_line:
            self.doing(f"making {tables} tables")

    def table(self, name: str, rows: int, *, is_appended: bool = False) -> None:
        if not is_appended:
            self.say(f"{name}: {rows} rows")
        elif rows:
            self.say(f"{name}: {rows} new rows")

    def note(self, text: str) -> None:
        self.say(f"note: {text}")

    def problem(self, problem: Problem) -> None:
        with self._lock:
            self._erase()
            complain(f"error: {problem.message}\n")

    def _tick(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            with self._lock:
                if self._doing:
                    line = self._line()[: shutil.get_terminal_size().columns - 1]
                    with contextlib.suppress(OSError):
                        sys.stderr.write(f"\r\x1b[K{line}")
                        sys.stderr.flush()

    def _line(self) -> str:
        elapsed_s = time.monotonic() - self._phase_began
        counted = self.tasks() if self._records else None
        parts = [self._doing]
        if counted is not None and 0 < counted[0] <= counted[1]:
            share = counted[0] / counted[1]
            rate = self._records * share / elapsed_s
            left_s = elapsed_s / share - elapsed_s
            parts.append(f"{share:.0%}, {amount(round(rate))}/s, {duration(round(left_s) * 1000)} left")
        return f"{', '.join(parts)} ({duration(round(self.seconds) * 1000)})"

    def _erase(self) -> None:
        if self._has_line:
            with contextlib.suppress(OSError):
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
