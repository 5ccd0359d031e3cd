"""tables.STALE: groups and committed offsets that seem unused."""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline import relations as rel
from groupkeeper.pipeline.kafka.retention import DEFAULT, Retentions
from groupkeeper.pipeline.present.members import latest_records
from groupkeeper.pipeline.relations import Array, Rows
from groupkeeper.pipeline.tables import CURRENT_OFFSETS, STALE
from groupkeeper.pipeline.tables.schema import LAST_MS
from groupkeeper.pipeline.transforms.record_kinds import RecordKind
from groupkeeper.rules.expiry import do_offsets_age, emptied_ms, expires_ms

_GROUP = ("cluster", "group_id")
_PLACE = ("cluster", "topic", "partition")
_DAY_MS = 24 * 3600 * 1000


class StaleLimits(NamedTuple):
    """`now_ms`: the current time. Offsets that expire within `expiring_ms` are reported."""

    now_ms: int
    idle_days: float = 30
    expiring_ms: int = _DAY_MS
    retentions: Retentions = MappingProxyType({})


class _Aging(NamedTuple):
    """For each group: whether its offsets may expire, from when the age of all of them counts (None: from each commit),
    and how long they are kept.
    """

    do_age: Array
    since_ms: list[int | None]
    kept_ms: list[int]


def stale(
    current_offsets: Rows, log_offsets: Rows, group_records: Rows, members: Rows, groups: Rows, facts: Rows,
    limits: StaleLimits,
) -> pa.Table:  # fmt: skip
    """tables.STALE from rows of the tables with the arguments' names. An offset has a row for each reason."""
    found = rel.loaded(groups, [*_GROUP, "group_type", "protocol_type", "members", "last_commit_time"])
    readers = rel.loaded(members, [*_GROUP, "subscribed_topics", "subscribed_regex"])
    aging = _aging(found, readers, group_records, limits)
    own = rel.loaded(
        current_offsets, [*CURRENT_OFFSETS.key, "committed_offset", "commit_time", "topic_id", "expire_time"]
    )
    reads = rel.unnested(readers.select([*_GROUP, "subscribed_topics"]), "subscribed_topics")
    reads = reads.rename_columns([*_GROUP, "topic"])
    at = rel.matches(*rel.keys(_GROUP, own, found))
    has_members = np.append(rel.numbers(found["members"]) > 0, False)[at]
    is_read = has_members & (rel.matches(*rel.keys((*_GROUP, "topic"), own, reads)) >= 0)
    do_expire = np.append(aging.do_age, False)[at] & ~is_read
    expires = _expires_ms(own, np.where(do_expire, at, -1), aging)
    return rel.together(_offsets(own, log_offsets, has_members, expires, limits), _idle_groups(found, facts, limits))


def _aging(groups: pa.Table, readers: pa.Table, group_records: Rows, limits: StaleLimits) -> _Aging:
    has_pattern = rel.numbers(pc.not_equal(readers["subscribed_regex"], ""))
    unknown = readers.filter(pa.array(has_pattern | ~rel.is_known(readers["subscribed_topics"])))
    records = latest_records(group_records, [*_GROUP, "state_timestamp_ms"], RecordKind.GROUP)
    of, of_unknown, of_records = rel.keys(_GROUP, groups, unknown, records)
    state = rel.numbers(rel.taken(records["state_timestamp_ms"], rel.matches(of, of_records)), -1)
    do_age, since_ms = [], []
    for kind, protocol, count, are_topics_known, state_ms in zip(
        *(rel.values(groups[name]) for name in ("group_type", "protocol_type", "members")),
        (rel.matches(of, of_unknown) < 0).tolist(), np.where(state > LAST_MS, -1, state).tolist(), strict=True,
    ):  # fmt: skip
        # a rebalance that is under way cannot be seen in the log
        age = do_offsets_age(has_members=count > 0, is_settled=True, are_topics_known=are_topics_known)
        since = emptied_ms(has_protocol=bool(protocol), has_members=count > 0, state_since_ms=state_ms)
        do_age.append(age and kind != "spark")  # whose offsets are in a checkpoint
        since_ms.append(since if kind == "classic" else None)
    kept = [limits.retentions.get(cluster, DEFAULT).retention_ms for cluster in rel.values(groups["cluster"])]
    return _Aging(np.array(do_age, bool), since_ms, kept)


