"""Rows of groups are gone from the lake's tables, too: at once from what is read, with --purge from every file."""

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.lake.test_lake import TABLES, Directory
from tests.spark.jobs.test_privacy import found_in

from groupkeeper.cli.main import main
from groupkeeper.operations.selection import Names
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.governance.forget import ForgetRequest, forget
from groupkeeper.pipeline.governance.quality import check_directory
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.storage import format_log
from groupkeeper.pipeline.tables import COMMITS, GROUP_EVENTS, GROUP_RECORDS, LAG, REWINDS

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

LASTING = (COMMITS, GROUP_RECORDS, GROUP_EVENTS, REWINDS)

Session = Callable[[], AbstractContextManager[SparkSession]]


@pytest.fixture
def directory(spark: SparkSession, servers: str, tmp_path: Path, lake_format: str) -> Directory:
    made = Directory(spark, servers, tmp_path / "tables", lake_format)
    for _ in range(3):
        made.commit_some()
        assert made.snapshot() == []
    return made


@pytest.fixture
def session(spark: SparkSession) -> Session:
    return lambda: contextlib.nullcontext(spark)


def rows_of_others(directory: Directory, group: str) -> dict[str, list[str]]:
    """Of tables whose rows stay as they are when nothing is committed."""
    return {table.name: [row for row in directory.there(table) if group not in row] for table in LASTING}


def files_with(directory: Directory, *texts: str) -> set[str]:
    return {text for _, text in found_in(directory.root, texts)}


def test_rows_are_gone_from_what_is_read_and_then_from_every_file(directory: Directory, session: Session) -> None:
    gone, stays = (f"{name}-{directory.topic}" for name in ("one", "two"))
    before, others = directory.there(COMMITS), rows_of_others(directory, gone)
    wanted = ForgetRequest(Names((gone,)))
    counted = forget(str(directory.root), wanted, session=session)
    assert counted.rows[COMMITS.name] == sum(gone in row for row in before) > 0
    assert directory.there(COMMITS) == before

    found = forget(str(directory.root), wanted, execute=True, session=session)
    assert (found.rows, found.version_hours) == (counted.rows, 168)
    assert not [row for table in TABLES for row in directory.there(table) if gone in row]
    assert rows_of_others(directory, gone) == others
    assert gone in files_with(directory, gone)  # of versions of before
    again = forget(str(directory.root), wanted, execute=True, purge=True, session=session)
    assert again.rows == {}
    left = [path for path, _ in found_in(directory.root, (gone,)) if not path.endswith((".json", ".crc"))]
    assert left == []  # what statistics in Delta's log have of names goes with that log's age
    assert files_with(directory, stays) == {stays}

    options = parse_options({"kafka.bootstrap.servers": directory.servers, "cluster": "c", "rows": "decoded"})
    assert directory.snapshot() == []
    directory.commit_some()
    assert directory.snapshot() == []
    assert rows_of_others(directory, gone).keys() == others.keys()
    checks, problems = check_directory(str(directory.root), options)
    assert (problems, [each for each in checks if each.result == "failed"]) == ([], [])


def test_killed_before_the_format_knows(
    directory: Directory, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def update(self: format_log.FormatLog) -> None:
        raise KeyboardInterrupt

    gone = f"one-{directory.topic}"
    with monkeypatch.context() as patch:
        patch.setattr(format_log.FormatLog, "update", update)
        with pytest.raises(KeyboardInterrupt):
            forget(str(directory.root), ForgetRequest(Names((gone,))), execute=True, session=session)
    assert [row for row in directory.there(LAG) if gone in row]
    assert forget(str(directory.root), ForgetRequest(Names((gone,))), execute=True, session=session).rows == {}
    assert not [row for table in TABLES for row in directory.there(table) if gone in row]


def test_it_is_refused_where_there_is_no_spark(directory: Directory, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SourceError, match="give a session of Spark"):
        forget(str(directory.root), ForgetRequest(Names(("g",))), execute=True)
    with pytest.raises(SystemExit, match="2"):
        main(["pipeline", "forget", "g", "--tables", str(directory.root), "--purge"])
    assert "give --execute, too" in capsys.readouterr().err
