"""kafka-consumer-group-reset without any broker; which options go together is in `refusals.txt`."""

from pathlib import Path

import pytest

from groupkeeper import __version__
from groupkeeper.cli.dropin.kafka_consumer_group_reset import TABLE, main

SERVER = ["--bootstrap-server", "localhost:1"]
PLAN = '{"version": 1, "offsets": {"group_id": "g", "topics": []}}'


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The first line of the complaint; the help follows, and nothing is on standard output."""
    assert main(arguments) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert "--reset-json-file" in errors.partition("\n")[2]
    return errors.partition("\n")[0]


# K122-12
def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--help"], ["--help", "--generate"]):
        assert refused(arguments, capsys) == TABLE.purpose
    assert main(["--version"]) == 0
    assert capsys.readouterr() == (f"{__version__}\n", "")


# K122-07, K122-11, K122-23: before any broker is asked
@pytest.mark.parametrize("operation", ["--verify", "--execute"])
def test_plans_that_cannot_be_read(operation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text, complaint in (
        ("missing", None, "cannot read "),
        ("broken", b"{", "broken: not JSON: "),
        ("latin", b"\xe4", "latin is not UTF-8 text: byte 1"),
        ("old", b'{"version": 0, "offsets": {}}', "old: version is 0, and must be 1"),
    ):
        path = tmp_path / name
        if text is not None:
            path.write_bytes(text)
        assert main([*SERVER, operation, "--reset-json-file", str(path)]) == 1
        output, errors = capsys.readouterr()
        assert output == ""
        assert errors.startswith("Error: ")
        assert errors.count("\n") == 1
        assert complaint in errors


# K122-11, K122-61
def test_no_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(PLAN)
    assert main([*SERVER, "--timeout", "300", "--verify", "--reset-json-file", str(plan)]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("Error: ")
    assert "Traceback" not in errors
