"""The ladder of causes: what is above explains what is below."""

import pytest

from groupkeeper.rules.causes import Cause, CauseFacts, Pace, cause_of_group, cause_of_partition, is_slow

STILL, NEW = Pace(5, 0), Pace(5, 0, has_waited=False)
ALL = CauseFacts(
    9, is_leaderless=True, is_forbidden=True, is_held=True, is_assigned=False, is_out_of_range=True, rate=STILL
)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (ALL, Cause.NO_LEADER),
        (ALL._replace(is_leaderless=False), Cause.NO_RIGHTS),
        (ALL._replace(is_leaderless=False, is_forbidden=False), Cause.TRANSACTION),
        (CauseFacts(9, is_assigned=False, is_out_of_range=True, rate=STILL), Cause.UNASSIGNED),
        (CauseFacts(9, is_out_of_range=True, rate=STILL), Cause.OUT_OF_RANGE),
        (CauseFacts(None, has_open_start=True), Cause.NEVER_COMMITTED),
        (CauseFacts(9, rate=STILL), Cause.STUCK),
        (CauseFacts(9, rate=NEW), None),
        (CauseFacts(9, rate=Pace(5, 1)), None),
        (CauseFacts(9), None),
        (CauseFacts(0, is_assigned=False, rate=STILL), None),
        (CauseFacts(9, is_assigned=False, is_read=False, is_held=True), Cause.UNREAD),
        (CauseFacts(0, is_assigned=False, is_read=False, is_held=True), None),
    ],
)
def test_the_first_rung_that_fits(facts: CauseFacts, expected: Cause | None) -> None:
    assert cause_of_partition(facts, has_members=True) is expected


def test_without_members_only_what_would_hold_them() -> None:
    assert cause_of_partition(CauseFacts(9, is_held=True), has_members=False) is Cause.TRANSACTION
    assert cause_of_partition(CauseFacts(9, is_assigned=False, rate=STILL), has_members=False) is None
    assert cause_of_group("Empty", 0, moves=False) is Cause.NO_MEMBERS
    assert cause_of_group("Empty", 0, moves=True) is None
    assert cause_of_group("Empty", 0, moves=False, is_simple=True) is None


@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"])
def test_a_rebalance_holds_the_whole_group(state: str) -> None:
    assert cause_of_group(state, 2, moves=True) is Cause.REBALANCING
    assert cause_of_group("Stable", 2, moves=False) is None
    assert cause_of_group("Stable", 2, moves=True, has_rebalanced=True) is Cause.REBALANCING
    assert cause_of_group("Empty", 0, moves=False, has_rebalanced=True) is Cause.NO_MEMBERS


def test_slow_is_what_moves_and_does_not_catch_up() -> None:
    assert is_slow(Pace(50, 3), 40)
    assert not is_slow(Pace(18, 17), 12)  # less than a second of what it reads
    assert not is_slow(Pace(50, 0), 10)
    assert not is_slow(Pace(50, 50), 10)
    assert not is_slow(Pace(3, 50), 10)
