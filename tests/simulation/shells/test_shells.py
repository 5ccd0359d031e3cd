"""The real broker on virtual time: it keeps its word, and bugs in its shells are found."""

import logging
from collections.abc import Iterator

import pytest
from tests.simulation.bugs import Bug, bugs_of
from tests.simulation.mutation import mutated
from tests.simulation.shells import lives as shells

SEEDS = 30
BUGS = bugs_of("shells/bugs.txt")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_what_clients_were_told_is_so() -> None:
    assert shells.run_all(range(1, 11)) > 1_000


def test_a_seed_says_everything() -> None:
    first, second = (shells.run(3) for _ in range(2))
    assert (first.acknowledged, first.accepted) == (second.acknowledged, second.accepted)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", BUGS, ids=[bug.title for bug in BUGS])
def test_bugs_of_the_shells_are_found(bug: Bug) -> None:
    with mutated(bug.module, bug.old, bug.new, "shells.lives") as mutant, pytest.raises(mutant.Violation) as found:
        mutant.run_all((bug.seed, *range(1, SEEDS + 1)))
    assert "seed" in str(found.value)
