"""The ladder of causes: what is above explains what is below."""

import pytest

from groupkeeper.rules.causes import Cause, Pace, Place, cause_of_group, cause_of_place, is_slow

STILL, NEW = Pace(5, 0), Pace(5, 0, has_waited=False)
ALL = Place(9, is_leaderless=True, is_forbidden=True, is_held=True, is_assigned=False, is_out_of_range=True, rate=STILL)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (ALL, Cause.NO_LEADER),
        (ALL._replace(is_leaderless=False), Cause.NO_RIGHTS),
        (ALL._replace(is_leaderless=False, is_forbidden=False), Cause.TRANSACTION),
        (Place(9, is_assigned=False, is_out_of_range=True, rate=STILL), Cause.UNASSIGNED),
        (Place(9, is_out_of_range=True, rate=STILL), Cause.OUT_OF_RANGE),
        (Place(None, has_open_start=True), Cause.NEVER_COMMITTED),
        (Place(9, rate=STILL), Cause.STUCK),
        (Place(9, rate=NEW), None),
        (Place(9, rate=Pace(5, 1)), None),
        (Place(9), None),
        (Place(0, is_assigned=False, rate=STILL), None),
        (Place(9, is_assigned=False, is_read=False, is_held=True), Cause.UNREAD),
        (Place(0, is_assigned=False, is_read=False, is_held=True), None),
    ],
)
def test_the_first_rung_that_fits(place: Place, expected: Cause | None) -> None:
    assert cause_of_place(place, has_members=True) is expected


def test_without_members_only_what_would_hold_them() -> None:
    assert cause_of_place(Place(9, is_held=True), has_members=False) is Cause.TRANSACTION
    assert cause_of_place(Place(9, is_assigned=False, rate=STILL), has_members=False) is None
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
