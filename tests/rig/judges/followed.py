"""What pages say of a group that no series has: its status, its trend, its type, and the tasks of streams groups."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tests.rig.asking import Answer, Verdict
from tests.rig.judges.members import CALM_NS, DEATH_NS
from tests.rig.judges.standings import STATUSES, admissible
from tests.rig.judges.trends import Poll, Range, Trends
from tests.rig.truth import Truth

NAME = "pages"
Line = dict[str, str]


class Watched(NamedTuple):
    """The polls of a cluster up to that of an answer, and what follows from them."""

    polls: list[Poll]
    trends: Trends


@dataclass
class Own:
    """One group: the numbers on its page, the tables of its members and of the parts of its topology, its row of the
    CSV, and its line of the list, {} where that does not show it.
    """

    facts: Line
    members: list[Line] = field(default_factory=list)
    topology: list[Line] = field(default_factory=list)
    row: Line = field(default_factory=dict)
    line: Line = field(default_factory=dict)


class Looked(NamedTuple):
    """What there is to be judged. `unsure`: groups of which the pages say that their time lag is not known, or is
    interpolated.
    """

    truth: Truth
    answer: Answer
    groups: Mapping[str, Own]
    unsure: set[str]

    @property
    def watched(self) -> Watched | None:
        """None: no poll was seen."""
        watched: Watched | None = self.answer.about.get("watched")
        return watched if watched is not None and watched.polls else None

    def is_calm(self, group: str) -> bool:
        """Whether nothing happens among its members."""
        since, until = self.answer.asked - CALM_NS, self.answer.answered + CALM_NS
        return self.truth.is_calm(self.answer.cluster, group, since, until, DEATH_NS)

    def kind(self, group: str) -> str:
        """Its type, "": not known."""
        return self.truth.types.get((self.answer.cluster, group), "")

    def statuses(self, group: str) -> set[str] | None:
        """What its status may be; None: not known."""
        if self.watched is None or group in self.unsure:
            return None
        return admissible(self.truth, self.answer, group, self.watched.polls)

    def trend(self, group: str) -> Range | None:
        """Within what its trend may be; None: not known."""
        watched = self.watched
        return None if watched is None else watched.trends.of(self.answer.cluster, group, watched.polls)


def judge(looked: Looked, verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Groups, with what is wrong."""
    for group, own in sorted(looked.groups.items()):
        verdict.comparisons += 5
        for texts in (_same(own), _type(looked, group, own), _streams(looked, group, own, verdict),
                      _status(looked, group, own, verdict), _trend(looked, group, own, verdict)):  # fmt: skip
            for text in texts:
                yield group, text


def _same(own: Own) -> Iterator[str]:
    """The page of a group, the CSV and the list say the same."""
    if own.row and own.row["status"] != own.facts["status"]:
        yield f"CSV: status {own.row['status']}, of its page {own.facts['status']}"
    if not own.line or not own.row:
        return
    if own.line["status"] != own.row["status"]:
        yield f"list: status {own.line['status']}, of the CSV {own.row['status']}"
    trend = _number(own.row["lag_change_per_s"])
    shown = own.line["lag change"].removesuffix("/s").replace(",", "")
    if (trend is None) != (shown == "—") or (trend is not None and abs(float(shown) - trend) > 0.0501):
        yield f"list: lag change {own.line['lag change']}, of the CSV {trend}"
    lag = _number(own.row["lag"])
    is_shrinking = bool(lag) and trend is not None and trend < 0
    if is_shrinking is (own.line["caught up in"] == "—"):
        yield f"list: caught up in {own.line['caught up in']}, of the CSV a lag of {lag} that changes by {trend}"


def _number(text: str) -> float | None:
    return float(text) if text else None


def _type(looked: Looked, group: str, own: Own) -> Iterator[str]:
    kind = looked.kind(group)
    if kind and own.facts["type"] != kind:
        yield f"type {own.facts['type']}, truth {kind}"


