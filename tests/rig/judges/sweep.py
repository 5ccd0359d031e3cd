"""`plan sweep`: which offsets would go or be committed again by the times of commits, and the reason that is given."""

import copy
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from tests.rig.asking import Answer, Desk, Difference, Verdict
from tests.rig.facts import Assigned
from tests.rig.judges.members import CALM_NS, DEATH_NS
from tests.rig.truth import Between, Truth

NAME = "sweep"
MS = 1_000_000
RETENTION_MS = 3_600_000

Place = tuple[str, int]


def ask(desk: Desk, cluster: str, rng: random.Random) -> Answer:
    """Plans to delete what is idle for some seconds, or to commit again what expires soon, while everything rests."""
    age_s = rng.choice([0, 2, 10, 20])
    kind = rng.choice(["idle", "expiring"])
    if kind == "idle":
        words = ["--idle", f"PT{age_s}S", "--missing-topics"]
    else:  # what is older than the age: it expires before that much of the retention is left
        words = ["--expiring", f"PT{RETENTION_MS // 1000 - age_s}S", "--retention", f"PT{RETENTION_MS // 1000}S"]
    answer = desk.ask(cluster, "plan", "sweep", "--all-groups", *words)
    return replace(answer, about={"kind": kind, "age_ms": age_s * 1000})


def judge_with_defects(truth: Truth, answer: Answer, rng: random.Random) -> Verdict:
    """Once those who look on have written down where logs began meanwhile: retention cuts them at rest, too."""
    verdict = judge(truth, answer)
    if not verdict.differences:
        for what, worse in spoilt(truth, answer, rng):
            verdict.seeded += 1
            if not judge(truth, worse).differences:
                verdict.missed.append(f"{NAME}: {what} in a sweep of what is {answer.about['kind']}")
    return verdict


def judge(truth: Truth, answer: Answer) -> Verdict:
    verdict = Verdict()
    rows: dict[str, dict[Place, dict[str, Any]]] = {}
    for row in answer.content["changes"]:
        rows.setdefault(row["group"], {})[row["topic"], row["partition"]] = row
    known = truth.groups(answer.cluster, answer.answered)
    for group in sorted(known | rows.keys()):
        for text in _group(truth, answer, group, rows.get(group, {}), verdict):
            verdict.differences.append(Difference(NAME, answer.cluster, text, group=group))
    for problem in answer.content["problems"]:
        verdict.differences.append(Difference(NAME, answer.cluster, f"problem {problem}", group=problem["group"]))
    return verdict


