"""The history of collectors' results, in one SQLite file: bounded, and durable across a restart or a kill.

A group gets a row when its values differ from its previous row, at most one for each ``step_ms``. So a row holds until
the next one. Each poll is written in one transaction, whole or not at all.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from groupkeeper.live.following import Known
from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.operations.watch import Change

_VERSION = 1
_TABLES = """
CREATE TABLE groups (id INTEGER PRIMARY KEY, cluster TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (cluster, name));
CREATE TABLE samples (
    id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, of_group INTEGER NOT NULL, state TEXT, members INTEGER, lag INTEGER,
    lag_ms INTEGER, committed INTEGER, progress_ms INTEGER
);
CREATE INDEX samples_of_group ON samples (of_group, at_ms);
CREATE TABLE changes (
    id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, of_group INTEGER NOT NULL, what TEXT NOT NULL, member TEXT,
    before TEXT, after TEXT
);
CREATE INDEX changes_of_group ON changes (of_group, at_ms);
CREATE TABLE polls (id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, cluster TEXT NOT NULL, problem TEXT);
"""
_BOUNDED = ("samples", "changes", "polls")
_REMOVED_TOGETHER = 20_000
_WRITES_PER_SWEEP = 1000
"""Now and then names go of which nothing is left."""

_CLOCK_ERROR_MS = 3_600_000
"""A clock that goes ahead by more than this beside the steady one was set, and makes no row older."""

_LATEST_MS = 2**63 - 1
_LONGEST_TEXT = 500
_BUSY_S = 5.0


class HistoryFailed(Exception):
    """The history cannot be opened, read or written. The text has the reason."""


class Bounds(NamedTuple):
    """The bounds of the history: the number of rows of each kind, and their age. ``step_ms``: see the module."""

    rows: int = 2_000_000
    age_ms: int = 7 * 24 * 3600 * 1000
    step_ms: int = 60_000


BOUNDS = Bounds()


class Sample(NamedTuple):
    """A group at a time, and until its next sample; None: not known then. ``committed``: see ``Followed``."""

    at_ms: int
    state: str | None
    members: int | None
    lag: int | None
    lag_ms: int | None
    committed: int | None
    progress_ms: int | None


class Noted(NamedTuple):
    """A change of a group as it was noted; see ``operations.watch.Change``."""

    at_ms: int
    what: str
    member_id: str | None
    before: str | None
    after: str | None


def default_path() -> Path:
    """Beside the journal of changes."""
    from groupkeeper.operations.plans.journal import default_path

    return default_path().with_name("watched.sqlite")


def _steady_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _locked(path: Path) -> int:
    """A file beside the history that one program at a time has; −1 where the platform has no such lock. Raises
    HistoryFailed.
    """
    try:
        import fcntl
    except ImportError:
        return -1
    beside = os.open(path.with_name(f"{path.name}.lock"), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(beside, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(beside)
        raise HistoryFailed(
            f"{path}: another program writes it, and both would send the same alerts: give one another --history"
        ) from None
    return beside


class History:
    """The file. Not for several threads at once; each call is one transaction. Everything raises HistoryFailed."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        bounds: Bounds = BOUNDS,
        *,
        steady_ms: Callable[[], int] = _steady_ms,
    ) -> None:
        """Opens or creates the file. A file that isn't a history, or is damaged, is not changed. ``steady_ms``: a clock
        that is never set.
        """
        self.path = Path(path)
        self._bounds = bounds
        self._steady_ms = steady_ms
        self._ahead_ms: int | None = None
        self._ids: dict[tuple[str, str], int] = {}
        self._last: dict[int, Sample] = {}
        self._writes = 0
        self._lock = -1
        with self._telling():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))  # SQLite would let others read it
            self._lock = _locked(self.path)
            self._file = sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            try:
                self._open()
            except BaseException:
                self.close()
                raise

    def _open(self) -> None:
        # A write-ahead log loses no commit when the program is killed, and writes once where a journal writes twice.
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")
        self._file.execute("PRAGMA journal_size_limit = 16777216")
        [version] = self._file.execute("PRAGMA user_version").fetchone()
        if version == 0:
            with self._writing():
                for statement in _TABLES.split(";"):
                    self._file.execute(statement)
                self._file.execute(f"PRAGMA user_version = {_VERSION}")
        elif version != _VERSION:
            raise HistoryFailed(f"{self.path} has version {version} of the history; this program reads {_VERSION}")
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID"
        )
        self._ids = {(cluster, name): key for key, cluster, name in self._file.execute(
            "SELECT id, cluster, name FROM groups")}  # fmt: skip
        newest = "SELECT of_group, max(id) AS newest FROM samples GROUP BY of_group"
        columns = ", ".join(f"s.{column}" for column in Sample._fields)
        for key, *fields in self._file.execute(
            f"SELECT s.of_group, {columns} FROM samples s JOIN ({newest}) n ON s.id = n.newest"
        ):
            self._last[key] = Sample(*fields)

    def close(self) -> None:
        """Leave the file alone. Closing twice is harmless."""
        self._file.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def add(self, snapshot: ClusterSnapshot, changes: Iterable[Change], at_ms: int) -> None:
        """Store the result of a poll that began or measured then, and prune rows beyond the bounds."""
        problem = snapshot.problems[0].message[:_LONGEST_TEXT] if snapshot.problems else None
        last: dict[int, Sample] = {}
        try:
            with self._telling(), self._writing():
                self._file.execute(
                    "INSERT INTO polls (at_ms, cluster, problem) VALUES (?, ?, ?)", (at_ms, snapshot.cluster, problem)
                )
                for group in snapshot.groups.values():
                    sample = sample_of(group, at_ms)
                    key = self._id_of(snapshot.cluster, group.group_id)
                    if _is_due(self._last.get(key), sample, self._bounds.step_ms):
                        last[key] = sample
                marks = ", ".join("?" * (1 + len(Sample._fields)))
                self._file.executemany(
                    f"INSERT INTO samples (of_group, {', '.join(Sample._fields)}) VALUES ({marks})",
                    ((key, *sample) for key, sample in last.items()),
                )
                self._file.executemany(
                    "INSERT INTO changes (at_ms, of_group, what, member, before, after) VALUES (?, ?, ?, ?, ?, ?)",
                    [self._noted(snapshot.cluster, change, at_ms) for change in changes],
                )
                self._prune(at_ms)
        except HistoryFailed:
            with self._telling():
                self._check_ids()  # ids given in the transaction were rolled back
            raise
        self._last.update(last)
        if snapshot.is_up:
            self._leave_in_file(snapshot)

    def _noted(self, cluster: str, change: Change, at_ms: int) -> tuple[object, ...]:
        member_id = None if change.member is None else change.member.member_id
        key = self._id_of(cluster, change.group_id)
        return at_ms, key, change.what.value, member_id, _text(change.before), _text(change.after)

    def _id_of(self, cluster: str, name: str) -> int:
        key = self._known_id(cluster, name)
        if key is None:
            added = self._file.execute("INSERT INTO groups (cluster, name) VALUES (?, ?)", (cluster, name))
            assert added.lastrowid is not None
            key = added.lastrowid
        self._ids[cluster, name] = key
        return key

    def _known_id(self, cluster: str, name: str) -> int | None:
        key = self._ids.get((cluster, name))
        if key is None:
            found = self._file.execute("SELECT id FROM groups WHERE cluster = ? AND name = ?", (cluster, name))
            key = next((int(each) for [each] in found), None)
        return key

    def _leave_in_file(self, snapshot: ClusterSnapshot) -> None:
        """Drop deleted groups from memory: some clusters have thousands of new names every day."""
        gone = [pair for pair in self._ids if pair[0] == snapshot.cluster and pair[1] not in snapshot.groups]
        for pair in gone:
            self._last.pop(self._ids.pop(pair), None)

    def _prune(self, at_ms: int) -> None:
        """Delete the oldest rows, a bounded number at a time. Rows are in order of time."""
        oldest_ms = self._sure_ms(at_ms) - self._bounds.age_ms
        for table in _BOUNDED:
            first, newest = self._file.execute(f"SELECT min(id), max(id) FROM {table}").fetchone()
            if first is None:
                continue
            most = min(first + _REMOVED_TOGETHER, newest)  # the newest one stays
            too_many = min(newest - self._bounds.rows + 1, most)
            self._file.execute(f"DELETE FROM {table} WHERE id < ?", (too_many,))
            self._file.execute(f"DELETE FROM {table} WHERE id < ? AND at_ms < ?", (most, oldest_ms))
        [kept_ms] = self._file.execute("SELECT at_ms FROM samples ORDER BY id LIMIT 1").fetchone() or (0,)
        # A group without samples in the file must get a new one with the next poll.
        self._last = {key: sample for key, sample in self._last.items() if sample.at_ms >= kept_ms}
        self._writes += 1
        if self._writes % _WRITES_PER_SWEEP == 0:
            self._file.execute("DELETE FROM groups WHERE id NOT IN (SELECT of_group FROM samples)")
            self._check_ids()

    def _sure_ms(self, at_ms: int) -> int:
        """A time that can't be far ahead of the right one: what is deleted by a wrong one doesn't come back."""
        steady_ms = self._steady_ms()
        ahead_ms = at_ms - steady_ms
        if self._ahead_ms is None or ahead_ms < self._ahead_ms + _CLOCK_ERROR_MS:
            self._ahead_ms = ahead_ms
        return steady_ms + self._ahead_ms

    def _check_ids(self) -> None:
        there = {key for [key] in self._file.execute("SELECT id FROM groups")}
        self._ids = {pair: key for pair, key in self._ids.items() if key in there}

    def keep(self, texts: Mapping[str, str]) -> None:
        """Store texts under names, all or none; they replace earlier ones."""
        with self._telling(), self._writing():
            self._file.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", texts.items())

    def kept(self, name: str) -> str:
        """The text of that name, "" when there is none."""
        with self._telling():
            row = self._file.execute("SELECT content FROM kept WHERE name = ?", (name,)).fetchone()
        return "" if row is None else str(row[0])

    def known(self, cluster: str) -> Mapping[str, Known]:
        """What was known last of the groups of a cluster."""
        return {
            name: Known(sample.committed, sample.progress_ms)
            for (of, name), key in self._ids.items()
            if of == cluster and (sample := self._last.get(key)) is not None and sample.committed is not None
        }

    def samples(self, cluster: str, group_id: str, since_ms: int = 0, until_ms: int = _LATEST_MS) -> list[Sample]:
        """The samples of a group between these times, oldest first."""
        rows = self._rows(", ".join(Sample._fields), "samples", "at_ms", cluster, group_id, since_ms, until_ms)
        return [Sample(*row) for row in rows]

    def changes(self, cluster: str, group_id: str, since_ms: int = 0, until_ms: int = _LATEST_MS) -> list[Noted]:
        """The changes of a group between these times, oldest first."""
        columns = "at_ms, what, member, before, after"
        return [Noted(*row) for row in self._rows(columns, "changes", "id", cluster, group_id, since_ms, until_ms)]

    def count(self) -> dict[str, int]:
        """Rows of each kind."""
        with self._telling():
            return {table: self._file.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _BOUNDED}

    def _rows(
        self, columns: str, table: str, order: str, cluster: str, group_id: str, since_ms: int, until_ms: int
    ) -> list[Any]:
        with self._telling():
            key = self._known_id(cluster, group_id)
            if key is None:
                return []
            where = f"of_group = ? AND at_ms BETWEEN ? AND ? ORDER BY {order}"
            found = self._file.execute(f"SELECT {columns} FROM {table} WHERE {where}", (key, since_ms, until_ms))
            return found.fetchall()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as problem:
            raise HistoryFailed(f"{self.path}: {problem}") from problem

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._file.execute("COMMIT")
        except BaseException:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise


def sample_of(group: GroupView, at_ms: int) -> Sample:
    """A group as it is noted."""
    state = None if group.group_state is None else sys.intern(group.group_state.value)
    return Sample(at_ms, state, group.members, group.lag.lag, group.wait.lag_ms, group.committed, group.progress_ms)


def _is_due(last: Sample | None, now: Sample, step_ms: int) -> bool:
    return last is None or (last[1:] != now[1:] and abs(now.at_ms - last.at_ms) >= step_ms)  # clocks are set back


def _text(value: object) -> str | None:
    if isinstance(value, tuple):
        value = " ".join(map(str, value))
    return None if value is None else str(value)[:_LONGEST_TEXT]
