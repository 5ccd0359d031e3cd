"""Reports as tables for people, and as JSON and CSV for programs. Pure: each writer turns pages into text.

The output is the joined results of `begin`, of `page` for every page as it comes, and of `end`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from groupkeeper.cli.framework.reports import CLUSTER, Page, Problem, Row, Schema, Value
from groupkeeper.rules.words import printable

K = TypeVar("K")

BOLD, RED, GREEN, YELLOW = "1", "31", "32", "33"

_STYLES = {
    "status": dict.fromkeys(("below_log_start", "beyond_log_end"), YELLOW)
    | dict.fromkeys(("no_leader", "deleted", "not_authorized", "unknown"), RED),
    "state": {"Stable": GREEN, "Dead": RED}
    | dict.fromkeys(("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"), YELLOW),
}


class Writer(ABC):
    """Turns a report into text, page by page."""

    def begin(self) -> str:
        return ""

    @abstractmethod
    def page(self, page: Page) -> str: ...

    def end(self) -> str:
        return ""


WIDTH = 100
"""The widest that a table should be, in columns of text; a wider terminal may have more."""

_WIDEST = 64
"""The widest that a column is made for its texts: a longer text only shifts its own row."""


_GAP = "  "
"""The space between two columns."""

_LEAST = 20
"""The least width to which lists of partitions are cut."""

_LEAST_NAME = 12
"""The least width to which names are cut."""

CUT = "long texts are cut: --wide shows them whole"
"""The note about a table with cut texts."""


class TableWriter(Writer):
    """A header, and a line for each row; nothing without rows.

    Columns are as wide as the first page needs; a later page that needs more room makes them wider. Where
    the first page would be wider than the table may be, columns go: first those without a value, then those that are
    needed least; and lists of partitions in the last column are cut. Names are, too, where it is people who read them.

    Attributes:
        has_cut: whether a name is not whole.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        has_colour: bool = False,
        with_columns: Sequence[str] = (),
        limit: int | None = WIDTH,
        cuts_names: bool = False,
        encoding: str | None = None,
    ) -> None:
        """`with_columns`: shown although tables leave them out by default. `limit`: None: as wide as it gets.
        Letters that the output's `encoding` doesn't have are escaped, which makes texts longer.
        """
        self.has_cut = False
        self._encoding = encoding or "utf-8"
        self._cuts_names = cuts_names
        names = [one.name for one in schema.columns if one.in_table or one.name in with_columns]
        self._columns = sorted(names, key=lambda name: name != CLUSTER.name)
        self._widths: list[int] = []
        self._colour = has_colour
        self._is_number = [False] * len(self._columns)
        self._limit = limit
        self._goes = {one.name: one.goes for one in schema.columns if one.name not in with_columns}

    def page(self, page: Page) -> str:
        if not page.rows:
            return ""
        header = not self._widths
        if header:
            self._fit(page.rows)
            self._widths = [0] * len(self._columns)
            self._is_number = [_is_number(page.rows, name) for name in self._columns]
        room = self._room(page.rows)
        # Column by column: a table may have a million cells.
        columns = [self._column(position, page.rows, header, room) for position in range(len(self._columns))]
        return "".join([_GAP.join(cells).rstrip() + "\n" for cells in zip(*columns, strict=True)])

    def _fit(self, rows: Sequence[Row]) -> None:
        """Leaves out columns without room, the least important first."""
        if self._limit is None:
            return
        widths = {name: self._width(name, rows) for name in self._columns}
        if sum(widths.values()) + len(_GAP) * (len(widths) - 1) <= self._limit:
            return
        going = {name: any(row[name] for row in rows) for name in self._columns if self._goes.get(name)}
        left = self._limit + len(_GAP) - sum(len(_GAP) + size for name, size in widths.items() if name not in going)
        for name in sorted(going, key=lambda name: self._goes[name]):
            size = len(_GAP) + widths[name]
            is_sentence = name == self._columns[-1] and _are_sentences(rows, name)
            if is_sentence:
                size = min(size, max(left, len(_GAP) + _LEAST))
            if going[name] and (size <= left or (is_sentence and self._cuts_names)):
                left -= size
            else:
                del widths[name]
        self._columns = list(widths)

    def _width(self, name: str, rows: Sequence[Row]) -> int:
        return max(len(name), min(_WIDEST, max(map(width, self._texts(rows, name)))))

    def _texts(self, rows: Sequence[Row], name: str) -> list[str]:
        return _texts([row[name] for row in rows], self._encoding)

    def _room(self, rows: Sequence[Row]) -> Mapping[str, int]:
        """The widths of the text columns that are cut: the widest first, to the same width."""
        if self._limit is None or not self._cuts_names:
            return {}
        sizes: dict[str, int] = {}
        for name, size in zip(self._columns, self._widths, strict=True):
            sizes[name] = max(size, len(name), *map(width, self._texts(rows, name)))
        last = self._columns[-1]
        if self._is_cut(rows):
            sizes[last] = min(sizes[last], _LEAST)
        names = [name for name in self._columns if any(isinstance(row[name], str) for row in rows)]
        return room_for(sizes, [name for name in names if name != last or not self._is_cut(rows)], self._limit)

    def _is_cut(self, rows: Sequence[Row]) -> bool:
        """Whether the last column has texts that are cut first: lists of partitions, or sentences."""
        name = self._columns[-1]
        return isinstance(rows[0][name], list | tuple) or (bool(self._goes.get(name)) and _are_sentences(rows, name))

    def _cut(self, texts: Sequence[str], rows: Sequence[Row]) -> list[str]:
        """The texts of the last column, cut to the room that is left."""
        room = 0 if self._limit is None else self._limit - sum(size + len(_GAP) for size in self._widths[:-1])
        if not self._is_cut(rows) or room < _LEAST:
            return list(texts)
        self.has_cut = self.has_cut or any(" " in text and width(text) > room for text in texts)
        return [text if width(text) <= room else text[: room - 1] + "…" for text in texts]

    def _column(self, position: int, rows: Sequence[Row], has_header: bool, room: Mapping[str, int]) -> list[str]:
        """The cells of a column, padded to the same width."""
        name = self._columns[position]
        title = [name.upper().replace("_", "-")] if has_header else []
        texts = title + self._texts(rows, name)
        if position == len(self._columns) - 1:
            texts = self._cut(texts, rows)
        if name in room:
            texts = [text if width(text) <= room[name] else shortened(text, room[name]) for text in texts]
            self.has_cut = True
        if encodable("…", self._encoding) != "…":
            texts = [text.replace("…", "~") for text in texts]
        is_plain = "".join(texts).isascii()
        widest = max(map(len if is_plain else width, texts))
        size = max(self._widths[position], min(_WIDEST, widest)) if name not in room else room[name]
        self._widths[position] = size
        if not is_plain:
            blanks = [" " * (size - width(text)) for text in texts]
            is_number = self._is_number[position]
            cells = [blank + text if is_number else text + blank for text, blank in zip(texts, blanks, strict=True)]
        elif self._is_number[position]:
            cells = [text.rjust(size) for text in texts]
        else:
            cells = [text.ljust(size) for text in texts]
        if self._colour:
            styles = [BOLD] * has_header + [_STYLES.get(name, {}).get(text, "") for text in texts[has_header:]]
            cells = list(map(_painted, cells, texts, styles))
        return cells


