"""Rows as CSV, for pages and commands."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence


class _Lines(list[str]):
    """Takes what csv.writer writes. Only with its own end of a line does that quote a carriage return in a value."""

    def write(self, line: str) -> None:
        self.append(f"{line[:-2]}\n")


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """A line for each row (RFC 4180, but lines end with a line feed). Absent values are empty."""
    lines = _Lines()
    csv.writer(lines).writerows(rows)
    return "".join(lines)
