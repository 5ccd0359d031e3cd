"""The journal of changes on the operator's machine: what is about to be committed, and what became of it.

A text file, one JSON object a line, only ever appended to. A *change* is what one command does: one line for each
group, written and synced before anything about it is sent to a broker, and a line of the outcome afterwards. Lines of
the same change have the same ``id``; a command that handles groups one by one writes several outcomes, each with its
number of ``groups``. A change that lacks the outcome of some groups was interrupted, or is under way.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from groupkeeper.base_error import GroupkeeperError
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.errors import OperationRefused
from groupkeeper.operations.plans.model import Kind, Subject
from groupkeeper.operations.selection import Names
from groupkeeper.operations.times import parse_iso_datetime, utc_text

VERSION = 1
_NEWLINE = b"\n"
_NAME = ("groupkeeper", "journal.jsonl")
_LINES_PER_WRITE = 1000

Pair = tuple[OffsetAndMetadata | None, OffsetAndMetadata | None]
"""Committed before and after; None: nothing."""


class JournalUnwritable(GroupkeeperError):
    """The journal takes no lines. The text names the file and the reason."""


class BeingUndone(JournalUnwritable):
    """Another one undoes the same change. The text says who, and since when."""


class JournalUnreadable(OperationRefused):
    """The journal cannot be opened. The text names the file and the reason."""


class ApplyResult(StrEnum):
    """What is known of a change."""

    APPLIED = "applied"
    PARTLY = "partly"
    REFUSED = "refused"
    UNFINISHED = "unfinished"


class Head(NamedTuple):
    """The fields that all lines of a change share. ``undoes``: the id of the change that this one undoes.
    ``principal``: the author's principal at the brokers, "" if unknown; ``user``: the author's user name on the
    machine, or at the server ``through`` which it was made, "" for none. ``subject``: what it has the names of.
    """

    id: str
    time_ms: int
    cluster_id: str | None
    kind: str
    user: str
    host: str
    command: tuple[str, ...]
    undoes: str | None = None
    principal: str = ""
    through: str = ""
    subject: Subject = Subject.GROUP


class Lost(NamedTuple):
    """A group or partition whose change failed, or has an unknown outcome. ``topic`` None: the whole group."""

    group_id: str
    topic: str | None
    partition: int | None
    error: str
    message: str


class Summary(NamedTuple):
    """A change as a list of changes shows it. ``names``: of its groups, or of its transaction. ``undone_by``: a later
    change's id.

    ``moves``: whether something was to become different; offsets may also be recommitted unchanged.
    """

    head: Head
    partition_count: int
    names: tuple[str, ...]
    result: ApplyResult
    undone_by: str | None
    moves: bool = True

    @property
    def groups(self) -> tuple[str, ...]:
        """Its groups; none where it is of a transaction."""
        return self.names if self.head.subject is Subject.GROUP else ()

    @property
    def group_count(self) -> int:
        return len(self.groups)


class Recorded(NamedTuple):
    """A change with everything in it. ``groups``: by name of the group, or of the transaction. ``broken``: lines that
    name the change and make no sense, so that a part of it may be missing here.
    """

    head: Head
    groups: dict[str, dict[TopicPartition, Pair]]
    result: ApplyResult
    lost: tuple[Lost, ...]
    broken: int = 0


class ChangeJournal(ABC):
    """What is about to be done and what became of it, in lines. A subclass says where they are kept."""

    @property
    @abstractmethod
    def name(self) -> str:
        """For messages."""

    @abstractmethod
    def stamp(self) -> object:
        """What differs once there are more lines. Raises JournalUnreadable."""

    @abstractmethod
    def _append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Adds lines of one change, all or none. Raises JournalUnwritable."""

    @abstractmethod
    def _texts(self) -> Iterator[bytes]:
        """All lines so far, in order. Raises JournalUnreadable."""

    def begin(self, head: Head, groups: Iterable[tuple[str, Mapping[TopicPartition, Pair]]]) -> None:
        """Write what is about to be done. Raises JournalUnwritable, and then nothing may be done."""
        front = {
            "v": VERSION,
            "id": head.id,
            "time": utc_text(head.time_ms),
            "event": "change",
            "kind": head.kind,
            "cluster_id": head.cluster_id,
            "user": head.user,
            "host": head.host,
            "command": list(head.command),
            **({"undoes": head.undoes} if head.undoes else {}),
            **({"principal": head.principal} if head.principal else {}),
            **({"through": head.through} if head.through else {}),
        }
        self._append({**front, head.subject: group_id, "offsets": _offsets_json(pairs)} for group_id, pairs in groups)

    def end(self, change_id: str, time_ms: int, groups: int, result: ApplyResult, lost: Iterable[Lost] = ()) -> None:
        """Write the outcome of a number of groups. Raises JournalUnwritable."""
        line = {"v": VERSION, "id": change_id, "time": utc_text(time_ms), "event": "outcome", "groups": groups}
        self._append([{**line, "result": str(result), "lost": [one._asdict() for one in lost]}])

    def summaries(self, groups: Names | None = None) -> tuple[list[Summary], int]:
        """All changes or those of groups, oldest first, and how many lines make no sense. Raises JournalUnreadable."""
        found: dict[str, _Count] = {}
        wanted: set[str] = set()
        broken = 0
        for line in self._lines():
            if line is None:
                broken += 1
            elif isinstance(line, _Ended):
                if line.id in found:
                    found[line.id].ended(line)
            else:
                count = found.setdefault(line.head.id, _Count(line.head))
                count.add(line.group_id, line.offsets)
                is_group = line.head.subject is Subject.GROUP
                if groups is None or not groups or (is_group and groups.matches(line.group_id)):
                    wanted.add(line.head.id)
        kept = [count for change_id, count in found.items() if change_id in wanted]
        undone = {
            count.head.undoes: change_id
            for change_id, count in found.items()
            if count.head.undoes is not None and count.result is ApplyResult.APPLIED
        }
        return [count.summary(undone.get(count.head.id)) for count in kept], broken

    def load(self, change_id: str) -> Recorded | None:
        """One change, None when the journal doesn't have it. Raises JournalUnreadable."""
        head: Head | None = None
        groups: dict[str, dict[TopicPartition, Pair]] = {}
        outcomes = _Outcomes()
        broken = 0
        for line in self._lines(change_id):
            if line is None:
                broken += 1
            elif isinstance(line, _Ended):
                outcomes.add(line)
            else:
                head = head or line.head
                groups[line.group_id] = _pairs(line.offsets)
        if head is None:
            return None
        return Recorded(head, groups, outcomes.result(len(groups)), tuple(outcomes.lost), broken)

    def changes(self) -> tuple[list[Recorded], int]:
        """All changes with everything in them, oldest first, and how many lines make no sense. Raises
        JournalUnreadable.
        """
        found: dict[str, tuple[Head, dict[str, dict[TopicPartition, Pair]], _Outcomes]] = {}
        broken = 0
        for line in self._lines():
            if line is None:
                broken += 1
            elif isinstance(line, _Ended):
                if line.id in found:
                    found[line.id][2].add(line)
            else:
                _, groups, _ = found.setdefault(line.head.id, (line.head, {}, _Outcomes()))
                groups[line.group_id] = _pairs(line.offsets)
        every = found.values()
        return [Recorded(head, own, ends.result(len(own)), tuple(ends.lost)) for head, own, ends in every], broken

    def _lines(self, only: str | None = None) -> Iterator[_Begun | _Ended | None]:
        """The lines in order, None for one that makes no sense. ``only``: those of one change, and those without sense
        that name it.
        """
        mark = None if only is None else json.dumps(only).encode()
        for text in self._texts():
            if mark is None or mark in text:
                line = _parsed(text)
                if only is None or line is None or line.change_id == only:
                    yield line


