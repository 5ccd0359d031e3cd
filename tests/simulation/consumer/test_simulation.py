"""Short runs of consumer groups; `python -m tests.simulation --protocol consumer` runs longer ones."""

import pytest
from tests.simulation.__main__ import STEPS, report
from tests.simulation.consumer.plan import ConsumerPlan
from tests.simulation.consumer.run import run
from tests.simulation.minimal import smallest

SEEDS_PER_TEST = 25
STEPS_HERE = STEPS["consumer"]


@pytest.mark.parametrize("first_seed", range(1, 226, SEEDS_PER_TEST))
def test_clients_see_nothing_wrong(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + SEEDS_PER_TEST):
        outcome = run(ConsumerPlan.of_seed(seed), STEPS_HERE)
        if outcome.violation is not None:
            again = f"python -m tests.simulation --protocol consumer --seed {seed} --steps {STEPS_HERE}"
            pytest.fail(f"{report(smallest(outcome, run))}\nagain: {again}", pytrace=False)


def test_members_keep_what_they_had_before_an_upgrade_while_nobody_subscribes_to_a_topic() -> None:  # GM-03
    # A classic member rejoins with topics that do not exist, and a member without a subscription upgrades its group:
    # Apache Kafka 4.3.1 does not raise the epoch, and SyncGroup gives the partitions of before.
    assert run(ConsumerPlan.of_seed(972110), 800).violation is None


def test_runs_are_repeatable() -> None:
    assert run(ConsumerPlan.of_seed(7), 600) == run(ConsumerPlan.of_seed(7), 600)


def test_groups_migrate_both_ways() -> None:
    outcomes = [run(ConsumerPlan.of_seed(seed), STEPS_HERE) for seed in range(1, 31)]
    assert sum(outcome.counts["upgrades"] for outcome in outcomes) > 0
    assert sum(outcome.counts["downgrades"] for outcome in outcomes) > 0
