"""What the drop-ins print of values, where no recording shows it: `tests/cli/goldens` has all else."""

from groupkeeper.cli.dropin import groups_text, share_groups_text, streams_groups_text
from groupkeeper.client.admin.streams_types import StreamsGroupDescription, StreamsNode, StreamsTopology, TopologyStatus
from groupkeeper.client.admin.types import (
    ConsumerGroupDescription,
    GroupState,
    GroupType,
    MemberDescription,
    Node,
    TopicPartition,
)
from groupkeeper.protocol.errors import CoordinatorNotAvailable, GroupIdNotFound

ORDERS = [TopicPartition("orders", n) for n in range(2)]
NODE = Node(1, "broker.example", 9092)


def member(member_id: str = "m-1", *assignment: TopicPartition, **rest: object) -> MemberDescription:
    described = MemberDescription(member_id, None, "client", "/127.0.0.1", assignment)
    return described._replace(**rest)  # type: ignore[arg-type]


def group(*members: MemberDescription, **rest: object) -> ConsumerGroupDescription:
    described = ConsumerGroupDescription("app", GroupType.CLASSIC, GroupState.STABLE, False, "range", members, NODE)
    return described._replace(**rest)  # type: ignore[arg-type]


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


def streams_group(state: GroupState) -> StreamsGroupDescription:
    return StreamsGroupDescription("g", state, (), NODE, 5, 4, 2)


def test_topologies_of_streams_groups() -> None:
    """As `describe` of the application's own topology prints it, with one more line at the end."""
    source = StreamsNode("in", "source", ("b", "a"), (), ("count", "peek"))
    count = StreamsNode("count", "processor", (), ("store",), ("out",))
    nodes = (source, count, StreamsNode("peek", "processor", (), (), ("out",)), StreamsNode("out", "sink"))
    known = streams_group(GroupState.STABLE)._replace(topology=StreamsTopology((("0", nodes),), ((source, count),)))
    assert streams_groups_text.topology(known) == (
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
        assert text in streams_groups_text.topology(streams_group(GroupState.STABLE)._replace(topology_status=status))


# K496-54, K1099-75, K1099-X1, K1099-X3
def test_what_is_said_of_groups_that_are_gone_or_fail() -> None:
    assert groups_text.deletion_text("g", GroupIdNotFound("Group g not found.")) == (
        "\nError: The group id does not exist.\n"
    )
    assert groups_text.deletion_text("g", CoordinatorNotAvailable()) == (
        "\nError: Encountered some unknown error: COORDINATOR_NOT_AVAILABLE\n"
    )
    assert share_groups_text.missing("g") == "\nError: Share group 'g' does not exist.\n"
    assert streams_groups_text.note(streams_group(GroupState.DEAD)) == "\nError: Streams group 'g' does not exist.\n"
