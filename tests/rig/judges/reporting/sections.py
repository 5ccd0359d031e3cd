"""The section of each group on the report's page: its partitions and members, also of those that are packed."""

import base64
import gzip
import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.rig.asking import Verdict
from tests.rig.judges.members import CALM_NS, DEATH_NS
from tests.rig.judges.pages import Line, Page
from tests.rig.judges.reporting.resting import Resting, name_of, place_of

NAME = "report"
LONGEST_NAME = 60
_PACKS = re.compile(r'<script type="text/plain" data-pack="sections"[^>]*>([^<]+)</script>')
_SECTIONS = re.compile(r'<details class="card group" id="(g-[0-9a-f]+)">(.*?)</details>', re.DOTALL)


@dataclass(frozen=True)
class Section:
    """What stands in the section of a group. `is_whole`: all of its partitions and members are there."""

    facts: Line
    partitions: list[Line]
    members: list[Line]
    is_whole: bool = True


def read(html: str) -> dict[str, Section]:
    """The sections of a page, by what they are called."""
    packed = (gzip.decompress(base64.b64decode(pack)).decode() for pack in _PACKS.findall(html))
    found = {}
    for part in (html, *packed):
        for name, text in _SECTIONS.findall(part):
            page = Page(text)
            (_, facts), *_ = page.numbers
            is_whole = "In the tables:" not in text
            found[name] = Section(facts, page.tables.get("partitions", []), page.tables.get("members", []), is_whole)
    return found


def called(cluster: str, group: str) -> str:
    """What the section of a group is called."""
    return "g-" + hashlib.sha256(f"{cluster}\0{group}".encode()).hexdigest()[:12]


def judge(
    resting: Resting, content: Mapping[str, Any], sections: Mapping[str, Section], verdict: Verdict
) -> Iterator[tuple[str, str, str]]:  # fmt: skip
    for group in content["groups"]:
        name = name_of(group)
        section = sections.get(called(*name))
        verdict.comparisons += 1
        if section is None:
            yield *name, "it has no section"
            continue
        for text in (*_partitions(resting, name, section, verdict), *_members(resting, name, section, verdict)):
            yield *name, f"section: {text}"


def _partitions(resting: Resting, name: tuple[str, str], section: Section, verdict: Verdict) -> Iterator[str]:
    keys = resting.keys(*name)
    if keys is None or not section.is_whole or any(resting.offset(key) == -1 for key in keys):
        verdict.leave(f"{NAME}: the partitions in a section that leaves some out, or of topics that were changed")
        return
    wanted = {}
    for key in keys:
        offset = resting.offset(key)
        if offset is not None:
            lag = max(0, resting.end(key) - max(0, offset))
            wanted[key[2:]] = tuple(f"{one:,}" for one in (offset, resting.end(key), lag))
    found = {place_of(line["partition"]): (line["committed offset"], line["log end"], line["lag"])
             for line in section.partitions}  # fmt: skip
    verdict.comparisons += 3 * len(wanted)
    verdict.counts["sections of the report: partitions judged"] += 1
    for place in sorted(found.keys() | wanted.keys()):
        if found.get(place) != wanted.get(place):
            yield f"committed, log end and lag of {place} {found.get(place)}, truth {wanted.get(place)}"


def _members(resting: Resting, name: tuple[str, str], section: Section, verdict: Verdict) -> Iterator[str]:
    truth, answer = resting.truth, resting.answer
    if not truth.is_calm(*name, answer.asked - CALM_NS, answer.answered + CALM_NS, DEATH_NS) or not section.is_whole:
        verdict.leave(f"{NAME}: the members in a section of a group that was rebalancing")
        return
    wanted = Counter(actor for actor in truth.members(*name, answer.asked) if len(actor) < LONGEST_NAME)
    if not truth.types.get(name):
        return  # of groups without members, and of those whose types take turns
    verdict.comparisons += 1
    if truth.types[name] in ("Classic", "Consumer") and Counter(line["client"] for line in section.members) != wanted:
        yield f"members {sorted(line['client'] for line in section.members)}, truth {sorted(wanted)}"


def spoilt(
    resting: Resting, content: Mapping[str, Any], sections: Mapping[str, Section], rng: random.Random
) -> Iterator[tuple[str, dict[str, Section]]]:  # fmt: skip
    """With one thing wrong, in each way."""
    names = {called(*name_of(group)): name_of(group) for group in content["groups"]}
    whole = dict(sections)
    known = [one for one in whole if one in names and whole[one].partitions
             and _is_judged(_partitions, resting, names[one], whole[one])]  # fmt: skip
    if known:
        one = rng.choice(known)
        first, *others = whole[one].partitions
        for column in ("committed offset", "log end", "lag"):
            rows = [{**first, column: "7,777,777"}, *others]
            yield f"another {column} in a section", {**whole, one: replace(whole[one], partitions=rows)}
        yield "a partition too few in a section", {**whole, one: replace(whole[one], partitions=others)}
        yield "a section too few", {name: section for name, section in whole.items() if name != one}
    calm = [one for one in whole if one in names and resting.truth.types.get(names[one]) in ("Classic", "Consumer")
            and whole[one].members and _is_judged(_members, resting, names[one], whole[one])]  # fmt: skip
    if calm:
        one = rng.choice(calm)
        yield "a member too few in a section", {**whole, one: replace(whole[one], members=whole[one].members[1:])}


def _is_judged(judged: Any, resting: Resting, name: tuple[str, str], section: Section) -> bool:
    verdict = Verdict()
    return not list(judged(resting, name, section, verdict)) and verdict.comparisons > 0
