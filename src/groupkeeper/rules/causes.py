"""Why a group does not move: one ladder of causes. The first rung that fits is the reason; the others are told too."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from groupkeeper.rules.progress import Trend, trend
from groupkeeper.rules.words import waiting


class Cause(StrEnum):
    """In the order in which they are looked for: what is above explains what is below."""

    NO_MEMBERS = "no_members"
    REBALANCING = "rebalancing"
    TRANSACTION = "open_transaction"
    NO_LEADER = "no_leader"
    NO_RIGHTS = "no_rights"
    UNASSIGNED = "unassigned"
    OUT_OF_RANGE = "out_of_range"
    NEVER_COMMITTED = "never_committed"
    STUCK = "stuck"
    SLOW = "slow"
    UNREAD = "unread"


class Pace(NamedTuple):
    """Records a second between two looks. ``has_waited``: whether there was something to read at the first one."""

    produced: float
    consumed: float
    has_waited: bool = True


class Place(NamedTuple):
    """What is known of a partition of a group. ``is_held``: an open transaction begins where the group reads on.
    ``is_assigned``: to a member. ``is_read``: whether a member reads the topic, as far as that is known; topics that
    none reads do not count in the group's status. ``has_open_start``: nothing is committed, and there are records.
    ``rate`` None: there was only one look.
    """

    waiting: int | None = None
    is_leaderless: bool = False
    is_forbidden: bool = False
    is_held: bool = False
    is_assigned: bool = True
    is_read: bool = True
    is_out_of_range: bool = False
    has_open_start: bool = False
    rate: Pace | None = None


_FEW_S = 10
"""Two usual times between commits."""

REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
"""States of a group of any type while partitions change hands."""


def cause_of_group(
    state: str, members: int, *, moves: bool, is_simple: bool = False, has_rebalanced: bool = False
) -> Cause | None:
    """What holds the whole group. ``has_rebalanced``, ``moves`` (it has committed, as a program may without a member):
    between the looks. ``is_simple``: it never has members, its program only commits.
    """
    if state in REBALANCING or (has_rebalanced and members):
        return Cause.REBALANCING
    return None if members or moves or is_simple else Cause.NO_MEMBERS


def no_members(records: int) -> str:
    """That cause, as a sentence without its end."""
    return f"the group has no members, and {waiting(records, 'record')}: start its consumers, and watch them join"


def cause_of_place(place: Place, *, has_members: bool) -> Cause | None:
    """What holds a group in one partition; None: nothing that is known. Without members only what would hold them. The
    program of a simple group counts as one.
    """
    if place.is_leaderless:
        return Cause.NO_LEADER
    if place.is_forbidden:
        return Cause.NO_RIGHTS
    if place.is_held and place.is_read:
        return Cause.TRANSACTION
    if not place.waiting and not place.has_open_start and not place.is_out_of_range:
        return None
    if has_members and not place.is_assigned:
        return Cause.UNASSIGNED if place.is_read else Cause.UNREAD
    if place.is_out_of_range:
        return Cause.OUT_OF_RANGE
    if not has_members:
        return None
    if place.has_open_start:
        return Cause.NEVER_COMMITTED
    is_stuck = place.rate is not None and place.rate.has_waited and place.rate.consumed <= 0
    return Cause.STUCK if is_stuck else None


def is_slow(rate: Pace, waiting: int) -> bool:
    """Whether a group that moves does not catch up. What it reads in a few seconds may always wait."""
    is_much = waiting > _FEW_S * rate.consumed > 0
    return is_much and trend(rate.produced, rate.consumed, waiting) is Trend.GROWING
