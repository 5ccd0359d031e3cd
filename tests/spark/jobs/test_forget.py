"""`groupkeeper pipeline forget`: rows of groups are gone from every file, those of others are all there."""

import json
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests import acts
from tests.acts import commit, new_topic
from tests.spark.jobs.test_privacy import found_in
from tests.spark.jobs.test_quality import BAD_KEY, results, send
from tests.spark.kafka.test_source import produce

from groupkeeper.cli.main import main
from groupkeeper.operations.selection import Names
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.governance import forget as module
from groupkeeper.pipeline.governance.forget import ForgetRequest, forget
from groupkeeper.pipeline.governance.quality import check_directory
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.owners import parse_owners
from groupkeeper.pipeline.storage.files import LocalFiles
from groupkeeper.pipeline.storage.ledger import Ledger
from groupkeeper.pipeline.tables import TABLES
from groupkeeper.pipeline.tables.state import CARRIED
from groupkeeper.testing.background import BackgroundBroker

GROUPS = ("zq-a-first", "zq-a-second", "zq-b")
OWNERS = "zq-a-* team-a\nzq-b team-b\n"


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Tables of two refreshes, of groups with members and without, and the source's options."""
    tables = tmp_path_factory.mktemp("forget") / "tables"
    properties = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}
    with BackgroundBroker(properties=properties) as broker:
        servers = broker.bootstrap_servers
        topic = new_topic(servers, 1)
        options = {"kafka.bootstrap.servers": servers, "cluster": "c"}
        produce(servers, topic, 9)
        for offset in (3, 1, 5):
            for group in GROUPS:
                commit(servers, group, {(topic, 0): offset})
        rules = parse_owners(OWNERS, "owners")
        assert not snapshot(spark, options, str(tables), owners=rules).problems
        members = [acts.member(servers, group, topic) for group in GROUPS]
        members.pop(0).close()
        assert not snapshot(spark, options, str(tables), owners=rules).problems
        yield tables, options
        for member in members:
            member.close()


@pytest.fixture
def tables(made: Any, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made[0], tmp_path / "tables"))


def rows_of_others(tables: Path) -> dict[str, list[str]]:
    """Of every table the rows that are not of team-a's groups."""
    found = {}
    for table in (*TABLES, *CARRIED):
        if (tables / table.name).exists():
            rows = pq.read_table(tables / table.name).to_pylist()
            found[table.name] = sorted(text for row in rows if "zq-a-" not in (text := repr(row)))
    return found


