"""docs/questions.md, taken apart: what comes before the first question, and each question."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from tests.docs.operators_fleet import ANSWERS, CLUSTERS

GUIDE = (Path(__file__).resolve().parents[2] / "docs/questions.md").read_text()
HOW = "rows of tables: FLEET of tests/docs/operators_fleet.py; answers: ANSWERS there"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Question(NamedTuple):
    title: str
    when: str
    sql: str
    meanings: str


def questions() -> list[Question]:
    """Each is a title, a sentence when to ask it, one block of SQL, and what the columns mean."""
    found = []
    for part in re.split(r"^### ", GUIDE, flags=re.MULTILINE)[1:]:
        text = re.split(r"^## ", part, flags=re.MULTILINE)[0]
        title, _, rest = text.partition("\n")
        when, language, sql, meanings = _BLOCK.split(rest)
        assert language == "sql", title
        found.append(Question(title, " ".join(when.split()), sql.strip().removesuffix(";"), meanings))
    return found


def preparation(language: str) -> str:
    """What a user runs first."""
    (text,) = [text for kind, text in _BLOCK.findall(GUIDE.partition("\n### ")[0]) if kind == language]
    return str(text)


def check_answer(title: str, answer: pa.Table) -> None:
    """Of each cluster the rows that were worked out, in their order."""
    rows = [tuple(row.values()) for row in answer.to_pylist()]
    for cluster in CLUSTERS:
        found: list[tuple[Any, ...]] = [row[1:] for row in rows if row[0] == cluster]
        assert found == ANSWERS.get(title), (title, cluster, HOW)
    assert len(rows) == len(CLUSTERS) * len(ANSWERS[title]), (title, HOW)