def _group(
    truth: Truth, answer: Answer, group: str, rows: Mapping[Place, dict[str, Any]], verdict: Verdict
) -> Iterable[str]:
    """What is wrong with the rows of a group. All its topics count, as a group is idle as a whole."""
    cluster, asked, answered = answer.cluster, answer.asked, answer.answered
    commits = {key[2:]: truth.committed(key, asked, answered) for key in truth.by_group.get((cluster, group), ())}
    gone = {place: row for place, row in rows.items() if "exist" in row["why"] or "no such partition" in row["why"]}
    yield from (f"{place} is said to be of no topic" for place in gone if (cluster, *place) in truth.logs)
    if any(truth.is_changing(cluster, topic, asked) or (cluster, topic) in truth.removed for topic, _ in commits):
        verdict.leave(f"{NAME}: a topic of the group was being changed")
        return
    members = _members(truth, answer, group)
    if members is None:
        verdict.leave(f"{NAME}: the group was rebalancing")
        return
    surely = {place: some[0] for place, some in commits.items() if len(some) == 1 and some[0] is not None}
    times = {place: Between(*(at // MS for at in one.times)) for place, one in surely.items()}
    reads = {topic for one in members.values() for topic, _ in one.places}
    since = None if members else _empty_since(truth, cluster, group)
    for place, commit in sorted(surely.items()):
        verdict.comparisons += 2
        row = rows.get(place)
        is_idle = answer.about["kind"] == "idle"
        time = _last(one for tp, one in times.items() if not members or tp[0] == place[0]) if is_idle else times[place]
        # Of a group with members what it has left is swept; only its members can commit again.
        wanted = False if place[0] in reads or (members and not is_idle) else _is_old(answer, time, since)
        if answer.about["kind"] == "expiring" and wanted is not False:
            log = truth.logs[(cluster, *place)]
            start, end = log.start(asked, answered), log.end(asked, answered)
            if not start.low <= commit.offset <= end.high:
                wanted = False  # what is outside of the log is left alone
            elif since is not None or not start.high <= commit.offset <= end.low:
                wanted = None
        if wanted is not None and wanted != (row is not None):
            yield f"{place} is {'not ' * (row is None)}swept, truth {'it is' if wanted else 'it is not'}: {time} ms"
        elif row is not None and place not in gone:
            yield from _row(answer, place, row, commit.offset, time)
    yield from (f"{place} is swept, truth nothing is committed" for place in rows.keys() - commits.keys() - gone.keys())


def _members(truth: Truth, answer: Answer, group: str) -> Mapping[str, Assigned] | None:
    """Those of the group by actor; None: not known, as it is not at rest."""
    name = (answer.cluster, group)
    if not truth.joining.get(name) and not truth.assigned.get(name):
        return {}
    if not truth.is_calm(*name, answer.asked - CALM_NS, answer.answered + CALM_NS, DEATH_NS):
        return None
    return truth.members(*name, answer.asked)


def _last(times: Iterable[Between]) -> Between:
    some = list(times)
    return Between(max(one.low for one in some), max(one.high for one in some))


def _empty_since(truth: Truth, cluster: str, group: str) -> Between | None:
    """When the last member of a group left it, in ms; None: it never had one."""
    left = truth.left.get((cluster, group), [])
    if not left:
        return None
    return Between(max(one.began for one in left) // MS, max(one.ended for one in left) // MS)


def _is_old(answer: Answer, time: Between, since: Between | None) -> bool | None:
    """Whether it is as old as asked for; None: it came to be that while the question was on its way."""
    age_ms = answer.about["age_ms"]
    if time.low + age_ms > answer.answered // MS:
        return False
    # Since when a group of the consumer protocol has been without members is not in the offsets topic.
    is_sure = since is None or since.high + age_ms <= answer.asked // MS
    return True if is_sure and time.high + age_ms <= answer.asked // MS else None


def _row(answer: Answer, place: Place, row: Mapping[str, Any], offset: int, time: Between) -> Iterable[str]:
    is_idle = answer.about["kind"] == "idle"
    wanted = (offset, None if is_idle else offset)
    if (row["before"], row["after"]) != wanted:
        yield f"{place} goes from {row['before']} to {row['after']}, truth {wanted}"
    said = re.search(r"\d{4}-\d\d-\d\dT[\d:.]+Z", row["why"])
    if said is None or not row["why"].startswith("last commit" if is_idle else "expires"):
        yield f"{place} gives {row['why']!r} as the reason, truth a time"
        return
    at = round(datetime.fromisoformat(said[0]).timestamp() * 1000) - (0 if is_idle else RETENTION_MS)
    if at not in time:
        yield f"{place}: {row['why']!r}, truth {time} ms"


def spoilt(truth: Truth, answer: Answer, rng: random.Random) -> Iterable[tuple[str, Answer]]:
    """With a row too few, a wrong offset, and reasons that are not so."""
    sure = [
        number
        for number, row in enumerate(answer.content["changes"])
        if not truth.joining.get((answer.cluster, row["group"])) and _is_judged(truth, answer, row)
    ]
    if not sure:
        return
    for what in ("a row too few", "a wrong offset", "another time", "a topic that is said to be missing"):
        content = copy.deepcopy(answer.content)
        row = content["changes"][rng.choice(sure)]
        match what:
            case "a row too few":
                content["changes"].remove(row)
            case "a wrong offset":
                row["before"] += 1
            case "another time":
                row["why"] = re.sub(r"\d{4}-", "2001-", row["why"], count=1)
            case _:
                row["why"] = "the topic does not exist"
        yield what, replace(answer, content=content)


def _is_judged(truth: Truth, answer: Answer, row: Mapping[str, Any]) -> bool:
    """Whether it is sure that the row must be there."""
    quiet = replace(answer, content={"changes": [], "problems": []})
    wanted = f"({row['topic']!r}, {row['partition']}) is not swept"
    return any(wanted in text for text in _group(truth, quiet, row["group"], {}, Verdict()))
