"""tables.RATES: KIP-496's meters for the past, by minute."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline import relations as rel
from groupkeeper.pipeline.relations import Array, Groups, Rows
from groupkeeper.pipeline.tables import GROUPS, RATES

_MINUTE_US = 60_000_000
_OPEN_MINUTES = 10
_COUNTS = [name for name in RATES.names if name not in RATES.key]
_AT = ("cluster", "group_id", "log_time")


def rates_of_groups(commits: Rows, group_records: Rows, group_events: Rows) -> pa.Table:
    """The rates of groups in new rows.

    A minute is that of a record in the log. Tombstones of unknown cause are counted separately, and so are those of
    offsets deleted with their group: none of the four meters counts the deletion of a group.
    """
    rows = rel.loaded(commits, (*_AT, "log_offset", "commit_time", "is_tombstone", "removed_by"))
    events = rel.loaded(group_events, ("cluster", "group_id", "event_time", "log_offset", "event"))
    events = events.rename_columns([*_AT, "log_offset", "event"])
    is_gone = rows["is_tombstone"]
    live, gone = rows.filter(pc.invert(is_gone)), rows.filter(is_gone)
    others = rel.loaded(group_records, (*_AT, "log_offset"))
    deleted = events.filter(pc.equal(events["event"], "deleted"))
    is_with_group = _are_with_group(rows.select(others.column_names), others, deleted)[rel.numbers(is_gone)]
    is_deleted, is_expired, is_unknown = (
        np.asarray(pc.equal(gone["removed_by"], why)) for why in ("deleted", "expired", "unknown")
    )
    rebalanced = events.filter(pc.equal(events["event"], "rebalanced"))
    commit_time = pc.coalesce(live["log_time"], live["commit_time"])
    return _summed(
        _counted(live, commit_time, {"offset_commits": np.ones(len(live), bool)}),
        _counted(gone, gone["log_time"], {
            "offset_expirations": is_expired, "offset_deletions": is_deleted & ~is_with_group,
            "unexplained_removals": is_unknown, "removed_with_group": is_deleted & is_with_group,
        }),
        _counted(rebalanced, rebalanced["log_time"], {"completed_rebalances": np.ones(len(rebalanced), bool)}),
    )  # fmt: skip


def _are_with_group(commits: pa.Table, others: pa.Table, deleted: pa.Table) -> Array:
    """Whether commits come just before the deletion of their group: at the same time, with no record of the group at
    another time between, as a clock may step back.
    """
    whole = rel.together(commits, others)
    of_deletion, of_record = rel.keys((*_AT, "log_offset"), deleted, whole)
    of_group, of_time = rel.keys(GROUPS.key, whole)[0], rel.keys(("log_time",), whole)[0]
    order = rel.in_order(of_group, rel.numbers(whole["log_offset"]))
    is_other = [np.append(-1, of[order])[:-1] != of[order] for of in (of_group, of_time)]
    groups = Groups.sorted(np.cumsum(is_other[0] | is_other[1]))
    deleted_at = groups.greatest(np.where(np.isin(of_record, of_deletion)[order], np.arange(len(order)), -1))
    found = np.empty(len(order), bool)
    found[order] = np.arange(len(order)) < deleted_at[groups.of]
    return (found & rel.is_known(whole["log_time"]))[: len(commits)]


def _counted(rows: pa.Table, time: pa.ChunkedArray, counts: Mapping[str, Array]) -> pa.Table:
    """A row of RATES for each of the rows, with these counts."""
    us = rel.numbers(time)
    none = np.zeros(len(rows), np.int64)
    columns = [counts.get(name, none).astype(np.int64) for name in _COUNTS]
    minute = rel.times(us - us % _MINUTE_US, rel.is_known(time))
    return pa.table([rows["cluster"], rows["group_id"], minute, *map(pa.array, columns)], RATES.arrow)


def _summed(*parts: pa.Table) -> pa.Table:
    sums = [(name, "sum") for name in _COUNTS]
    found = rel.together(*parts).group_by(list(RATES.key), use_threads=False).aggregate(sums)
    return pa.table([found[name] for name in (*RATES.key, *("_".join(each) for each in sums))], RATES.arrow)


def rates(parts: Rows, known: Rows, column: str) -> pa.Table:
    """tables.RATES per group and per cluster (`group_id` null): `parts` (rates by share) added to the `known` rows.
    `column` tells whether a minute's counts may still grow, as in a cluster's last ten minutes.
    """
    of_groups = rel.loaded(parts, RATES.names)
    of_clusters = of_groups.set_column(1, "group_id", pa.nulls(len(of_groups), pa.string()))
    found = _summed(of_groups, of_clusters, rel.loaded(known, RATES.names))
    (cluster,) = rel.keys(("cluster",), found)
    order = rel.in_order(cluster)
    groups = Groups.sorted(cluster[order])
    minute = rel.numbers(found["minute"])
    last = np.empty(len(found), np.int64)
    last[order] = groups.greatest(minute[order])[groups.of]
    is_open = ~rel.is_known(found["minute"]) | (minute >= last - _OPEN_MINUTES * _MINUTE_US)
    return found.append_column(pa.field(column, pa.bool_()), pa.array(is_open))
