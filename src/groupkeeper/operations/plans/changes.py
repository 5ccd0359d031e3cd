"""The changes of a journal: the content of its lines, as much as a list or one change needs, and their format.

Where lines are kept, and in which order they are written, is in `journal`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from operator import itemgetter
from typing import Any, NamedTuple

from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.model import Kind, Subject
from groupkeeper.operations.selection import Names
from groupkeeper.operations.times import parse_iso_datetime

VERSION = 1
_LINES_PER_WRITE = 1000

MOST_CHANGES = 10_000
MOST_NAMES = 200_000
"""A server keeps at most this many names of groups, in the latest MOST_CHANGES changes of a journal."""

Pair = tuple[OffsetAndMetadata | None, OffsetAndMetadata | None]
"""The commits before and after; None: nothing was, or is, committed."""

Span = tuple[int, int]
"""The first offset of something in a journal, and the one after its last."""

NOWHERE: Span = (0, 0)
"""The span in a journal that has no offsets."""


class ApplyResult(StrEnum):
    """The known outcome of a change."""

    APPLIED = "applied"
    PARTLY = "partly"
    REFUSED = "refused"
    UNFINISHED = "unfinished"


class Head(NamedTuple):
    """The fields that all lines of a change share."""

    id: str
    time_ms: int
    cluster_id: str | None
    """None: not known."""
    kind: str
    user: str
    """The author's user name on the machine, or at the server `through` which it was made; empty: there is none."""
    host: str
    command: tuple[str, ...]
    undoes: str | None = None
    """The id of the change that this one undoes; None: it undoes none."""
    principal: str = ""
    """The author's principal at the brokers; empty if unknown."""
    through: str = ""
    """Empty: through no server."""
    subject: Subject = Subject.GROUP
    """The kind of its names."""


class Lost(NamedTuple):
    """A group or partition whose change failed, or has an unknown outcome. `topic` None: the whole group."""

    group_id: str
    topic: str | None
    partition: int | None
    error: str
    message: str


class ChangeSummary(NamedTuple):
    """A change in a list of changes."""

    head: Head
    partition_count: int
    names: tuple[str, ...]
    """The names of the change's groups, or of its transaction."""
    result: ApplyResult
    undone_by: str | None
    """A later change's id; None: nothing has undone it."""
    moves: bool = True
    """Whether some offset was to change; offsets may also be recommitted unchanged."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The change's groups; none if it is of a transaction."""
        return self.names if self.head.subject is Subject.GROUP else ()


class Recorded(NamedTuple):
    """A change in full. `groups`: by name of the group, or of the transaction. `broken`: the number of invalid
    lines that name the change, parts of which may be missing here.
    """

    head: Head
    groups: dict[str, dict[TopicPartition, Pair]]
    result: ApplyResult
    lost: tuple[Lost, ...]
    broken: int = 0


def maker_of(head: Head) -> str:
    """The author of a change, the program, the machine, and the principal."""
    through = f" through {head.through}" * bool(head.through)
    return f"{head.user}{through} on {head.host}" + f" as {head.principal}" * bool(head.principal)


