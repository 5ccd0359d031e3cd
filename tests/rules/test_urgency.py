"""Which groups are shown first: those of which something can still be saved. The cases are in `urgency.txt`."""

from collections import Counter
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from tests.rules.cases import FOLDER, ms

from groupkeeper.rules.status import Status
from groupkeeper.rules.urgency import TITLES, Urgency, UrgencyFacts, because, headline, next_step, order, urgency

_TIMES = {"wait": "wait_ms", "left": "left_ms", "still": "still_ms", "caught-up": "catch_up_ms"}
_FLAGS = {"old": "is_old", "watched": "is_watched", "never-commits": "never_commits"}


class Case(NamedTuple):
    """`said`: urgency and command."""

    name: str
    of: UrgencyFacts
    said: str
    why: str


def cases() -> list[Case]:
    lines = [line for line in (FOLDER / "urgency.txt").read_text("utf-8").splitlines() if line]
    return [
        Case(line, facts_of(line.partition(" -> ")[0]), line.partition(" -> ")[2], why.strip())
        for line, why in pairwise(lines)
        if why.startswith("  ")
    ]


def facts_of(text: str) -> UrgencyFacts:
    """The facts of a line."""
    given: dict[str, Any] = {"members": None, "why": "R"}
    status, *words = text.split()
    for word in words:
        name, _, value = word.partition("=")
        if name in _TIMES:
            given[_TIMES[name]] = ms(value)
        elif name in _FLAGS:
            given[_FLAGS[name]] = True
        elif name in ("members", "partitions"):
            given[name] = int(value)
        elif name == "grows":
            given["growth_per_s"] = float(value)
        elif value:
            given[name.replace("-", "_")] = value
        else:
            given["kind"] = name
    return UrgencyFacts(Status(status), **given)


CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_said(case: Case) -> None:
    assert f"{urgency(case.of)}: {' '.join(next_step(case.of))}" == case.said
    assert urgency(case.of) is Urgency.NONE or because(case.of) == case.why


def test_the_file_is_in_order() -> None:
    assert [before.name for before, after in pairwise(CASES) if order(before.of) > order(after.of)] == []
    assert {urgency(case.of) for case in CASES} == set(Urgency) == {*TITLES, Urgency.NONE}


def test_a_fleet_in_a_sentence() -> None:
    found = Counter({Urgency.EXPIRING: 1, Urgency.LEFT: 2, Urgency.SLIPPING: 3})
    assert headline(9, found, 1) == (
        "bad", "1 of 9 groups needs attention, and 2 without members are behind; the status of 1 is unknown"
    )  # fmt: skip
    assert headline(9, Counter(), 0) == ("good", "no group of 9 is known to need attention")
    assert headline(2, Counter(), 2) == ("none", "the status of 2 groups is unknown")
    assert headline(2, {Urgency.REST: 2}, 2)[0] == "bad"
    assert headline(0, Counter(), 0) == ("none", "there are no consumer groups")
