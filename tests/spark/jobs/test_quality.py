"""Whether the tables can be relied on: rejects, the checks of a run, `pipeline quality`, the version of the schemas."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from tests.acts import new_topic
from tests.spark.written_rows import rows_of

from groupkeeper.cli.main import main
from groupkeeper.pipeline.decode.history import group_records
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.governance.quality import check_directory
from groupkeeper.pipeline.jobs import history, shares, task
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.jobs.steps import STEPS
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.present.quality import Check, Offsets, checks_of_offsets, checks_of_tables, counts_of
from groupkeeper.pipeline.storage.contents import CONTENTS
from groupkeeper.pipeline.storage.ledger import SCHEMA
from groupkeeper.pipeline.storage.output import Input
from groupkeeper.pipeline.tables import CURRENT_OFFSETS, LAG, STATUS

PATIENCE_S = 60
BAD_KEY, BAD_VALUE = b"\x7f\xff\x00", b"of a later version"


def commit_record(group: str, offset: int) -> tuple[bytes, bytes]:
    """Key and value of a commit of partition 0 of the topic t."""
    name = group.encode()
    key = b"\x00\x01" + len(name).to_bytes(2, "big") + name + b"\x00\x01t" + bytes(4)
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    return key, b"\x00\x03" + offset.to_bytes(8, "big") + b"\xff" * 4 + b"\x00\x00" + now_ms.to_bytes(8, "big")


def send(servers: str, topic: str, records: list[tuple[bytes, bytes | None]]) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for key, value in records:
        producer.produce(topic, value, key)
    assert producer.flush(PATIENCE_S) == 0


def transact(servers: str, topic: str, records: list[tuple[bytes, bytes]], *, is_committed: bool) -> None:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"of-{topic}"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for key, value in records:
        producer.produce(topic, value, key)
    producer.flush(PATIENCE_S)
    producer.commit_transaction(PATIENCE_S) if is_committed else producer.abort_transaction(PATIENCE_S)


@pytest.fixture(scope="module")
def log(servers: str) -> str:
    """A topic like the offsets topic: commits, a record of a later version, transactions of both kinds."""
    topic = new_topic(servers, 1)
    send(servers, topic, [commit_record("a", 1), commit_record("b", 2), (BAD_KEY, BAD_VALUE)])
    transact(servers, topic, [commit_record("a", 90), commit_record("b", 91)], is_committed=False)
    transact(servers, topic, [commit_record("a", 5)], is_committed=True)
    return topic


@pytest.fixture(scope="module")
def options(servers: str, log: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": servers, "cluster": "c", "subscribe": log}


@pytest.fixture(scope="module")
def tables(spark: SparkSession, options: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    tables = tmp_path_factory.mktemp("quality") / "tables"
    assert not snapshot(spark, options, str(tables)).problems
    return tables


@pytest.fixture
def copied(tables: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tables, tmp_path / "tables"))


def results(checks: list[Check], *, wanted: str | None = None) -> dict[tuple[str | None, str], Check]:
    return {(each.table_name, each.check_name): each for each in checks if wanted in (None, each.result)}


@pytest.mark.long
def test_rejects_have_size_and_digest_and_when_they_were_seen(
    spark: SparkSession, options: dict[str, str], copied: Path
) -> None:
    (row,) = rows_of(copied, "rejects")
    whole = BAD_KEY + BAD_VALUE
    assert (row["log_partition"], row["log_offset"], row["record_type"]) == (0, 2, 0x7FFF)
    assert row["reason"] == "unknown record type 32767"
    assert (row["raw_bytes"], row["raw_sha256"]) == (len(whole), hashlib.sha256(whole).hexdigest())
    first = row["first_time"]
    assert abs((datetime.now(UTC) - first).total_seconds()) < 300
    send(options["kafka.bootstrap.servers"], options["subscribe"], [(BAD_KEY, None)])
    for from_start in (False, True):
        assert not snapshot(spark, options, str(copied), from_start=from_start).problems
        old, new = sorted(rows_of(copied, "rejects"), key=lambda row: row["log_offset"])
        assert old == row
        assert new["first_time"] > first


@pytest.mark.long
def test_a_run_leaves_what_it_has_checked(tables: Path) -> None:
    found = {(row["table_name"], row["check_name"]): row for row in rows_of(tables, "quality")}
    assert found[None, "keys"]["result"] == found["lag", "keys"]["result"] == found["lag", "counts"]["result"] == "ok"
    gaps = found[None, "gaps"]
    assert (gaps["cluster"], gaps["result"], gaps["found"]) == ("c", "unknown", 2)
    rejects = found["rejects", "rejects"]
    assert (rejects["result"], rejects["found"]) == ("failed", 1)
    assert rejects["detail"] == "1 record not decoded, the first: unknown record type 32767 at 0-2"


@pytest.mark.long
def test_the_log_explains_offsets_without_a_row(tables: Path, options: dict[str, str]) -> None:
    parsed = parse_options({**options, "rows": "decoded"})
    checks, problems = check_directory(str(tables), parsed, max_age_ms=3_600_000)
    assert problems == []
    assert list(results(checks, wanted="failed")) == [("rejects", "rejects")]
    assert results(checks, wanted="unknown") == {}
    gaps = results(checks)[None, "gaps"]
    assert gaps.detail.endswith("; 2 offsets have no record in the log: compacted or aborted")
    checks, _ = check_directory(str(tables), max_age_ms=1)
    assert results(checks, wanted="unknown").keys() == {(None, "gaps")}
    assert results(checks)["freshness", "age"].result == "failed"


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda rows: rows.slice(1), {(None, "gaps"), ("current_offsets", "history")}),
        (lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]), {(None, "keys")}),
    ],
)
def test_a_row_that_was_lost_or_doubled_is_found(
    copied: Path, options: dict[str, str], change: Callable[[pa.Table], pa.Table], wanted: set[tuple[str | None, str]]
) -> None:
    (file,) = (copied / "commits").glob("*.parquet")
    rows = pq.read_table(file).sort_by([("group_id", "descending"), ("log_offset", "ascending")])
    pq.write_table(change(rows), file)
    checks, _ = check_directory(str(copied), parse_options({**options, "rows": "decoded"}))
    assert results(checks, wanted="failed").keys() - {("rejects", "rejects")} == wanted


@pytest.mark.long
def test_the_command_says_it_by_its_status(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["pipeline", "quality", "--tables", str(copied)]
    assert main(words) == 3
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0].split() == ["CLUSTER", "RESULT", "CHECK", "TABLE", "FOUND", "DETAIL"]
    assert "1 record not decoded" in shown.out
    assert "checks: " in shown.err
    assert main([*words, "--max-rejects", "1", "--output", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "pipeline-quality/1"
    assert [(row["check"], row["result"], row["cluster"]) for row in told["checks"]] == [("gaps", "unknown", "c")]
    (file,) = (copied / "lag").glob("*.parquet")
    file.unlink()
    assert main([*words, "--max-rejects", "1"]) == 3
    assert f"not there: lag/{file.name}" in capsys.readouterr().out
    assert main(["pipeline", "quality", "--tables", str(copied / "none")]) == 1
    assert f"{copied / 'none'} has no tables" in capsys.readouterr().err


@pytest.mark.long
def test_tables_of_another_version_are_upgraded_or_refused(
    spark: SparkSession, options: dict[str, str], copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = max((copied / "_groupkeeper/ledger").glob("*.json"))
    written = json.loads(entry.read_text())
    assert written["schema"] == SCHEMA
    entry.write_text(json.dumps({**written, "schema": SCHEMA + 1}))
    refused = f"{copied}: its tables have schema version {SCHEMA + 1}, this groupkeeper knows versions up to {SCHEMA}"
    with pytest.raises(SourceError, match=refused):
        snapshot(spark, options, str(copied))
    for command in ("report", "quality"):
        assert main(["pipeline", command, "--tables", str(copied)]) == 1
        assert refused in capsys.readouterr().err
    del written["files"]["rejects"]
    shutil.rmtree(copied / "rejects")
    entry.write_text(json.dumps({**written, "schema": SCHEMA - 1}))
    checks, _ = check_directory(str(copied))
    assert results(checks)[None, "schema"].detail == (
        f"version {SCHEMA - 1}; the next run makes all tables of version {SCHEMA} anew"
    )
    assert not snapshot(spark, options, str(copied)).problems
    assert {row["log_offset"] for row in rows_of(copied, "rejects")} >= {2}
    checks, _ = check_directory(str(copied))
    assert results(checks, wanted="failed").keys() == {("rejects", "rejects")}


def test_offsets_that_are_missing_or_doubled_are_counted_by_cluster() -> None:
    found = [Offsets("east", 0, 5, 4, 10), Offsets("west", 0, 3, 3, 0), Offsets("west", 1, 1, 1, 7)]
    checks = checks_of_offsets(found, {"west": {0: 0}}, {"east": {0: 14}, "west": {0: 5, 1: 8, 2: 0}})
    assert [(each.cluster, each.check_name, each.result, each.found) for each in checks] == [
        ("east", "keys", "failed", 1), ("east", "gaps", "ok", 0), ("west", "keys", "ok", 0),
        ("west", "gaps", "unknown", 2),
    ]  # fmt: skip


def test_tables_that_do_not_go_together_fail() -> None:
    row = {"cluster": "c", "group_id": "g", "topic": "t", "partition": None}
    offsets = pa.Table.from_pylist([row], CURRENT_OFFSETS.arrow)
    lag = pa.Table.from_pylist([row, row], LAG.arrow)
    found = results(checks_of_tables([counts_of({CURRENT_OFFSETS: offsets, LAG: lag})], {}), wanted="failed")
    assert {key: check.found for key, check in found.items()} == {("lag", "keys"): 1, ("lag", "counts"): 1}


def made_here(
    spark: SparkSession, folder: Path, make: shares._Make, inputs: Mapping[str, Input], count: int
) -> DataFrame:
    """The tasks in this process, where a test has put a defect."""
    numbers = [pa.record_batch({"id": range(count)})]
    made = pa.Table.from_batches(shares._made_of_files(folder, make, inputs, count, numbers))
    return spark.createDataFrame(made, CONTENTS)


@pytest.mark.long
def test_nothing_is_appended_when_a_row_is_missing(
    spark: SparkSession, options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def part(decoded: pa.Table) -> pa.Table:
        rows = group_records(decoded)
        return rows.filter(rows["problem"].is_null())

    monkeypatch.setattr(history, "group_records", part)
    monkeypatch.setattr(shares, "_by_files", made_here)
    summary = snapshot(spark, options, str(tmp_path))
    (said,) = {each.message for each in summary.problems if each.cluster == "c"}
    assert re.fullmatch(r"of (\d+) records \d+ rows would be written: nothing is appended: run again, .*", said)
    assert not (tmp_path / "commits").exists()


@pytest.mark.long
def test_a_run_tells_of_a_table_with_a_key_twice(
    spark: SparkSession, options: dict[str, str], copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (step,) = (each for each in STEPS if each.table is STATUS)

    def twice(*arguments: Any) -> pa.Table:
        whole = step.make(*arguments)
        assert isinstance(whole, pa.Table)
        return pa.concat_tables([whole, whole.slice(0, 1)])

    monkeypatch.setattr(task, "STEPS", [step._replace(make=twice) if each is step else each for each in STEPS])
    monkeypatch.setattr(shares, "_by_files", made_here)
    summary = snapshot(spark, options, str(copied))
    assert any("quality: table status: 1 row with the key" in each.message for each in summary.problems)
