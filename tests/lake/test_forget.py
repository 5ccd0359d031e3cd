"""Rows of groups are gone from the lake's tables, too: at once from what is read, with --purge from every file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.lake.test_lake import TABLES, Directory
from tests.spark.jobs.test_privacy import found_in

from groupkeeper.cli.main import main
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.governance.forget import ForgetRequest, forget
from groupkeeper.pipeline.governance.quality import check_directory
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.storage import ledger, mirror
from groupkeeper.pipeline.storage.formats import open_lake
from groupkeeper.pipeline.tables import COMMITS, GROUP_EVENTS, GROUP_RECORDS, LAG, REWINDS

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

LASTING = (COMMITS, GROUP_RECORDS, GROUP_EVENTS, REWINDS)

Session = Callable[[], AbstractContextManager[SparkSession]]


@pytest.fixture
def directory(spark: SparkSession, servers: str, tmp_path: Path, lake_format: str) -> Directory:
    """Of which the oldest rows are in the lake alone."""
    made = Directory(spark, servers, tmp_path / "tables", lake_format)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mirror, "_HERE_HOURS", 0)
        patch.setattr(ledger, "_HOUR_MS", 0)
        for _ in range(3):
            made.commit_some()
            assert made.snapshot() == []
    assert len(made.here(COMMITS)) < len(made.there(COMMITS))
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
    wanted = ForgetRequest((gone,))
    name = directory.place.name_of(COMMITS)
    counted = forget(str(directory.root), wanted, session=session)
    assert counted.rows[name] == sum(gone in row for row in before) > counted.rows.get(COMMITS.name, 0)
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


def test_killed_before_the_copies_follow(
    directory: Directory, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def update(self: mirror.Mirror) -> None:
        raise KeyboardInterrupt

    gone = f"one-{directory.topic}"
    with monkeypatch.context() as patch:
        patch.setattr(mirror.Mirror, "update", update)
        with pytest.raises(KeyboardInterrupt):
            forget(str(directory.root), ForgetRequest((gone,)), execute=True, session=session)
    assert [row for row in directory.there(LAG) if gone in row]
    counted = forget(str(directory.root), ForgetRequest((gone,)), session=session)
    assert (counted.rows, counted.behind > 5) == ({}, True)
    assert forget(str(directory.root), ForgetRequest((gone,)), execute=True, session=session).rows == {}
    assert not [row for table in TABLES for row in directory.there(table) if gone in row]
    assert forget(str(directory.root), ForgetRequest((gone,)), session=session).behind == 0


@pytest.mark.parametrize("step", range(1, 5))
def test_killed_at_any_commit(
    directory: Directory, session: Session, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = f"one-{directory.topic}"
    others = rows_of_others(directory, gone)
    left, real = step, mirror.Mirror.remove

    def remove(self: mirror.Mirror, *given: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        real(self, *given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(mirror.Mirror, "remove", remove)
        with pytest.raises(KeyboardInterrupt):
            forget(str(directory.root), ForgetRequest((gone,)), execute=True, session=session)
    if step % 2:  # a run in between, which may find records that the broker has written since
        assert directory.snapshot() == []
    forget(str(directory.root), ForgetRequest((gone,)), execute=True, session=session)
    assert not [row for table in TABLES for row in directory.there(table) if gone in row]
    left = rows_of_others(directory, gone)
    assert {name: [row for row in rows if row in left[name]] for name, rows in others.items()} == others


def test_a_table_that_did_not_change_for_long_is_still_known_as_ours(directory: Directory) -> None:
    """Its last commit by a run goes with the versions: what tidying leaves has no mark in it."""
    lake = open_lake(directory.spark, directory.place, directory.root.absolute().as_uri())
    mark = lake.mark(REWINDS)
    assert mark is not None
    lake.tidy(REWINDS, mark, 0)
    lake.remove(REWINDS, "false OR group_id = 'nobody'")
    lake.remove(REWINDS, f"group_id = 'one-{directory.topic}'")
    lake.tidy(REWINDS, mark, 0)
    assert lake.mark(REWINDS) == mark
    directory.commit_some()
    assert directory.snapshot() == []
    newer = lake.mark(REWINDS)
    assert newer is not None
    assert newer.entry > mark.entry


def test_it_is_refused_where_there_is_no_spark(directory: Directory, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SourceError, match="give a session of Spark"):
        forget(str(directory.root), ForgetRequest(("g",)), execute=True)
    with pytest.raises(SystemExit, match="2"):
        main(["pipeline", "forget", "g", "--tables", str(directory.root), "--purge"])
    assert "give --execute, too" in capsys.readouterr().err
