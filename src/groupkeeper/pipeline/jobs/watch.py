"""What a job tells while it runs."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Problem", "Summary", "Watch"]


class Problem(NamedTuple):
    """Something that was not done. `cluster` None: it is about all of them."""

    cluster: str | None
    message: str


class Summary(NamedTuple):
    """What a run did: rows of every table that it wrote, how many of them are new in those that are appended to, and
    what was not done.
    """

    rows: dict[str, int]
    new_rows: dict[str, int]
    notes: list[str]
    problems: list[Problem]


class Watch:
    """Told by a job what goes on; this one does nothing."""

    def reading(self, records: int) -> None:
        """So many records, at most, are to be read."""

    def making(self, tables: int) -> None:
        """Everything is read; so many tables are to be made."""

    def table(self, name: str, rows: int, *, is_appended: bool = False) -> None:
        """A table is in its place; `rows` are only the new ones where it is appended to."""

    def note(self, text: str) -> None:
        """Something worth knowing."""

    def problem(self, problem: Problem) -> None:
        """Something was not done; other work goes on."""
