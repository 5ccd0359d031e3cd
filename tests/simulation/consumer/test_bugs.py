"""Checkers of consumer groups find bugs: each one of a list that is put into the coordinator's source."""

from collections import Counter

import pytest
from tests.simulation.bugs import Bug, bugs_of, finder
from tests.simulation.mutation import mutated

BUGS = bugs_of("consumer/bugs.txt")
STEPS = 800
SEEDS = range(1, 81)


def test_a_change_that_is_no_bug_is_not_found() -> None:
    """The machinery itself does no harm."""
    module = "groupkeeper.coordinator.consumer.reconcile"
    with mutated(module, "A pure function of", "A pure function  of", "consumer.run") as runner:
        for seed in list(SEEDS)[:20]:
            assert runner.run(runner.ConsumerPlan.of_seed(seed), STEPS).violation is None


@pytest.mark.parametrize("bug", BUGS, ids=[bug.title for bug in BUGS])
def test_bug_is_found(bug: Bug) -> None:
    assert finder(bug, "consumer.run", "ConsumerPlan", STEPS, SEEDS) in bug.found_by


def test_every_checker_finds_something() -> None:
    named = Counter(name for bug in BUGS for name in bug.found_by)
    checkers = {"Custody", "Commits", "Epochs", "Fencing", "Removal", "ConsumerOffsets", "Purity", "ConsumerRepetition"}
    assert checkers | {"ConsumerRestart", "Liveness", "Quiet"} <= set(named)
