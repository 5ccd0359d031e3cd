"""Where the tables are and in which form is answered, also as 0.1 spelled it."""

from __future__ import annotations

import pytest

from groupkeeper.cli.framework.commands import parse

REPORT = ["pipeline", "report"]


@pytest.mark.parametrize(
    ("words", "output", "notes"),
    [
        (["--tables", "t"], "text", []),
        (["--tables", "t", "--output", "json"], "json", []),
        (["--output", "t"], "text", ["note: --output t is taken for the directory of the tables: write --tables"]),
        (
            ["--tables", "t", "--output-format", "json"],
            "json",
            ["note: --output-format json is now written --output json"],
        ),
        (
            ["--output", "t", "--output-format", "json"],
            "json",
            [
                "note: --output t is taken for the directory of the tables: write --tables",
                "note: --output-format json is now written --output json",
            ],
        ),
    ],
)
def test_spellings(capsys: pytest.CaptureFixture[str], words: list[str], output: str, notes: list[str]) -> None:
    options = parse([*REPORT, *words])
    assert (options.tables, options.output) == ("t", output)
    assert capsys.readouterr().err.splitlines() == notes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the tables' directory is missing: add --tables DIR"),
        (["--tables", "t", "--output", "csv"], "argument --output: invalid choice: 'csv' (choose from 'text', 'json')"),
        (["--tables", " "], "argument --tables: expected a directory, or a URL that Spark writes to"),
        (["--output", ""], "argument --output: expected a directory, or a URL that Spark writes to"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as ended:
        parse([*REPORT, *words])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
