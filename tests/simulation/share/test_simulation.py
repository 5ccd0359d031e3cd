"""Short runs of the share groups' simulations; `python -m tests.simulation.share` runs longer ones."""

import pytest
from tests.simulation.share.__main__ import RUN, report

STEPS = 500
SEEDS = range(1, 121)


@pytest.mark.parametrize("name", RUN)
def test_clients_see_nothing_wrong(name: str) -> None:
    for seed in SEEDS:
        outcome = RUN[name](seed, STEPS)
        if outcome.violation is not None:
            pytest.fail(report(name, seed, STEPS, outcome), pytrace=False)


@pytest.mark.parametrize("name", RUN)
def test_runs_are_repeatable(name: str) -> None:
    assert RUN[name](7, STEPS) == RUN[name](7, STEPS)


@pytest.mark.parametrize("seed", [100068, 100258, 308817, 343048, 1001128, 1002521, 1008464, 1014569, 1015315, 1016818])
def test_alterations_and_deletions_at_the_same_time(seed: int) -> None:
    """Altered offsets were replaced by a member that joined; state was left without its group; an alteration was
    acknowledged whose topic had been deleted and made again meanwhile; altered offsets were begun anew by work that
    had waited; a member was given a share-partition of which only the deletion was done, or which was deleted although
    it had come before.
    """
    outcome = RUN["groups"](seed, 1_000)
    assert outcome.violation is None, report("groups", seed, 1_000, outcome)
