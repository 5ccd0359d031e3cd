"""The glossary has every status that a command or a table shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    ("document", "head"), [("cli.md", "| `status` | meaning |"), ("pipeline-tables.md", "| status | rule |")]
)
def test_every_status_is_in_it(document: str, head: str) -> None:
    table = (DOCS / document).read_text().split(head, 1)[1].split("\n\n", 1)[0]
    statuses = re.findall(r"^\| `(\w+)`", table, re.MULTILINE)
    assert len(statuses) == 8
    glossary = (DOCS / "glossary.md").read_text()
    assert [name for name in statuses if f"`{name}`" not in glossary] == []
