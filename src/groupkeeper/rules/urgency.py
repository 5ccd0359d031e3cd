"""Which groups need attention: how urgent each is, in which order to show them, why, and what helps. Pages, the report,
alerts and commands pass in the facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from groupkeeper.rules.status import LAGGING_MS, RANKS, Status
from groupkeeper.rules.words import capitalized, counted, duration, rate, within

SOON_MS = 3600 * 1000
SLOW_MS = 3600 * 1000
STEADY_PER_S = 0.05


class Urgency(StrEnum):
    """Most urgent first. `expiring`: retention is about to remove records that the group has not read. `standing`:
    the group has members, and stands still or loses records. `behind`: its members read too slowly. `storm`: it
    rebalances all the time. `rest`: any other group that is not ok, or whose members commit nothing. `slipping`: ok
    now, but not for long at its present rates; needs no attention yet. `left`: abandoned, or without members for as
    long as its history is known; such groups are only counted, in one row. `none`: needs no attention.
    """

    EXPIRING = "expiring"
    STANDING = "standing"
    BEHIND = "behind"
    STORM = "storm"
    REST = "rest"
    SLIPPING = "slipping"
    LEFT = "left"
    NONE = "none"


TITLES: Mapping[Urgency, str] = {
    Urgency.EXPIRING: "Unread records are about to be removed",
    Urgency.STANDING: "Members are connected, but records stay unread or are lost",
    Urgency.BEHIND: "Consumers read too slowly",
    Urgency.STORM: "Members come and go all the time",
    Urgency.REST: "Records are not read, or nothing is committed",
    Urgency.SLIPPING: "Well now, but not at the present rates",
    Urgency.LEFT: "Without members, behind: review and sweep",
}
"""A title for the groups of each urgency, in order."""

TO_START: Mapping[str, str] = {
    "spark": "it is a Spark query: check in Spark whether it runs",
    "simple": "no member ever joins it: check the program that commits for it",
}
"""Advice for groups that have no members even while they are in use, by their kind."""

URGENCY_RANKS = {each: number for number, each in enumerate(Urgency)}
"""The rank of each urgency: 0 is the most urgent."""


class UrgencyFacts(NamedTuple):
    """Facts about a group that may need attention. Times are in ms, rates in records per second. None: not known,
    unless a field says otherwise.
    """

    status: Status
    members: int | None
    wait_ms: int | None = None
    """How long the next record of the partition with the group's status has waited."""
    left_ms: int | None = None
    """Time until retention may remove records that are not read; None: not known, not soon, or read in time."""
    left_in: str = ""
    """The partition of these records; empty: not known."""
    growth_per_s: float | None = None
    """The lag's growth, if it grows (`progress.trend`); None: it does not, or that is not known."""
    catch_up_ms: int | None = None
    """Time until the lag is 0; None: not known, or never."""
    still_ms: int | None = None
    """For how long the commit of that partition has not moved."""
    reader: str = ""
    """The member that reads that partition; empty: not known."""
    partitions: int = 0
    kind: str = ""
    """One of `TO_START`; any other text: members join the group."""
    is_old: bool = False
    """Whether no commit of the group was ever observed."""
    never_commits: bool = False
    """Whether partitions with records have no committed offset."""
    is_watched: bool = False
    """Whether an alert on the group fires."""
    why: str = ""
    """The reason for its status, without a full stop."""

    @property
    def grows(self) -> bool:
        return (self.growth_per_s or 0) >= STEADY_PER_S

    @property
    def stands(self) -> bool:
        """Whether the committed offset has not moved for a while, even if the group's patience has not ended."""
        return (self.still_ms or 0) >= LAGGING_MS


def urgency(facts: UrgencyFacts) -> Urgency:
    """How urgent a group is. Records that have been overdue for long lie in segments that retention keeps: they don't
    make a group without members urgent.
    """
    found = _unwatched(facts)
    return Urgency.REST if found is Urgency.LEFT and facts.is_watched else found


def _unwatched(facts: UrgencyFacts) -> Urgency:
    status, is_slow = facts.status, facts.status in (Status.LAGGING, Status.REWOUND)
    if status is Status.ABANDONED:
        return Urgency.LEFT
    if status is Status.UNKNOWN and facts.members and facts.never_commits:
        return Urgency.REST
    if RANKS[status] <= RANKS[Status.UNKNOWN]:
        is_late = facts.grows or (facts.catch_up_ms or 0) >= SLOW_MS or facts.left_ms is not None
        return Urgency.SLIPPING if is_late else Urgency.NONE
    if facts.left_ms is not None and facts.left_ms < SOON_MS and (facts.members or facts.left_ms > -SOON_MS):
        return Urgency.EXPIRING
    if facts.members == 0 and facts.is_old:
        return Urgency.LEFT
    if status is Status.UNSTABLE:
        return Urgency.STORM
    if not facts.members and not (is_slow and facts.kind in TO_START):
        return Urgency.REST
    return Urgency.BEHIND if is_slow else Urgency.STANDING


