"""The ledger of the tables, in DIR/_groupkeeper/ledger: the offset up to which every partition has been read, and the
files of the tables. Its last entry is one consistent set of all tables.
"""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from groupkeeper.pipeline.checkpoints.folders import local_path
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.instants import ClusterIdentity
from groupkeeper.pipeline.storage.files import Files, LocalFiles
from groupkeeper.pipeline.tables import HISTORY, TABLES

NextOffsets = Mapping[str, Mapping[int, int]]
"""By cluster and partition of the offsets topic, the first offset that is not in the tables yet."""

ROOT = "_groupkeeper"
ENTRIES = f"{ROOT}/ledger"
_NAME = re.compile(r"(\d{10})\.json")
_NUMBER = re.compile(r"(\d{10})-")
_KEPT = 3
_NOTHING: Mapping[str, Any] = {
    "next_offsets": {}, "files": {}, "open": {}, "fresh": {}, "moves": [], "directories": {}, "removed": [],
    "made_to": None, "identities": {}, "privacy": {}, "forgotten": {}, "thinned": {}, "lake": None, "keep_days": 0,
    "kept_from": 0, "tidied": 0, "expired": 0,
}  # fmt: skip
"""The fields of an entry before the first run, besides its id and schema."""

_MEASURED = tuple(table.name for table in TABLES if table.is_measured)
_NAMES = frozenset(table.name for table in TABLES)
_CARRIED = tuple(table.name for table in TABLES if table.is_carried)

SCHEMA = 2
"""The version of the tables' schemas, which each entry has. It rises when tables are added, when columns are renamed,
removed or change their meaning, and when what refreshes carry over to the next one changes: the next run then rebuilds
all tables from the whole history. New columns at the end of a published table do not change it.
"""


class Tables(NamedTuple):
    """Files that a refresh has staged. `replaced`: directories of tables that are replaced. `added`: files that are
    added to tables. `open`: further files for these tables, which their next refresh replaces. Tables named in
    `rebuilt` lose all their other files.
    """

    replaced: Mapping[str, str]
    added: Mapping[str, Sequence[str]]
    open: Mapping[str, Sequence[str]]
    rebuilt: Collection[str] = ()


class LedgerMove(NamedTuple):
    """A move of a staged file into a table; both paths are below the output directory."""

    source: str
    target: str


