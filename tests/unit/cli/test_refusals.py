"""Commands that make no sense are refused before any broker is asked, in these words."""

import pytest
from tests.cli import golden
from tests.cli.golden import Output
from tests.unit.cli.refusals import FILE, run

RECORDED = golden.read(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", RECORDED)
def test_a_refusal(command: str) -> None:
    assert run(command) == RECORDED[command], "`python -m tests.unit.cli.refusals` writes down what is said now"


def test_all_are_refused_in_words() -> None:
    assert [command for command, said in RECORDED.items() if said == Output(0, "", "")] == []
