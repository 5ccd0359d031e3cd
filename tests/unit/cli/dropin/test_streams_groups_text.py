"""The tables of kafka-streams-groups, from typed values; beside them what the official tool prints is recorded."""

from __future__ import annotations

from groupkeeper.cli.dropin import streams_groups_text as texts
from groupkeeper.client.admin.types import (
    GroupState,
    Node,
    OffsetAndMetadata,
    StreamsGroupDescription,
    StreamsMemberDescription,
    StreamsTask,
    StreamsTasks,
    TopicPartition,
)
from groupkeeper.operations.streams_groups import Progress

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
        TopicPartition("t", 1): Progress(OffsetAndMetadata(3), 9, 6),
        TopicPartition("t", 0): Progress(None, 4, 4),
    }
    rows = [line.split() for line in texts.offsets("g", found, verbose=True).splitlines()]
    assert rows[0][3:] == ["CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET", "OFFSET-LAG"]
    assert rows[1:] == [["g", "t", "1", "3", "-", "9", "6"], ["g", "t", "0", "-", "-", "4", "4"]]
    assert texts.offsets("g", found, verbose=False).splitlines()[1:] == [
        "g               t               1          6",
        "g               t               0          4",
    ]


def test_remarks() -> None:
    assert texts.remark(group(GroupState.STABLE)) == ""
    assert texts.remark(group(GroupState.EMPTY)) == "\nError: Streams group 'g' has no active members.\n"
    assert texts.remark(group(GroupState.DEAD)) == "\nError: Streams group 'g' does not exist.\n"
