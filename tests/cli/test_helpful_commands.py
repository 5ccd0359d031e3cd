"""Commands that alerts name are commands of this program, and no text of Prometheus' rules runs in a shell."""

import re
import shlex
from pathlib import Path

import pytest

import groupkeeper.web
from groupkeeper.cli.framework.commands import parse
from groupkeeper.live.alerts import Key, helpful
from groupkeeper.live.limits import LimitFinding
from groupkeeper.rules.limits import Measure, Verdict
from groupkeeper.shell import Way

RULES = (Path(groupkeeper.web.__file__).parent / "files/prometheus-rules.yaml").read_text()
WAYS = {"prod": Way(("--context", "prod"))}
TEXTS = {helpful(Key("r", "prod", "g"), [LimitFinding("g", each, Verdict.BROKEN, 1, 0)], WAYS) for each in Measure}
ANNOTATION = re.compile(r'^          (\w+): "(.*)"$', re.MULTILINE)


@pytest.mark.parametrize("text", sorted({*TEXTS, helpful(Key("r", "prod", ""), [], WAYS)}))
def test_a_command_that_helps_is_one(text: str) -> None:
    program, *words = shlex.split(text)
    assert program == "groupkeeper"
    options = parse(words)
    assert options.context in ("prod", ["prod"])
    assert getattr(options, "groups", ["g"]) in (["g"], [])


def test_rules_of_prometheus_put_no_name_into_a_command() -> None:
    found = ANNOTATION.findall(RULES)
    assert len(found) == RULES.count("summary:") + RULES.count("help:") > 12
    for name, text in found:
        assert name in ("summary", "help")
        assert name == "summary" or "{{" not in text
        assert "--" not in text or "$labels.group" not in text
    for words in re.findall(r"'groupkeeper (\w+) (\w+)'", RULES):
        assert parse([*words, "g"]).groups == ["g"]
