"""What tasks write of the history is what Spark makes of the same rows."""

import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.spark.commits import commits_in

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs import history
from groupkeeper.pipeline.jobs.history import StagedRows, append
from groupkeeper.pipeline.jobs.shares import ROWS_PER_SHARE
from groupkeeper.pipeline.kafka import written
from groupkeeper.pipeline.kafka.retention import Retention
from groupkeeper.pipeline.kafka.written import Counts, Written
from groupkeeper.pipeline.storage.output import Output, open_output
from groupkeeper.pipeline.tables import COMMITS, DECODED, GROUP_RECORDS
from groupkeeper.pipeline.tables.schema import LAST_MS

RETENTIONS = {"east": Retention(1_000, 10_000), "west": Retention(2**31 * 60_000, 1)}


def row(rng: random.Random, offset: int) -> dict[str, object]:
    kind = rng.choice((0, 1, 1, 1, 2, 3, None))
    is_commit = kind in (0, 1)
    is_tombstone = rng.random() < 0.2
    problem = "malformed" if rng.random() < 0.1 else None
    times = (-1, 0, 1_700_000_000_123, LAST_MS, LAST_MS + 1, 2**62, None)
    return {
        "cluster": rng.choice(("east", "west")),
        "log_partition": rng.randrange(3),
        "log_offset": offset,
        "log_timestamp_ms": rng.choice(times),
        "producer_id": rng.choice((None, None, 0, 77)),
        "record_type": kind,
        "value_version": None if is_tombstone else 3,
        "is_tombstone": is_tombstone,
        "group_id": rng.choice(("g", "größe", "")),
        "topic": "t" if is_commit else None,
        "partition": rng.randrange(5) if is_commit else None,
        "committed_offset": None if is_tombstone else rng.randrange(2**40),
        "commit_timestamp_ms": rng.choice(times),
        "expire_timestamp_ms": rng.choice(times),
        "group_record": None if is_commit else "{}",
        "problem": problem,
    }


def batches(seed: int, count: int) -> list[pa.RecordBatch]:
    rng = random.Random(seed)
    found: list[pa.RecordBatch] = []
    begin = 0
    while begin < count:
        end = min(count, begin + rng.randrange(1, 200))
        rows = [row(rng, offset) for offset in range(begin, end)]
        found.append(pa.RecordBatch.from_pylist(rows, schema=DECODED.arrow))
        begin = end
    return found


def write(decoded: list[pa.RecordBatch], directory: Path) -> Written:
    return written.write(decoded, directory)[0]


def read_aside(output: Output, decoded: list[pa.RecordBatch]) -> StagedRows:
    """As tasks have read these rows."""
    directory = output.aside(DECODED)
    return StagedRows(directory, write(decoded, Path(output.url(directory).removeprefix("file://"))))


def test_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    decoded = batches(1, 2_000)
    parts = [write(decoded[:5], tmp_path / "new"), write(decoded[5:], tmp_path / "new"), write([], tmp_path / "new")]
    made = Written.together(parts)
    frame = spark.createDataFrame(pa.Table.from_batches(decoded), DECODED.ddl)
    expected = commits_in(frame).where("NOT is_tombstone").toArrow().cast(COMMITS.arrow)
    found = pa.concat_tables([pq.read_table(tmp_path / "new" / name) for name in made.commits])
    assert found.schema.equals(COMMITS.arrow)
    by_offset = [(name, "ascending") for name in ("log_offset",)]
    assert found.sort_by(by_offset).to_pylist() == expected.sort_by(by_offset).to_pylist()
    rest = pa.concat_tables([pq.read_table(tmp_path / "new" / name) for name in made.rest])
    kept = set(found["log_offset"].to_pylist())
    whole = pa.Table.from_batches(decoded).to_pylist()
    assert rest.to_pylist() == [each for each in whole if each["log_offset"] not in kept]
    all_commits = [each for each in whole if each["record_type"] in (0, 1) and each["problem"] is None]
    gone, bad = (
        sum(bool(each[name]) for each in rows) for name, rows in (("is_tombstone", all_commits), ("problem", whole))
    )
    assert made.counts == Counts(len(all_commits), gone, len(whole) - len(all_commits), bad)
    spans = {(name, number): (first, last) for name, number, first, last in made.spans}
    for (name, number), (first, last) in spans.items():
        own = [each["log_offset"] for each in whole if (each["cluster"], each["log_partition"]) == (name, number)]
        assert (first, last, made.ends[name][number]) == (min(own), max(own), max(own) + 1)
    assert len(spans) == 6


def test_rows_from_before_are_seen(tmp_path: Path) -> None:
    made = write(batches(2, 100), tmp_path)
    assert not made.repeats({})
    assert not made.repeats({name: dict.fromkeys(range(3), 0) for name in ("east", "west")})
    assert made.repeats({"east": {1: 90}})


