"""The reference of the command lines is written from their option tables."""

from pathlib import Path

from tools import cli_reference

ROOT = Path(__file__).resolve().parents[2]


def test_reference_is_up_to_date() -> None:
    assert (ROOT / "docs/cli.md").read_text() == cli_reference.document(), "run `make docs`"


def test_reference_is_complete_and_right() -> None:
    document = cli_reference.document()
    assert "### groupkeeper broker\n" in document
    assert "| `--property NAME=VALUE` |" in document
    assert "interactive shell" not in document


def test_the_json_of_every_changing_command_tells_of_executed() -> None:
    document = cli_reference.document()
    for name in ("groups reset", "groups delete-offsets", "groups delete", "apply, undo"):
        section = document.partition(f"`{name}`: rows under ")[2].partition("\n`")[0]
        assert "JSON has `executed` too" in section, name
