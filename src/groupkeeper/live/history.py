"""The history of collectors' results, in one SQLite file: bounded, and durable across a restart or a kill.

A group gets a row when its values differ from its previous row, at most one for each `step_ms`. So a row holds until
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

from groupkeeper.client.admin.types import GroupState
from groupkeeper.live.model import ClusterSnapshot, GroupView, OtherCluster, Polls, WaitSum, not_polled
from groupkeeper.live.standings import KnownGroup, Pauses
from groupkeeper.operations.lag import LagSum
from groupkeeper.operations.watch import WatchedChange

VERSION = 2

_TABLES = """
CREATE TABLE clusters (
    id INTEGER PRIMARY KEY, cluster_id TEXT NOT NULL, name TEXT NOT NULL, since_ms INTEGER NOT NULL,
    instead_of TEXT NOT NULL,
    measured_ms INTEGER, succeeded_ms INTEGER, failing_ms INTEGER
);
CREATE TABLE groups (
    id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL, name TEXT NOT NULL, is_gone INTEGER NOT NULL,
    UNIQUE (cluster, name)
);
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
CREATE TABLE kept (name TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
"""
"""A cluster has the label `name` since `since_ms`, and the cluster with the id `instead_of` had it before."""


def version_of(file: sqlite3.Connection) -> int:
    """The version of the file; 0: it is empty."""
    [version] = file.execute("PRAGMA user_version").fetchone()
    return int(version)


def create(file: sqlite3.Connection) -> None:
    """Creates the tables in an empty file, within a transaction."""
    for statement in _TABLES.split(";"):
        file.execute(statement)
    file.execute(f"PRAGMA user_version = {VERSION}")


_BOUNDED = ("samples", "changes", "polls")
_REMOVED_TOGETHER = 20_000
_WRITES_PER_SWEEP = 1000
"""How often, in writes, groups without remaining rows are removed."""

_CLOCK_ERROR_MS = 3_600_000
"""A clock that gains more than this on the steady one was set: rows don't become older by it."""

_LATEST_MS = 2**63 - 1
_LONGEST_TEXT = 500
_BUSY_S = 5.0
_WAY_OUT = "; give another file by --history, or --history off"


class HistoryFailed(Exception):
    """The history cannot be opened, read or written. The text has the reason."""


class Bounds(NamedTuple):
    """The bounds of the history: the number of rows of each kind, and their age. `step_ms`: see the module."""

    rows: int = 2_000_000
    age_ms: int = 7 * 24 * 3600 * 1000
    step_ms: int = 60_000


BOUNDS = Bounds()


class GroupSample(NamedTuple):
    """The state of a group from a time until its next sample, with the values of its GroupView. None: not known, unless
    a field says otherwise.
    """

    at_ms: int
    state: str | None
    members: int | None
    lag: int | None
    lag_ms: int | None
    """None: unknown, or nothing waits."""
    committed: int | None
    """None: unknown, or nothing is committed."""
    progress_ms: int | None
    """None: unknown, or nothing is committed."""


class Noted(NamedTuple):
    """A change of a group as it was noted; see `operations.watch.WatchedChange`."""

    at_ms: int
    what: str
    member_id: str | None
    before: str | None
    after: str | None


def default_path() -> Path:
    """The default path, beside the journal of changes."""
    from groupkeeper.operations.plans.journal import default_path

    return default_path().with_name("watched.sqlite")


def _steady_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _locked(path: Path) -> int:
    """Locks a file beside the history for this program; −1: the platform has no such lock. Raises HistoryFailed."""
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
            f"{path}: another program writes it, and both would send the same alerts: "
            "give one of them another --history"
        ) from None
    return beside


