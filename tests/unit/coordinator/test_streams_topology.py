"""How many partitions topics between subtopologies get, and what keeps a topology from running (KIP-1071)."""

import pytest
from tests.unit.coordinator.consumer_driver import topics_image

from groupkeeper.coordinator.streams.topology import ConfiguredTopology, StatusCode, TopologyRecord, configure
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import StreamsInvalidTopology
from groupkeeper.protocol.messages.streams_group_topology_value import CopartitionGroup, Subtopology, TopicInfo


def part(
    name: str,
    *sources: str,
    writes: tuple[str, ...] = (),
    reads: tuple[tuple[str, int], ...] = (),
    state: tuple[str, ...] = (),
    together: CopartitionGroup | None = None,
) -> Subtopology:
    return Subtopology(
        name,
        sources,
        (),
        [TopicInfo(topic, 0, 2, [m.TopicConfig("cleanup.policy", "compact")]) for topic in state],
        writes,
        [TopicInfo(topic, count) for topic, count in reads],
        () if together is None else [together],
    )


def over(topics: dict[str, int], *parts: Subtopology) -> ConfiguredTopology:
    return configure(TopologyRecord(m.StreamsGroupTopologyValue(0, parts)), topics_image(topics))


def test_partitions_come_from_upstream() -> None:
    chain = (
        part("0", "a", "b", writes=("r1",), state=("c0",)),
        part("1", reads=(("r1", 0),), writes=("r2",)),
        part("2", reads=(("r2", 0), ("r3", 7)), state=("c2",)),
        part("3", "a", writes=("r3",)),
    )
    found = over({"a": 2, "b": 3}, *chain)
    assert found.partition_counts == {"r1": 3, "r2": 3, "r3": 7, "c0": 3, "c2": 7}
    assert found.task_counts == {"0": 3, "1": 3, "2": 7, "3": 2}
    assert [(one.name, one.partition_count, one.replication_factor) for one in found.missing] == [
        ("c0", 3, 2), ("r1", 3, -1), ("r2", 3, -1), ("r3", 7, -1), ("c2", 7, 2),
    ]  # fmt: skip
    assert found.missing[0].configs == {"cleanup.policy": "compact"}
    assert found.problem is not None
    assert found.problem == (
        StatusCode.MISSING_INTERNAL_TOPICS, "Internal topics are missing: c0, r1, r2 and 2 additional topics"
    )  # fmt: skip
    ready = over({"a": 2, "b": 3, **found.partition_counts}, *chain)
    assert ready.problem is None
    assert not ready.missing


def test_copartitioned_topics_have_equally_many() -> None:
    together = CopartitionGroup([0], [], [0])
    join = (part("0", "a", writes=("r",)), part("1", "b", reads=(("r", 0),), together=together))
    assert over({"a": 2, "b": 5}, *join).partition_counts == {"r": 5}
    fixed = (part("0", "a", writes=("r",)), part("1", "b", reads=(("r", 4),), together=together))
    assert over({"a": 2, "b": 5}, *fixed).problem == (
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        "Number of partitions [4] of repartition topic [r] doesn't match number of partitions [5] of the source topic.",
    )
    between = CopartitionGroup([], [], [0, 1])
    two = part("1", reads=(("r", 0), ("s", 0)), together=between)
    assert over(
        {"a": 2, "b": 5}, part("0", "a", writes=("r",)), part("2", "b", writes=("s",)), two
    ).partition_counts == {"r": 5, "s": 5}
    two = part("1", reads=(("r", 3), ("s", 4)), together=between)
    problem = over({"a": 2}, part("0", "a", writes=("r", "s")), two).problem
    assert problem is not None
    assert problem.detail == "Following topics do not have the same number of partitions: [{r=3, s=4}]"


def test_source_topics_must_exist() -> None:
    problem = over({"c": 1}, part("0", "e", "b", "d", "a", "c")).problem
    assert problem == (StatusCode.MISSING_SOURCE_TOPICS, "Source topics a, b, d and 1 additional topics are missing.")


@pytest.mark.parametrize(
    "parts",
    [
        (part("0"),),
        (part("0", "a", reads=(("r", 0),)),),
        (part("0", writes=("r",), reads=(("r", 0),)),),
        (part("0", "a", together=CopartitionGroup([1], [], [])),),
        (part("0", "a", together=CopartitionGroup([-1], [], [])),),
    ],
    ids=["nothing read", "never written", "loop", "no such topic", "negative"],
)
def test_topologies_that_fit_no_topics(parts: tuple[Subtopology, ...]) -> None:
    with pytest.raises(StreamsInvalidTopology):
        over({"a": 1}, *parts)
