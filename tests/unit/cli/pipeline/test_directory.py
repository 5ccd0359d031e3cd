"""What is refused before clusters are asked and Spark starts."""

import fcntl
import json
import os
from pathlib import Path

import pytest

from groupkeeper.cli.main import main
from groupkeeper.pipeline.decode.privacy import Privacy
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.storage.files import LocalFiles
from groupkeeper.pipeline.storage.ledger import SCHEMA, Ledger

OF_TIME = ("--topic", "orders", "--time", "2026-01-31T00:00:00")
NOBODY = ["--bootstrap-server", "127.0.0.1:1", "--timeout", "200ms"]


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a usage mistake is told with, at exit status 2."""
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", "snapshot", *words, *NOBODY])
    assert ended.value.code == 2
    return capsys.readouterr().err


def begun(tables: Path, **entry: object) -> Path:
    """A directory that a run has written to."""
    ledger = tables / "_groupkeeper" / "ledger"
    ledger.mkdir(parents=True)
    known = {"schema": SCHEMA, "next_offsets": {"c": {"0": 7}}, "files": {}, **entry}
    (ledger / "0000000001.json").write_text(json.dumps(known))
    return tables


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("hosts=salt",), "to salt takes a key: give --privacy-key FILE"),
        (("member-ids=drop",), "member ids tell members apart: choose member-ids=salt in place of drop"),
        (("client-ids=drop,member-ids=keep",), "member ids begin with the client id: choose member-ids=salt, too"),
        (("hosts=salt", "short"), "the key has 5 bytes, it needs 16 at least"),
        (("hosts=drop", "0123456789abcdef"), "there is a key, but nothing to salt: choose salt, or leave the key out"),
        (("", "0123456789abcdef"), "there is a key, but nothing to salt: choose salt, or leave the key out"),
    ],
)
def test_a_choice_that_does_not_go(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    (tmp_path / "key").write_text("".join(words[1:]))
    key = ("--privacy-key", str(tmp_path / "key")) if words[1:] else ()
    modes = ("--privacy", words[0]) if words[0] else ()
    told = refused(capsys, "--tables", str(tmp_path / "tables"), *modes, *key)
    option = "--privacy" if modes else "--privacy-key"
    assert told.endswith(f"error: argument {option}: {why}\n")
    assert not (tmp_path / "tables").exists()


def test_another_choice_than_the_directorys(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tables = begun(tmp_path / "tables", privacy={})
    told = refused(capsys, "--tables", str(tables), "--privacy", "hosts=drop")
    assert "its tables keep hosts, client ids, member ids and metadata as they are: leave --privacy out" in told


def test_a_directory_that_salts_takes_its_key_and_commands_without_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text("0123456789abcdef")
    tables = begun(tmp_path / "tables", privacy=Privacy.of({"hosts": "salt"}, key.read_bytes()).choice)
    snapshot = ["snapshot", "--privacy-key", str(key)]
    for words in (snapshot, ["scan-time", "--topic", "t", "--time", "2026-01-01T00:00:00"]):
        for place in (str(tables), f"file://{tables}"):
            assert main(["pipeline", *words, "--tables", place, *NOBODY]) == 1
            assert "connection refused" in capsys.readouterr().err  # it has come as far as the cluster


def test_a_file_is_no_directory(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "tables").touch()
    told = refused(capsys, "--tables", str(tmp_path / "tables"))
    assert told.endswith(f"error: argument --tables: '{tmp_path / 'tables'}' is a file, not a directory\n")
    assert told == refused(capsys, "--tables", str(tmp_path / "tables" / "below"))


def test_a_directory_that_another_run_writes_to(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tables = begun(tmp_path / "tables")
    with (tables / "_groupkeeper" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert main(["pipeline", "snapshot", "--tables", str(tables), *NOBODY]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"error: {tables}: another run writes to it: wait for its end (follow is ended by ")


def test_what_tables_would_replace_stays(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "lag").mkdir()
    (tmp_path / "lag" / "mine.csv").touch()
    assert main(["pipeline", "snapshot", "--tables", str(tmp_path), *NOBODY]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"error: {tmp_path} contains lag, which no ledger lists and the tables would overwrite: ")
    with pytest.raises(SourceError, match="which no ledger lists"):  # wherever it is
        Ledger(LocalFiles(tmp_path), str(tmp_path))
    assert [each.name for each in tmp_path.rglob("*")] == ["lag", "mine.csv"]


def test_other_files_in_the_directory_are_noted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()
    assert main(["pipeline", "snapshot", "--tables", str(tmp_path), *NOBODY]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"note: {tmp_path} is not empty: the tables are written beside its files\n")


WRITERS = [["snapshot"], ["rebuild"], ["report"], ["scan-time", *OF_TIME], ["follow"]]
NOT_THERE = {
    ("--conf", "spark.pyspark.python=/nowhere"): "error: spark.pyspark.python=/nowhere is no Python ",
    ("--master", "spark://127.0.0.1:1"): "error: no Spark master answers (127.0.0.1:1: Connection refused)",
    ("--remote", "sc://127.0.0.1:1"): "error: no Spark Connect server answers (127.0.0.1:1: Connection refused)",
}


@pytest.mark.parametrize("more", NOT_THERE)
@pytest.mark.parametrize("number", range(len(WRITERS)))
def test_where_spark_cannot_run(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    more: tuple[str, str],
) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    words, said = WRITERS[number], NOT_THERE[more]
    if words == ["follow"] and more[0] == "--remote":  # which it does not take
        return
    assert main(["pipeline", *words, "--tables", str(tmp_path / "tables"), *more, *NOBODY]) == 1
    told = capsys.readouterr().err
    assert told.startswith(said)
    assert told.count("\n") == 1


def test_a_directory_that_cannot_be_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Whether it is there or not; nothing is left of the try."""
    for words in WRITERS:
        for tables, said in {
            "/proc/none/tables": "error: cannot write /proc/none/tables: No such file or directory\n",
            str(tmp_path / ("x" * 300)): " cannot be used: File name too long\n",
        }.items():
            assert main(["pipeline", *words, "--tables", tables, *NOBODY]) == 1
            told = capsys.readouterr().err
            assert told.endswith(said)
            assert told.count("\n") == 1
    (tmp_path / "file").touch()
    assert f"'{tmp_path}/file' is a file, not a directory" in refused(capsys, "--tables", f"file://{tmp_path}/file/x")
    assert main(["pipeline", "snapshot", "--tables", str(tmp_path / "new" / "tables"), *NOBODY]) == 1
    assert "asking the clusters" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