class Ledger:
    """Publishes changes of tables by entries. Rows are in the tables once their entry is written: a run killed before
    has changed nothing; if it is killed after, the next run moves its files. There is one writer at a time.
    """

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self.is_settled = True
        """Whether every file of the last entry is in its place, so that staged files are no longer needed."""
        self.is_left = False
        """An abandoned thread may still work here: it publishes nothing, and its staged files are not removed."""
        self._last: dict[str, Any] = {**_NOTHING, "id": uuid.uuid4().hex, "schema": SCHEMA}
        names = files.names(ENTRIES)
        self._number, found = newest_entry(names, files.read, directory)
        self._lost = [number for number in numbers_of(names) if number > self._number]
        if self._number:
            self._last |= found
            check_schema(found, directory)
            if self._lost:
                self._fall_back()
            self._move()
            self._check()
            self._forget()
        else:
            check_foreign(files.names(""), directory)

    def _fall_back(self) -> None:
        """Reverts the effects of the unreadable entries after this one. All tables are rebuilt, as files of this entry
        may be gone.
        """
        for table, listed in self._last["files"].items():
            there = [name for name in self._files.names(table) if name.endswith(".parquet")]
            for name in there:
                if number_of(name) > self._number and name not in listed:
                    self._files.remove(f"{table}/{name}")
            if not set(listed).issubset(there):  # as one of those entries has merged files
                self._last["files"][table] = [name for name in there if number_of(name) <= self._number]
        self._last = {**self._last, "made_to": None, "removed": [], "moves": [], "directories": {}}
        for number in self._lost:
            self._files.move(entry_path(number), f"{entry_path(number)}.unreadable")
        if self.lake is not None:  # its log may have names of lost files: no new file gets one
            self._number = self._lost[-1]

    @property
    def loss(self) -> str | None:
        """A message about an unreadable entry; None: all could be read."""
        if not self._lost:
            return None
        return (
            f"{self._directory}/{entry_path(self._lost[0])} cannot be read, and was put aside as …json.unreadable: the "
            "entry before it is used, its rows are read again, and all tables are rebuilt"
        )

    @property
    def id(self) -> str:
        """The id of the history: an emptied directory gets another one."""
        return str(self._last["id"])

    @property
    def number(self) -> int:
        """The number of the last entry; 0: there is none."""
        return self._number

    @property
    def lake(self) -> dict[str, Any] | None:
        """The format whose log follows these tables (output.LakeChoice as JSON); None: none. With a format, replaced
        files stay in the tables' folders while earlier versions can be read.
        """
        found: dict[str, Any] | None = self._last["lake"]
        return found

    @property
    def place(self) -> str:
        """The directory's name in errors."""
        return self._directory

    @property
    def privacy(self) -> dict[str, str] | None:
        """How the tables keep personal data; None: there are no tables yet."""
        return dict(self._last["privacy"]) if self._last["next_offsets"] else None

    def check_lock(self) -> None:
        """Raises SourceError when the lock was lost, so that another run may write, or this run was abandoned."""
        if self.is_left:
            raise SourceError(f"{self._directory}: this run was interrupted")
        self._files.check_lock()

    @property
    def tidied_ms(self) -> int:
        """When old rows were last removed, in ms; 0: never."""
        return int(self._last["tidied"])

    @property
    def expired_ms(self) -> int:
        """When old versions of a format's tables were last removed, in ms; 0: never."""
        return int(self._last["expired"])

    @property
    def keep_days(self) -> int:
        """For how many days growing tables keep rows; 0: for ever."""
        return int(self._last["keep_days"])

    @property
    def kept_from_ms(self) -> int:
        """The time in ms before which growing tables have no rows, except the state at that time; 0: they have all
        rows.
        """
        return int(self._last["kept_from"])

    def note(self, **changes: Any) -> None:
        """Writes an entry that differs only in these fields (nothing if none differs): `privacy` (before the first row
        is written), `lake`, `keep_days`, `thinned`, `tidied` or `expired`.

        Raises SourceError when another run has written to the tables meanwhile.
        """
        if changes.items() <= self._last.items():
            return
        self._settle()
        self._write(self._last["files"], changes=changes)

    def has(self, table: str) -> bool:
        """Whether a run has written the table."""
        return table in self._last["files"]

    @property
    def next_offsets(self) -> NextOffsets:
        return numbered(self._last["next_offsets"])

    @property
    def identities(self) -> dict[str, ClusterIdentity]:
        """The clusters of the history, by name; clusters whose identity is not known are missing."""
        return {name: ClusterIdentity(*found) for name, found in self._last["identities"].items()}

    @property
    def made_to(self) -> NextOffsets | None:
        """By partition, the end of the history in the derived tables; None: all of them must be rebuilt."""
        found: dict[str, dict[str, int]] | None = self._last["made_to"]
        if found is None or self._last["schema"] != SCHEMA:
            return None
        can_be_rebuilt = [name for name in self._last["files"] if name not in _MEASURED]
        needed = [name for name in can_be_rebuilt if name.startswith(ROOT) or name in self._last["open"]
            or name in _CARRIED]  # fmt: skip
        if any(self._missing(name) for name in needed):
            return None
        return numbered(found)

    def files(self, table: str) -> list[str]:
        """The names of a table's files."""
        return list(self._last["files"].get(table, ()))

    def open_files(self, table: str) -> list[str]:
        """The names of a table's files with open rows, which the next refresh replaces."""
        return list(self._last["open"].get(table, ()))

    def fresh_files(self, table: str) -> list[str]:
        """The names of a history table's files with rows that no refresh has processed."""
        return list(self._last["fresh"].get(table, ()))

    def append(
        self,
        staged: Mapping[str, Sequence[str]],
        read_to: NextOffsets,
        identities: Mapping[str, ClusterIdentity] = MappingProxyType({}),
    ) -> None:
        """Adds staged files to tables, by table, and records that the clusters' partitions were read up to `read_to`.

        Raises SourceError when another run has written to the tables meanwhile.
        """
        self._settle()
        number = self._number + 1
        moves = [
            LedgerMove(source, f"{table}/{number:010}-{index:03}.parquet")
            for table, sources in staged.items()
            for index, source in enumerate(sources)
        ]
        files = {table: [*names] for table, names in self._last["files"].items()}
        fresh = {table: dict(names) for table, names in self._last["fresh"].items()}
        reach = _texts(read_to)
        for each in moves:
            table, _, name = each.target.partition("/")
            files.setdefault(table, []).append(name)
            fresh.setdefault(table, {})[name] = reach
        known = {**self._last["identities"], **identities}
        changes = {"next_offsets": self._raised(read_to), "fresh": fresh, "identities": known}
        self._write(files, moves=moves, changes=changes)

    def refresh(self, tables: Tables, made_to: NextOffsets) -> None:
        """Publishes the tables that were built from the history up to `made_to`.

        Raises SourceError when another run has written to the tables meanwhile.
        """
        self._settle()
        number = self._number + 1
        files = self._last["files"] | {table: self.parquet(staged) for table, staged in tables.replaced.items()}
        moves: list[LedgerMove] = []
        removed: list[str] = []
        opened: dict[str, list[str]] = dict(self._last["open"])
        for table, sources in tables.added.items():
            gone = self.files(table) if table in tables.rebuilt else self.open_files(table)
            removed += [f"{table}/{name}" for name in gone]
            kept = [name for name in files.get(table, ()) if name not in gone]
            new = [
                (source, f"{number:010}-{index:03}.parquet")
                for index, source in enumerate([*sources, *tables.open[table]])
            ]
            moves += [LedgerMove(source, f"{table}/{name}") for source, name in new]
            files[table] = [*kept, *(name for _, name in new)]
            opened[table] = [name for source, name in new if source in tables.open[table]]
        fresh: dict[str, dict[str, Any]] = {
            table: {name: reach for name, reach in own.items() if is_beyond(numbered(reach), made_to)}
            for table, own in self._last["fresh"].items()
        }
        changes: Mapping[str, Any] = {
            "made_to": _texts(made_to), "schema": SCHEMA, "open": opened, "removed": removed, "fresh": fresh,
        }  # fmt: skip
        self._write(files, moves=moves, directories=tables.replaced, changes=changes)

    def parquet(self, directory: str) -> list[str]:
        """The names of the files with rows in a staged directory."""
        return [name for name in self._files.names(directory) if name.endswith(".parquet")]

    @property
    def thinned(self) -> Mapping[str, int]:
        """By table, the time in ms before which its rows are thinned out; missing tables have all rows."""
        return dict(self._last["thinned"])

    def replace(
        self, directories: Mapping[str, str], *, kept: Mapping[str, Sequence[str]] = MappingProxyType({}),
        renamed: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
        rows: Mapping[str, Mapping[int, int]] = MappingProxyType({}), **noted: Any,
    ) -> None:  # fmt: skip
        """Replaces the files of tables by those in staged directories. `kept`: by table, the names of files that it
        keeps beside them. `renamed`: by table, new names of files by their old names. `rows`: the number of rows
        removed from the history, by cluster and partition. `noted`: more fields of the entry (`tidied`, …).

        Raises SourceError when another run has written to the tables meanwhile.
        """
        self._settle()
        new = {table: [*kept.get(table, ()), *self.parquet(directory)] for table, directory in directories.items()}
        opened = {
            table: [renamed.get(table, {}).get(name, name) for name in names]
            for table, names in self._last["open"].items()
        }
        fresh = {
            table: {renamed.get(table, {}).get(name, name): reach for name, reach in own.items()}
            for table, own in self._last["fresh"].items()
        }
        changes = {"open": opened, "fresh": fresh, "forgotten": self._forgotten(rows), **noted}
        self._write({**self._last["files"], **new}, directories=directories, changes=changes)

    def _forgotten(self, rows: Mapping[str, Mapping[int, int]]) -> dict[str, dict[str, tuple[int, int]]]:
        """By cluster and partition, how many rows of the history were removed, and before which offset."""
        found = {name: dict(own) for name, own in self._last["forgotten"].items()}
        for name, own in rows.items():
            for number, count in own.items():
                before, _ = found.setdefault(name, {}).get(str(number), (0, 0))
                found[name][str(number)] = (before + count, self.next_offsets[name][number])
        return found

    def _settle(self) -> None:
        if not self.is_settled:  # the last entry was written, but not all its files were moved
            self._move()

    def _raised(self, read_to: NextOffsets) -> dict[str, dict[str, int]]:
        raised = {name: dict(own) for name, own in self._last["next_offsets"].items()}
        for name, own in read_to.items():
            mine = raised.setdefault(name, {})
            for partition, offset in own.items():
                mine[str(partition)] = max(offset, mine.get(str(partition), 0))
        return raised

    def _write(
        self,
        files: Mapping[str, Sequence[str]],
        *,
        moves: Sequence[LedgerMove] = (),
        directories: Mapping[str, str] = MappingProxyType({}),
        changes: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        number = self._number + 1
        moves, directories = [*moves], dict(directories)
        if self.lake is not None:  # versions of before need their files: new ones come beside them
            for table in [name for name in directories if not name.startswith(ROOT)]:
                directory, known = directories.pop(table), set(self.files(table))
                moves += [LedgerMove(f"{directory}/{name}", f"{table}/{name}")
                          for name in self.parquet(directory) if name not in known]  # fmt: skip
            changes = {name: [] if name == "removed" else each for name, each in changes.items()}
        entry: dict[str, Any] = {
            **self._last, "removed": [], "files": files, "moves": moves, "directories": directories, **changes,
        }  # fmt: skip
        self.check_lock()
        self._files.sync([*(each.source for each in moves), *directories.values()])
        self.is_settled = False
        if not self._files.write_new(entry_path(number), json.dumps(entry)):
            raise SourceError(f"{self._directory}: another run has written to it meanwhile: run again")
        self._number, self._last = number, json.loads(json.dumps(entry))
        self._move()
        if number > _KEPT:
            self._files.remove(entry_path(number - _KEPT))

    def _move(self) -> None:
        for path in self._last["removed"]:
            self._files.remove(path)
        for source, target in self._last["moves"]:
            self._files.move(source, target)
        for table, directory in self._last["directories"].items():
            if self._missing(table) and self._files.names(directory):
                self._files.replace(directory, table)
        self.is_settled = True

    def _missing(self, table: str) -> list[str]:
        return sorted(set(self.files(table)) - set(self._files.names(table)))

    def _check(self) -> None:
        for table in HISTORY:  # others can be rebuilt, or are measured
            if missing := self._missing(table.name):
                raise SourceError(
                    f"{self._directory}/{table.name}: the file {missing[0]} is missing: restore it, or delete "
                    f"{self._directory} with {ROOT} in it to read everything again"
                )

    def _forget(self) -> None:
        """Drops missing files of measured tables from the ledger, as these tables cannot be rebuilt."""
        for table in _MEASURED:
            gone = self._missing(table)
            for names in (self._last["files"], self._last["open"]):
                if table in names:
                    names[table] = [name for name in names[table] if name not in gone]


def number_of(name: str) -> int:
    """The entry that added a file to a table, for a merged file the last such entry; 0: it has another name."""
    match = _NUMBER.match(name)
    return int(match[1]) if match else 0


def _texts(offsets: NextOffsets) -> dict[str, dict[str, int]]:
    """The offsets with partitions as texts, for JSON."""
    return {name: {str(partition): offset for partition, offset in own.items()} for name, own in offsets.items()}


def numbered(found: Mapping[str, Mapping[str, int]]) -> NextOffsets:
    """The offsets with partitions as numbers, from JSON."""
    return {name: {int(number): offset for number, offset in own.items()} for name, own in found.items()}


def is_beyond(reached: NextOffsets, known: NextOffsets) -> bool:
    """Whether `reached` is past the known offset in some partition."""
    return any(
        offset > known.get(name, {}).get(partition, 0)
        for name, own in reached.items()
        for partition, offset in own.items()
    )


def numbers_of(names: Iterable[str]) -> list[int]:
    """The numbers of the entries, from the names of the ledger's files."""
    return sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))


