"""The checkers of the share groups' simulations find bugs that are put into the coordinator's source."""

from collections.abc import Callable

import pytest
from tests.simulation.bugs import Bug, bugs_of
from tests.simulation.mutation import mutated
from tests.simulation.share import fetching as share_fetching
from tests.simulation.share import groups as share_groups
from tests.simulation.share.base import Outcome

BUGS = [(bug, name) for name in ("groups", "fetching") for bug in bugs_of(f"share/bugs_in_{name}.txt")]
SEEDS = range(1, 121)
STEPS = 700
LONG_SEEDS = range(360, 400)
LONG_STEPS = 2_500


def finder(bug: Bug, simulation: str) -> str | None:
    """Name of the checker that finds the bug first; None when no run does."""
    with mutated(bug.module, bug.old, bug.new, f"share.{simulation}") as runner:
        first = (bug.seed, LONG_STEPS if bug.seed in LONG_SEEDS else STEPS)
        short, long = ((seed, STEPS) for seed in SEEDS), ((seed, LONG_STEPS) for seed in LONG_SEEDS)
        for seed, steps in (first, *short, *long):  # some bugs take several requests at the same moment
            violation = runner.run(seed, steps).violation
            if violation is not None:
                return str(violation.checker)
    return None


@pytest.mark.parametrize("run", [share_fetching.run, share_groups.run])
def test_without_a_bug_nothing_is_found(run: Callable[[int, int], Outcome]) -> None:
    for seed in SEEDS[:20]:
        assert run(seed, STEPS).violation is None


@pytest.mark.parametrize(("bug", "simulation"), BUGS, ids=[bug.title for bug, _ in BUGS])
def test_bug_is_found(bug: Bug, simulation: str) -> None:
    assert finder(bug, simulation) in bug.found_by
