"""tables.OFFSETS_AS_OF: the committed offsets at a past time."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import OFFSETS_AS_OF
from groupkeeper.pipeline.transforms.latest import latest


def offsets_as_of(commits: DataFrame, group_records: DataFrame, time_ms: int) -> DataFrame:
    """The offsets that were committed by that time and had not been removed, from rows of tables.COMMITS.

    A commit in a transaction counts from its marker on (tables.GROUP_RECORDS), and is ordered among the commits of its
    partition by its own offset, as in the coordinator. Compaction removes commits that were followed by later ones.
    """
    # Backwards from the end: a frame up to the end of the log would be read again for every commit.
    log = Window.partitionBy("cluster", "log_partition", "producer_id").orderBy(F.desc("log_offset"))
    from_here = log.rowsBetween(Window.unboundedPreceding, -1)
    markers = group_records.where("record_name = 'EndTransaction'").select(
        "cluster", "log_partition", "producer_id", "log_offset", F.col("log_time").alias("ended")
    )
    plain = commits.where("producer_id IS NULL").withColumn("known_from", F.col("log_time"))
    transactional = (
        commits.where("producer_id IS NOT NULL")
        .unionByName(markers, allowMissingColumns=True)
        .withColumn("known_from", F.last("ended", ignorenulls=True).over(from_here))
        .where("ended IS NULL")
        .drop("ended")
    )
    known = F.coalesce("known_from", "log_time", "commit_time") <= F.timestamp_millis(F.lit(time_ms))
    rows = plain.unionByName(transactional).where(known).select(*OFFSETS_AS_OF.names, "log_offset", "is_tombstone")
    return latest(rows, OFFSETS_AS_OF.key).select(*OFFSETS_AS_OF.names)
