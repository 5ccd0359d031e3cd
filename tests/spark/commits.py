"""Commits as a DataFrame of decoded records: jobs make them in the tasks that read the records."""

from pyspark.sql import DataFrame

from groupkeeper.pipeline.decode.history import commits
from groupkeeper.pipeline.tables import COMMITS


def commits_in(decoded: DataFrame) -> DataFrame:
    """tables.COMMITS of rows of tables.DECODED."""
    return decoded.mapInArrow(lambda batches: map(commits, batches), COMMITS.ddl)
