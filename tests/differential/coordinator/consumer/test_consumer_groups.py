"""The same consumer groups on Apache Kafka 4.4.0 and on our broker: the same answers, and the same records.

Programs are random series of requests of both protocols to one group. The range assignor decides, and members sort by
ids that they choose themselves, so that assignments are the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.differential.coordinator.consumer.compare import Comparison, Undecided
from tests.differential.coordinator.consumer.side import Side
from tests.differential.coordinator.consumer.steps import Program
from tests.differential.coordinator.consumer.uniform import CountingSide, UniformProgram
from tests.differential.pair import brokers, seeds, sides_of

PROPERTIES = {
    "offsets.topic.num.partitions": "4",
    "group.consumer.assignors": "range,uniform",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.max.size": "5",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[str, str]]:
    with brokers(PROPERTIES) as servers:
        yield servers


@contextmanager
def prepared(servers: tuple[str, str], kind: type[Side]) -> Iterator[tuple[Side, Side]]:
    with sides_of(kind, servers) as sides:
        for side in sides:
            side.prepare()
        yield sides


@pytest.mark.conformance
@pytest.mark.timeout(3600)
def test_same_consumer_groups(servers: tuple[str, str]) -> None:  # GN-*, GM-*, GO-06, GO-07, GF-02, GR-10, K1099-*
    undecided = 0
    with prepared(servers, Side) as sides:
        for seed in seeds(100):
            try:
                Comparison(*sides).run(Program(seed))
            except Undecided:
                undecided += 1
    assert undecided <= len(seeds(100)) // 10, f"{undecided} programs came to no end"


@pytest.mark.conformance
@pytest.mark.timeout(3600)
def test_same_shares_by_the_uniform_assignor(servers: tuple[str, str]) -> None:  # GN-11, GN-12, GN-14, GN-17, GN-22
    with prepared(servers, CountingSide) as sides:
        for seed in seeds(10):
            UniformProgram(sides, seed).run()
