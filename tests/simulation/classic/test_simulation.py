"""Short runs of the simulator; `python -m tests.simulation` runs longer ones."""

import pytest
from tests.simulation.__main__ import report
from tests.simulation.classic.plan import Plan
from tests.simulation.classic.run import run
from tests.simulation.minimal import smallest

STEPS = 6_000


@pytest.mark.parametrize("seed", range(1, 25))
def test_clients_see_nothing_wrong(seed: int) -> None:
    outcome = run(Plan.of_seed(seed), STEPS)
    if outcome.violation is not None:
        pytest.fail(report(smallest(outcome, run)), pytrace=False)


def test_runs_are_repeatable() -> None:
    assert run(Plan.of_seed(7), 2_000) == run(Plan.of_seed(7), 2_000)


def test_a_group_with_more_clients_than_room_works_once_the_surplus_gives_up() -> None:  # GC-08
    """While they all try, it need not become Stable: clients give up their JoinGroup before the longest phase ends."""
    plan = Plan.of_seed(8800077)
    assert plan.max_size < plan.client_count
    outcome = run(plan, 20_000)
    assert outcome.violation is None, report(outcome)