def _expires_ms(own: pa.Table, at: Array, aging: _Aging) -> Array:
    """When each offset expires, in ms; −1: never, or unknown. `at`: the row number of the offset's group; −1: never."""
    found = np.full(len(at), -1)
    rows = np.flatnonzero(at >= 0)
    named, committed = (rel.times_ms(own[name].take(rows)) for name in ("expire_time", "commit_time"))
    of = zip(rows.tolist(), at[rows].tolist(), named, committed, strict=True)
    for row, group, named_ms, committed_ms in of:
        since_ms = aging.since_ms[group]
        if named_ms is not None or committed_ms is not None or since_ms is not None:
            found[row] = expires_ms(named_ms, committed_ms or 0, aging.kept_ms[group], since_ms)
    return np.where(found > LAST_MS, -1, found)


def _idle_days(us: Array, limits: StaleLimits) -> Array:
    return (limits.now_ms - us // 1000) / _DAY_MS


def _offsets(own: pa.Table, log_offsets: Rows, has_members: Array, expires: Array, limits: StaleLimits) -> pa.Table:
    logs = rel.loaded(log_offsets, [*_PLACE, "topic_id", "log_start_offset", "log_end_offset", "is_deleted"])
    log = rel.taken(logs, rel.matches(*rel.keys(_PLACE, own, logs)))
    committed, start = rel.numbers(own["committed_offset"]), rel.numbers(log["log_start_offset"], -1)
    is_unread = rel.numbers(log["log_end_offset"], -(2**63)) > committed
    idle_days, is_timed = _idle_days(rel.numbers(own["commit_time"]), limits), rel.is_known(own["commit_time"])
    next_offset = np.maximum(committed, 0)
    reasons = {  # a quiet topic whose group is there and has read everything is not idle, however old
        "idle": is_timed & (idle_days >= limits.idle_days) & (~has_members | is_unread),
        "topic_deleted": rel.numbers(log["is_deleted"]) | rel.numbers(pc.not_equal(own["topic_id"], log["topic_id"])),
        "expiring": (expires >= 0) & (expires <= limits.now_ms + limits.expiring_ms),
        "below_log_start": next_offset < start,
    }
    rows = [np.flatnonzero(is_wanted) for is_wanted in reasons.values()]
    at = np.concatenate(rows)
    reason = np.repeat(list(reasons), [len(some) for some in rows])
    columns = {
        "reason": reason,
        "idle_days": pa.array(idle_days[at], mask=~is_timed[at]),
        "expires_time": rel.times(expires[at] * 1000, expires[at] >= 0),
        "lost": pa.array((start - next_offset)[at], mask=reason != "below_log_start"),
    }
    return rel.filled(STALE.arrow, columns, rel.taken(own, at))


def _idle_groups(groups: pa.Table, facts: Rows, limits: StaleLimits) -> pa.Table:
    """Groups without members and without activity: no commit, no change of the group itself."""
    past = rel.loaded(facts, [*_GROUP, "changed"])
    changed = rel.taken(past["changed"], rel.matches(*rel.keys(_GROUP, groups, past)))
    active = np.maximum(rel.numbers(groups["last_commit_time"], -1), rel.numbers(changed, -1))
    idle_days = _idle_days(active, limits)
    is_idle = (rel.numbers(groups["members"]) == 0) & (active >= 0) & (idle_days >= limits.idle_days)
    found = groups.filter(pa.array(is_idle))
    columns = {"reason": np.full(len(found), "idle"), "idle_days": idle_days[is_idle]}
    return rel.filled(STALE.arrow, columns, found)
