"""Sums of lag, for each group or each topic of a group: `groupkeeper groups offsets --sum`."""

import copy
import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from tests.rig.asking import Answer, Desk, Difference, Verdict
from tests.rig.judges.members import CALM_NS, DEATH_NS
from tests.rig.truth import Between, Truth

NAME = "sums"
COLUMNS = ("partitions", "uncommitted_partitions", "unknown", "lag", "max_lag", "lost", "uncommitted")

Place = tuple[str, int]


class Part(NamedTuple):
    """What one partition adds to a sum; None: nothing, as nothing is committed, or as something is."""

    lag: Between | None
    lost: Between | None
    uncommitted: Between | None


def ask(desk: Desk, cluster: str, rng: random.Random, truth: Truth) -> Answer:
    by, target = rng.choice(["group", "topic"]), rng.choice(["end", "lso"])
    answer = desk.ask(cluster, "groups", "offsets", "--all-groups", "--sum", by, "--lag-to", target)
    return replace(answer, about={"by": by, "to": target})


def judge(truth: Truth, answer: Answer) -> Verdict:
    verdict = Verdict()
    cluster, by = answer.cluster, answer.about["by"]
    rows: dict[str, dict[str | None, dict[str, Any]]] = {}
    for row in answer.content[f"lag_by_{by}"]:
        rows.setdefault(row["group"], {})[row.get("topic")] = row
    for group in sorted(truth.groups(cluster, answer.asked) | rows.keys()):
        parts = parts_of(truth, answer, group, verdict)
        if parts is None:
            continue
        wanted: dict[str | None, list[Part]] = {} if by == "topic" else {None: []}
        for (name, _), part in parts.items():
            wanted.setdefault(name if by == "topic" else None, []).append(part)
        found = rows.get(group, {})
        if not parts and not found:
            continue  # all of its offsets were deleted, and it with them, perhaps
        for topic in sorted(wanted.keys() | found.keys(), key=str):
            verdict.comparisons += len(COLUMNS)
            for text in _row(found.get(topic), wanted.get(topic)):
                verdict.differences.append(Difference(NAME, cluster, f"{text} (by {by})", topic, group))
    verdict.differences += [Difference(NAME, cluster, f"problem {problem}", group=problem["group"])
                            for problem in answer.content["problems"]]  # fmt: skip
    return verdict


def parts_of(truth: Truth, answer: Answer, group: str, verdict: Verdict) -> dict[Place, Part] | None:
    """What the partitions of a group add; None: it is not known which those are."""
    cluster, asked, answered = answer.cluster, answer.asked, answer.answered
    name = (cluster, group)
    if any(key[:2] == name for key in truth.shared):
        verdict.leave(f"{NAME}: a share group, whose partitions are judged one by one")
        return None
    has_members = bool(truth.joining.get(name) or truth.assigned.get(name))
    if has_members and not truth.is_calm(*name, asked - CALM_NS, answered + CALM_NS, DEATH_NS):
        verdict.leave(f"{NAME}: the group was rebalancing")
        return None
    places = {key[2:]: truth.committed(key, asked, answered) for key in truth.by_group.get(name, ())}
    assigned = {(topic, at) for one in truth.members(*name, asked).values() for topic, at in one.places}
    if any((cluster, *place) not in truth.logs or truth.is_changing(cluster, place[0], asked)
           or (cluster, place[0]) in truth.removed for place in assigned | places.keys()):  # fmt: skip
        verdict.leave(f"{NAME}: a topic was being changed")
        return None
    if any(None in some and len(some) > 1 for some in places.values()):
        verdict.leave(f"{NAME}: a first commit was under way")
        return None
    offsets = {place: [one.offset for one in some if one is not None] for place, some in places.items()}
    added = _added(truth, answer, {place for place, some in offsets.items() if some} - assigned)
    if added and not assigned and any(not records.low and records.high for records in added.values()):
        verdict.leave(f"{NAME}: the first records of an added partition were coming")
        return None
    there = set() if assigned else {place for place, records in added.items() if records.low}
    return {place: _part(truth, answer, place, offsets.get(place, []))
            for place in sorted(assigned | there | {place for place, some in offsets.items() if some})}  # fmt: skip


