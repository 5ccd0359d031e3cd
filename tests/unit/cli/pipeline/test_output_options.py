"""Where the tables are and in which form is answered."""

import pytest

from groupkeeper.cli.framework.commands import parse

REPORT = ["pipeline", "report"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: --tables"),
        (["--output", "json"], "the following arguments are required: --tables"),
        (["--tables", "t", "--output", "csv"], "argument --output: invalid choice: 'csv' (choose from 'text', 'json')"),
        (["--tables", " "], "argument --tables: expected a directory, or a URL that Spark writes to"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as ended:
        parse([*REPORT, *words])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