class History:
    """The file of the history. Not thread-safe; each call is one transaction. Everything raises HistoryFailed."""

    def __init__(
        self, path: str | os.PathLike[str], bounds: Bounds = BOUNDS, *, steady_ms: Callable[[], int] = _steady_ms
    ) -> None:
        """Opens or creates the file. A file that isn't a history, or is damaged, is not changed. `steady_ms`: a clock
        that is never set.
        """
        self.path = Path(path)
        self._bounds = bounds
        self._steady_ms = steady_ms
        self._ahead_ms: int | None = None
        self._clusters: dict[int, str] = {}  # the ids that clusters have of themselves
        self._now: dict[str, int] = {}  # the cluster that has a name
        self._writers: dict[int, str] = {}
        self._ids: dict[tuple[int, str], int] = {}
        self._gone: set[int] = set()
        self._last: dict[int, GroupSample] = {}
        self._writes = 0
        self._lock = -1
        with self._telling(_WAY_OUT):
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
        if (version := version_of(self._file)) == 0:
            with self._writing():
                create(self._file)
        elif version != VERSION:
            raise HistoryFailed(
                f"{self.path} has version {version} of the history; this program reads {VERSION}: give another file "
                "by --history, or --history off"
            )
        self._read_clusters()
        for key, cluster, name, is_gone in self._file.execute("SELECT id, cluster, name, is_gone FROM groups"):
            self._ids[cluster, name] = key
            if is_gone:
                self._gone.add(key)
        newest = "SELECT of_group, max(id) AS newest FROM samples GROUP BY of_group"
        columns = ", ".join(f"s.{column}" for column in GroupSample._fields)
        for key, *fields in self._file.execute(
            f"SELECT s.of_group, {columns} FROM samples s JOIN ({newest}) n ON s.id = n.newest"
        ):
            self._last[key] = GroupSample(*fields)

    def close(self) -> None:
        """Closes the file. Closing twice is harmless."""
        self._file.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def add(self, snapshot: ClusterSnapshot, changes: Iterable[WatchedChange], at_ms: int) -> None:
        """Stores the result of a poll that began or measured at `at_ms`, and prunes rows beyond the bounds."""
        problem = snapshot.problems[0].message[:_LONGEST_TEXT] if snapshot.problems else None
        last: dict[int, GroupSample] = {}
        gone: list[tuple[int, str]] = []
        try:
            with self._telling(), self._writing():
                self._file.execute(
                    "INSERT INTO polls (at_ms, cluster, problem) VALUES (?, ?, ?)", (at_ms, snapshot.cluster, problem)
                )
                cluster = self._cluster_of(snapshot, at_ms)
                # Several names may lead to one cluster: its history is written once.
                if cluster is not None and self._writers.setdefault(cluster, snapshot.cluster) == snapshot.cluster:
                    last, gone = self._note(cluster, snapshot, changes, at_ms)
                self._prune(at_ms)
        except HistoryFailed:
            with self._telling():
                self._read_clusters()
                self._check_ids()  # ids given in the transaction were rolled back
            raise
        self._last.update(last)
        for pair in gone:  # some clusters have thousands of new names every day
            self._last.pop(self._ids.pop(pair, 0), None)

    def _note(
        self, cluster: int, snapshot: ClusterSnapshot, changes: Iterable[WatchedChange], at_ms: int
    ) -> tuple[dict[int, GroupSample], list[tuple[int, str]]]:
        """Writes samples and changes; returns the new samples, and the groups that no longer exist."""
        last: dict[int, GroupSample] = {}
        back: list[tuple[int]] = []
        for group in snapshot.groups.values():
            key = self._ids.get((cluster, group.group_id))
            if key is None or key in self._gone:
                key = self._id_of(cluster, group.group_id)
                back.append((key,))
            sample = sample_of(group, at_ms)
            if _is_due(self._last.get(key), sample, self._bounds.step_ms):
                last[key] = sample
        marks = ", ".join("?" * (1 + len(GroupSample._fields)))
        self._file.executemany(
            f"INSERT INTO samples (of_group, {', '.join(GroupSample._fields)}) VALUES ({marks})",
            ((key, *sample) for key, sample in last.items()),
        )
        self._file.executemany(
            "INSERT INTO changes (at_ms, of_group, what, member, before, after) VALUES (?, ?, ?, ?, ?, ?)",
            [self._noted(cluster, change, at_ms) for change in changes],
        )
        if not snapshot.is_up:
            self._file.execute(
                "UPDATE clusters SET failing_ms = ? WHERE id = ?", (snapshot.polls.failing_ms or at_ms, cluster)
            )
            return last, []
        self._file.execute(
            "UPDATE clusters SET measured_ms = ?, succeeded_ms = ?, failing_ms = NULL WHERE id = ?",
            (snapshot.measured_ms, snapshot.polls.succeeded_ms or at_ms, cluster),
        )
        gone = [pair for pair in self._ids if pair[0] == cluster and pair[1] not in snapshot.groups]
        self._file.executemany("UPDATE groups SET is_gone = 1 WHERE id = ?", [(self._ids[pair],) for pair in gone])
        self._file.executemany("UPDATE groups SET is_gone = 0 WHERE id = ?", back)
        self._gone.difference_update(key for [key] in back)
        return last, gone

    def _read_clusters(self) -> None:
        found = self._file.execute("SELECT id, cluster_id, name FROM clusters ORDER BY since_ms, id").fetchall()
        self._clusters = {key: cluster_id for key, cluster_id, _ in found}
        self._now = {name: key for key, _, name in found}

    def _cluster_of(self, snapshot: ClusterSnapshot, at_ms: int) -> int | None:
        """The key of a snapshot's cluster, to which the name belongs from now on; None: it was never reached."""
        name, cluster_id, now = snapshot.cluster, snapshot.cluster_id or "", self._now.get(snapshot.cluster)
        if not snapshot.is_up or (now is not None and cluster_id in ("", self._clusters[now])):
            return now
        key = next((key for key, known in self._clusters.items() if known == cluster_id != ""), None)
        if key is None and now is not None and not self._clusters[now]:
            self._file.execute("UPDATE clusters SET cluster_id = ? WHERE id = ?", (cluster_id, now))
            key = now
        elif key is None:
            added = "INSERT INTO clusters (cluster_id, name, since_ms, instead_of) VALUES (?, ?, ?, '')"
            key = self._file.execute(added, (cluster_id, name, at_ms)).lastrowid
            assert key is not None
        if key != now and self._writers.get(key, name) == name:
            before = "" if now is None else self._clusters[now]
            self._file.execute(
                "UPDATE clusters SET name = ?, since_ms = ?, instead_of = ? WHERE id = ?", (name, at_ms, before, key)
            )
        self._clusters[key] = cluster_id
        self._now[name] = key
        return key

    def _noted(self, cluster: int, change: WatchedChange, at_ms: int) -> tuple[object, ...]:
        member_id = None if change.member is None else change.member.member_id
        key = self._id_of(cluster, change.group_id)
        return at_ms, key, change.what.value, member_id, _text(change.before), _text(change.after)

    def _id_of(self, cluster: int, name: str) -> int:
        key = self._known_id(cluster, name)
        if key is None:
            added = self._file.execute("INSERT INTO groups (cluster, name, is_gone) VALUES (?, ?, 0)", (cluster, name))
            assert added.lastrowid is not None
            key = added.lastrowid
        self._ids[cluster, name] = key
        return key

    def _known_id(self, cluster: int, name: str) -> int | None:
        key = self._ids.get((cluster, name))
        if key is None:
            found = self._file.execute("SELECT id FROM groups WHERE cluster = ? AND name = ?", (cluster, name))
            key = next((int(each) for [each] in found), None)
        return key

    def _prune(self, at_ms: int) -> None:
        """Deletes the oldest rows, a bounded number at a time. Rows are in order of time."""
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
        # A group without samples in the file must get a new one with the next poll. Clocks may have been ahead.
        if kept_ms <= at_ms:
            self._last = {key: sample for key, sample in self._last.items() if sample.at_ms >= kept_ms}
        self._writes += 1
        if self._writes % _WRITES_PER_SWEEP == 0:
            # Ids are given again: nothing may be left of a group that goes.
            named = "SELECT of_group FROM samples UNION SELECT of_group FROM changes"
            self._file.execute(f"DELETE FROM groups WHERE id NOT IN ({named})")
            self._check_ids()

    def _sure_ms(self, at_ms: int) -> int:
        """A time that is not far ahead of the true one: rows deleted because of a wrong clock would be lost."""
        steady_ms = self._steady_ms()
        ahead_ms = at_ms - steady_ms
        if self._ahead_ms is None or ahead_ms < self._ahead_ms + _CLOCK_ERROR_MS:
            self._ahead_ms = ahead_ms
        return steady_ms + self._ahead_ms

    def _check_ids(self) -> None:
        there = dict(self._file.execute("SELECT id, is_gone FROM groups").fetchall())
        self._ids = {pair: key for pair, key in self._ids.items() if key in there}
        self._gone = {key for key, is_gone in there.items() if is_gone}

    def keep(self, texts: Mapping[str, str]) -> None:
        """Stores texts under names, all or none; they replace earlier ones."""
        with self._telling(), self._writing():
            self._file.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", texts.items())

    def kept(self, name: str) -> str:
        """The text under a name; "": there is none."""
        with self._telling():
            row = self._file.execute("SELECT content FROM kept WHERE name = ?", (name,)).fetchone()
        return "" if row is None else str(row[0])

    def known(self, cluster: str) -> Mapping[str, KnownGroup]:
        """The last known state of the groups of the cluster with this name."""
        return self._known(self._now.get(cluster))

    def known_of(self, cluster_id: str) -> Mapping[str, KnownGroup]:
        """The last known state of the groups of the cluster with this id."""
        return self._known(next((key for key, known in self._clusters.items() if known == cluster_id), None))

    def _known(self, cluster: int | None) -> Mapping[str, KnownGroup]:
        pauses = self._pauses()
        return {
            name: KnownGroup(sample.committed, sample.progress_ms, pauses.get(key, Pauses()), key in pauses)
            for (of, name), key in self._ids.items()
            if of == cluster and (sample := self._last.get(key)) is not None and sample.committed is not None
        }

    def _pauses(self) -> Mapping[int, Pauses]:
        """By group with several commits, the gaps between these, from the samples."""
        found: dict[int, Pauses] = {}
        none = Pauses()
        with self._telling():
            rows = self._file.execute(
                "SELECT of_group, gap_ms FROM (SELECT of_group, progress_ms, "
                "progress_ms - lag(progress_ms) OVER (PARTITION BY of_group ORDER BY progress_ms) AS gap_ms "
                "FROM (SELECT DISTINCT of_group, progress_ms FROM samples WHERE progress_ms IS NOT NULL)) "
                "WHERE gap_ms IS NOT NULL ORDER BY of_group, progress_ms"
            )
            for key, gap_ms in rows:
                found[key] = found.get(key, none).then(gap_ms)
        return found

    def last(self, cluster: str) -> ClusterSnapshot:
        """The last snapshot of the cluster with this name, without partitions and members; not polled if there
        is none.
        """
        found = not_polled(cluster)
        with self._telling():
            columns = "cluster_id, since_ms, instead_of, measured_ms, succeeded_ms, failing_ms"
            row = self._file.execute(
                f"SELECT {columns} FROM clusters WHERE id = ?", (self._now.get(cluster),)
            ).fetchone()
        if row is None:
            return found
        cluster_id, since_ms, before, measured_ms, succeeded_ms, failing_ms = row
        groups = {
            name: view_of(name, sample)
            for (of, name), key in self._ids.items()
            if of == self._now[cluster] and key not in self._gone and (sample := self._last.get(key)) is not None
        }
        return found._replace(
            measured_ms=measured_ms,
            groups=groups if measured_ms is not None else {},
            polls=Polls(0, 0, succeeded_ms, failing_ms),
            listed=len(groups),
            cluster_id=cluster_id or None,
            replaced=OtherCluster(before, since_ms) if before else None,
            is_partial=True,
        )

    def samples(self, cluster: str, group_id: str, since_ms: int = 0, until_ms: int = _LATEST_MS) -> list[GroupSample]:
        """The samples of a group between these times, oldest first."""
        rows = self._rows(", ".join(GroupSample._fields), "samples", "at_ms", cluster, group_id, since_ms, until_ms)
        return [GroupSample(*row) for row in rows]

    def changes(self, cluster: str, group_id: str, since_ms: int = 0, until_ms: int = _LATEST_MS) -> list[Noted]:
        """The changes of a group between these times, oldest first."""
        columns = "at_ms, what, member, before, after"
        return [Noted(*row) for row in self._rows(columns, "changes", "id", cluster, group_id, since_ms, until_ms)]

    def count(self) -> dict[str, int]:
        """The number of rows of each kind."""
        with self._telling():
            return {table: self._file.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _BOUNDED}

    def _rows(
        self, columns: str, table: str, order: str, cluster: str, group_id: str, since_ms: int, until_ms: int
    ) -> list[Any]:
        with self._telling():
            now = self._now.get(cluster)
            key = None if now is None else self._known_id(now, group_id)
            if key is None:
                return []
            where = f"of_group = ? AND at_ms BETWEEN ? AND ? ORDER BY {order}"
            found = self._file.execute(f"SELECT {columns} FROM {table} WHERE {where}", (key, since_ms, until_ms))
            return found.fetchall()

    @contextmanager
    def _telling(self, way_out: str = "") -> Iterator[None]:
        """Raises SQLite's and file errors as HistoryFailed. `way_out`: a hint for the user who chose the file."""
        try:
            yield
        except sqlite3.Error as problem:
            raise HistoryFailed(f"{self.path}: {problem}{way_out}") from problem
        except OSError as problem:
            raise HistoryFailed(f"{self.path}: {_reason(problem, self.path)}{way_out}") from problem

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


