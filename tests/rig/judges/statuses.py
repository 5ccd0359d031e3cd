"""Statuses of groups at one look, as `groupkeeper groups list --with-status` and `groupkeeper check` show them."""

import copy
import random
from dataclasses import replace

from tests.rig.asking import Answer, Desk, Difference, Verdict
from tests.rig.judges.standings import admissible
from tests.rig.judges.trends import Poll
from tests.rig.truth import Truth

NAME = "statuses"
AT_ONCE = ("losing", "lagging", "unknown", "abandoned", "ok")
"""What one look tells."""


def ask(desk: Desk, cluster: str, rng: random.Random, truth: Truth) -> Answer:
    if rng.random() < 0.5:
        return desk.ask(cluster, "groups", "list", "--with-status")
    answer = desk.ask(cluster, "check", "--bad-status", "lagging,losing,unknown", "--show-ok")
    rows = [{"group": row["group"], "group_status": row["value"]} for row in answer.content["checks"]]
    return replace(answer, content={"groups": rows})


def judge(truth: Truth, answer: Answer) -> Verdict:
    verdict = Verdict()
    for row in answer.content["groups"]:
        wanted, found = statuses(truth, answer, row["group"]), row["group_status"]
        if wanted is None:
            verdict.leave(f"{NAME}: facts do not tell how long records have waited")
            continue
        verdict.comparisons += 1
        verdict.counts[f"statuses of commands: {found}"] += 1
        if found not in wanted:
            text = f"status {found}, truth {' or '.join(sorted(wanted))}"
            verdict.differences.append(Difference(NAME, answer.cluster, text, group=row["group"]))
    return verdict


def statuses(truth: Truth, answer: Answer, group: str) -> set[str] | None:
    """What one look may find; None: not known. `unknown` also where a record's time could not be read in time."""
    asked = replace(answer, about={"to": "end"})
    found = [admissible(truth, asked, group, [Poll(1, at, at)]) for at in (answer.asked, answer.answered)]
    known = [some for some in found if some is not None]
    if len(known) < len(found):
        return None
    return set.union(*known) & set(AT_ONCE) | {"unknown"}


def spoil(truth: Truth, answer: Answer, rng: random.Random) -> Answer | None:
    """The answer with a status that is wrong."""
    content = copy.deepcopy(answer.content)
    rows = [(row, wanted) for row in content["groups"] if (wanted := statuses(truth, answer, row["group"])) is not None]
    wrong = [(row, status) for row, wanted in rows for status in AT_ONCE if status not in wanted]
    if not wrong:
        return None
    row, status = rng.choice(wrong)
    row["group_status"] = status
    return replace(answer, content=content)
