"""Commands that alerts name are commands of this program."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import groupkeeper.web
from groupkeeper.cli.framework.commands import parse
from groupkeeper.live.alerts import Key, helpful
from groupkeeper.live.limits import Finding, Measure, Verdict

RULES = (Path(groupkeeper.web.__file__).parent / "files/prometheus-rules.yaml").read_text()
TEXTS = {helpful(Key("r", "prod", "g"), [Finding("g", each, Verdict.BROKEN, 1, 0)], {}) for each in Measure}


@pytest.mark.parametrize(
    "text", sorted({*TEXTS, helpful(Key("r", "prod", ""), [], {}), *re.findall(r'command: "(.*)"', RULES)})
)
def test_a_command_that_helps_is_one(text: str) -> None:
    program, *words = shlex.split(re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"\1", text).format(cluster="prod", group="g"))
    assert program == "groupkeeper"
    options = parse(words)
    assert options.context in ("prod", "cluster", ["prod"], ["cluster"])
    assert getattr(options, "groups", ["g"]) in (["g"], ["group"], [])
