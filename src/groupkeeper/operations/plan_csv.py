"""Reset plans as CSV: `topic,partition,offset` of one group, or with the group in front."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from groupkeeper.base_error import GroupkeeperError
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.java_numbers import INT_MAX, LONG_MAX, parse_number

Plans = dict[str, dict[TopicPartition, int]]
"""Offsets by partition by group id."""


_LONGEST_UNQUOTED = 24
_SMALLEST_UNQUOTED = "-"
_BLANKS = "".join(map(chr, range(33)))
_FIELD = re.compile(r'"(?P<quoted>[^"]*(?:""[^"]*)*)"(?!")[\0-\x0c\x0e-\x20]*|(?P<plain>(?!")[^,\r]*)')


class BadPlan(GroupkeeperError, ValueError):
    """The text is not a plan. The message has the mistake and its line."""


class NegativeOffset(BadPlan):
    """A plan with an offset below zero."""


class _WrongCount(BadPlan):
    """A line with too few or too many fields."""

    def __init__(self, found: int, expected: int) -> None:
        super().__init__(f"{found} fields, expected {expected}")
        self.found = found
        self.expected = expected


def read(text: str, only_group: str | None = None, *, fill_gaps: bool = False) -> Plans:
    """The plans in a CSV text, in its order; a partition that is given twice has the last offset.

    `only_group`: the lines have three fields and are all of this group, unless the first line has four.
    `fill_gaps`: fields that are missing or empty are read as 0, and as "" for names, which is what Kafka's tool
    does; otherwise they are refused. Raises BadPlan.
    """
    lines = text.split("\n")
    if text:
        while lines and not lines[-1]:
            lines.pop()
    elif not fill_gaps:
        lines = []
    forms = "group,topic,partition,offset"
    if only_group is not None:
        forms = f"topic,partition,offset (or {forms})"
    if only_group is not None and lines and not _is_of_one_group(lines[0], fill_gaps):
        only_group = None
    plans: Plans = {}
    for number, line in enumerate(lines, 1):
        try:
            _add(plans, line, only_group, fill_gaps)
        except _WrongCount as problem:
            shown = f"{problem.found} field{'s' * (problem.found != 1)}"
            raise BadPlan(f"line {number}: {shown}, expected {problem.expected if fill_gaps else forms}") from None
        except ValueError as problem:
            kind = NegativeOffset if isinstance(problem, NegativeOffset) else BadPlan
            raise kind(f"line {number}: {problem}") from None
    return plans


def write(plans: Iterable[tuple[str, Mapping[TopicPartition, int]]], *, with_group: bool) -> str:
    """The CSV text of plans, in the order given. Every line ends with a line feed."""
    lines = []
    for group_id, offsets in plans:
        front = f"{_quoted(group_id)}," if with_group else ""
        for (topic, partition), offset in offsets.items():
            lines.append(f"{front}{_quoted(topic)},{partition},{offset}\n")
    return "".join(lines)


def fields(line: str) -> list[str]:
    """The fields of one line. A field in quotes may hold commas, and quotes when they are doubled. Raises BadPlan."""
    found: list[str] = []
    at = -1
    while not found or line.startswith(",", at):
        field = _FIELD.match(line, at + 1)
        if field is None:
            raise BadPlan("a quote is not closed")
        at = field.end()
        if field["quoted"] is not None and line[at : at + 1] not in ("", ",", "\r"):
            raise BadPlan("text follows a closing quote")
        found.append(field["plain"] if field["quoted"] is None else field["quoted"].replace('""', '"'))
    return found


def _quoted(text: str) -> str:
    if len(text) > _LONGEST_UNQUOTED or any(letter < _SMALLEST_UNQUOTED or letter == "\\" for letter in text):
        return '"' + text.replace('"', '""') + '"'
    return text


def _is_of_one_group(line: str, fill_gaps: bool) -> bool:
    """Whether lines have three fields, as this first one: Kafka's tool decides by whether it can be parsed so."""
    try:
        if not fill_gaps:
            found = fields(line)
            return len(found) - (not found[-1]) != 4
        names = _named_fields(line, 3, fill_gaps)
        _number(names[-2], INT_MAX, fill_gaps)
        _number(names[-1], LONG_MAX, fill_gaps)
    except BadPlan:
        return False
    return True


def _add(plans: Plans, line: str, only_group: str | None, fill_gaps: bool) -> None:
    *names, partition_text, offset_text = _named_fields(line, 3 if only_group is not None else 4, fill_gaps)
    tp = TopicPartition(names[-1], _number(partition_text, INT_MAX, fill_gaps))
    offset = _number(offset_text, LONG_MAX, fill_gaps)
    if offset < 0:
        raise NegativeOffset("an offset is negative")
    plans.setdefault(names[0] if only_group is None else only_group, {})[tp] = offset


def _named_fields(line: str, count: int, fill_gaps: bool) -> list[str]:
    if not line:
        raise BadPlan("the line is empty")
    found = fields(line)
    if len(found) == count + 1 and not found[-1]:
        found.pop()  # a comma at the end of the line
    if len(found) > count:
        raise _WrongCount(len(found), count)
    if len(found) < count and not fill_gaps:
        raise _WrongCount(len(found), count)
    return found + [""] * (count - len(found))


def _number(text: str, largest: int, fill_gaps: bool) -> int:
    text = text.strip(_BLANKS)
    if fill_gaps and text in ("", "null"):
        return 0
    number = parse_number(text, largest)
    if number is None:
        raise BadPlan(f"{text!r} is not a number of the right size")
    return number
