"""What each key of the offsets topic says now."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

__all__ = ["latest_records"]


def latest_records(group_records: DataFrame) -> DataFrame:
    """Of rows of tables.GROUP_RECORDS the latest of each group, record name and member, unless it is a tombstone.

    Resolved patterns, whose keys have no member, are left out, and so is what could not be decoded.
    """
    keys = ["cluster", "group_id", "record_name", "member_id"]
    rest = [name for name in group_records.columns if name not in keys]
    own = group_records.where(
        "problem IS NULL AND group_id IS NOT NULL AND record_name != 'ConsumerGroupRegularExpression'"
    )
    last = F.max_by(F.struct(*rest), F.col("log_offset")).alias("last")
    return own.groupBy(*keys).agg(last).where("NOT last.is_tombstone").select(*keys, "last.*")