def _added(truth: Truth, answer: Answer, committed: set[Place]) -> dict[Place, Between]:
    """The records of partitions that topics have got, where a group has committed in all the others."""
    found: dict[Place, Between] = {}
    for topic in {topic for topic, _ in committed}:
        known = {partition for name, partition in committed if name == topic}
        if known == set(range(len(known))):
            for partition in range(len(known), truth.topics[answer.cluster, topic].partitions):
                log = truth.logs[answer.cluster, topic, partition]
                ends = answer.asked, answer.answered
                found[topic, partition] = _gap(log.end(*ends), log.start(*ends))
    return found


def is_beyond(truth: Truth, answer: Answer, group: str, *, surely: bool) -> bool:
    """Whether an offset of the group is committed past the end of its log, or may be."""
    ends = answer.asked, answer.answered
    for key in truth.by_group.get((answer.cluster, group), ()):
        log = truth.logs.get((answer.cluster, *key[2:]))
        offsets = [one.offset for one in truth.committed(key, *ends) if one is not None]
        if log is None or not offsets:
            continue
        end = log.end(*ends)
        if min(offsets) > end.high if surely else max(offsets) > end.low:
            return True
    return False


def _part(truth: Truth, answer: Answer, place: Place, offsets: list[int]) -> Part:
    at = (answer.cluster, *place)
    asked, answered = answer.asked, answer.answered
    start = truth.logs[at].start(asked, answered)
    is_stable = answer.about["to"] == "lso"
    end = truth.last_stable(at, asked, answered) if is_stable else truth.logs[at].end(asked, answered)
    if not offsets:
        return Part(None, None, _gap(end, start))
    commit = Between(min(offsets), max(offsets))
    return Part(_gap(end, commit), _gap(start, commit), None)


def _gap(upper: Between, lower: Between) -> Between:
    return Between(max(0, upper.low - lower.high), max(0, upper.high - lower.low))


def _row(row: dict[str, Any] | None, parts: list[Part] | None) -> Iterable[str]:
    if row is None or parts is None:
        yield f"{'no row' if row is None else row}, truth {parts}"
        return
    lags = [part.lag for part in parts if part.lag is not None]
    uncommitted_partitions = len(parts) - len(lags)
    wanted: dict[str, Between | None] = {
        "partitions": Between(len(parts), len(parts)),
        "uncommitted_partitions": Between(uncommitted_partitions, uncommitted_partitions),
        "unknown": Between(0, 0),
        "lag": _total(lags),
        "max_lag": Between(max(one.low for one in lags), max(one.high for one in lags)) if lags else None,
        "lost": _total([part.lost for part in parts if part.lost is not None]),
        "uncommitted": _total([part.uncommitted for part in parts if part.uncommitted is not None]) or Between(0, 0),
    }
    for name, bounds in wanted.items():
        if (row[name] is not None) if bounds is None else row[name] not in bounds:
            yield f"{name} {row[name]}, truth {bounds}"


def _total(some: list[Between]) -> Between | None:
    return Between(sum(one.low for one in some), sum(one.high for one in some)) if some else None


def spoil(truth: Truth, answer: Answer, rng: random.Random) -> Answer | None:
    """One number that is wrong, or a row too few, of a group that can be judged."""
    content = copy.deepcopy(answer.content)
    rows = content[f"lag_by_{answer.about['by']}"]
    judged = [row for row in rows if parts_of(truth, answer, row["group"], Verdict())]
    if not judged:
        return None
    row = rng.choice(judged)
    name = rng.choice([*COLUMNS, "row"])
    if name == "row":
        rows.remove(row)
    else:
        row[name] = 1 << 40 if row[name] is None else row[name] + (1 << 40)
    return replace(answer, content=content)
