"""Directories whose names Spark, Hadoop or Arrow could take for a glob or a URI."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from groupkeeper.pipeline.storage.output import open_output
from groupkeeper.pipeline.tables import REJECTS


@pytest.mark.parametrize("name", ["run[1]", "{a,b}", "x?*", "back\\slash", "a:b", "with space", "100%2a#"])
def test_tables_are_read_where_they_were_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for neighbour in ("run1", "a", "xyz"):  # what the globs would match
        (tmp_path / neighbour).mkdir()
    monkeypatch.chdir(tmp_path)
    with open_output(spark, name) as output:
        staged = output.stage(spark.createDataFrame([], REJECTS.ddl), REJECTS)
        assert output.frame(staged).count() == 0
        near = output.stage(REJECTS.arrow.empty_table(), REJECTS)
        assert (output.frame(near).count(), output.count_of(near)) == (0, 0)
    assert (tmp_path / name).is_dir()
