"""One word for one thing (docs/glossary.md): words that others have replaced do not come back."""

import re

import pytest
from tests.test_tidy import GENERATED, ROOT, tracked_files

PACKAGE = "src/groupkeeper/"
LIMITS = "cli/check.py live/alerts.py live/limits.py rules/limits.py"

REPLACED = [
    ("", r"verdict", LIMITS, "a group has a status, a plan fits, a page has a headline"),
    ("broker/ client/ coordinator/ live/ operations/ protocol/", r"\bplaces?( = |\.[a-z]|\[)", "", "tp, index, offset"),
    ("", r"\b(key|partition|place): TopicPartition\b", "client/admin/resources/transactions.py", "tp"),
    ("", r"\bremarks?\b", "", "note"),
    ("html/ live/ pipeline/ web/", r"grows by|lag trend|lost_records", "", "lag change, lost"),
    ("operations/", r"\.(oldest|latest)\b(?!\()", "", "log_start, log_end"),
    ("api/ broker/ client/ coordinator/ live/ pipeline/", r"trouble", "", "refusal, problem or reason"),
    ("broker/ client/ coordinator/", r"\b_?answers?(: [A-Z]| = |\.[a-z]|\[)", "", "response"),
    ("cli/ live/ operations/", r"look_at_|first_look", "", "find a group, poll a cluster, measure twice"),
    ("cli/", r"\bshapes?\b", "", "the schema of a report"),
    ("coordinator/", r"\brows?\b", "", "the handler of a group type"),
]
"""Folders of src/groupkeeper, word, modules where the word is right as it means another thing, and the word instead."""


@pytest.mark.parametrize(("folders", "word", "elsewhere", "instead"), REPLACED, ids=[row[1] for row in REPLACED])
def test_a_word_has_been_replaced(folders: str, word: str, elsewhere: str, instead: str) -> None:
    found, beginnings = [], tuple(f"{PACKAGE}{folder}" for folder in folders.split(" "))
    for name in tracked_files():
        path = name.removeprefix(PACKAGE)
        is_source = name.startswith(beginnings) and name.endswith(".py") and not name.startswith(GENERATED)
        if is_source and path not in elsewhere.split():
            lines = enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
            found += [f"{name}:{number}: {line}" for number, line in lines if re.search(word, line, re.IGNORECASE)]
    assert found == [], instead
