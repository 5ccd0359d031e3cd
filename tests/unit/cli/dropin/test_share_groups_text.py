"""The tables of kafka-share-groups, from typed values; beside them what the official tool prints is recorded."""

import pytest

from groupkeeper.cli.dropin import groups_text, share_groups_text
from groupkeeper.client.admin.types import (
    GroupState,
    MemberDescription,
    Node,
    ShareGroupDescription,
    ShareMemberDescription,
    SharePartitionOffset,
    TopicPartition,
)

MEMBERS = (
    ShareMemberDescription("b", "client", "/127.0.0.1", 4),
    ShareMemberDescription(
        "a-member-with-a-long-id", "c", "/10.0.0.1", 5,
        (TopicPartition("u", 1), TopicPartition("t", 2), TopicPartition("u", 0)),
    ),
)  # fmt: skip


def group(state: GroupState = GroupState.STABLE, *members: ShareMemberDescription) -> ShareGroupDescription:
    return ShareGroupDescription("g", state, members, Node(7, "host", 9092), 5, 4, "simple")


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line]


def test_states() -> None:
    # K1099-71, K1099-76
    assert share_groups_text.state(group(), verbose=True) == (
        "\nGROUP           COORDINATOR (ID)          STATE           GROUP-EPOCH  ASSIGNMENT-EPOCH  #MEMBERS"
        "\ng               host:9092  (7)            Stable          5            4                 0\n"
    )
    assert rows(share_groups_text.state(group(), verbose=False)) == [
        ["GROUP", "COORDINATOR", "(ID)", "STATE", "#MEMBERS"],
        ["g", "host:9092", "(7)", "Stable", "0"],
    ]


def test_members_by_their_ids() -> None:
    # K1099-72, K1099-73, K1099-X2: a topic is written once, and nothing is the empty string.
    header, first, second = rows(share_groups_text.members(group(GroupState.STABLE, *MEMBERS), verbose=True))
    assert header == [*("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "MEMBER-EPOCH", "ASSIGNMENT")]
    assert first == ["g", "a-member-with-a-long-id", "/10.0.0.1", "c", "3", "5", "t:2;u:0,1"]
    assert second == ["g", "b", "/127.0.0.1", "client", "0", "4"]
    header, first, second = rows(share_groups_text.members(group(GroupState.STABLE, *MEMBERS), verbose=False))
    assert header == ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT"]
    assert first[-2:] == ["3", "t:2;u:0,1"]


def test_widths_of_members() -> None:
    # K1099-76: as wide as the longest value, at least 15; the others are fixed.
    header = next(line for line in share_groups_text.members(group(GroupState.STABLE, *MEMBERS), verbose=True)
                  .splitlines() if line)  # fmt: skip
    assert header.index("CONSUMER-ID") == 16
    assert header.index("HOST") == 16 + len("a-member-with-a-long-id") + 1
    assert header.index("CLIENT-ID") == header.index("HOST") + 16
    assert header.index("MEMBER-EPOCH") == header.index("#PARTITIONS") + 13
    assert header.index("ASSIGNMENT") == header.index("MEMBER-EPOCH") + 14


def test_offsets_by_topic_and_partition() -> None:
    # K1099-74, K1099-76
    offsets = {
        TopicPartition("u", 0): SharePartitionOffset(3, 1, 9),
        TopicPartition("t", 10): SharePartitionOffset(0),
        TopicPartition("t", 9): None,
    }
    header, *lines = rows(share_groups_text.offsets("g", offsets, verbose=True))
    assert header == ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "START-OFFSET", "LAG"]
    assert lines == [["g", "t", "9", "-", "-", "-"], ["g", "t", "10", "-", "0", "-"], ["g", "u", "0", "1", "3", "9"]]
    header, *lines = rows(share_groups_text.offsets("g", offsets, verbose=False))
    assert header == ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"]
    assert lines[-1] == ["g", "u", "0", "3", "9"]
    assert share_groups_text.offsets("g", {}, verbose=False) == "\nShare group 'g' has no offset information.\n"


@pytest.mark.parametrize("state", [GroupState.STABLE, GroupState.EMPTY])
def test_what_is_said_of_a_state(state: GroupState) -> None:
    # K1099-75
    empty = "\nShare group 'g' has no active members.\n" if state is GroupState.EMPTY else ""
    assert share_groups_text.remark(group(state)) == empty
    assert share_groups_text.missing("g") == "\nError: Share group 'g' does not exist.\n"


def test_what_became_of_a_deletion() -> None:
    # K1099-79
    assert groups_text.deleted_groups(["a", "b"], {}, kind="share") == (
        "Deletion of requested share groups ('a', 'b') was successful.\n"
    )
    assert groups_text.deleted_groups(["y"], {"x": "why"}, kind="share") == (
        "\nError: Deletion of some share groups failed:\n"
        "* Group 'x' could not be deleted due to: why\n\nThese share groups were deleted successfully: 'y'\n"
    )


def test_share_members_are_no_consumers() -> None:
    # K1099-X1, K1099-X3: one enumeration of states for all groups, a description of share members of their own.
    assert isinstance(group().group_state, GroupState)
    assert not {"instance_id", "target_assignment", "upgraded"} & set(ShareMemberDescription._fields)
    assert {"instance_id", "target_assignment", "upgraded"} <= set(MemberDescription._fields)
