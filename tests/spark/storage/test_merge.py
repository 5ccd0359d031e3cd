"""Many small files of history become few; its rows stay, and what is appended afterwards comes to them."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupkeeper.pipeline.storage.ledger import Tables
from groupkeeper.pipeline.storage.output import Output, open_output
from groupkeeper.pipeline.tables import COMMITS


def some_commits(spark: SparkSession, start: int, end: int) -> DataFrame:
    """Of which only the places are filled in."""
    known = {"cluster": F.lit("c"), "log_partition": F.lit(0), "log_offset": F.col("id")}
    schema = spark.createDataFrame([], COMMITS.ddl).schema
    columns = [known.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in schema]
    return spark.range(start, end, 1, 2).select(*columns)


def append(output: Output, start: int, end: int) -> None:
    staged = output.stage(some_commits(output.spark, start, end), COMMITS)
    output.ledger.append({COMMITS.name: staged.files}, {"c": {0: end}})


def offsets(output: Output) -> list[int]:
    return sorted(row.log_offset for row in output.read(COMMITS).collect())


def test_small_files_become_one_once_there_are_many(spark: SparkSession, tmp_path: Path) -> None:
    with open_output(spark, str(tmp_path)) as output:
        for start in range(0, 30, 10):
            append(output, start, start + 10)
        assert len(output.ledger.files(COMMITS.name)) == 6
        assert output.merge(COMMITS, many=6) == 0  # the next refresh goes by these files
        output.refresh(Tables({}, {}, {}), {"c": {0: 30}})
        assert output.merge(COMMITS, many=7) == 0
        assert output.merge(COMMITS, many=6) == 6
        assert len(output.ledger.files(COMMITS.name)) == 1
        assert offsets(output) == list(range(30))
        append(output, 30, 40)
        output.refresh(Tables({}, {}, {}), {"c": {0: 40}})
    with open_output(spark, str(tmp_path)) as output:
        assert offsets(output) == list(range(40))
        assert output.ledger.next_offsets == {"c": {0: 40}}
        large, *small = sorted(output.ledger.files(COMMITS.name), key=lambda name: -size_of(tmp_path, name))
        assert output.merge(COMMITS, many=2, small_bytes=size_of(tmp_path, large)) == len(small) == 2
        assert large in output.ledger.files(COMMITS.name)
        assert len(output.ledger.files(COMMITS.name)) == 2
        assert offsets(output) == list(range(40))
    found = sorted(path.name for path in (tmp_path / COMMITS.name).iterdir())
    assert found == sorted(output.ledger.files(COMMITS.name))


def size_of(root: Path, name: str) -> int:
    return (root / COMMITS.name / name).stat().st_size


@pytest.mark.parametrize("name", ["with a blank", "100%20", "ä#b", "a+b&c=d"])
def test_directories_may_be_called_anything(spark: SparkSession, tmp_path: Path, name: str) -> None:
    with open_output(spark, str(tmp_path / name)) as output:
        append(output, 0, 3)
        assert offsets(output) == [0, 1, 2]
        assert (tmp_path / name / "commits").is_dir()
