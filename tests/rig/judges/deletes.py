"""Deleting groups and committed offsets of groups without members: shown, done, and taken back byte for byte."""

import copy
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tests.rig.asking import Answer, Desk, Difference, Verdict
from tests.rig.facts import Notebook
from tests.rig.judges.plans import Commit, Place, Scenario, idle_groups, literal, read_commits
from tests.rig.truth import Truth

NAME = "deletes"

WHOLE, SOME, PLANNED = "groups delete", "groups delete-offsets", "plan delete-offsets"


def act(desk: Desk, cluster: str, rng: random.Random, truth: Truth, notebook: Notebook) -> Verdict:
    """Deletes a group, or some of its offsets, and takes that back, while everything rests."""
    verdict = Verdict()
    groups = idle_groups(truth, cluster)
    if not groups:
        verdict.leave("deletes: no group without members")
        return verdict
    group = rng.choice(groups)
    before = read_commits(desk.servers[cluster], group)
    if not before:
        verdict.leave("deletes: the group has no offsets now")
        return verdict
    way = rng.choice([WHOLE, SOME, PLANNED])
    topics = {topic for topic, _ in before}
    chosen = topics if way == WHOLE else set(rng.sample(sorted(topics), rng.randint(1, len(topics))))
    scenario = Scenario(NAME, desk, cluster, group, verdict, notebook)
    plan = desk.folder / "deletion.json"
    words = {
        WHOLE: ["groups", "delete"],
        SOME: ["groups", "delete-offsets", *_options(chosen)],
        PLANNED: ["plan", "delete-offsets", *_options(chosen), "--save", str(plan)],
    }[way]
    name = ["--", group if way == SOME else literal(group)]
    going = {place: one for place, one in before.items() if place[0] in chosen}
    shown = replace(desk.ask(cluster, *words, *name), about={"way": way, "group": group})
    _judge_shown(shown, going, verdict, rng)
    scenario.same("before it was to be done", read_commits(desk.servers[cluster], group), before)
    done = ["--execute", "--confirm", "1"]
    scenario.change(*(["apply", str(plan), *done] if way == PLANNED else [*words, *done, *name]))
    deleted = read_commits(desk.servers[cluster], group)
    scenario.same(f"after {way}", deleted, {place: one for place, one in before.items() if place not in going})
    if way == WHOLE:
        scenario.is_there(False)
    scenario.write_down(before, deleted)
    if rng.random() < 0.8:
        scenario.take_back(truth, before, deleted, rng)
        scenario.is_there(True)
    return verdict


def _options(topics: Iterable[str]) -> list[str]:
    return [word for topic in sorted(topics) for word in ("--topic", topic)]


def _judge_shown(answer: Answer, going: Mapping[Place, Commit], verdict: Verdict, rng: random.Random) -> None:
    found = judge(answer, going)
    verdict.add(found)
    if not found.differences:
        for worse in spoilt(answer, rng):
            verdict.seeded += 1
            if not judge(worse, going).differences:
                verdict.missed.append(f"{NAME}: a seeded defect in what {answer.about['way']} shows")


def judge(answer: Answer, going: Mapping[Place, Commit]) -> Verdict:
    """What the command shows before anything is deleted."""
    verdict = Verdict()
    way, group = answer.about["way"], answer.about["group"]
    found: dict[Any, Any]
    wanted: dict[Any, Any]
    if way == WHOLE:
        found = {row["group"]: (row["offsets"], row["result"]) for row in answer.content["deleted"]}
        wanted = {group: (len(going), "would be deleted")}
        verdict.comparisons += 2
    else:
        rows = answer.content["changes" if way == PLANNED else "deleted"]
        found = {(row["topic"], row["partition"]): _offset(row, way) for row in rows}
        wanted = {place: (one[0], None if way == PLANNED else "would be deleted") for place, one in going.items()}
        verdict.comparisons += 2 * len(wanted)
    if answer.status or answer.content["problems"]:
        text = f"{way} ended with {answer.status}: {answer.content['problems']} {answer.errors[:300]}"
        verdict.differences.append(Difference(NAME, answer.cluster, text, group=group))
    if found != wanted:
        text = f"{way} shows {found}, truth {wanted}"
        verdict.differences.append(Difference(NAME, answer.cluster, text, group=group))
    return verdict


def _offset(row: Mapping[str, object], way: str) -> tuple[object, object]:
    return (row["before"], row["after"]) if way == PLANNED else (row["deleted_offset"], row["result"])


def spoilt(answer: Answer, rng: random.Random) -> Iterable[Answer]:
    """With a wrong number, with something else than was asked for, and with a row too few."""
    way = answer.about["way"]
    rows = "changes" if way == PLANNED else "deleted"
    column = {WHOLE: "offsets", SOME: "deleted_offset", PLANNED: "before"}[way]
    for wrong in ("number", "verb", "row"):
        content = copy.deepcopy(answer.content)
        row = rng.choice(content[rows])
        match wrong:
            case "number":
                row[column] += 1
            case "verb":
                row["after" if way == PLANNED else "result"] = "deleted"
            case _:
                content[rows].remove(row)
        yield replace(answer, content=content)
