"""The tables of kafka-streams-groups, from typed values; beside them what the official tool prints is recorded."""

import pytest

from groupkeeper.cli.dropin import streams_groups_text as texts
from groupkeeper.client.admin.streams_types import (
    StreamsGroupDescription,
    StreamsMemberDescription,
    StreamsNode,
    StreamsTask,
    StreamsTasks,
    StreamsTopology,
    TopologyStatus,
)
from groupkeeper.client.admin.types import GroupState, Node, OffsetAndMetadata, TopicPartition
from groupkeeper.operations.streams_groups import PartitionProgress

ASSIGNED = StreamsTasks(
    (StreamsTask("0", 1), StreamsTask("1", 0), StreamsTask("0", 2)), (StreamsTask("1", 3),), (StreamsTask("2", 0),)
)
MEMBER = StreamsMemberDescription(
    "m", "client", "/127.0.0.1", 4, "process", 1, ASSIGNED, StreamsTasks((StreamsTask("0", 1),)), is_classic=True
)


def group(state: GroupState, *members: StreamsMemberDescription) -> StreamsGroupDescription:
    return StreamsGroupDescription("g", state, members, Node(7, "host", 9092), 5, 4, 2)


def test_tasks_by_kind_and_subtopology() -> None:
    expected = "ACTIVE: 0:[1,2]; 1:[0]; STANDBY: 1:[3]; WARMUP: 2:[0]; "
    assert texts.tasks(ASSIGNED) == expected
    assert texts.tasks(StreamsTasks()) == ""
    [_, row] = texts.members(group(GroupState.STABLE, MEMBER), verbose=False).splitlines()
    assert row.endswith(f" client          {expected}")


def test_verbose_members_have_what_they_are_to_run() -> None:
    [header, row] = texts.members(group(GroupState.STABLE, MEMBER), verbose=True).splitlines()
    # The official tool has no blank there.
    assert header.index("MEMBER") == header.index("TOPOLOGY-EPOCH") + 15
    assert row.split()[:6] == ["g", "4", "2", "m", "classic", "4"]
    assert row.endswith("WARMUP: 2:[0]; TARGET-ACTIVE: 0:[1]; ")


def test_offsets_and_what_is_not_committed() -> None:
    found = {
        TopicPartition("t", 1): PartitionProgress(OffsetAndMetadata(3), 9, 6),
        TopicPartition("t", 0): PartitionProgress(None, 4, 4),
    }
    rows = [line.split() for line in texts.offsets("g", found, verbose=True).splitlines()]
    assert rows[0][3:] == ["CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET", "OFFSET-LAG"]
    assert rows[1:] == [["g", "t", "1", "3", "-", "9", "6"], ["g", "t", "0", "-", "-", "4", "4"]]
    assert texts.offsets("g", found, verbose=False).splitlines()[1:] == [
        "g               t               1          6",
        "g               t               0          4",
    ]


def test_the_assignor_is_a_column_since_kafka_4_4(monkeypatch: pytest.MonkeyPatch) -> None:
    known = group(GroupState.EMPTY)._replace(assignor="sticky")
    [header, row] = texts.state(known, verbose=False).splitlines()
    assert header.split() == ["GROUP", "COORDINATOR", "(ID)", "ASSIGNOR", "STATE", "#MEMBERS"]
    assert row == f"g               {'host:9092 (7)':25} sticky          Empty                     0"
    [_, row] = texts.state(known._replace(assignor=None), verbose=True).splitlines()
    assert row.split() == ["g", "host:9092", "(7)", "Empty", "5", "4", "0"]
    monkeypatch.setenv("GROUPKEEPER_KAFKA_TOOLS", "4.3.1")
    assert "ASSIGNOR" not in texts.state(known, verbose=False)


def test_topologies() -> None:
    """As `describe` of the application's own topology prints it, with one more line at the end."""
    source = StreamsNode("in", "source", ("b", "a"), (), ("count", "peek"))
    count = StreamsNode("count", "processor", (), ("store",), ("out",))
    nodes = (source, count, StreamsNode("peek", "processor", (), (), ("out",)), StreamsNode("out", "sink"))
    known = group(GroupState.STABLE)._replace(topology=StreamsTopology((("0", nodes),), ((source, count),)))
    assert texts.topology(known) == (
        "Topologies:\n"
        "   Sub-topology: 0\n"
        "    Source: in (topics: [a, b])\n      --> count, peek\n"
        "    Processor: count (stores: [store])\n      --> out\n      <-- in\n"
        "    Processor: peek (stores: [])\n      --> out\n      <-- in\n"
        "    Sink: out (topic: null)\n      <-- count, peek\n\n"
        "   Sub-topology: 1 for global store (will not generate tasks)\n"
        "    Source: in (topics: [a, b])\n      --> count, peek\n"
        "    Processor: count (stores: [store])\n      --> out\n      <-- in\n\n\n"
    )
    for status, text in (
        (TopologyStatus.NOT_STORED, "No topology description is stored for streams group 'g'."),
        (TopologyStatus.FAILED, "The broker failed to fetch the topology description for streams group 'g'."),
    ):
        assert text in texts.topology(group(GroupState.STABLE)._replace(topology_status=status))


def test_remarks() -> None:
    assert texts.remark(group(GroupState.STABLE)) == ""
    assert texts.remark(group(GroupState.EMPTY)) == "\nError: Streams group 'g' has no active members.\n"
    assert texts.remark(group(GroupState.DEAD)) == "\nError: Streams group 'g' does not exist.\n"
