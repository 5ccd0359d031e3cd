"""Lag over time, as the report draws it: where it was measured, it must be what the facts say of that moment."""

import random
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tests.rig.asking import Verdict
from tests.rig.judges.pipeline import SLACK_NS
from tests.rig.judges.reporting.resting import Resting, name_of
from tests.rig.truth import Between, Key

NAME = "report"
Row = Mapping[str, Any]


def judge(resting: Resting, content: Row, verdict: Verdict) -> Iterator[tuple[str, str, str]]:
    """The lines of a report of now, which end at rest."""
    groups = {name_of(group): group for group in content["groups"]}
    for line in content["lag_lines"]:
        name = name_of(line)
        keys = resting.keys(*name)
        if name not in groups:
            yield *name, "a line of a group that is not in the list"
            continue
        if not keys or groups[name]["unknown"] or any(resting.offset(key) == -1 for key in keys):
            verdict.leave(f"{NAME}: a line of a group whose lag is not all known")
            continue
        since = None if line["measured_from"] is None else datetime.fromisoformat(line["measured_from"])
        for number, (text, lag) in enumerate(line["points"], 1):
            time = datetime.fromisoformat(text)
            if lag is None or since is None or time < since:
                continue  # before that it is told by commits and by the times of records
            verdict.comparisons += 1
            verdict.counts["points of the report's lag lines: measured"] += 1
            at, is_last = int(time.timestamp() * 1e6) * 1000, number == len(line["points"])
            bounds = lag_at(resting, keys, at, 0 if is_last else SLACK_NS)
            if lag not in bounds:
                yield *name, f"its line has lag {lag} at {text}, truth {bounds}"


def lag_at(resting: Resting, keys: list[Key], at: int, slack: int) -> Between:
    """The lag of a group at a moment, which is known to so much."""
    low = high = 0
    for key in keys:
        end = resting.truth.logs[key[0], key[2], key[3]].end(at - slack, at + slack)
        some = [None if one is None else max(0, one.offset)
                for one in resting.truth.committed(key, at - slack, at + slack)]  # fmt: skip
        low += min(0 if offset is None else max(0, end.low - offset) for offset in some)
        high += max(0 if offset is None else max(0, end.high - offset) for offset in some)
    return Between(low, high)


def spoilt(resting: Resting, content: Row, rng: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """The end of a line that is judged is another one."""
    judged = [line for line in content["lag_lines"] if _is_judged(resting, content, line)]
    if judged:
        line = rng.choice(judged)
        *before, (time, lag) = line["points"]
        lines = [one if one is not line else {**line, "points": [*before, [time, lag + 1]]}
                 for one in content["lag_lines"]]  # fmt: skip
        yield "another end of a line", {**content, "lag_lines": lines}


def _is_judged(resting: Resting, content: Row, line: Row) -> bool:
    verdict = Verdict()
    list(judge(resting, {**content, "lag_lines": [{**line, "points": line["points"][-1:]}]}, verdict))
    return verdict.comparisons == 1
