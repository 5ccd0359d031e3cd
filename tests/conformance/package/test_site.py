"""`make site`: every page of docs/ and every public name is there, and no link leads nowhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

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
    described = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    names = set(re.findall(r'id="groupkeeper\.[\w.]+\.(\w+)"', described))
    assert set(groupkeeper.__all__) - {"__version__", "ALL"} <= names
