"""How a job reports its progress."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Problem(NamedTuple):
    """A failure. `cluster` None: it concerns all clusters."""

    cluster: str | None
    message: str


@dataclass(slots=True)
class Summary:
    """The outcome of a run: the number of rows of every table that it wrote, the number of new rows in appended tables,
    and its problems.
    """

    rows: dict[str, int] = field(default_factory=dict)
    new_rows: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


class Watch:
    """Receives the progress of a job; this one does nothing."""

    def reading(self, records: int) -> None:
        """Reading starts: at most this many records."""

    def making(self, tables: int) -> None:
        """Reading is complete; building this many tables starts."""

    def following(self) -> None:
        """All tables are published; the log of their format (Delta Lake, Iceberg) is being updated."""

    def table(self, name: str, rows: int, *, is_appended: bool = False) -> None:
        """A table is published; for an appended one `rows` counts the new rows only."""

    def waiting(self) -> None:
        """The tables are refreshed; the job waits for new records."""

    def note(self, text: str) -> None:
        """Reports a note."""

    def problem(self, problem: Problem) -> None:
        """Reports a failure; other work goes on."""


class Run:
    """A run of a job: `summary` counts its results so far; `watch` receives them as they come."""

    def __init__(self, watch: Watch | None) -> None:
        self.watch = watch or Watch()
        self.summary = Summary()
        self._lock = threading.Lock()
        self._said: set[str | Problem] = set()
        self._said_before: set[str | Problem] = set()

    def append(self, rows: Mapping[str, int]) -> None:
        """Adds numbers of new rows, by table; may be called by several threads."""
        with self._lock:
            for table, number in rows.items():
                self.summary.new_rows[table] = self.summary.new_rows.get(table, 0) + number

    def write(self, table: str, rows: int) -> None:
        """A table has been replaced."""
        self.summary.rows[table] = rows
        self.watch.table(table, rows)

    def note(self, text: str) -> None:
        """Reports a note."""
        if self._is_news(text):
            self.summary.notes.append(text)
            self.watch.note(text)

    def fail(self, problem: Problem) -> None:
        """Reports a failure; other work goes on."""
        self.summary.problems.append(problem)
        if self._is_news(problem):
            self.watch.problem(problem)

    def start_over(self) -> None:
        """What failed is tried again, in the next refresh. It does not report what this one has reported."""
        self.summary.problems.clear()
        self._said_before, self._said = self._said, set()

    def _is_news(self, said: str | Problem) -> bool:
        self._said.add(said)
        return said not in self._said_before