def _streams(looked: Looked, group: str, own: Own, verdict: Verdict) -> Iterator[str]:
    """Tasks, as they are named, and the parts of the topology."""
    if looked.kind(group) != "Streams":
        return
    if not looked.is_calm(group):
        verdict.leave(f"{NAME}: the streams group was rebalancing")
        return
    members = looked.truth.members(looked.answer.cluster, group, looked.answer.asked)
    verdict.comparisons += 4
    verdict.counts["streams groups on pages: judged"] += 1
    wanted = {actor: ", ".join(f"0_{partition}" for _, partition in sorted(one.places))
              for actor, one in members.items()}  # fmt: skip
    found = {line["client"]: line["active tasks"] for line in own.members}
    if found != wanted:
        yield f"tasks {found}, truth {wanted}"
    for line in own.members:
        others = (line["standby tasks"], line["warm-up tasks"], line["target tasks"])
        if others != ("none", "none", "as assigned"):
            yield f"standby, warm-up and target tasks of {line['client']} are {others}, truth none and as assigned"
    count = sum(len(one.places) for one in members.values())
    tasks = own.facts.get("active, standby, warm-up tasks")
    if tasks != f"{count} / 0 / 0":
        yield f"tasks by role {tasks}, truth {count} / 0 / 0"
    topics = ", ".join(sorted({topic for one in members.values() for topic, _ in one.places}))
    parts = [(line["part"], line["reads"], line["changelogs"]) for line in own.topology]
    if parts != [("0", topics, "—")]:
        yield f"topology {parts}, truth that part 0 reads {topics}"


def _status(looked: Looked, group: str, own: Own, verdict: Verdict) -> Iterator[str]:
    wanted, shown = looked.statuses(group), own.facts["status"]
    if wanted is None:
        verdict.leave(f"{NAME}: the status, where facts or the page don't know how long records have waited")
        return
    verdict.comparisons += 1
    verdict.counts[f"statuses on pages: {shown}"] += 1
    if shown not in wanted:
        yield f"status {shown}, truth {' or '.join(sorted(wanted))}"


def _trend(looked: Looked, group: str, own: Own, verdict: Verdict) -> Iterator[str]:
    wanted, shown = looked.trend(group), _number(own.row.get("lag_change_per_s", ""))
    if wanted is None or shown is None:
        verdict.leave(f"{NAME}: the trend, where a poll was not seen, or the group is large, shared or new")
        return
    verdict.comparisons += 1
    verdict.counts[f"lag trends on pages: {wanted.sort}"] += 1
    if not wanted.has(shown):
        yield f"lag changes by {shown:.3f}/s, truth {wanted.low:.3f} to {wanted.high:.3f}"


def spoilt(looked: Looked, rng: random.Random) -> tuple[str, Own] | None:
    """A group that is judged, with one thing wrong; None: this way none is."""
    way = rng.choice([_other_status, _other_trend, _other_type, _other_tasks, _other_topology])
    found = [(group, worse) for group, own in looked.groups.items() if (worse := way(looked, group, own, rng))]
    return rng.choice(found) if found else None


def _other_status(looked: Looked, group: str, own: Own, rng: random.Random) -> Own | None:
    wanted = looked.statuses(group)
    if wanted is None:
        return None
    other = {"status": rng.choice([one for one in STATUSES if one not in wanted])}
    return replace(own, facts=own.facts | other, row=own.row | other, line={})


def _other_trend(looked: Looked, group: str, own: Own, rng: random.Random) -> Own | None:
    """The other way round, where it is sure that it is not so."""
    bounds, shown = looked.trend(group), _number(own.row.get("lag_change_per_s", ""))
    if bounds is None or shown is None:
        return None
    other = bounds.high + 1 if bounds.has(-shown) else -shown
    return replace(own, row=own.row | {"lag_change_per_s": str(other)}, line={})


def _other_type(looked: Looked, group: str, own: Own, rng: random.Random) -> Own | None:
    return replace(own, facts=own.facts | {"type": "Unknown"}) if looked.kind(group) else None


def _other_tasks(looked: Looked, group: str, own: Own, rng: random.Random) -> Own | None:
    if looked.kind(group) != "Streams" or not looked.is_calm(group) or not own.members:
        return None
    first, *others = own.members
    return replace(own, members=[{**first, "active tasks": first["active tasks"].replace("0_0", "0_7")}, *others])


def _other_topology(looked: Looked, group: str, own: Own, rng: random.Random) -> Own | None:
    if looked.kind(group) != "Streams" or not looked.is_calm(group):
        return None
    return replace(own, topology=[{**line, "reads": "another"} for line in own.topology])
