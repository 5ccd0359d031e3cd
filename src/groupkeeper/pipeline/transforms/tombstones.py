"""Why offsets were removed: `removed_by` of tables.COMMITS, derived from ages and the group's state at the time."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline import relations as rel
from groupkeeper.pipeline.kafka.retention import DEFAULT, Retention, Retentions
from groupkeeper.pipeline.relations import Array, Rows
from groupkeeper.pipeline.tables import COMMITS, CURRENT_OFFSETS, GROUPS
from groupkeeper.pipeline.transforms.record_kinds import CLASSIC
from groupkeeper.rules.expiry import do_offsets_age, emptied_ms, expires_ms

_SLACK_MS = 60_000
"""How long a check for expired offsets may take, and how far the clocks of two coordinators may differ."""

_COMMITTED = (*CURRENT_OFFSETS.key, "log_offset", "is_tombstone", "commit_time", "expire_time")
_CHANGED = (*GROUPS.key, "log_offset", "log_time", "record_name", "protocol_type", "state_timestamp_ms", "members")


class _GoneOffsets(NamedTuple):
    """A tombstone's topic and time, and the commit before it; times in ms, None: unknown."""

    topic: str
    time_ms: int | None
    commit_ms: int | None
    expire_ms: int | None


class _Roster(NamedTuple):
    """A classic group with a protocol, by its last record before a tombstone."""

    topics: list[list[str] | None]
    """The subscribed topics of each member; None: unknown."""
    since_ms: int | None


def causes(
    commits: Rows, last_commits: Rows, group_records: Rows, last_records: Rows, retentions: Retentions
) -> pa.Table:
    """The tombstones of `commits` with `removed_by`, which follows from earlier rows: in `commits` and `group_records`,
    and carried ones.

    A removal before the offset could expire, or while a member of a classic group may read the topic, was a deletion. A
    removal within two checks of its expiry (by age, or since the group was emptied), or of a later change of the group,
    was an expiry. Other removals, and those whose commit the log no longer has, are unknown.
    """
    new = rel.loaded(commits, COMMITS.names)
    gone = new.filter(new["is_tombstone"])
    before = _before(gone, new.select(_COMMITTED), rel.loaded(last_commits, _COMMITTED))
    records = _of_groups(gone, *(rel.loaded(rows, _CHANGED) for rows in (group_records, last_records)))
    levels = records.filter(pc.fill_null(pc.equal(records["record_name"], CLASSIC), False))
    changes = records.filter(records["log_time"].is_valid())
    changed = rel.taken(changes["log_time"].combine_chunks(), rel.earlier(GROUPS.key, gone, changes))
    times = (rel.times_ms(column) for column in (gone["log_time"], before["commit_time"], before["expire_time"]))
    told = zip(
        rel.values(gone["cluster"]), map(_GoneOffsets, rel.values(gone["topic"]), *times),
        rel.values(before["is_tombstone"]), _rosters(levels, rel.earlier(GROUPS.key, gone, levels)),
        rel.times_ms(changed), strict=True,
    )  # fmt: skip
    found = [
        "unknown" if was_gone is not False else _cause(one, roster, changed_ms, retentions.get(cluster, DEFAULT))
        for cluster, one, was_gone, roster, changed_ms in told
    ]
    at = COMMITS.names.index("removed_by")
    return gone.set_column(at, COMMITS.arrow.field(at), pa.array(found, pa.string()))


def _of_groups(gone: pa.Table, *parts: pa.Table) -> pa.Table:
    """The rows of groups that have tombstones."""
    rows = rel.together(*parts)
    of, of_gone = rel.keys(GROUPS.key, rows, gone)
    return rows.filter(pa.array(np.isin(of, of_gone)))


def _before(gone: pa.Table, *commits: pa.Table) -> pa.Table:
    """For each tombstone, the row before it with its key; null: none."""
    rows = _of_groups(gone, *commits)
    return rel.taken(rows, rel.earlier(CURRENT_OFFSETS.key, gone, rows))


def _rosters(levels: pa.Table, at: Array) -> list[_Roster | None]:
    """The rosters at these row numbers. None: no record, or a group without protocol, as after its deletion."""
    used, which = np.unique(at, return_inverse=True)
    rows = rel.taken(levels, used)
    members = rows["members"].combine_chunks()
    topics = pc.struct_field(pc.list_flatten(members), "subscribed_topics").to_pylist()
    ends = np.cumsum(rel.numbers(pc.list_value_length(members))).tolist()
    protocols, since = rel.values(rows["protocol_type"]), rel.times_ms(rel.time_of(rows["state_timestamp_ms"]))
    found = [
        _Roster(topics[start:end], since_ms) if protocol else None
        for (start, end), protocol, since_ms in zip(itertools.pairwise([0, *ends]), protocols, since, strict=True)
    ]
    return [found[number] for number in which.tolist()]


def _cause(gone: _GoneOffsets, roster: _Roster | None, changed_ms: int | None, retention: Retention) -> str:
    since_ms = None
    if roster is not None:
        has_members, are_known = bool(roster.topics), None not in roster.topics
        can_expire = do_offsets_age(has_members=has_members, is_settled=True, are_topics_known=are_known)
        if not can_expire or any(gone.topic in read for read in roster.topics if read is not None):
            return "deleted"
        since_ms = emptied_ms(has_protocol=True, has_members=has_members, state_since_ms=roster.since_ms)
    due_ms = None
    if gone.commit_ms is not None or gone.expire_ms is not None or since_ms is not None:
        due_ms = expires_ms(gone.expire_ms, gone.commit_ms or 0, retention.retention_ms, since_ms)
    known = [time_ms for time_ms in (due_ms, changed_ms) if time_ms is not None]
    if gone.time_ms is None or not known:
        return "unknown"
    if due_ms is not None and gone.time_ms < due_ms:
        return "deleted"
    patience_ms = retention.check_interval_ms * 2 + _SLACK_MS
    return "expired" if gone.time_ms <= max(known) + patience_ms else "unknown"
