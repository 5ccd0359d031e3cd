"""Members with what they are assigned, and the states of groups, once a group has come to rest."""

import copy
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tests.rig.asking import Answer, Desk, Difference, Verdict
from tests.rig.truth import Truth

NAME = "members"
CALM_NS = 4_000_000_000
"""So long nothing must have happened in a group, as the client and the broker learn of it one after the other."""

DEATH_NS = 40_000_000_000
"""So long a member that was killed may still be there."""


def ask(desk: Desk, cluster: str, rng: random.Random, truth: Truth) -> Answer:
    members = desk.ask(cluster, "groups", "members", "--all-groups")
    states = desk.ask(cluster, "groups", "describe", "--all-groups", "--view", "state")
    content = {"members": members.content["members"], "groups": states.content["groups"]}
    return Answer(cluster, members.asked, states.answered, content)


def judge(truth: Truth, answer: Answer) -> Verdict:
    verdict = Verdict()
    shown = {row["group"] for part in ("groups", "members") for row in answer.content[part]}
    for where, group in sorted(truth.never):
        if where == answer.cluster:
            verdict.comparisons += 1
            if group in shown:
                text = "is there, truth: a reader that never joins or commits"
                verdict.differences.append(Difference(NAME, where, text, group=group))
    rows = {row["group"]: row for row in answer.content["groups"]}
    for where, group in sorted(set(truth.by_group) | set(truth.assigned)):
        if where != answer.cluster or group not in rows:
            continue
        if not _is_calm(truth, answer, group):
            verdict.leave("members: the group was rebalancing")
            continue
        for text in _group(truth, answer, rows[group]):
            verdict.differences.append(Difference(NAME, where, text, group=group))
        verdict.comparisons += 3
    return verdict


def _is_calm(truth: Truth, answer: Answer, group: str) -> bool:
    return truth.is_calm(answer.cluster, group, answer.asked - CALM_NS, answer.answered + CALM_NS, DEATH_NS)


def _group(truth: Truth, answer: Answer, row: Mapping[str, Any]) -> Iterable[str]:
    group, state, count = row["group"], row["state"], row["members"]
    members = truth.members(answer.cluster, group, answer.asked)
    wanted = {actor: sorted((topic, place) for topic, place in one.places) for actor, one in members.items()}
    rows = [one for one in answer.content["members"] if one["group"] == group]
    found = {one["client_id"]: _places(one["assignment"]) for one in rows}
    if state == "Reconciling" and any(_is_behind(one, row["group_epoch"]) for one in rows):
        pass  # librdkafka 2.16, which commits all the time, may put off for minutes what it is to give back
    elif state != ("Stable" if wanted else "Empty"):
        yield f"state {state}, truth {'Stable' if wanted else 'Empty'}"
    if count != len(wanted):
        yield f"{count} members, truth {len(wanted)}"
    for actor in sorted(wanted.keys() | found.keys()):
        if wanted.get(actor) != found.get(actor):
            yield f"member {actor} has {found.get(actor)}, truth {wanted.get(actor)}"


def _is_behind(member: Mapping[str, Any], group_epoch: int | None) -> bool:
    """Whether a member of a consumer group is not yet where the group is."""
    if group_epoch is None:
        return False
    return member["epoch"] < group_epoch or _places(member["assignment"]) != _places(member["target_assignment"])


def _places(assignment: Iterable[Mapping[str, Any]]) -> list[tuple[str, int]]:
    return sorted((place["topic"], place["partition"]) for place in assignment)


def spoil(truth: Truth, answer: Answer, rng: random.Random) -> Answer | None:
    content = copy.deepcopy(answer.content)
    known = {group for where, group in set(truth.by_group) | set(truth.assigned) if where == answer.cluster}
    calm = [row for row in content["groups"] if row["group"] in known and _is_calm(truth, answer, row["group"])]
    never = [group for where, group in sorted(truth.never) if where == answer.cluster]
    if never and rng.random() < 0.3:
        content["groups"].append({"group": rng.choice(never)})
        return replace(answer, content=content)
    if not calm:
        return None
    rng.choice(calm)["state"] = "NotReady"
    return replace(answer, content=content)
