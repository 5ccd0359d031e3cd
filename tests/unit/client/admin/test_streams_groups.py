"""Streams groups: their description, and brokers that don't have them."""

from tests.unit.client.scripted_broker import describing, newest, scripted

from groupkeeper.client.admin.streams_types import (
    StreamsNode,
    StreamsSubtopology,
    StreamsTask,
    StreamsTasks,
    StreamsTopic,
    StreamsTopology,
    TopologyStatus,
)
from groupkeeper.client.admin.types import GroupState, GroupType
from groupkeeper.client.errors import UnsupportedVersion as NotSupported
from groupkeeper.protocol.errors import GroupIdNotFound
from groupkeeper.protocol.messages import streams_group_describe_response as described
from groupkeeper.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from groupkeeper.protocol.primitives import RootMessage


def group() -> described.DescribedGroup:
    changelog = described.TopicInfo("app-store-changelog", 0, 1, [described.KeyValue("cleanup.policy", "compact")])
    repartition = described.TopicInfo("app-repartition", 4)
    first = described.Subtopology("0", ["in"], ["app-repartition"])
    topology = described.Topology(3, [first, described.Subtopology("1", [], [], [changelog], [repartition])])
    member = described.Member(
        "m", 7, None, "rack", "client", "/127.0.0.1", 3, "process", described.Endpoint("host", 80),
        [described.KeyValue("zone", "a")],
        [described.TaskOffset("1", 0, 5)], [described.TaskOffset("1", 0, 9)],
        described.Assignment([described.TaskIds("0", [0, 1])], [described.TaskIds("1", [2])]),
        described.Assignment([described.TaskIds("0", [0])], [], [described.TaskIds("1", [3])]),
    )  # fmt: skip
    return described.DescribedGroup(0, None, "app", "Reconciling", 8, 7, topology, [member], 1 << 8)


def not_found(key: str, version: int) -> described.DescribedGroup:
    return described.DescribedGroup(69, f"Group {key} not found.", key)


async def test_descriptions() -> None:
    bare = described.DescribedGroup(0, None, "bare", "Empty", 1, 1)
    answer = describing(described.StreamsGroupDescribeResponse, not_found, group(), bare)
    async with scripted({"StreamsGroupDescribe": answer}) as (broker, admin):
        batch = await admin.describe_streams_groups(["app", "x", "bare"], include_authorized_operations=True)
        assert broker.asked("StreamsGroupDescribe") == [newest(StreamsGroupDescribeRequest(["app", "x", "bare"], True))]
    app = batch.done["app"]
    assert (app.group_type, app.group_state) == (GroupType.STREAMS, GroupState.RECONCILING)
    assert (app.group_epoch, app.target_assignment_epoch, app.topology_epoch) == (8, 7, 3)
    assert (app.coordinator.port, app.authorized_operations) == (broker.port, frozenset({"DESCRIBE"}))
    changelog = StreamsTopic("app-store-changelog", 0, 1, (("cleanup.policy", "compact"),))
    assert app.subtopologies == (
        StreamsSubtopology("0", ("in",), ("app-repartition",)),
        StreamsSubtopology("1", (), (), (changelog,), (StreamsTopic("app-repartition", 4),)),
    )
    [member] = app.members
    assert (member.member_id, member.client_id, member.host) == ("m", "client", "/127.0.0.1")
    assert (member.member_epoch, member.topology_epoch, member.process_id) == (7, 3, "process")
    assert (member.instance_id, member.rack_id, member.endpoint) == (None, "rack", ("host", 80))
    assert (member.client_tags, member.is_classic) == ((("zone", "a"),), False)
    first, second = StreamsTask("0", 0), StreamsTask("0", 1)
    assert member.assignment == StreamsTasks((first, second), (StreamsTask("1", 2),))
    assert member.target_assignment == StreamsTasks((first,), (), (StreamsTask("1", 3),))
    assert member.task_offsets == ((StreamsTask("1", 0), 5),)
    assert member.task_end_offsets == ((StreamsTask("1", 0), 9),)
    assert (batch.done["bare"].topology_epoch, batch.done["bare"].subtopologies) == (None, ())
    assert batch.failed == {"x": GroupIdNotFound("Group x not found.")}


async def test_topologies() -> None:
    source = described.TopologyDescriptionNode("in", 1, ["a", "b"], successors=["count"])
    count = described.TopologyDescriptionNode("count", 2, stores=["store"], successors=["out"])
    sink = described.TopologyDescriptionNode("out", 3, sink_topic="c")
    subtopologies = [described.TopologyDescriptionSubtopology("0", [source, count, sink])]
    nodes = described.TopologyDescription(subtopologies, [described.TopologyDescriptionGlobalStore(source, count)])
    groups = {
        name: described.DescribedGroup(
            0, None, name, topology_description=kept, topology_description_status=status, assignor_name="sticky"
        )
        for name, kept, status in (("app", nodes, 3), ("bare", None, 1), ("odd", None, 9))
    }

    def tell(message: StreamsGroupDescribeRequest, version: int) -> RootMessage:
        assert message.include_topology_description
        return described.StreamsGroupDescribeResponse(groups=[groups[key] for key in message.group_ids])

    async with scripted({"StreamsGroupDescribe": tell}) as (_, admin):
        batch = await admin.describe_streams_groups(groups, include_topology=True)
    found = [
        StreamsNode("in", "source", ("a", "b"), (), ("count",)),
        StreamsNode("count", "processor", (), ("store",), ("out",)),
    ]
    subtopology = ("0", (*found, StreamsNode("out", "sink", ("c",))))
    assert batch.done["app"].topology == StreamsTopology((subtopology,), (tuple(found),))
    statuses = [TopologyStatus.THERE, TopologyStatus.NOT_STORED, TopologyStatus.FAILED]
    assert [batch.done[name].topology_status for name in groups] == statuses
    assert batch.done["app"].assignor == "sticky"
    async with scripted(ranges={"StreamsGroupDescribe": (0, 0)}) as (_, admin):
        failure = (await admin.describe_streams_groups(["app"], include_topology=True)).failed["app"]
    assert isinstance(failure, NotSupported)
    assert str(failure) == "Attempted to write a non-default includeTopologyDescription at version 0"


async def test_a_broker_without_streams_groups() -> None:
    async with scripted(ranges={"StreamsGroupDescribe": None}) as (_, admin):
        batch = await admin.describe_streams_groups(["app"])
    assert isinstance(batch.failed["app"], NotSupported)
