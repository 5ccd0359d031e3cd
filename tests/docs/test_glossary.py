"""The glossary has every status that a command or a table shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from groupkeeper.web.pages.glossary import glossary_page

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


def test_a_page_has_all_its_terms() -> None:
    served = (DOCS.parent / "src/groupkeeper/web/files/glossary.md").read_text()
    page = glossary_page()
    shown = [re.sub(r"<[^>]+>", "", each) for each in re.findall(r"<dt>(.*?)</dt>", page)]
    assert {"lag", "commit age", "retention margin", "member"} <= set(shown)
    assert len(shown) == len(re.findall(r"^\| (?!term |--)", served, re.MULTILINE)) > 30
    assert "](" not in page
    assert "|" not in page