def order(facts: UrgencyFacts) -> tuple[int, int, float, int]:
    """A sort key, most urgent group first. Within `expiring`: groups with members, then the shortest time left;
    within `slipping`: growing lags, then the fastest or the slowest to catch up; else the longest wait.
    """
    found = urgency(facts)
    is_second, first = 0, float(-(facts.wait_ms or 0))
    if found is Urgency.EXPIRING:
        is_second, first = int(not facts.members), facts.left_ms or 0
    elif found is Urgency.SLIPPING:
        is_second = int(not facts.grows)
        first = -(facts.growth_per_s or 0) if facts.grows else -(facts.catch_up_ms or 0)
    elif found is Urgency.NONE:
        is_second = -RANKS[facts.status]
    return URGENCY_RANKS[found], is_second, first, -RANKS[facts.status]


def because(facts: UrgencyFacts) -> str:
    """Why a group needs attention, in sentences."""
    return " ".join(f"{each}." for each in _reasons(facts, urgency(facts)) if each)


def _reasons(facts: UrgencyFacts, found: Urgency) -> Iterator[str]:
    removed = ""
    if facts.left_ms is not None:
        of = f" of {facts.left_in}" if facts.left_in else ""
        removed = f"Unread records{of} may be removed {within(facts.left_ms)}"
    start = TO_START.get(facts.kind, "the group has no members: start its consumers") if facts.members == 0 else ""
    if found is Urgency.EXPIRING:
        yield f"{removed}{f', and {start}' if start else ''}"
        yield facts.why if facts.status is Status.LOSING else ""
        return
    if found is Urgency.STORM:
        yield f"{facts.why}: members come and go, or take too long between two polls"
        return
    is_late = found in (Urgency.BEHIND, Urgency.SLIPPING)
    if is_late and not facts.stands and facts.grows:
        read = ""
        if facts.members and facts.partitions:
            verb = "reads" if facts.members == 1 else "read"
            read = f"; {counted(facts.members, 'member')} {verb} {counted(facts.partitions, 'partition')}"
        yield f"Each second {rate(facts.growth_per_s or 0).removesuffix('/s')} more records are written than read{read}"
    elif is_late and not facts.stands and facts.catch_up_ms is not None:
        yield f"It catches up in {duration(facts.catch_up_ms)} if it goes on like this"
    yield facts.why
    if is_late and facts.stands:
        reader = f"; its member is {facts.reader}" if facts.reader else ""
        yield f"The committed offset has not moved for {duration(facts.still_ms)}{reader}"
    yield removed if found is not Urgency.LEFT else ""
    if facts.kind in TO_START:
        yield capitalized(start)


def next_step(facts: UrgencyFacts) -> tuple[str, ...]:
    """The `groupkeeper` command that helps or shows more, as its words before the group's name."""
    found = urgency(facts)
    if found is Urgency.LEFT:
        return "plan", "sweep", "--idle", "1d"
    if found is Urgency.STORM:
        return "groups", "watch"
    if facts.status is Status.UNKNOWN and found is not Urgency.SLIPPING:
        return "groups", "members"
    if found in (Urgency.BEHIND, Urgency.SLIPPING) and not facts.stands:
        return "groups", "offsets", "--trend", "10s"
    return ("groups", "describe") if found is Urgency.NONE else ("groups", "why")


def headline(total: int, found: Mapping[Urgency, int], unknown: int) -> tuple[str, str]:
    """The overall state of all groups, "good", "bad" or "none" (not known), and a sentence without a full stop.
    `found`: number of groups by urgency; `unknown`: number of groups with an unknown status.
    """
    if not total:
        return "none", "there are no consumer groups"
    needed = sum(found.get(each, 0) for each in Urgency if URGENCY_RANKS[each] < URGENCY_RANKS[Urgency.SLIPPING])
    left = found.get(Urgency.LEFT, 0)
    if unknown == total and not needed:
        return "none", f"the status of {counted(total, 'group')} is unknown"
    of = counted(total, "group")
    text = f"{needed:,} of {of} {'needs' if needed == 1 else 'need'} attention"
    text = text if needed else f"no group of {total:,} is known to need attention"
    text += f", and {left:,} without members {'is' if left == 1 else 'are'} behind" if left else ""
    text += f"; the status of {unknown:,} is unknown" if unknown else ""
    return "bad" if needed else "good", text