class Journal(ChangeJournal):
    """The file at ``path``, which need not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return str(self.path)

    def stamp(self) -> object:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise JournalUnreadable(f"cannot read the journal {self.path}: {error.strerror or error}") from error
        return found.st_size, found.st_mtime_ns

    def _append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        try:
            is_new = not self.path.exists()
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                _lock(file)
                self._mend(file)
                size = os.fstat(file).st_size
                try:
                    for chunk in chunks(lines):
                        _write(file, chunk)
                    os.fsync(file)
                except OSError:
                    # A part of the lines, on a disk that is full now, would tell of a change that isn't made.
                    with contextlib.suppress(OSError):
                        os.ftruncate(file, size)
                    raise
            finally:
                os.close(file)
            if is_new:
                _sync_directory(self.path.parent)
        except OSError as error:
            raise JournalUnwritable(f"{self.path}: {error.strerror or error}") from error

    def _mend(self, file: int) -> None:
        """Terminate an incomplete line of a killed writer, so that the next line stays readable."""
        if os.fstat(file).st_size:
            os.lseek(file, -1, os.SEEK_END)
            if os.read(file, 1) != _NEWLINE:
                _write(file, _NEWLINE)

    def _texts(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                yield from file
        except FileNotFoundError:
            return
        except OSError as error:
            raise JournalUnreadable(f"cannot read the journal {self.path}: {error.strerror or error}") from error


class _Begun(NamedTuple):
    """A line of what was about to be done to a group."""

    head: Head
    group_id: str
    offsets: list[Any]

    @property
    def change_id(self) -> str:
        return self.head.id


class _Ended(NamedTuple):
    """A line with the outcome of a number of groups."""

    id: str
    groups: int
    result: ApplyResult
    lost: tuple[Lost, ...]

    @property
    def change_id(self) -> str:
        return self.id


class _Outcomes:
    """The outcome of a change's groups, as far as it is known."""

    def __init__(self) -> None:
        self.lost: list[Lost] = []
        self._groups = 0
        self._results: set[ApplyResult] = set()

    def add(self, line: _Ended) -> None:
        self._groups += line.groups
        self._results.add(line.result)
        self.lost += line.lost

    def result(self, groups: int) -> ApplyResult:
        if self._groups < groups:
            return ApplyResult.UNFINISHED
        return next(iter(self._results)) if len(self._results) == 1 else ApplyResult.PARTLY


