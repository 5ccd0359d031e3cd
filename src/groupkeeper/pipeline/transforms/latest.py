"""What each key says now."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

__all__ = ["latest", "latest_records"]


def latest(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Of each key the row with the highest `log_offset`, unless it is a tombstone. The key's columns come first."""
    rest = [name for name in rows.columns if name not in key]
    last = F.max_by(F.struct(*rest), F.col("log_offset")).alias("last")
    return rows.groupBy(*key).agg(last).where("NOT last.is_tombstone").select(*key, "last.*")


def latest_records(group_records: DataFrame) -> DataFrame:
    """Of rows of tables.GROUP_RECORDS the latest of each group, record name and member, unless it is a tombstone.

    Resolved patterns, whose keys have no member, are left out, and so is what could not be decoded.
    """
    own = group_records.where(
        "problem IS NULL AND group_id IS NOT NULL AND record_name != 'ConsumerGroupRegularExpression'"
    )
    return latest(own, ("cluster", "group_id", "record_name", "member_id"))
