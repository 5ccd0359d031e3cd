"""Checkers of consumer groups find bugs: each one of a list that is put into the coordinator's source."""

from collections import Counter
from dataclasses import replace

import pytest
from tests.simulation.classic.bugs import Bug
from tests.simulation.consumer.bugs import CONSUMER_BUGS
from tests.simulation.mutation import mutated

STEPS = 800
SEEDS = range(1, 81)


def finder(bug: Bug) -> str | None:
    """Name of the checker that finds the bug first; None when no run does."""
    with mutated(bug.module, bug.old, bug.new, "consumer.run") as runner:
        for seed in (bug.seed, *SEEDS):
            plan = replace(runner.ConsumerPlan.of_seed(seed), **dict(bug.plan))
            violation = runner.run(plan, STEPS).violation
            if violation is not None:
                return str(violation.checker)
    return None


def test_a_change_that_is_no_bug_is_not_found() -> None:
    """The machinery itself does no harm."""
    with mutated("consumer.reconcile", "A pure function of", "A pure function  of", "consumer.run") as runner:
        for seed in list(SEEDS)[:20]:
            assert runner.run(runner.ConsumerPlan.of_seed(seed), STEPS).violation is None


@pytest.mark.parametrize("bug", CONSUMER_BUGS, ids=[bug.title for bug in CONSUMER_BUGS])
def test_bug_is_found(bug: Bug) -> None:
    assert finder(bug) in bug.found_by


def test_every_checker_finds_something() -> None:
    named = Counter(name for bug in CONSUMER_BUGS for name in bug.found_by)
    checkers = {"Custody", "Commits", "Epochs", "Fencing", "Removal", "ConsumerOffsets", "Purity", "ConsumerRepetition"}
    assert checkers | {"ConsumerRestart", "Liveness", "Quiet"} <= set(named)
