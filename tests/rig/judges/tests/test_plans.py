"""What a plan says itself of the times that it lacks is no difference."""

import pytest
from tests.rig.asking import Answer
from tests.rig.judges.plans import untold_times

from groupkeeper.client.admin.types import Position
from groupkeeper.operations.plans.cluster_state import times_unknown
from groupkeeper.protocol.errors import RequestTimedOut

LATE = times_unknown({Position("t", partition, 5): RequestTimedOut("late") for partition in range(3)})


@pytest.mark.parametrize(
    ("notes", "untold"),
    [
        ([], 0),
        (["1 record replayed"], 0),
        (LATE, 3),
        (["the times of records are left out: the plan has 2200 places, more than 1000"], 9),
        (["the times of records are not known: no broker answers"], 9),
    ],
)
def test_times_that_a_plan_says_are_unknown(notes: list[str], untold: int) -> None:
    content = {"changes": [{}] * 9, "notes": notes, "problems": []}
    assert untold_times(Answer("c", 0, 0, content, 0, "", {})) == untold
