"""Why a group does not move: an ordered list of causes. The first one that applies is the main reason."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from groupkeeper.rules.progress import Trend, trend
from groupkeeper.rules.words import waiting


class Cause(StrEnum):
    """Causes in the order in which they are checked: an earlier one explains a later one."""

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
    """Records per second between two measurements. `has_waited`: whether a record waited at the first one."""

    produced: float
    consumed: float
    has_waited: bool = True


class CauseFacts(NamedTuple):
    """Facts about a partition of a group."""

    waiting: int | None = None
    """The number of offsets that wait; None: unknown."""
    is_leaderless: bool = False
    is_forbidden: bool = False
    is_held: bool = False
    """Whether an open transaction holds back readers of committed records at the group's position."""
    is_assigned: bool = True
    """Whether it is assigned to a member."""
    is_read: bool = True
    """Whether a member reads the topic, True if not known. Topics that none reads don't count in the group's status."""
    is_out_of_range: bool = False
    has_open_start: bool = False
    """Whether no offset is committed, and the log has records."""
    rate: Pace | None = None
    """None: unknown, as after one measurement."""


_FEW_S = 10
"""Twice the usual time between commits."""

REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
"""States of a group of any type while partitions change hands."""


def cause_of_group(
    state: str, members: int, *, moves: bool, is_simple: bool = False, has_rebalanced: bool = False
) -> Cause | None:
    """The cause that stops the whole group, if any. `has_rebalanced`, `moves` (it committed, even without members):
    between the measurements. `is_simple`: the group never has members, a program only commits for it.
    """
    if state in REBALANCING or (has_rebalanced and members):
        return Cause.REBALANCING
    return None if members or moves or is_simple else Cause.NO_MEMBERS


def no_members(records: int) -> str:
    """The text for `Cause.NO_MEMBERS`, without a full stop. `records`: how many wait."""
    return f"the group has no members, and {waiting(records, 'record')}: start its consumers, and watch them join"


def cause_of_partition(facts: CauseFacts, *, has_members: bool) -> Cause | None:
    """The cause that stops a group in one partition; None: no known one. Without members, only causes that would stop
    future members. The program of a simple group counts as a member.
    """
    if facts.is_leaderless:
        return Cause.NO_LEADER
    if facts.is_forbidden:
        return Cause.NO_RIGHTS
    if facts.is_held and facts.is_read:
        return Cause.TRANSACTION
    if not facts.waiting and not facts.has_open_start and not facts.is_out_of_range:
        return None
    if has_members and not facts.is_assigned:
        return Cause.UNASSIGNED if facts.is_read else Cause.UNREAD
    if facts.is_out_of_range:
        return Cause.OUT_OF_RANGE
    if not has_members:
        return None
    if facts.has_open_start:
        return Cause.NEVER_COMMITTED
    is_stuck = facts.rate is not None and facts.rate.has_waited and facts.rate.consumed <= 0
    return Cause.STUCK if is_stuck else None


def is_slow(rate: Pace, waiting: int) -> bool:
    """Whether a moving group falls behind. A lag of a few seconds' reading is ignored."""
    is_much = waiting > _FEW_S * rate.consumed > 0
    return is_much and trend(rate.produced, rate.consumed, waiting) is Trend.GROWING
