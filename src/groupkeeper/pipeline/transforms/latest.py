"""The latest record of each key, and the rows of history on which later rows depend: together with these, new rows give
the same results as the whole history. Also which old rows to keep.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.relations import Rows, loaded, numbers, runs, taken, together
from groupkeeper.pipeline.tables import COMMITS, CURRENT_OFFSETS, GROUP_RECORDS, LAG_HISTORY, LOG_ENDS, Table
from groupkeeper.pipeline.tables.state import READERS
from groupkeeper.pipeline.transforms.record_kinds import RecordKind, rows_of

_SHARES = 256
"""The number of parts over which Spark spreads the groups of the whole history."""


def latest(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """For each key the row with the highest `log_offset`, unless it is a tombstone. The key's columns come first."""
    rest = [name for name in rows.columns if name not in key]
    last = F.max_by(F.struct(*rest), F.col("log_offset")).alias("last")
    return rows.groupBy(*key).agg(last).where("NOT last.is_tombstone").select(*key, "last.*")


def last_commits(commits: Rows, last_commits: Rows) -> pa.Table:
    """tables.state.LAST_COMMITS: of `commits` and the carried ones before, the last commit of each key, and its
    tombstone if that is later.
    """
    whole = together(*(loaded(rows, COMMITS.names) for rows in (last_commits, commits)))
    order, groups = runs(CURRENT_OFFSETS.key, whole)
    is_gone = numbers(whole["is_tombstone"])[order]
    live = groups.last(~is_gone)[groups.ends]
    gone = groups.ends[is_gone[groups.ends]]
    return taken(whole, order[np.concatenate([live[live >= 0], gone])])


def last_records(group_records: Rows, last_records: Rows) -> pa.Table:
    """tables.state.LAST_RECORDS: of `group_records` and the carried ones before, the last row of each key. Tombstones
    of members are left out, unless they are the last record of their group.
    """
    whole = together(*(loaded(rows, GROUP_RECORDS.names) for rows in (last_records, group_records)))
    whole = whole.filter(whole["group_id"].is_valid())
    order, groups = runs(("cluster", "group_id", "record_name", "member_id"), whole)
    found = taken(whole, order[groups.ends])
    order, groups = runs(("cluster", "group_id"), found)
    is_last = np.zeros(len(found), bool)
    is_last[order[groups.ends]] = True
    is_kept = ~numbers(found["is_tombstone"]) | rows_of(found["record_name"], RecordKind.GROUP) | is_last
    return found.filter(pa.array(is_kept))


def what_stays(table: Table, rows: DataFrame, cut_ms: int) -> DataFrame:
    """The rows to keep: those at or after the cut (ms since 1970), or without a time. For the history also its state at
    the cut: the last earlier row of each key; and all undecodable records, which `rejects` keeps for good.
    """
    is_old = F.coalesce(F.col(str(table.day_of)) < F.timestamp_millis(F.lit(cut_ms)), F.lit(False))
    last = {COMMITS.name: last_commits, GROUP_RECORDS.name: last_records}.get(table.name)
    if table is GROUP_RECORDS:
        is_old &= F.col("problem").isNull()
    stay = rows.where(~is_old).select(*table.names)
    if last is None:
        return stay

    def state(share: pa.Table) -> pa.Table:
        return last(share.cast(table.arrow), table.arrow.empty_table())

    shares = rows.where(is_old).select(*table.names).groupBy(F.pmod(F.hash("cluster", "group_id"), F.lit(_SHARES)))
    return stay.unionByName(shares.applyInArrow(state, table.ddl))


def standing_offsets(last_commits: Rows, queries: Rows) -> pa.Table:
    """tables.CURRENT_OFFSETS: offsets in tables.state.LAST_COMMITS without a tombstone, and those of Spark's
    queries.
    """
    names = CURRENT_OFFSETS.names
    rows = loaded(last_commits, [*names, "is_tombstone"])
    order, groups = runs(CURRENT_OFFSETS.key, rows)
    last = np.sort(order[groups.ends])
    last = last[~numbers(rows["is_tombstone"])[last]]
    return together(taken(rows.select(names), last).cast(CURRENT_OFFSETS.arrow), loaded(queries, names))


def readers(current_offsets: Rows) -> pa.Table:
    """tables.state.READERS: the number of these groups that have offsets of a topic."""
    rows = loaded(current_offsets, ["cluster", "topic", "group_id"])
    found = rows.group_by(["cluster", "topic"]).aggregate([("group_id", "count_distinct")])
    return found.select(["cluster", "topic", "group_id_count_distinct"]).rename_columns(READERS.names)


def hourly_lag(rows: DataFrame) -> DataFrame:
    """The row with the most lag of each hour, from rows of tables.LAG_HISTORY."""
    return _hourly(rows, LAG_HISTORY, F.struct(F.coalesce("lag", F.lit(-1)), "measured_time"))


def hourly_ends(rows: DataFrame) -> DataFrame:
    """The last row of each hour, from rows of tables.LOG_ENDS."""
    return _hourly(rows, LOG_ENDS, F.col("measured_time"))


def _hourly(rows: DataFrame, table: Table, order: Column) -> DataFrame:
    key = [name for name in table.key if name != "measured_time"]
    kept = F.max_by(F.struct(*table.names), order).alias("kept")
    return rows.groupBy(*key, F.date_trunc("hour", "measured_time")).agg(kept).select("kept.*")
