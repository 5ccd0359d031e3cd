"""`make site`: every page of docs/ and every public name is there, and no link leads nowhere."""

import re
import subprocess
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import groupkeeper

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.conformance
@pytest.mark.timeout(300)
def test_the_site_has_everything() -> None:
    subprocess.run(["make", "site"], cwd=ROOT, check=True, timeout=290, capture_output=True)  # strict: warnings end it
    site = ROOT / "build/site"
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        assert (site / name).exists() or name.name == "README.html", page
    assert broken_links(site) == []
    described = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    names = set(re.findall(r'id="groupkeeper\.[\w.]+\.(\w+)"', described))
    assert set(groupkeeper.__all__) - {"__version__", "ALL"} <= names


def broken_links(site: Path) -> list[tuple[str, str]]:
    """Pages with links, within the site, to files or parts of pages that aren't there."""
    texts = {page.resolve(): page.read_text() for page in site.rglob("*.html") if page.name != "404.html"}
    parts = {page: set(re.findall(r'\b(?:id|name)="?([^"\s>]+)', text)) for page, text in texts.items()}
    broken = []
    for page, text in texts.items():
        for typed in re.findall(r'(?:href|src)="?([^"\s>]+)', text):
            link = urlsplit(unescape(typed))
            if link.scheme or link.netloc:
                continue
            target = (page.parent / unquote(link.path)).resolve() if link.path else page
            target = target / "index.html" if target.is_dir() else target
            is_there = target.exists() and (
                not link.fragment or target.suffix != ".html" or unquote(link.fragment) in parts[target]
            )
            if not is_there:
                broken.append((page.name, typed))
    return broken
