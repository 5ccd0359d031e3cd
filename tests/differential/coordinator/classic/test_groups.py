"""The same group requests to Apache Kafka 4.4.0 and to our broker: the same answers, and the same calls parked."""

from collections.abc import Iterator

import pytest
from tests.differential.coordinator.classic.compare import Comparison, Side, Undecided, require_same
from tests.differential.coordinator.classic.edges import edges
from tests.differential.pair import both, seeds

STEPS = 30
PROPERTIES = {"group.min.session.timeout.ms": "1000", "offsets.topic.num.partitions": "4"}


@pytest.fixture(scope="module")
def comparison() -> Iterator[Comparison]:
    with both(Side, PROPERTIES, of_ours={"group.initial.rebalance.delay.ms": "0"}) as sides:
        for side in sides:
            side.prepare()
        yield Comparison(*sides)


@pytest.mark.conformance
def test_same_answers_at_the_edges(comparison: Comparison) -> None:  # GW-06, GO-01 … GO-10, K88-*, K518-*, GD-*
    for name, request, version in edges():
        require_same(comparison.ours, comparison.reference, name, request, version)


@pytest.mark.conformance
@pytest.mark.timeout(900)
def test_same_answers(comparison: Comparison) -> None:  # GC-*, GO-*, GD-*, K88-*, K496-*, K518-*: what clients see
    undecided = 0
    for seed in seeds(40):
        try:
            comparison.run(seed, STEPS)
        except Undecided:
            undecided += 1
    assert undecided < len(seeds(40)) / 2
