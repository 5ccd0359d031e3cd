"""What a job reports while it runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Problem", "Run", "Summary", "Watch"]


class Problem(NamedTuple):
    """Something that was not done. `cluster` None: it is about all of them."""

    cluster: str | None
    message: str


@dataclass(slots=True)
class Summary:
    """What a run did: rows of every table that it wrote, how many of them are new in those that are appended to, and
    what was not done.
    """

    rows: dict[str, int] = field(default_factory=dict)
    new_rows: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


class Watch:
    """Receives the progress of a job; this one does nothing."""

    def reading(self, records: int, at_once: int | None = None) -> None:
        """So many records, at most, are to be read, and so many of them by one job; None: all."""

    def making(self, tables: int) -> None:
        """Everything is read; so many tables are to be made."""

    def following(self) -> None:
        """All tables are in their places; those of a lake get what is new."""

    def table(self, name: str, rows: int, *, is_appended: bool = False) -> None:
        """A table is in its place; `rows` are only the new ones where it is appended to."""

    def waiting(self) -> None:
        """Everything is done, until there is something new."""

    def note(self, text: str) -> None:
        """Something worth knowing."""

    def problem(self, problem: Problem) -> None:
        """Something was not done; other work goes on."""


class Run:
    """`summary` is what has been done so far; `watch` gets it as it happens."""

    def __init__(self, watch: Watch | None) -> None:
        self.watch = watch or Watch()
        self.summary = Summary()
        self._lock = threading.Lock()

    def append(self, rows: Mapping[str, int]) -> None:
        """So many rows are new, by table. Several threads may say so."""
        with self._lock:
            for table, number in rows.items():
                self.summary.new_rows[table] = self.summary.new_rows.get(table, 0) + number

    def write(self, table: str, rows: int) -> None:
        """A table has been replaced."""
        self.summary.rows[table] = rows
        self.watch.table(table, rows)

    def note(self, text: str) -> None:
        """Something worth knowing."""
        self.summary.notes.append(text)
        self.watch.note(text)

    def fail(self, problem: Problem) -> None:
        """Something was not done; other work goes on."""
        self.summary.problems.append(problem)
        self.watch.problem(problem)
