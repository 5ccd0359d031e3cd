"""The simulator's checkers find bugs: each one of a list that is put into the coordinator's source."""

from collections import Counter

import pytest
from tests.simulation.bugs import Bug, bugs_of, finder
from tests.simulation.classic.plan import Plan
from tests.simulation.classic.run import run
from tests.simulation.mutation import DoesNotApply, mutated

BUGS = bugs_of("classic/bugs.txt")
STEPS = 4_000
SEEDS = range(1, 41)
STEP = "groupkeeper.coordinator.classic.step"


def test_without_a_bug_nothing_is_found() -> None:
    for seed in list(SEEDS)[:10]:
        assert run(Plan.of_seed(seed), STEPS).violation is None


def test_a_change_that_is_no_bug_is_not_found() -> None:
    """The machinery itself does no harm."""
    with mutated(STEP, "A `Step` starts from", "A `Step`  starts from") as runner:
        for seed in list(SEEDS)[:3]:
            assert runner.run(runner.Plan.of_seed(seed), STEPS).violation is None


@pytest.mark.parametrize("bug", BUGS, ids=[bug.title for bug in BUGS])
def test_bug_is_found(bug: Bug) -> None:
    assert finder(bug, "classic.run", "Plan", STEPS, SEEDS) in bug.found_by


def test_every_checker_finds_something() -> None:
    named = Counter(name for bug in BUGS for name in bug.found_by)
    checkers = {"Ownership", "Agreement", "Offsets", "Membership", "Departure", "Patience", "Purity", "Repetition"}
    assert checkers | {"Restart", "Liveness"} == set(named)


def test_a_changed_source_is_noticed() -> None:
    with pytest.raises(DoesNotApply), mutated(STEP, "this text is not in it", ""):
        pass