class _Count:
    """A change while the journal is being read."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self._outcomes = _Outcomes()
        self._groups: list[str] = []
        self._partitions = 0
        self._moves = False

    def add(self, group_id: str, offsets: list[Any]) -> None:
        self._groups.append(group_id)
        self._partitions += len(offsets)
        self._moves = self._moves or any(before != after for _, _, before, after in offsets)

    def ended(self, line: _Ended) -> None:
        self._outcomes.add(line)

    @property
    def result(self) -> ApplyResult:
        return self._outcomes.result(len(self._groups))

    def summary(self, undone_by: str | None) -> Summary:
        names = tuple(self._groups)
        return Summary(self.head, self._partitions, names, self.result, undone_by, self._moves)


def maker_of(head: Head) -> str:
    """The author of a change, the program, the machine, and the principal."""
    through = f" through {head.through}" * bool(head.through)
    return f"{head.user}{through} on {head.host}" + f" as {head.principal}" * bool(head.principal)


def default_path() -> Path:
    """Where this platform keeps such files: ``$XDG_STATE_HOME``, by default ``~/.local/state``; Library on a Mac.

    For a user without a home directory it is a path that cannot be written, so that the usual error names it.
    """
    given = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_STATE_HOME", "")
    if os.path.isabs(given):
        return Path(given, *_NAME)
    try:
        home = Path.home()
    except RuntimeError:
        return Path(os.devnull, "no home directory", *_NAME)
    folder = "Library/Application Support" if sys.platform == "darwin" else ".local/state"
    return Path(home, folder, *_NAME)


def _offsets_json(pairs: Mapping[TopicPartition, Pair]) -> list[Any]:
    return [
        [tp.topic, tp.partition, _commit_json(before), _commit_json(after)]
        for tp, (before, after) in sorted(pairs.items(), key=itemgetter(0))
    ]


def _commit_json(commit: OffsetAndMetadata | None) -> list[Any] | None:
    return None if commit is None else [*commit]


def _pairs(rows: list[Any]) -> dict[TopicPartition, Pair]:
    return {TopicPartition(row[0], row[1]): (_commit(row[2]), _commit(row[3])) for row in rows}


def _commit(fields: list[Any] | None) -> OffsetAndMetadata | None:
    return None if fields is None else OffsetAndMetadata(*fields)


def _parsed(text: bytes) -> _Begun | _Ended | None:
    """The content of a line, None when it is invalid: incomplete, edited, or of a later version.

    Unknown fields are ignored.
    """
    try:
        line = json.loads(text)
        if line["v"] == VERSION and line["event"] == "change":
            head = _head(line)
            name = line.get(head.subject, line.get(Subject.GROUP))  # early journals called all of them groups
            return _Begun(head, _text(name), _checked(line["offsets"]))
        if line["v"] == VERSION and line["event"] == "outcome":
            lost = tuple(map(_lost, line["lost"]))
            return _Ended(_text(line["id"]), _number(line["groups"]), ApplyResult(line["result"]), lost)
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
    """The places of a change as they are in the line. Raises TypeError and ValueError where they aren't such."""
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
    """Lines as they are written, some at a time."""
    encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode
    texts: list[str] = []
    for line in lines:
        texts.append(encode(line))
        if len(texts) == _LINES_PER_WRITE:
            yield ("\n".join(texts) + "\n").encode()
            texts.clear()
    if texts:
        yield ("\n".join(texts) + "\n").encode()


def _write(file: int, text: bytes) -> None:
    while text:
        text = text[os.write(file, text) :]


def _lock(file: int) -> None:
    """Keep other writers away until the file is closed."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


def _sync_directory(folder: Path) -> None:
    if sys.platform == "win32":  # directories cannot be opened there
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
