"""Places that times tell, put right by known places around them."""

import pytest

from groupkeeper.operations.plans.clones.mirror_syncs import Pair, between
from groupkeeper.operations.plans.clones.translator import Certainty, Ends, Translated

THERE = Ends(100, 1_000)


def by_time(offset: int) -> Translated:
    return Translated(offset, "by time", 7, 9, to_come=5)


@pytest.mark.parametrize(
    ("known", "offset"),
    [
        ([], 1_000),  # nothing is known
        ([Pair(40, 500), Pair(60, 700)], 500),
        ([Pair(40, 500), Pair(60, 700)], 700),
        ([Pair(40, 500)], 1_000),
        ([Pair(60, 700)], 100),
        ([Pair(40, 700), Pair(60, 500)], 900),  # they are in no order: nothing follows
    ],
)
def test_what_is_between_known_places_stays(known: list[Pair], offset: int) -> None:
    one = by_time(offset)
    assert between(one, 50, known, THERE) is one


@pytest.mark.parametrize(
    ("known", "offset", "expected"),
    [
        # offset, skips, replays
        ([Pair(0, 450), Pair(40, 500), Pair(60, 700), Pair(90, 730)], 701, (500, 0, 10)),
        ([Pair(40, 500), Pair(60, 503)], 499, (500, 0, 3)),
        ([Pair(50, 500)], 1_000, (500, 0, 0)),
        ([Pair(40, 500)], 100, (500, 0, 10)),
        ([Pair(60, 120)], 1_000, (100, 10, 20)),  # before all that the target has: those up to there are lacking
        ([Pair(60, 900)], 1_000, (100, 10, 50)),
    ],
)
def test_the_earlier_known_place_is_taken(known: list[Pair], offset: int, expected: tuple[int, int, int]) -> None:
    one = between(by_time(offset), 50, known, THERE)
    assert (one.offset, one.skips, one.replays) == expected
    assert (one.certainty, one.to_come) == (Certainty.BOUNDED, None)  # its next record is there
    assert f"timestamps lead to {offset}" in one.why
    assert ("read again" in one.why) == (expected[2] > 0)
    assert ("skipped" in one.why) == (expected[1] > 0)


def test_times_are_not_believed_where_the_target_has_older_copies() -> None:
    known = [Pair(40, 500), Pair(60, 700)]
    one = between(by_time(650), 50, known, THERE, has_older_copies=True)
    assert (one.offset, one.skips, one.replays) == (500, 0, 10)
    first = by_time(500)
    assert between(first, 50, known, THERE, has_older_copies=True) is first


def test_what_is_still_to_come_is_so_at_the_end_only() -> None:
    assert between(by_time(100), 50, [Pair(40, 1_000)], THERE).to_come == 5