def _reason(problem: OSError, path: Path) -> str:
    """The error in words, with the file if it concerns another one."""
    if isinstance(problem, (FileExistsError, NotADirectoryError)):
        return f"{next((str(each) for each in path.parents if each.is_file()), path.parent)} is a file, not a folder"
    about = problem.filename
    where = f" ({about})" if about is not None and str(about) != str(path) else ""
    return f"{problem.strerror or problem}{where}"


def sample_of(group: GroupView, at_ms: int) -> GroupSample:
    """The sample of a group."""
    state = None if group.group_state is None else sys.intern(group.group_state.value)
    return GroupSample(
        at_ms, state, group.members, group.lag.lag, group.wait.lag_ms, group.committed, group.progress_ms
    )


def view_of(group_id: str, sample: GroupSample) -> GroupView:
    """The GroupView with the values of a sample."""
    state = sample.state if sample.state in set(GroupState) else None
    return GroupView(
        group_id, None, None if state is None else GroupState(state), None, None, (), (), {},
        LagSum(group_id, None, 0, 0, 0, sample.lag, None, None, None),
        WaitSum(sample.lag_ms, waiting=int(bool(sample.lag_ms))), 0, sample.committed, sample.progress_ms, (),
        noted_members=sample.members,
    )  # fmt: skip


def _is_due(last: GroupSample | None, now: GroupSample, step_ms: int) -> bool:
    return last is None or (last[1:] != now[1:] and abs(now.at_ms - last.at_ms) >= step_ms)  # clocks are set back


def _text(value: object) -> str | None:
    if isinstance(value, tuple):
        value = " ".join(map(str, value))
    return None if value is None else str(value)[:_LONGEST_TEXT]