class KnownChanges:
    """The changes of a journal that were read so far, without their offsets. `most_changes` and `most_names` (of
    groups, of all changes together): older changes are left out; None: none is.

    Attributes:
        broken: number of lines that make no sense.
        left_out: number of changes that were left out.
        mark: how far the journal was read: its own matter.
    """

    def __init__(self, most_changes: int | None = None, most_names: int | None = None) -> None:
        self._most_changes = most_changes
        self._most_names = most_names
        self.clear()

    def clear(self) -> None:
        """Forget everything: the journal is another one."""
        self.broken = self.left_out = self._names = 0
        self.mark: object = None
        self._found: dict[str, _Count] = {}

    def take(self, text: bytes, span: Span = NOWHERE) -> None:
        """Adds a line. `span`: its place in the journal."""
        line = parsed(text)
        if line is None:
            self.broken += 1
        elif isinstance(line, Begun):
            self._found.setdefault(line.head.id, _Count(line.head, span)).add(line, span)
            self._names += 1
            self._leave_out()
        elif line.change_id in self._found:
            self._found[line.change_id].ended(line, span)

    def _leave_out(self) -> None:
        while len(self._found) > 1 and (
            (self._most_changes is not None and len(self._found) > self._most_changes)
            or (self._most_names is not None and self._names > self._most_names)
        ):
            oldest = self._found.pop(next(iter(self._found)))
            self._names -= len(oldest.names)
            self.left_out += 1

    def span(self, change_id: str) -> Span | None:
        """The span of a change's lines in the journal; None: unknown."""
        return self._found[change_id].span if change_id in self._found else None

    def summaries(self, groups: Names | None = None) -> list[ChangeSummary]:
        """All changes, or those of these groups, oldest first."""
        undone: dict[str, str] = {}
        for change_id, count in reversed(self._found.items()):  # an undo that was undone has taken nothing back
            undoes, is_done = count.head.undoes, count.result is ApplyResult.APPLIED
            if undoes is not None and is_done and change_id not in undone:
                undone.setdefault(undoes, change_id)
        return [
            count.summary(undone.get(change_id))
            for change_id, count in self._found.items()
            if not groups or (count.head.subject is Subject.GROUP and any(map(groups.matches, count.names)))
        ]


class Loading:
    """One change while its lines are read."""

    def __init__(self, change_id: str) -> None:
        self._id = change_id
        self._mark = json.dumps(change_id).encode()
        self._head: Head | None = None
        self._groups: dict[str, dict[TopicPartition, Pair]] = {}
        self._outcomes = _Outcomes()
        self._broken = 0

    def take(self, text: bytes, span: Span = NOWHERE) -> None:
        """Add a line, if it is one of the change."""
        if self._mark in text:
            line = parsed(text)
            if line is None:
                self._broken += 1
            elif line.change_id == self._id:
                self.add(line)

    def add(self, line: Begun | Ended) -> None:
        if isinstance(line, Ended):
            self._outcomes.add(line)
        else:
            self._head = self._head or line.head
            self._groups[line.group_id] = _pairs(line.offsets)

    def recorded(self) -> Recorded | None:
        """The change, None when there was no line that begins it."""
        if self._head is None:
            return None
        result = self._outcomes.result(len(self._groups))
        return Recorded(self._head, self._groups, result, tuple(self._outcomes.lost), self._broken)


class Begun(NamedTuple):
    """A line that begins a change of a group."""

    head: Head
    group_id: str
    offsets: list[Any]

    @property
    def change_id(self) -> str:
        return self.head.id


class Ended(NamedTuple):
    """A line with the outcome of a number of groups."""

    change_id: str
    groups: int
    result: ApplyResult
    lost: tuple[Lost, ...]


class _Outcomes:
    """The outcome of a change's groups, as far as it is known."""

    def __init__(self) -> None:
        self.lost: list[Lost] = []
        self._groups = 0
        self._results: set[ApplyResult] = set()

    def add(self, line: Ended, *, keeps_lost: bool = True) -> None:
        self._groups += line.groups
        self._results.add(line.result)
        if keeps_lost:
            self.lost += line.lost

    def result(self, groups: int) -> ApplyResult:
        if self._groups < groups:
            return ApplyResult.UNFINISHED
        return next(iter(self._results)) if len(self._results) == 1 else ApplyResult.PARTLY