@pytest.mark.long
def test_rows_of_an_owner_are_gone_from_every_file_and_no_other(
    made: Any, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: SparkSession
) -> None:
    owners = tmp_path / "owners"
    owners.write_text(OWNERS)
    (tables / "report.html").write_text("zq-a-first")
    words = ["pipeline", "forget", "--owner", "team-a", "--owners", str(owners), "--tables", str(tables)]
    before = rows_of_others(tables)
    assert main([*words, "--output", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["executed"] is False
    counted = {row["table"]: row["rows"] for row in told["tables"]}
    assert counted.keys() >= {"commits", "group_records", "lag", "group_events", "rates", "rewinds", "edges", "owners"}
    assert {name for _, name in found_in(tables, GROUPS)} == set(GROUPS)
    assert main([*words, "--execute"]) == 0
    said = capsys.readouterr()
    assert "groups: zq-a-first, zq-a-second" in said.err
    assert f"{tables / 'report.html'} names these groups, too" in said.err
    (tables / "report.html").unlink()
    assert {name for _, name in found_in(tables, GROUPS)} == {"zq-b"}
    assert rows_of_others(tables) == before
    checks, problems = check_directory(str(tables), parse_options({**made[1], "rows": "decoded"}))
    assert (problems, results(checks, wanted="failed"), results(checks, wanted="unknown")) == ([], {}, {})
    gaps = results(checks)[None, "gaps"].detail
    assert f"{counted['commits'] + counted['group_records']} that 'groupkeeper pipeline forget' removed" in gaps
    for from_start in (False, True):
        assert not snapshot(spark, made[1], str(tables), from_start=from_start).problems
        assert not [name for _, name in found_in(tables, ("zq-a-first",)) if name]
    assert main([*words, "--execute"]) == 0


class Killed(Exception):
    """The process ended here."""


@pytest.mark.long
@pytest.mark.parametrize("step", range(1, 9))
def test_killed_at_any_step(tables: Path, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    left = step

    def dies(of: str) -> None:
        real = getattr(LocalFiles, of)

        def call(self: LocalFiles, *given: Any) -> Any:
            nonlocal left
            left -= 1
            if left <= 0:
                raise Killed
            return real(self, *given)

        monkeypatch.setattr(LocalFiles, of, call)

    before = rows_of_others(tables)
    for name in ("write_new", "replace", "remove", "clean", "link"):
        dies(name)
    with pytest.raises(Killed):
        forget(str(tables), ForgetRequest(Names(("zq-a-*",))), execute=True)
    monkeypatch.undo()
    forget(str(tables), ForgetRequest(Names(("zq-a-*",))), execute=True)
    assert {name for _, name in found_in(tables, GROUPS)} == {"zq-b"}
    assert rows_of_others(tables) == before


@pytest.mark.long
def test_a_reject_goes_with_the_group_that_its_bytes_name(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    topic = new_topic(servers, 1)
    send(servers, topic, [(BAD_KEY[:2] + b"\x00\x0azq-a-first", b"1"), (BAD_KEY[:2] + b"\x00\x0czq-a-firstly", b"2")])
    options = {"kafka.bootstrap.servers": servers, "cluster": "c", "subscribe": topic}
    commit(servers, "zq-a-first", {(topic, 0): 1})
    tables = tmp_path / "tables"
    assert not snapshot(spark, options, str(tables)).problems
    assert forget(str(tables), ForgetRequest(Names(("zq-*",))), execute=True).rows == {}
    found = forget(str(tables), ForgetRequest(Names(("zq-a-first",))), execute=True)
    assert {name: count for name, count in found.rows.items() if "carried" not in name} == {
        "group_records": 1, "rejects": 1
    }  # fmt: skip
    assert found_in(tables, ("zq-a-firstly",))
    assert [row["raw_value"] for row in pq.read_table(tables / "group_records").to_pylist()] == [b"2"]


@pytest.mark.long
def test_what_does_not_go_is_said(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SourceError, match="has no cluster another: its clusters: "):
        forget(str(tables), ForgetRequest(Names(("zq-b",)), cluster="another"), execute=True)
    assert main(["pipeline", "forget", "nobody", "--tables", str(tables), "--execute"]) == 0
    assert "no table has rows of these groups" in capsys.readouterr().err
    assert main(["pipeline", "forget", "zq-b", "--tables", str(tables), "--execute", "--purge"]) == 1
    assert "its tables have no format that keeps earlier versions" in capsys.readouterr().err
    with LocalFiles(tables).lock(), pytest.raises(SourceError, match="another run writes to it"):
        forget(str(tables), ForgetRequest(Names(("zq-b",))), execute=True)
    with pytest.raises(SourceError, match="only taken out of directories of this machine"):
        forget("s3a://bucket/tables", ForgetRequest(Names(("zq-b",))))
    entry = max((tables / "_groupkeeper/ledger").glob("*.json"))
    entry.write_text(json.dumps({**json.loads(entry.read_text()), "lake": {"format": "delta"}}))
    with pytest.raises(SourceError, match="its tables are of delta: give a session of Spark"):
        module.forget(str(tables), ForgetRequest(Names(("zq-b",))), execute=True)


def test_wrong_arguments_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["g", "--owner", "o"]):
        with pytest.raises(SystemExit, match="2"):
            main(["pipeline", "forget", *words, "--tables", str(tmp_path)])
        assert "which groups? name them" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["pipeline", "forget", "--owner", "o", "--tables", str(tmp_path)])
    assert "give --owners FILE" in capsys.readouterr().err
    (tmp_path / "owners").write_text("billing-* team-a\n")
    with pytest.raises(SystemExit, match="2"):
        main(["pipeline", "forget", "--owner", "o", "--owners", str(tmp_path / "owners"), "--tables", str(tmp_path)])
    assert "argument --owner: the file of owners has no o" in capsys.readouterr().err
    assert main(["pipeline", "forget", "g", "--tables", str(tmp_path)]) == 1
    assert f"{tmp_path} has no tables" in capsys.readouterr().err


@pytest.mark.long
def test_without_the_spark_that_a_format_needs_nothing_is_removed(tables: Path) -> None:
    """Its log would go on to name files that are gone."""
    lake = {"format": "delta", "catalog": None, "namespace": "groupkeeper", "version_hours": 1.0}
    Ledger(LocalFiles(tables), str(tables)).note(lake=lake)
    before = found_in(tables, GROUPS)

    def session() -> NoReturn:
        raise SourceError("no Spark master is there")

    with pytest.raises(SourceError, match="no Spark master is there"):
        forget(str(tables), ForgetRequest(Names(("zq-b",))), execute=True, session=session)
    assert found_in(tables, GROUPS) == before
