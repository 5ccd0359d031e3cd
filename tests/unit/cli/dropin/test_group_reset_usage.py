"""kafka-consumer-group-reset: which options go together (T01), without any broker."""

from pathlib import Path

import pytest

from groupkeeper import __version__
from groupkeeper.cli.dropin.kafka_consumer_group_reset import TABLE, main

SERVER = ["--bootstrap-server", "localhost:1"]
GENERATE = [*SERVER, "--generate", "--group", "g"]
PLAN = '{"version": 1, "offsets": {"group_id": "g", "topics": []}}'


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The first line of the complaint; the help follows, and nothing is on standard output."""
    assert main(arguments) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert "--reset-json-file" in errors.partition("\n")[2]
    return errors.partition("\n")[0]


# T01, K122-01
@pytest.mark.parametrize(
    "given",
    [[], ["--generate", "--verify"], ["--execute", "--generate-and-execute"], ["--generate", "--generate-and-execute"]],
)
def test_exactly_one_operation(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "exactly one action" in refused([*SERVER, "--group", "g", *given], capsys)


# T01, K122-03, K122-06, K122-07, K122-08, K122-09, K122-10, K122-33, K122-35
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--generate", "--group", "g"], '"[bootstrap-server]"'),
        (["--verify", "--reset-json-file", "f"], '"[bootstrap-server]"'),
        ([*SERVER, "--generate"], '"[group]"'),
        ([*SERVER, "--generate", "--group", ""], '"[group]"'),
        ([*SERVER, "--generate-and-execute", "--topics", "t"], '"[group]"'),
        ([*SERVER, "--verify"], '"[reset-json-file]"'),
        ([*SERVER, "--execute"], '"[reset-json-file]"'),
        ([*GENERATE, "--reset-json-file", "f"], '"[reset-json-file]"'),
        ([*SERVER, "--generate-and-execute", "--group", "g", "--reset-json-file", "f"], '"[reset-json-file]"'),
        *[
            ([*SERVER, operation, "--reset-json-file", "f", option, "P1D"], f'"[{option[2:]}]"')
            for operation in ("--verify", "--execute")
            for option in (
                "--group",
                "--topics",
                "--reset-to-datetime",
                "--reset-to-timestamp",
                "--reset-from-period",
                "--output-file",
                "--output",
            )
        ],
        ([*GENERATE, "--reset-to-datetime", "2017-01-01T09:00:00", "--reset-from-period", "P1D"], "can't be used"),
        ([*GENERATE, "--reset-to-datetime", "2017-01-01T09:00:00", "--reset-to-timestamp", "x"], "can't be used"),
        ([*GENERATE, "--output", "a", "--output-file", "b"], "can't be used"),
        ([*GENERATE, "--reset-to-datetime", "2017-02-30T09:00:00"], "no such day"),
        ([*GENERATE, "--reset-to-datetime", "yesterday"], "'yesterday' is not a date and time like 2017"),
        ([*GENERATE, "--reset-from-period", "1M"], "'1M' is not a duration like P1M"),
        ([*GENERATE, "--topics", "a,,b"], "without a name"),
        ([*GENERATE, "--topics", "a", "b"], "'b' belongs to no option"),
        ([*GENERATE, "--output-file", ""], '"[output-file]"'),
        ([*GENERATE, "--group", "h"], "multiple arguments"),
        ([*GENERATE, "--timeout", "0"], "--timeout is 0"),
        ([*GENERATE, "--timeout", "soon"], "timeout"),
        ([*GENERATE, "--to-earliest"], "to-earliest is not a recognized option"),
        ([*GENERATE, "--topics"], "topics requires an argument"),
        (["--bootstrap-server", "nowhere", "--generate", "--group", "g"], "nowhere"),
        ([*GENERATE, "--command-config", "no-such-file"], "cannot read 'no-such-file'"),
    ],
)
def test_wrong_usage(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint in refused(arguments, capsys)


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