def newest_entry(
    names: Iterable[str], read: Callable[[str], str | bytes], directory: str
) -> tuple[int, dict[str, Any]]:
    """The last readable entry, with its number; 0 and {}: there are no entries. A power cut can leave an entry empty or
    cut off; the one before it is complete.

    Raises SourceError when there are entries, and none is readable.
    """
    numbers = numbers_of(names)
    for number in reversed(numbers):
        with contextlib.suppress(ValueError):
            entry = json.loads(read(entry_path(number)))
            if isinstance(entry, dict) and {"files", "next_offsets", "schema"} <= entry.keys():
                return number, entry
    if numbers:
        raise SourceError(
            f"{directory}/{entry_path(numbers[-1])} cannot be read, and no earlier entry either: bring the file back "
            f"from a copy, or remove {directory} with {ROOT} in it to read everything again"
        )
    return 0, {}


def check_schema(entry: Mapping[str, Any], directory: str) -> None:
    """Raises SourceError when a later version of groupkeeper has written the tables."""
    if (found := entry["schema"]) > SCHEMA:
        raise SourceError(
            f"{directory}: its tables have schema version {found}, this groupkeeper knows versions up to {SCHEMA}: use "
            "the version of groupkeeper that wrote them or a later one, or choose another directory"
        )


def check_foreign(names: Iterable[str], directory: str) -> None:
    """Raises SourceError if a directory without a ledger has names of tables, which a run would replace."""
    if foreign := sorted(_NAMES.intersection(names)):
        raise SourceError(
            f"{directory} contains {', '.join(foreign)}, which no ledger lists and the tables would overwrite: choose "
            "another directory, or move them away"
        )


def stored_lake(directory: str) -> dict[str, Any] | None:
    """Ledger.lake of a directory, without opening it for writing; None also if it is not on this machine."""
    root = local_path(directory)
    if root is None:
        return None
    files = LocalFiles(root)
    found: dict[str, Any] | None = newest_entry(files.names(ENTRIES), files.read, directory)[1].get("lake")
    return found


def entry_path(number: int) -> str:
    """The path of an entry below the output directory."""
    return f"{ENTRIES}/{number:010}.json"
