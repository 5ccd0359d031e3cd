"""tables.SCAN_TIME into a directory."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from groupkeeper.pipeline.jobs.output import open_output
from groupkeeper.pipeline.jobs.scan_time import scan_time
from groupkeeper.pipeline.jobs.watch import Summary, Watch
from groupkeeper.pipeline.tables import SCAN_TIME

__all__ = ["scan"]


def scan(
    spark: SparkSession,
    options: Mapping[str, str],
    directory: str,
    time_ms: int,
    watch: Watch | None = None,
    *,
    is_remote: bool = False,
) -> Summary:
    """Replace the table in `directory`; `options` are the source's. Raises SourceError."""
    with open_output(spark, directory, is_remote=is_remote) as output:
        rows = output.replace(scan_time(spark, options, time_ms), SCAN_TIME)
    (watch or Watch()).table(SCAN_TIME.name, rows)
    return Summary({SCAN_TIME.name: rows}, {}, [], [])
