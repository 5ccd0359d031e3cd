"""Progress of a running job of the pipeline: lines, and at a terminal a last line with the progress."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO

from groupkeeper.cli.framework.output import complain
from groupkeeper.cli.framework.terminal import draw, has_last_line
from groupkeeper.pipeline.jobs.watch import Problem, Watch
from groupkeeper.rules.words import amount, counted, duration

if TYPE_CHECKING:
    from groupkeeper.pipeline.runtime.executors import Stage

_INTERVAL_S = 0.5
_LEAST_S = 0.1
"""No rate is shown before this time."""
_LOOK_S = 5.0
_PATIENCE_S = 15.0
"""A stage without running tasks for this long waits for executors."""
_NO_EXECUTORS = (
    f"no executor has taken a task for {_PATIENCE_S:g} s: see in the cluster's UI whether it has free cores, and as "
    "much memory as spark.executor.memory asks for"
)


class Screen(Watch):
    """Writes the progress to standard error. `stage` returns Spark's current stage; None: unknown."""

    def __init__(self) -> None:
        self.stage: Callable[[], Stage | None] = lambda: None
        self._has_line = has_last_line()
        self._began = time.monotonic()
        self._phase_began = self._began
        self._doing = ""
        self._records = 0
        self._reads: int | None = None  # the stage that reads; what comes after it writes
        self._looks_s = self._began + _LOOK_S
        self._waits: tuple[Stage, float] | None = None  # a stage of which no task runs, since when
        self._terminal: TextIO | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """While the context is open, the last line of the terminal shows the progress."""
        if not self._has_line:
            with self._ticking():
                yield
            return
        # A descriptor of its own: while Spark starts, the program's standard error is diverted.
        with open(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace") as self._terminal:
            try:
                with self._ticking():
                    yield
            finally:
                self._erase()
                self._terminal = None

    @contextlib.contextmanager
    def _ticking(self) -> Iterator[None]:
        ticker = threading.Thread(target=self._tick, daemon=True)
        ticker.start()
        try:
            yield
        finally:
            self._ended.set()
            ticker.join()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def doing(self, text: str, records: int = 0) -> None:
        """Sets the current step, and its number of records."""
        with self._lock:
            self._doing, self._records, self._reads = text, records, None
            self._phase_began = time.monotonic()
            self._paint()
        if not self._has_line and text:
            self.say(text)

    def say(self, text: str) -> None:
        """A line that stays."""
        with self._lock:
            self._erase()
            complain(f"{text}\n")

    def reading(self, records: int) -> None:
        text = f"reading {amount(records)} record{'s' * (records != 1)}" if records else "nothing new to read"
        self.doing(text, records)

    def making(self, tables: int) -> None:
        if self._has_line:
            self.doing(f"making {tables} tables")

    def following(self) -> None:
        if self._has_line:
            self.doing("telling Delta Lake or Iceberg the new files")

    def waiting(self) -> None:
        if self._has_line:
            self.doing("waiting for more")

    def table(self, name: str, rows: int, *, is_appended: bool = False) -> None:
        if not is_appended:
            self.say(f"{name}: {counted(rows, 'row')}")
        elif rows:
            self.say(f"{name}: {counted(rows, 'new row')}")

    def note(self, text: str) -> None:
        self.say(f"note: {text}")

    def problem(self, problem: Problem) -> None:
        name = problem.cluster
        where = "" if name is None or f"cluster {name}" in problem.message else f"cluster {name}: "
        self.say(f"error: {where}{problem.message}")

    def _tick(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            if self._has_line:
                with self._lock:
                    self._paint()
            self._look_for_executors()

    def _look_for_executors(self) -> None:
        now_s = time.monotonic()
        if now_s < self._looks_s:
            return
        self._looks_s, stage = now_s + _LOOK_S, self.stage()
        if stage is None or stage.running or stage.done:
            self._waits = None
        elif self._waits is None or self._waits[0] != stage:
            self._waits = (stage, now_s)
        elif now_s - self._waits[1] > _PATIENCE_S:
            self._waits = (stage, float("inf"))  # said once
            self.note(_NO_EXECUTORS)

    def _paint(self) -> None:
        if self._doing and self._terminal is not None:
            draw(self._terminal, self._line())

    def _line(self) -> str:
        elapsed_s = time.monotonic() - self._phase_began
        parts = [self._doing]
        share = self._share_read() if self._records else 0
        if share >= 1:
            parts.append("all read")
        elif share > 0 and elapsed_s > _LEAST_S:
            left_s = elapsed_s / share - elapsed_s
            rate = self._records * share / elapsed_s
            parts.append(f"{share:.0%}, {amount(round(rate))}/s, {duration(round(left_s) * 1000)} left")
        return f"{', '.join(parts)} ({duration(round(self.seconds) * 1000)})"

    def _share_read(self) -> float:
        """The share of the reading that is done, by the tasks of the stage that reads."""
        stage = self.stage()
        if self._reads is None and stage is not None:
            self._reads = stage.number
        if stage is not None and stage.number == self._reads:
            return stage.done / stage.tasks
        return 0.0 if self._reads is None else 1.0

    def _erase(self) -> None:
        if self._terminal is not None:
            draw(self._terminal, "")


class FollowScreen(Screen):
    """The progress of a job without an end: lines with their times, one for each refresh."""

    def __init__(self) -> None:
        super().__init__()
        self._new: Counter[str] = Counter()
        self._made = 0
        self._making_since = self._began

    def say(self, text: str) -> None:
        super().say(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}")

    def making(self, tables: int) -> None:
        self._making_since = time.monotonic()
        super().making(tables)

    def table(self, name: str, rows: int, *, is_appended: bool = False) -> None:
        with self._lock:
            if is_appended:
                self._new[name] += rows
            else:
                self._made += 1

    def waiting(self) -> None:
        with self._lock:
            made, self._made = self._made, 0
            new, self._new = +self._new, Counter()
        if made:
            took_s = time.monotonic() - self._making_since
            rows = ", ".join(f"{counted(number, 'new row')} of {name}" for name, number in new.items())
            self.say(f"{counted(made, 'table')} refreshed in {took_s:.1f} s: {rows or 'no new rows'}")
        super().waiting()
