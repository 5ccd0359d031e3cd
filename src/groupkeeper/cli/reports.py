"""Results of ``groupkeeper …`` as a table for people or as JSON for programs, made from the same rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Place = Mapping[str, str | int]
"""``{"topic": …, "partition": …}``."""

Value = str | int | bool | None | Sequence[Place]
Row = Mapping[str, Value]


class Problem(NamedTuple):
    """What did not work: the error's name in capitals, its text, and what is concerned, None where that is nothing."""

    error: str
    message: str
    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None


class Report(NamedTuple):
    """Rows of one kind, all with the same keys, and what is missing beside them.

    ``remarks`` are told to people only: what is noteworthy but no failure. ``more``: facts about the whole, for
    programs. ``plain``: what to print instead of a table, None: the table.
    """

    kind: str
    columns: Sequence[str]
    rows: Sequence[Row]
    problems: Sequence[Problem] = ()
    remarks: Sequence[str] = ()
    more: Mapping[str, Value] = {}
    plain: str | None = None

    @property
    def exit_status(self) -> int:
        """0 when everything asked for is there, 1 otherwise."""
        return 1 if self.problems else 0


def as_json(report: Report, *, encoding: str | None = None) -> str:
    """One object: the rows under the report's kind, what there is more, and ``problems``.

    Letters that the encoding doesn't have are escaped as JSON does it; None: it has all.
    """
    problems = [problem._asdict() for problem in report.problems]
    document = {report.kind: list(report.rows), **report.more, "problems": problems}
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(document, indent=2) + "\n"
    return text


def as_table(report: Report) -> str:
    """A header and a line for each row, columns as wide as their longest text; "" without rows."""
    if not report.rows:
        return ""
    lines = [[column.upper().replace("_", "-") for column in report.columns]]
    lines += [[_text(row[column]) for column in report.columns] for row in report.rows]
    widths = [max(map(len, texts)) for texts in zip(*lines, strict=True)]
    rendered = ("  ".join(text.ljust(size) for text, size in zip(texts, widths, strict=True)) for texts in lines)
    return "".join(line.rstrip() + "\n" for line in rendered)


def problems_text(report: Report) -> str:
    """A line for each remark and each problem."""
    lines = [f"note: {remark}\n" for remark in report.remarks]
    for problem in report.problems:
        place = _place(problem)
        lines.append(f"error: {place + ': ' if place else ''}{problem.message} ({problem.error})\n")
    return "".join(lines)


def _place(problem: Problem) -> str:
    parts = [] if problem.broker is None else [f"broker {problem.broker}"]
    if problem.group is not None:
        parts.append(problem.group or "''")
    if problem.topic is not None:
        parts.append(problem.topic if problem.partition is None else f"{problem.topic}-{problem.partition}")
    return " ".join(parts)


def _text(value: Value) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int):
        return str(value)
    return ",".join(f"{place['topic']}-{place['partition']}" for place in value) or "-"