class _Count:
    """A change, of which only the numbers for its summary are kept."""

    def __init__(self, head: Head, span: Span) -> None:
        self.head = head
        self.span = span
        self.names: list[str] = []
        self._outcomes = _Outcomes()
        self._partitions = 0
        self._moves = False

    def add(self, line: Begun, span: Span) -> None:
        self.names.append(line.group_id)
        self._partitions += len(line.offsets)
        self._moves = self._moves or any(before != after for _, _, before, after in line.offsets)
        self._reach(span)

    def ended(self, line: Ended, span: Span) -> None:
        self._outcomes.add(line, keeps_lost=False)
        self._reach(span)

    def _reach(self, span: Span) -> None:
        self.span = (min(self.span[0], span[0]), max(self.span[1], span[1]))

    @property
    def result(self) -> ApplyResult:
        return self._outcomes.result(len(self.names))

    def summary(self, undone_by: str | None) -> ChangeSummary:
        return ChangeSummary(self.head, self._partitions, tuple(self.names), self.result, undone_by, self._moves)


def offsets_json(pairs: Mapping[TopicPartition, Pair]) -> list[Any]:
    return [
        [tp.topic, tp.partition, _commit_json(before), _commit_json(after)]
        for tp, (before, after) in sorted(pairs.items(), key=itemgetter(0))
    ]


def _commit_json(commit: OffsetAndMetadata | None) -> list[Any] | None:
    return None if commit is None else [commit.offset, commit.leader_epoch, commit.metadata]


def _pairs(rows: list[Any]) -> dict[TopicPartition, Pair]:
    return {TopicPartition(row[0], row[1]): (_commit(row[2]), _commit(row[3])) for row in rows}


def _commit(fields: list[Any] | None) -> OffsetAndMetadata | None:
    return None if fields is None else OffsetAndMetadata(*fields)


def parsed(text: bytes) -> Begun | Ended | None:
    """The content of a line, None when it is invalid: incomplete, edited, or of a later version.

    Unknown fields are ignored.
    """
    try:
        line = json.loads(text)
        if line["v"] == VERSION and line["event"] == "change":
            head = _head(line)
            name = line.get(head.subject, line.get(Subject.GROUP))  # early journals called all of them groups
            return Begun(head, _text(name), _checked(line["offsets"]))
        if line["v"] == VERSION and line["event"] == "outcome":
            lost = tuple(map(_lost, line["lost"]))
            return Ended(_text(line["id"]), _number(line["groups"]), ApplyResult(line["result"]), lost)
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return None


def _head(line: Any) -> Head:
    return Head(
        _text(line["id"]),
        parse_iso_datetime(_text(line["time"])),
        _text_or_none(line["cluster_id"]),
        _text(line["kind"]),
        _text(line["user"]),
        _text(line["host"]),
        tuple(map(_text, line["command"])),
        _text_or_none(line.get("undoes")),
        _text(line.get("principal", "")),
        _text(line.get("through", "")),
        Subject.TRANSACTION if line["kind"] == Kind.ABORT_TRANSACTION else Subject.GROUP,
    )


def _lost(one: Any) -> Lost:
    partition = one["partition"]
    return Lost(
        _text(one["group_id"]),
        _text_or_none(one["topic"]),
        None if partition is None else _number(partition),
        _text(one["error"]),
        _text(one["message"]),
    )


def _checked(rows: Any) -> list[Any]:
    """A change's partitions as the line has them. Raises TypeError and ValueError for an invalid form."""
    for topic, partition, before, after in rows:
        _text(topic)
        _number(partition)
        for commit in (before, after):
            if commit is not None:
                offset, epoch, metadata = commit
                _number(offset)
                _text(metadata)
                if epoch is not None:
                    _number(epoch)
    return list(rows)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _number(value: Any) -> int:
    if type(value) is not int:  # true is an int, too
        raise TypeError
    return value


def chunks(lines: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """The lines in JSON, several in each piece."""
    encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode
    texts: list[str] = []
    for line in lines:
        texts.append(encode(line))
        if len(texts) == _LINES_PER_WRITE:
            yield ("\n".join(texts) + "\n").encode()
            texts.clear()
    if texts:
        yield ("\n".join(texts) + "\n").encode()
