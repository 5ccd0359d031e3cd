"""The latest record of each key, and the rows of history on which later rows depend. Together with these rows, new rows
give the same results as the whole history.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import COMMITS, CURRENT_OFFSETS, GROUP_RECORDS, Table
from groupkeeper.pipeline.tables.state import LAST_COMMITS, LAST_RECORDS
from groupkeeper.pipeline.transforms.history import commits as commits_of
from groupkeeper.pipeline.transforms.query import Query, Words
from groupkeeper.pipeline.transforms.record_kinds import IS_GROUP

__all__ = [
    "LAST_COMMITS_OF",
    "LAST_RECORDS_OF",
    "current_offsets",
    "current_offsets_of_decoded",
    "last_commits_of",
    "last_records_of",
    "latest",
    "what_stays",
]


def latest(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """For each key the row with the highest `log_offset`, unless it is a tombstone. The key's columns come first."""
    rest = [name for name in rows.columns if name not in key]
    last = F.max_by(F.struct(*rest), F.col("log_offset")).alias("last")
    return rows.groupBy(*key).agg(last).where("NOT last.is_tombstone").select(*key, "last.*")


def current_offsets(history: DataFrame) -> DataFrame:
    """tables.CURRENT_OFFSETS: for each key the latest row of tables.COMMITS, unless it is a tombstone."""
    rows = history.select(*CURRENT_OFFSETS.names, "is_tombstone")
    return latest(rows, CURRENT_OFFSETS.key).select(*CURRENT_OFFSETS.names)


def current_offsets_of_decoded(decoded: DataFrame) -> DataFrame:
    """The same from rows of tables.DECODED; rows read with `latestOnly=true` are enough."""
    return current_offsets(commits_of(decoded))


def last_commits_of(words: Words, *relations: str) -> str:
    """SELECT of tables.COMMITS: the last commit of each key, and its tombstone if that is later."""
    names = ", ".join(COMMITS.names)
    row = words.row({name: name for name in COMMITS.names})
    is_live = "CASE WHEN NOT is_tombstone THEN"
    is_later = "CASE WHEN last.is_tombstone THEN last END"
    return f"""
WITH whole AS (
    {" UNION ALL ".join(f"SELECT {names} FROM {each}" for each in relations)}
),
found AS (
    SELECT max_by({row}, log_offset) AS last,
        max_by({is_live} {row} END, {is_live} log_offset END) AS live
    FROM whole GROUP BY cluster, group_id, topic, partition
)
SELECT {", ".join(f"own.{name}" for name in COMMITS.names)}
FROM (SELECT {words.each("live", is_later)} AS own FROM found)
"""


LAST_COMMITS_OF = Query(
    LAST_COMMITS,
    lambda words: last_commits_of(words, words.of("last_commits"), words.of("commits")),
    {"commits": COMMITS, "last_commits": LAST_COMMITS},
)
"""Of `commits` and the carried ones before them those of `last_commits_of`."""


def last_records_of(words: Words, *relations: str) -> str:
    """SELECT of tables.GROUP_RECORDS: the last row of each key. Removed members are left out, unless their tombstone is
    the last record of their group.
    """
    names = ", ".join(GROUP_RECORDS.names)
    return f"""
WITH whole AS (
    {" UNION ALL ".join(f"SELECT {names} FROM {each}" for each in relations)}
),
latest AS (
    SELECT max_by({words.row({name: name for name in GROUP_RECORDS.names})}, log_offset) AS own
    FROM whole WHERE group_id IS NOT NULL GROUP BY cluster, group_id, record_name, member_id
),
found AS (SELECT {", ".join(f"own.{name} AS {name}" for name in GROUP_RECORDS.names)} FROM latest),
ended AS (SELECT *, max(log_offset) OVER (PARTITION BY cluster, group_id) AS last_offset FROM found)
SELECT {names} FROM ended WHERE NOT is_tombstone OR coalesce({IS_GROUP}, false) OR log_offset = last_offset
"""


LAST_RECORDS_OF = Query(
    LAST_RECORDS,
    lambda words: last_records_of(words, words.of("last_records"), words.of("group_records")),
    {"group_records": GROUP_RECORDS, "last_records": LAST_RECORDS},
)
"""Of `group_records` and the carried ones before them those of `last_records_of`."""


def what_stays(table: Table, cut_ms: int) -> Query:
    """The `rows` of the table at or after the cut (milliseconds since the epoch), or without a time. For the history
    also the state before them: the last row of each key before the cut; and the records that could not be decoded,
    which stay in `rejects` for good.
    """

    def text(words: Words) -> str:
        names, cut = ", ".join(table.names), words.time_of(str(cut_ms))
        rows = words.of("rows")
        stay = f"SELECT {names} FROM {rows} WHERE coalesce({table.day_of} >= {cut}, true)"
        if table not in (COMMITS, GROUP_RECORDS):
            return stay
        is_state = "true" if table is COMMITS else "problem IS NULL"
        state = last_commits_of(words, "old") if table is COMMITS else last_records_of(words, "old")
        return f"""
WITH old AS (SELECT {names} FROM {rows} WHERE {table.day_of} < {cut} AND {is_state})
{stay} OR NOT ({is_state})
UNION ALL SELECT {names} FROM ({state})
"""

    return Query(table, text, {"rows": table})