def _texts(values: Sequence[Value], encoding: str) -> list[str]:
    """The texts of a column in this encoding. Most columns have few values; of numbers and yes-or-no they have one
    kind, so that 1 and True don't meet.
    """
    try:
        known = {value: as_text(value) for value in set(values)}
    except TypeError:  # lists
        return [encodable(as_text(value), encoding) for value in values]
    if not "".join(known.values()).isascii():
        known = {value: encodable(text, encoding) for value, text in known.items()}
    return [known[value] for value in values]


def _painted(cell: str, text: str, style: str) -> str:
    return cell.replace(text, f"\x1b[{style}m{text}\x1b[0m", 1) if style else cell


def _is_number(rows: Sequence[Row], name: str) -> bool:
    values = [row[name] for row in rows]
    return all(value is None or type(value) is int for value in values) and any(value is not None for value in values)


def width(text: str) -> int:
    """The width of the text in cells of a terminal."""
    if text.isascii():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(bool(unicodedata.combining(char)) for char in text)


def as_text(value: Value) -> str:
    """The value in a cell of a table: on one line, and without what would command a terminal."""
    if value is None or value == "":
        return "-"
    if isinstance(value, str):
        return value if value.isprintable() else printable(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    return partitions_text(value) or "-"


def encodable(text: str, encoding: str) -> str:
    """The text with escapes for characters that the encoding lacks."""
    return text if text.isascii() else text.encode(encoding, "backslashreplace").decode(encoding)


def _are_sentences(rows: Sequence[Row], name: str) -> bool:
    return any(isinstance(value := row[name], str) and " " in value for row in rows)


def room_for(sizes: Mapping[K, int], names: Collection[K], limit: int) -> Mapping[K, int]:
    """The widths of the columns to cut so that the table is at most `limit` wide; only those in `names` are cut,
    the widest first, to the same width.
    """
    over = sum(sizes.values()) + len(_GAP) * (len(sizes) - 1) - limit
    most = max((sizes[name] for name in names), default=0)
    while over > 0 and most > _LEAST_NAME:
        most -= 1
        over -= sum(sizes[name] > most for name in names)
    return {name: most for name in names if sizes[name] > most}


def shortened(text: str, size: int) -> str:
    """The text cut to a width: a name loses its middle, a sentence its end."""
    keeps = size - 1
    while True:
        tail = 0 if " " in text else keeps // 2
        short = f"{text[: keeps - tail]}…{text[len(text) - tail :]}"
        if width(short) <= size:
            return short
        keeps -= 1


def partitions_text(tps: Sequence[Mapping[str, str | int]]) -> str:
    """`orders:0,1;payments:2`; no name of a topic has one of those characters."""
    partitions: dict[str, list[str]] = {}
    for tp in tps:
        partitions.setdefault(str(tp["topic"]), []).append(str(tp["partition"]))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in partitions.items())


