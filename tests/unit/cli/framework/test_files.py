"""Files of results: whole or not at all, for their owner only where they hold commits, and refused before any work."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from groupkeeper.cli.dropin import kafka_consumer_group_reset
from groupkeeper.cli.framework.files import Unsaved, check_writable, save
from groupkeeper.cli.main import main

SERVER = ["--bootstrap-server", "127.0.0.1:1", "--timeout", "300ms"]


@pytest.fixture(autouse=True)
def permissive() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_private_file_is_its_owners_only(tmp_path: Path) -> None:
    save(str(tmp_path / "plan.json"), ["{}"], is_private=True)
    save(str(tmp_path / "report.html"), ["<p>"])
    assert (mode(tmp_path / "plan.json"), mode(tmp_path / "report.html")) == (0o600, 0o644)
    # Who gave it other permissions meant them.
    (tmp_path / "plan.json").chmod(0o640)
    save(str(tmp_path / "plan.json"), ["[]"], is_private=True)
    assert (mode(tmp_path / "plan.json"), (tmp_path / "plan.json").read_text()) == (0o640, "[]")


@pytest.mark.parametrize(
    ("path", "reason"),
    [("nowhere/plan.json", "No such file or directory"), ("file/plan.json", "Not a directory"), ("", "Is a directory")],
)
def test_what_cannot_be_written_is_known_before(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unsaved, match=reason):
        check_writable(str(tmp_path / path))


def test_looking_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("kept")
    os.symlink("old.json", tmp_path / "link.json")
    for name in ("new.json", "old.json", "link.json"):
        check_writable(str(tmp_path / name))
    check_writable("/dev/stdout")
    assert (sorted(os.listdir(tmp_path)), (tmp_path / "old.json").read_text()) == (["link.json", "old.json"], "kept")


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (
            kafka_consumer_group_reset.main,
            "--bootstrap-server 127.0.0.1:1 --generate --group g --output-file /nonexistent/p.json",
        ),
        (main, "pipeline report --tables tables --output-file /nonexistent/p.json"),
    ],
)
def test_so_are_other_files(run: Callable[[list[str]], int], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words.split()) == 1
    assert "cannot write /nonexistent/p.json: No such file or directory" in capsys.readouterr().err
