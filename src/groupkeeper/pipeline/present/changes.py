"""Changes of offsets in groupkeeper's journals: who made them, and by which command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from groupkeeper import shell
from groupkeeper.operations.plans.changes import ApplyResult, Head, Recorded
from groupkeeper.operations.plans.journal import ChangeJournal, Journal, JournalUnreadable
from groupkeeper.pipeline.decode.privacy import Privacy
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.present.moved import CHANGES

_OF_SHARE_GROUPS = "share-"
_MAY_BE_DONE = frozenset({"CALL_TIMED_OUT", "CONNECTION_FAILED", "REQUEST_TIMED_OUT"})
"""Errors in a journal after which the brokers may still have made the change."""

_PER_BATCH = 100_000


def journals_of(given: str | ChangeJournal) -> Sequence[ChangeJournal]:
    """The given journal, the one in the given file, or all (*.jsonl) in the given folder and below it. Raises
    SourceError when there are none.
    """
    return [Journal(file) for file in _files(given)] if isinstance(given, str) else [given]


def _files(path: str) -> list[Path]:
    where = Path(path).expanduser()
    if where.is_dir():
        found = sorted(each for each in where.rglob("*.jsonl") if each.is_file())
        if not found:
            raise SourceError(f"{path}: the folder has no journal: none of its files is called *.jsonl")
        return found
    if not where.is_file():
        raise SourceError(f"{path}: no such journal; 'groupkeeper history' names this machine's journal")
    return [where]


def read_changes(
    given: Sequence[str | ChangeJournal], ids: Mapping[str, str | None], privacy: Privacy | None = None
) -> tuple[pa.Table, list[str]]:
    """Rows of CHANGES from all these journals, and notes about journals that cannot be read completely. `ids`: the
    clusters' ids (None: unknown) by their names in the tables. A change in two journals counts once.
    """
    found: dict[tuple[str, str], Recorded] = {}
    notes = []
    for one in given:
        try:
            for journal in journals_of(one):
                changes, broken = journal.changes()
                found |= {(each.head.id, each.head.host): each for each in changes}
                if broken:
                    notes.append(
                        f"{journal.name}: {broken:,} {'lines' if broken > 1 else 'line'} without sense, passed over"
                    )
        except (SourceError, JournalUnreadable) as problem:
            notes.append(f"{problem}; this journal cannot say who moved offsets")
    names: dict[str | None, list[str]] = {}
    for name, cluster_id in ids.items():
        names.setdefault(cluster_id, []).append(name)
    rows = (
        row
        for each in found.values()
        if each.result is not ApplyResult.REFUSED and not each.head.kind.startswith(_OF_SHARE_GROUPS)
        for row in _rows(each, names, privacy or Privacy())
    )
    return pa.Table.from_batches(_batches(rows), CHANGES), notes


def _rows(recorded: Recorded, names: Mapping[str | None, list[str]], privacy: Privacy) -> Iterator[dict[str, Any]]:
    """A row for each offset that a change moved; none for a cluster that is not in `names`."""
    head = recorded.head
    clusters: Sequence[str | None] = [None]
    if head.cluster_id is not None:
        clusters = [*names.get(head.cluster_id, ()), *names.get(None, ())]
    refused = {(one.group_id, one.topic, one.partition) for one in recorded.lost if one.error not in _MAY_BE_DONE}
    shared = {
        "change_id": head.id,
        "change_kind": head.kind,
        "changed_by": _maker(head),
        "changed_on": privacy.text("hosts", head.host),
        "command": shell.text(head.command),
        "undoes": head.undoes,
        "change_time": datetime.fromtimestamp(head.time_ms / 1000, UTC),
    }
    for group_id, pairs in recorded.groups.items():
        if (group_id, None, None) in refused:
            continue
        for (topic, partition), (before, after) in pairs.items():
            if after is None or before == after or (group_id, topic, partition) in refused:
                continue
            named = {"group_id": group_id, "topic": topic, "partition": partition, "to_offset": after.offset}
            for cluster in clusters:
                yield {**shared, **named, "cluster": cluster, "from_offset": None if before is None else before.offset}


def _maker(head: Head) -> str:
    """Who made a change: the user, the server in between, and the principal at the brokers."""
    through = f" through {head.through}" * bool(head.through)
    return f"{head.user}{through}" + f" as {head.principal}" * bool(head.principal)


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    some: list[dict[str, Any]] = []
    for row in rows:
        some.append(row)
        if len(some) == _PER_BATCH:
            yield pa.RecordBatch.from_pylist(some, CHANGES)
            some = []
    yield pa.RecordBatch.from_pylist(some, CHANGES)