class JsonWriter(Writer):
    """One object: `schema`, the rows under the schema's kind, further fields, `notes` and `problems`.

    Every row is on a line of its own. Letters that the output's encoding doesn't have are escaped as JSON does it.
    """

    def __init__(self, schema: Schema, more: Mapping[str, Value] = {}, *, encoding: str | None = None) -> None:
        self._schema = schema
        self._more = dict(more)
        self._encoding = encoding or "utf-8"
        self._encode = json.JSONEncoder(ensure_ascii=False).encode
        self._rows = 0
        self._problems: list[Problem] = []
        self._notes: list[str] = []

    def begin(self) -> str:
        return f'{{\n  "schema": {self._dump(self._schema.name)},\n  {self._dump(self._schema.kind)}: ['

    def page(self, page: Page) -> str:
        self._problems += page.problems
        self._notes += page.notes
        self._more.update(page.more)
        if not page.rows:
            return ""
        front = ",\n    " if self._rows else "\n    "
        self._rows += len(page.rows)
        return front + ",\n    ".join(map(self._dump, page.rows))

    def end(self) -> str:
        problems = list(map(_problem_object, self._problems))
        rows = "\n  ]" if self._rows else "]"
        rows += "".join(f",\n  {self._dump(name)}: {self._dump(value)}" for name, value in self._more.items())
        return f'{rows},\n  "notes": {self._list(self._notes)},\n  "problems": {self._list(problems)}\n}}\n'

    def _list(self, values: Sequence[object]) -> str:
        return "[" + ",".join(f"\n    {self._dump(value)}" for value in values) + ("\n  ]" if values else "]")

    def _dump(self, value: object) -> str:
        text = self._encode(value)
        try:
            if not text.isascii():
                text.encode(self._encoding)
        except UnicodeEncodeError:
            return json.dumps(value)
        return text


class JsonLinesWriter(JsonWriter):
    """An object on a line of its own for each row, with `schema` first; one with `problem` for what failed."""

    def begin(self) -> str:
        return ""

    def page(self, page: Page) -> str:
        rows: list[Mapping[str, object]] = [{"schema": self._schema.name, **row} for row in page.rows]
        rows += ({"schema": self._schema.name, "problem": _problem_object(problem)} for problem in page.problems)
        return "".join(self._dump(row) + "\n" for row in rows)

    def end(self) -> str:
        return ""


def _problem_object(problem: Problem) -> Mapping[str, object]:
    return {**problem._asdict(), "acl": problem.acl and problem.acl._asdict()}


class CsvWriter(Writer):
    """A line with the names of the columns, then one for each row.

    Absent values are empty, `true` and `false` stand for themselves, partitions are `orders:0,1;payments:2`.
    """

    def __init__(self, schema: Schema) -> None:
        from groupkeeper.csv_text import csv_text  # only for those who ask for it

        self._text = csv_text
        self._names = [column.name for column in schema.columns]

    def begin(self) -> str:
        return self._text([self._names])

    def page(self, page: Page) -> str:
        return self._text([[_csv_value(row[name]) for name in self._names] for row in page.rows])


def _csv_value(value: Value) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None or isinstance(value, str | int) else partitions_text(value)


class PlainWriter(Writer):
    """Prints the pages' own text."""

    def page(self, page: Page) -> str:
        return page.plain


def note_text(note: str) -> str:
    """The note as a line of standard error."""
    return f"note: {printable(note)}\n"


def problem_text(problem: Problem, *, has_colour: bool = False) -> str:
    """The problem as a line of standard error."""
    error = f"\x1b[{RED}merror:\x1b[0m" if has_colour else "error:"
    return f"{error} {explained(problem)}\n"


def explained(problem: Problem) -> str:
    """The problem in words: the error, its subject, and the error's name."""
    # Kafka's own texts often name the group, or say that it does not exist, already.
    named = (f"Group {problem.group} ", f"there is no group {problem.group}")
    where = "" if problem.message.startswith(named) else _where(problem)
    acl = f"; missing ACL: {problem.acl}" if problem.acl else ""
    text = printable(problem.message.removesuffix(".") + acl)
    cluster = "" if problem.cluster is None else f"cluster {problem.cluster}: "
    return f"{printable(cluster + (f'{where}: ' if where else ''))}{text} ({problem.error})"


def _where(problem: Problem) -> str:
    parts = [] if problem.broker is None else [f"broker {problem.broker}"]
    if problem.group is not None:
        parts.append(problem.group or "''")
    if problem.topic is not None:
        parts.append(problem.topic if problem.partition is None else f"{problem.topic}-{problem.partition}")
    return " ".join(parts)
