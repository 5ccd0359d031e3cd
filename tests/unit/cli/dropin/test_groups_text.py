"""What kafka-consumer-groups prints of values: widths, blanks, line breaks."""

from groupkeeper.cli.dropin import groups_text
from groupkeeper.client.admin.types import (
    ConsumerGroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    ListedOffset,
    MemberDescription,
    Node,
    OffsetAndMetadata,
    TopicPartition,
)
from groupkeeper.operations.describe import FoundEnds, GroupOffsets, Places
from groupkeeper.protocol.errors import CoordinatorNotAvailable, GroupIdNotFound, GroupSubscribedToTopic

ORDERS = [TopicPartition("orders", n) for n in range(12)]
T0 = TopicPartition("t", 0)
NODE = Node(1, "broker.example", 9092)


def member(member_id: str = "m-1", *assignment: TopicPartition, **rest: object) -> MemberDescription:
    described = MemberDescription(member_id, None, "client", "/127.0.0.1", assignment)
    return described._replace(**rest)  # type: ignore[arg-type]


def group(*members: MemberDescription, **rest: object) -> ConsumerGroupDescription:
    described = ConsumerGroupDescription("app", GroupType.CLASSIC, GroupState.STABLE, False, "range", members, NODE)
    return described._replace(**rest)  # type: ignore[arg-type]


# K518-41, K518-42, K518-45
def test_listing_pads_to_ten_more_than_the_longest_id() -> None:
    groups = [
        GroupListing("a-group-with-a-long-name", "consumer", GroupState.EMPTY, GroupType.CLASSIC),
        GroupListing("b", "", None, None),
    ]
    assert groups_text.listing(groups, types=True, states=True) == (
        "GROUP                              TYPE                 STATE               \n"
        "a-group-with-a-long-name           Classic              Empty               \n"
        "b                                  Unknown              Unknown             \n"
    )
    assert groups_text.listing([], types=False, states=True) == "GROUP                     STATE               \n"


# K1099-57, K1099-58, K88-50, K1099-60
def test_offsets_with_leader_epochs() -> None:
    partitions = (ORDERS[0], TopicPartition("payments", 11))
    owners = [member("consumer-with-a-long-name"), None]
    places = Places(partitions, owners, FoundEnds({ORDERS[0]: ListedOffset(10)}, {}))
    described = GroupOffsets(group(), places, [4, -1], [3, -1], [6, None])
    assert groups_text.offsets(described, verbose=True) == (
        "\nGROUP           TOPIC           PARTITION  LEADER-EPOCH    CURRENT-OFFSET  LOG-END-OFFSET  LAG             "
        "CONSUMER-ID               HOST            CLIENT-ID"
        "\napp             orders          0          3               4               10              6               "
        "consumer-with-a-long-name /127.0.0.1      client"
        "\napp             payments        11         -               -               -               -               "
        "-                         -               -\n"
    )


def test_offsets_without_leader_epochs_and_with_wide_letters() -> None:
    places = Places((T0,), [None], FoundEnds({T0: ListedOffset(1)}, {}))
    described = GroupOffsets(group(group_id="東京🙂"), places, [1], [-1], [0])
    lines = groups_text.offsets(described, verbose=False).split("\n")
    assert lines[2] == "東京🙂" + " " * 11 + " t               0          1               1               0     " + (
        "          -               -               -"
    )


def test_offsets_of_a_member_with_signs_of_formats_in_its_names() -> None:
    owner = member("100%s", client_id="%d")
    places = Places((T0,), [owner], FoundEnds({}, {}))
    described = GroupOffsets(group(group_id="%"), places, [1], [-1], [None])
    line = groups_text.offsets(described, verbose=False).split("\n")[2]
    assert line.split() == ["%", "t", "0", "1", "-", "-", "100%s", "/127.0.0.1", "%d"]


def test_offsets_of_nothing() -> None:
    assert groups_text.offsets(GroupOffsets(group(), Places((), [], FoundEnds({}, {})), [], [], []), verbose=True) == ""


# K1099-56
def test_assignments_are_sorted_by_their_text_and_numerically_inside() -> None:
    partitions = [TopicPartition("b", 10), TopicPartition("b", 9), TopicPartition("a", 1)]
    assert groups_text.assignment(partitions) == "a:1;b:9,10"
    assert groups_text.assignment([]) == groups_text.assignment(None) == "-"


