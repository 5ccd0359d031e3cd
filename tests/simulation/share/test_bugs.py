"""The checkers of the share groups' simulations find bugs that are put into the coordinator's source."""

import importlib
from collections.abc import Callable

import pytest
from tests.simulation.classic.bugs import Bug
from tests.simulation.mutation import mutated
from tests.simulation.share import bugs as share_bugs
from tests.simulation.share import fetching as share_fetching
from tests.simulation.share import groups as share_groups
from tests.simulation.share.base import Outcome

SEEDS = range(1, 121)
STEPS = 700
LONG_SEEDS = range(360, 400)
LONG_STEPS = 2_500


def finder(bug: Bug, simulation: str) -> str | None:
    """Name of the checker that finds the bug first; None when no run does."""
    with mutated(bug.module, bug.old, bug.new):
        run = importlib.import_module(f"tests.simulation.share.{simulation}").run
        first = (bug.seed, LONG_STEPS if bug.seed in LONG_SEEDS else STEPS)
        short, long = ((seed, STEPS) for seed in SEEDS), ((seed, LONG_STEPS) for seed in LONG_SEEDS)
        for seed, steps in (first, *short, *long):  # some bugs take several requests at the same moment
            violation = run(seed, steps).violation
            if violation is not None:
                return str(violation.checker)
    return None


@pytest.mark.parametrize("run", [share_fetching.run, share_groups.run])
def test_without_a_bug_nothing_is_found(run: Callable[[int, int], Outcome]) -> None:
    for seed in SEEDS[:20]:
        assert run(seed, STEPS).violation is None


@pytest.mark.parametrize("bug", share_bugs.GROUPS, ids=[bug.title for bug in share_bugs.GROUPS])
def test_bug_in_groups_is_found(bug: Bug) -> None:
    assert finder(bug, "groups") in bug.found_by


@pytest.mark.parametrize("bug", share_bugs.FETCHING, ids=[bug.title for bug in share_bugs.FETCHING])
def test_bug_in_fetching_is_found(bug: Bug) -> None:
    assert finder(bug, "fetching") in bug.found_by
