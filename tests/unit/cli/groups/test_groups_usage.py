"""Files and help of `groupkeeper groups`; what is refused without files is in `refusals.txt`."""

from pathlib import Path

import pytest

from groupkeeper.cli.main import main

# Nobody listens there, so that a command which asks anything ends with 1.
SERVER = ["--bootstrap-server", "127.0.0.1:1", "--timeout", "100ms"]
FIELDS = "topic,partition,offset"


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The last line on standard error, behind the usage, of a call that exits with 2."""
    with pytest.raises(SystemExit) as exit_:
        main(["groups", *words])
    output, errors = capsys.readouterr()
    assert (exit_.value.code, output) == (2, "")
    assert errors.startswith("usage: groupkeeper groups ")
    return errors.splitlines()[-1].partition("error: ")[2]


@pytest.mark.parametrize(
    ("content", "groups", "message"),
    [
        (b"orders,0\n", "g", f"PATH, line 1: 2 fields, expected {FIELDS} (or group,{FIELDS})"),
        (b"orders,0,1\norders\n", "g", f"PATH, line 2: 1 field, expected {FIELDS} (or group,{FIELDS})"),
        (b"orders,0,1\n", "g h", f"PATH, line 1: 3 fields, expected group,{FIELDS}"),
        (b"orders,0,x\n", "g", "PATH, line 1: 'x' is not a number of the right size"),
        (b"topic,partition,offset\n", "g", "PATH, line 1: 'partition' is not a number of the right size"),
        (b"orders,0,-1\n", "g", "PATH, line 1: an offset is negative"),
        (b"", "g", f"'PATH' is empty: expected lines of {FIELDS}"),
        (b"\n\n", "g", f"'PATH' is empty: expected lines of {FIELDS}"),
        (b"or\xff", "g", "'PATH' is not UTF-8 text: byte 3"),
        (b"or\0", "g", "'PATH' is not text: it contains zero bytes"),
    ],
)
def test_files_that_are_no_plan(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, groups: str, message: str
) -> None:
    path = tmp_path / "plan.csv"
    path.write_bytes(content)
    words = ["reset", *groups.split(), "--from-file", str(path), *SERVER]
    assert refused(capsys, *words) == f"argument --from-file: {message.replace('PATH', str(path))}"


@pytest.mark.parametrize("scope", ["--all-topics", "--topic=orders"])
def test_a_file_names_the_partitions_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path, scope: str) -> None:
    path = tmp_path / "plan.csv"
    path.write_text("orders,0,1\n")
    name = scope.partition("=")[0]
    assert refused(capsys, "reset", "g", "--from-file", str(path), scope, *SERVER) == (
        f"argument {name}: not allowed with argument --from-file, which names the partitions"
    )


def test_the_groups_commands_are_described(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["groups", "--help"])
    assert exit_.value.code == 0
    assert "the exit status is then 1" in " ".join(capsys.readouterr().out.split())