# K1099-53, K1099-62
def test_members_without_members_is_a_header() -> None:
    assert groups_text.members(group(), verbose=False) == (
        "\nGROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     \n"
    )


# K1099-52, K1099-54, K1099-55
def test_members_of_a_group_that_migrates() -> None:
    new = member("new", ORDERS[1], ORDERS[0], target_assignment=(ORDERS[0],), member_epoch=3, upgraded=True)
    old = member("old", upgraded=False, member_epoch=2, instance_id="i-1")
    text = groups_text.members(group(new, old, target_assignment_epoch=4), verbose=True)
    assert text == (
        "\nGROUP           CONSUMER-ID     GROUP-INSTANCE-ID HOST            CLIENT-ID       #PARTITIONS     "
        "CURRENT-EPOCH   CURRENT-ASSIGNMENT   TARGET-EPOCH    TARGET-ASSIGNMENT    UPGRADED\n"
        "app             new                               /127.0.0.1      client          2               "
        "3               orders:0,1           4               orders:0             true\n"
        "app             old             i-1               /127.0.0.1      client          0               "
        "2               -                    4               -                    false\n"
    )


def test_no_column_for_upgrades_unless_both_kinds_are_there() -> None:
    text = groups_text.members(group(member(upgraded=True), member(upgraded=None)), verbose=True)
    assert "UPGRADED" not in text


# K1099-50, K1099-51
def test_state() -> None:
    described = group(group_epoch=7, partition_assignor="")
    assert groups_text.state(described, verbose=True) == (
        "\nGROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                GROUP-EPOCH     "
        "TARGET-ASSIGNMENT-EPOCH   #MEMBERS\n"
        "app             broker.example:9092  (1)  -                    Stable               7               "
        "-                         0\n"
    )
    assert groups_text.state(described, verbose=False).endswith("-                    Stable               0\n")


# K1099-61, K88-51
def test_remarks_on_states() -> None:
    assert groups_text.remark("g", GroupState.EMPTY) == "\nConsumer group 'g' has no active members.\n"
    assert groups_text.remark("g", GroupState.RECONCILING) == "\nWarning: Consumer group 'g' is rebalancing.\n"
    assert groups_text.remark("g", GroupState.STABLE) == ""


# K122-72
def test_new_offsets() -> None:
    plans = {"g": {ORDERS[1]: OffsetAndMetadata(5)}, "h": {}}
    assert groups_text.new_offsets(plans) == (
        "\nGROUP           TOPIC           PARTITION  NEW-OFFSET\ng               orders          1          5\n"
    )
    assert groups_text.new_offsets({}) == "\n"


# K496-55, K496-56
def test_deleted_offsets_are_ordered_by_text() -> None:
    outcomes = {("orders", 2): None, ("orders", 10): "E: not now", ("nothere", -1): "E: it is gone"}
    assert groups_text.deleted_offsets(outcomes) == (
        "\nTOPIC           PARTITION  STATUS         "
        "\nnothere         -          Error: E: it is gone"
        "\norders          10         Error: E: not now"
        "\norders          2          Successful     \n"
    )


# K496-53, K496-54
def test_verdicts_on_deleted_offsets() -> None:
    verdict = groups_text.deletion_verdict
    assert verdict("g", None) == "Request succeeded for deleting offsets from group g.\n"
    assert verdict("g", GroupIdNotFound("Group g not found.")) == "\nError: The group id does not exist.\n"
    assert "some partition-level error" in verdict("g", GroupSubscribedToTopic())
    assert verdict("g", CoordinatorNotAvailable()).endswith("some unknown error: COORDINATOR_NOT_AVAILABLE\n")


# K122-85
def test_deleted_groups() -> None:
    assert groups_text.deleted_groups(["a", "b"], {}) == (
        "Deletion of requested consumer groups ('a', 'b') was successful.\n"
    )
    assert groups_text.deleted_groups(["a"], {"x": "E: no"}) == (
        "\nError: Deletion of some consumer groups failed:\n"
        "* Group 'x' could not be deleted due to: E: no\n"
        "\nThese consumer groups were deleted successfully: 'a'\n"
    )
