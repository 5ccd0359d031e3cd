"""The glossary has every status that a command or a table shows."""

import re
from pathlib import Path

from groupkeeper.rules.status import Status
from groupkeeper.web.pages.glossary import glossary_page

DOCS = Path(__file__).resolve().parents[2] / "docs"
GLOSSARY = (DOCS / "glossary.md").read_text()


def test_every_status_of_an_offset_is_in_it() -> None:
    table = (DOCS / "cli.md").read_text().split("| `status` | meaning |", 1)[1].split("\n\n", 1)[0]
    statuses = re.findall(r"^\| `(\w+)`", table, re.MULTILINE)
    assert len(statuses) == 8
    assert [name for name in statuses if f"`{name}`" not in GLOSSARY] == []


def test_every_status_of_a_group_is_in_it_and_has_a_rule() -> None:
    pages = "".join((DOCS / name).read_text() for name in ("serve.md", "pipeline-tables.md"))
    assert [name for name in Status if f"`{name}`" not in GLOSSARY or f"| `{name}` |" not in pages] == []


def test_a_page_has_all_its_terms() -> None:
    served = (DOCS.parent / "src/groupkeeper/web/files/glossary.md").read_text()
    page = glossary_page()
    shown = [re.sub(r"<[^>]+>", "", each) for each in re.findall(r"<dt>(.*?)</dt>", page)]
    assert {"lag", "commit age", "retention margin", "member"} <= set(shown)
    assert len(shown) == len(re.findall(r"^\| (?!term |--)", served, re.MULTILINE)) > 30
    assert "](" not in page
    assert "|" not in page