def test_what_is_read_again_is_not_appended(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.Table.from_batches(batches(3, 300)).sort_by("log_offset")
    with open_output(spark, str(tmp_path)) as output:
        for first, last in ((0, 200), (200, 300)):
            aside = read_aside(output, rows.slice(first, last - first).to_batches())
            append(output, aside, {})
            assert not (tmp_path / aside.directory).exists()
        aside = read_aside(output, rows.slice(100, 10).to_batches())
        with pytest.raises(SourceError, match="read again"):
            append(output, aside, {})
        found = [row.log_offset for table in (COMMITS, GROUP_RECORDS) for row in output.read(table).collect()]
    assert sorted(found) == list(range(300))


def test_rows_of_a_ledger_that_is_gone_stay(spark: SparkSession, tmp_path: Path) -> None:
    """They may be all that is left of the history: nothing is written in their place."""
    with open_output(spark, str(tmp_path)) as output:
        appended = append(output, read_aside(output, batches(4, 120)), {})
        assert sum(appended.rows.values()) == 120
    files = sorted((tmp_path / COMMITS.name).iterdir())
    for entry in (tmp_path / "_groupkeeper" / "ledger").iterdir():
        entry.unlink()
    with pytest.raises(SourceError, match="which no ledger lists"), open_output(spark, str(tmp_path)):
        pass
    assert sorted((tmp_path / COMMITS.name).iterdir()) == files


def test_why_offsets_went_is_the_same_by_one_task_and_by_many(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.Table.from_batches(batches(7, 1_500))
    found = []
    for most in (ROWS_PER_SHARE, 500):
        monkeypatch.setattr(history, "ROWS_PER_SHARE", most)
        with open_output(spark, str(tmp_path / str(most))) as output:
            for first in (0, 800):
                append(output, read_aside(output, rows.slice(first, 800).to_batches()), RETENTIONS)
            told = output.read(COMMITS).orderBy("cluster", "log_partition", "log_offset").toArrow()
        found.append(told.cast(COMMITS.arrow).to_pylist())
    assert found[0] == found[1]
    assert {each["removed_by"] for each in found[0]} == {None, "deleted", "expired", "unknown"}


def test_nothing_is_nothing(tmp_path: Path) -> None:
    assert write([], tmp_path / "folder") == Written()
    assert Written.together([]) == Written()
    assert list((tmp_path / "folder").iterdir()) == []


def test_the_file_says_of_offsets_how_much_they_grow(tmp_path: Path) -> None:
    """Spark, DuckDB and Arrow read that; of a log without gaps it is next to nothing."""
    rows = [row(random.Random(5), 7) | {"record_type": 1, "problem": None, "is_tombstone": False, "log_offset": each,
                                        "log_partition": 1, "cluster": "c"} for each in range(20_000)]  # fmt: skip
    made = write([pa.RecordBatch.from_pylist(rows, schema=DECODED.arrow)], tmp_path)
    (name,) = made.commits
    group = pq.read_metadata(tmp_path / name).row_group(0)
    column = group.column(COMMITS.names.index("log_offset"))
    assert "DELTA_BINARY_PACKED" in column.encodings
    assert column.total_compressed_size < 20_000
    assert (made.spans, column.statistics.min, column.statistics.max) == ((("c", 1, 0, 19_999),), 0, 19_999)


def test_duckdb_reads_what_tasks_write(tmp_path: Path) -> None:
    decoded = batches(6, 2_000)
    names = write(decoded, tmp_path).commits
    files = [str(tmp_path / name) for name in names]
    found = duckdb.execute("SELECT log_offset FROM read_parquet(?) ORDER BY 1", [files]).fetchall()
    kept = [one["log_offset"] for one in pq.read_table(files[0]).to_pylist()]
    assert [offset for (offset,) in found] == sorted(kept)


@pytest.mark.parametrize("seed", range(20))
def test_spans_are_the_first_and_last_offsets_of_each_place(seed: int) -> None:
    rng = random.Random(seed)
    places = [(rng.choice("ab"), rng.randrange(3)) for _ in range(rng.randrange(1, 6))]
    rows = [(*rng.choice(places), rng.randrange(1000)) for _ in range(rng.randrange(30))]
    if seed % 2:
        rows.sort()  # as a fetch has them
    columns = [[row[index] for row in rows] for index in range(3)]
    types = (pa.string(), pa.int32(), pa.int64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, names=["cluster", "log_partition", "log_offset"])
    found = written._Spans()
    found.add(written._spans(batch))
    wanted: dict[tuple[str, int], list[int]] = {}
    for cluster, partition, offset in rows:
        wanted.setdefault((cluster, partition), []).append(offset)
    assert sorted(found.all) == sorted((*place, min(own), max(own)) for place, own in wanted.items())
