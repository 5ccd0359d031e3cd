"""Files and help of `groupkeeper groups`; what is refused without files is in `refusals.txt`."""

from pathlib import Path

import pytest

from groupkeeper.cli.main import main

# Nobody listens there, so that a command which asks anything ends with 1.
SERVER = ["--bootstrap-server", "127.0.0.1:1", "--timeout", "100ms"]


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
        (b"orders,0\n", "g", ", line 1: 2 fields, expected topic,partition,offset (or group,topic,partition,offset)"),
        (
            b"orders,0,1\norders\n",
            "g",
            ", line 2: 1 field, expected topic,partition,offset (or group,topic,partition,offset)",
        ),
        (b"orders,0,1\n", "g h", ", line 1: 3 fields, expected group,topic,partition,offset"),
        (b"orders,0,x\n", "g", ", line 1: 'x' is not a number of the right size"),
        (b"topic,partition,offset\n", "g", ", line 1: 'partition' is not a number of the right size"),
        (b"orders,0,-1\n", "g", ", line 1: an offset is negative"),
    ],
)
def test_files_that_are_no_plan(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, groups: str, message: str
) -> None:
    path = tmp_path / "plan.csv"
    path.write_bytes(content)
    words = ["reset", *groups.split(), "--from-file", str(path), *SERVER]
    assert refused(capsys, *words) == f"argument --from-file: {path}{message}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", " is empty: expected lines of topic,partition,offset"),
        (b"\n\n", " is empty: expected lines of topic,partition,offset"),
        (b"or\xff", " is not UTF-8 text: byte 3"),
        (b"or\0", " is not text: it contains zero bytes"),
    ],
)
def test_files_that_are_no_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "plan.csv"
    path.write_bytes(content)
    words = ["reset", "g", "--from-file", str(path), *SERVER]
    assert refused(capsys, *words) == f"argument --from-file: '{path}'{message}"


@pytest.mark.parametrize("scope", ["--all-topics", "--topic=orders"])
def test_a_file_names_the_partitions_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path, scope: str) -> None:
    path = tmp_path / "plan.csv"
    path.write_text("orders,0,1\n")
    name = scope.partition("=")[0]
    assert refused(capsys, "reset", "g", "--from-file", str(path), scope, *SERVER) == (
        f"argument {name}: not allowed with argument --from-file, which names the partitions"
    )


def test_properties_that_are_not_right(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("request.timeout.ms=soon\n")
    assert refused(capsys, "list", "--command-config", str(path), *SERVER).startswith("argument --command-config: ")


def test_the_groups_commands_are_described(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["groups", "--help"])
    assert exit_.value.code == 0
    assert "the exit status is then 1" in " ".join(capsys.readouterr().out.split())
