"""One word for one thing (docs/glossary.md): words that others have replaced do not come back."""

import re
from pathlib import Path

import pytest
from tests.test_tidy import GENERATED, ROOT, tracked_files

LIMITS = "cli/check.py live/alerts.py live/limits.py rules/limits.py"

REPLACED = [("verdict", LIMITS, "status of a group; fit of a plan; headline of a page; a verdict is about a limit")]
"""A word (a regular expression), the modules that may have it in another sense, and the word that replaced it."""


@pytest.mark.parametrize(("word", "elsewhere", "instead"), REPLACED, ids=[row[0] for row in REPLACED])
def test_a_word_has_been_replaced(word: str, elsewhere: str, instead: str) -> None:
    found = []
    for name in tracked_files():
        if name.startswith("src/") and name.endswith(".py") and not name.startswith(GENERATED):
            if Path(name).relative_to("src/groupkeeper").as_posix() in elsewhere.split():
                continue
            for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
                found += [f"{name}:{number}: {line.strip()}"] * bool(re.search(word, line, re.IGNORECASE))
    assert found == [], instead
