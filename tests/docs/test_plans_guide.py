"""docs/plans.md says of the files what they are; its commands are run by test_readme, after those of the README."""

import json
import re
from pathlib import Path

from groupkeeper.operations.plans import document, kip122

GUIDE = (Path(__file__).resolve().parents[2] / "docs/plans.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def test_every_field_of_a_plan_is_explained() -> None:
    schema = GUIDE.partition("## The plan file")[2].partition("## kafka-consumer-group-reset")[0]
    names = document.PLAN_KEYS | document.GROUP_KEYS | document.CHANGE_KEYS | document.COMMIT_KEYS | document.TOPIC_KEYS
    missing = {name for name in names if f"`{name}`" not in schema and f'"{name}"' not in schema}
    assert missing == set()


def test_the_printed_plan_is_one() -> None:
    (text,) = blocks("json")
    plan = kip122.read(text)
    assert len(plan.offsets) == 2
    assert json.loads(kip122.write(plan)) == json.loads(text)
