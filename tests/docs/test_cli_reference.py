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
