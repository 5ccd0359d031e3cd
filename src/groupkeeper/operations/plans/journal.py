"""The journal of changes, and its file: coming commits, and their outcomes.

A text file, one JSON object a line, only ever appended to. A *change* is all that one command does: one line for each
group, written and synced before a request about it is sent, and a line of the outcome afterwards. Lines of the same
change have the same `id`; a command that handles groups one by one writes several outcomes, each with its number of
`groups`. A change that lacks the outcome of some groups was interrupted, or is under way.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from groupkeeper.base_error import GroupkeeperError
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.errors import OperationRefused
from groupkeeper.operations.plans.changes import (
    NOWHERE,
    VERSION,
    ApplyResult,
    Begun,
    ChangeSummary,
    Head,
    KnownChanges,
    Loading,
    Lost,
    Pair,
    Recorded,
    Span,
    chunks,
    offsets_json,
    parsed,
)
from groupkeeper.operations.selection import Names
from groupkeeper.operations.times import utc_text

_NEWLINE = b"\n"
_NAME = ("groupkeeper", "journal.jsonl")


class JournalUnwritable(GroupkeeperError):
    """The journal takes no lines. The text names the journal and the reason."""


class BeingUndone(OperationRefused):
    """Another user is undoing the same change: nothing was changed. The text names the user, and since when."""


class JournalUnreadable(OperationRefused):
    """The journal cannot be opened. The text names the journal and the reason."""


class Take(Protocol):
    """Receives a line, and its place in the journal."""

    def __call__(self, text: bytes, span: Span = NOWHERE, /) -> None: ...


class ChangeJournal(ABC):
    """A journal of coming changes and their outcomes, in lines. A subclass decides where they are kept."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The journal's name in messages."""

    @abstractmethod
    def _append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Adds lines of one change, all or none. Raises JournalUnwritable."""

    @abstractmethod
    def _visit(self, take: Take, only: str | None = None) -> None:
        """Passes all lines to `take`, in order; `only`: at least those of a change. Raises JournalUnreadable."""

    @abstractmethod
    async def catch_up(self, known: KnownChanges) -> bool:
        """Adds to `known` the changes since the last call with it; returns whether there were any. Raises
        JournalUnreadable, and may then be called again.
        """

    async def loaded(self, change_id: str, known: KnownChanges) -> Recorded | None:
        """As `load`, for a program on a loop that goes on reading the journal with `catch_up`."""
        return await asyncio.to_thread(self.load, change_id)

    async def close(self) -> None:
        """End the connection that `catch_up` has opened, if there is one."""
        return

    @property
    def claim_ms(self) -> int | None:
        """How long after its last claim an undo keeps others from undoing the same change, in ms; None: not at all."""
        return None

    def keep_claim(self, change_id: str) -> None:
        """Renews the claim of an undo. Raises JournalUnwritable."""
        return

    def begin(self, head: Head, groups: Iterable[tuple[str, Mapping[TopicPartition, Pair]]]) -> None:
        """Writes the coming change. Raises JournalUnwritable, and then nothing may be changed."""
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
        self._append({**front, head.subject: group_id, "offsets": offsets_json(pairs)} for group_id, pairs in groups)

    def end(self, change_id: str, time_ms: int, groups: int, result: ApplyResult, lost: Iterable[Lost] = ()) -> None:
        """Write the outcome of a number of groups. Raises JournalUnwritable."""
        line = {"v": VERSION, "id": change_id, "time": utc_text(time_ms), "event": "outcome", "groups": groups}
        self._append([{**line, "result": str(result), "lost": [one._asdict() for one in lost]}])

    def summaries(self, groups: Names | None = None) -> tuple[list[ChangeSummary], int]:
        """All changes, or those of groups, oldest first, and the number of invalid lines. Raises JournalUnreadable."""
        known = KnownChanges()
        self._visit(known.take)
        return known.summaries(groups), known.broken

    def load(self, change_id: str) -> Recorded | None:
        """One change, None when the journal doesn't have it. Raises JournalUnreadable."""
        loading = Loading(change_id)
        self._visit(loading.take, change_id)
        return loading.recorded()

    def changes(self) -> tuple[list[Recorded], int]:
        """All changes in full, oldest first, and the number of invalid lines. Raises JournalUnreadable."""
        found: dict[str, Loading] = {}
        broken = 0

        def take(text: bytes, span: Span = NOWHERE) -> None:
            nonlocal broken
            line = parsed(text)
            if line is None:
                broken += 1
            elif isinstance(line, Begun) or line.change_id in found:
                found.setdefault(line.change_id, Loading(line.change_id)).add(line)

        self._visit(take)
        return [one for each in found.values() if (one := each.recorded()) is not None], broken


class Journal(ChangeJournal):
    """The file at `path`, which need not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return str(self.path)

    async def catch_up(self, known: KnownChanges) -> bool:
        return await asyncio.to_thread(self._catch_up, known)

    def _catch_up(self, known: KnownChanges) -> bool:
        """A file that has changed is read again: it may have been cleared or replaced."""
        stamp = self._stamp()
        if stamp == known.mark:
            return False
        known.clear()
        self._visit(known.take)
        known.mark = stamp
        return True

    def _stamp(self) -> object:
        """A value that changes when lines are added."""
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
                    # If only some lines were kept, as on a full disk, they would describe a change that isn't made.
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

    def _visit(self, take: Take, only: str | None = None) -> None:
        try:
            with self.path.open("rb") as file:
                for text in file:
                    take(text)
        except FileNotFoundError:
            return
        except OSError as error:
            raise JournalUnreadable(f"cannot read the journal {self.path}: {error.strerror or error}") from error


def default_path() -> Path:
    """The platform's path for such files: `$XDG_STATE_HOME`, by default `~/.local/state`; Library on a Mac.

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
