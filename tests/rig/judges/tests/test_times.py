"""What may be told of the first record that waits, by facts."""

import pytest
from tests.rig.asking import Answer
from tests.rig.facts import Made, Produced, TransactionEnded
from tests.rig.judges.times import waiting_at
from tests.rig.truth import Truth

from groupkeeper.client.admin.types import Position

SECOND_MS = 1000
NOW_MS = 1_000_000 * SECOND_MS


@pytest.mark.parametrize(
    ("first", "ages_s", "is_committed", "wanted_s"),
    [
        (1, (74, 70), False, {74, 70}),  # a poll may not have asked yet
        (1, (50, 46), False, {50}),  # it is not asked so soon
        (0, (50, 46), False, {50, 46}),  # but where a group without a commit may begin
        (1, (74, 70), True, {74}),
        (1, (74,), False, {74, None}),  # nothing is left to read
    ],
)
def test_of_aborted_records_that_wait_the_one_after_counts(
    first: int, ages_s: tuple[int, ...], is_committed: bool, wanted_s: set[int | None]
) -> None:
    made = Truth()
    made.add([Made("c", "t", 1, {}, 0, 0)])
    for number, age_s in enumerate(ages_s):
        at_ms, name = NOW_MS - age_s * SECOND_MS, None if number else "w 1"
        made.add([Produced("c", "t", 0, first + 2 * number, at_ms, 10, "w", number, None, False, name, 1, 2)])
    made.add([TransactionEnded("c", "w 1", is_committed, [("t", 0)], 1, 2)])
    answer = Answer("c", NOW_MS * 1_000_000, NOW_MS * 1_000_000 + 1, None)
    found = waiting_at(made, answer, Position("t", 0, first), NOW_MS)
    assert found == {None if one is None else NOW_MS - one * SECOND_MS for one in wanted_s}
