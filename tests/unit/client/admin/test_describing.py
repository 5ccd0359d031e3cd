"""describe_consumer_groups with its fallback, and describe_classic_groups."""

import pytest
from tests.unit.client.scripted_broker import Handler, describing, in_turn, newest, scripted

from groupkeeper.client.admin.types import GroupState, GroupType, MemberDescription, TopicPartition
from groupkeeper.client.errors import IllegalArgument
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.codec import encode
from groupkeeper.protocol.messages import consumer_group_describe_response as modern
from groupkeeper.protocol.messages import describe_groups_response as classic
from groupkeeper.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from groupkeeper.protocol.primitives import RootMessage

SUBSCRIPTION = b"\x00\x01" + encode(m.ConsumerProtocolSubscription(["t"]), 1)
ASSIGNMENT = b"\x00\x01" + encode(m.ConsumerProtocolAssignment([AssignedTopic("t", [0, 2])]), 1)


def described(*groups: modern.DescribedGroup) -> Handler:
    """Answers ConsumerGroupDescribe: GROUP_ID_NOT_FOUND for groups not given."""

    def missing(key: str, version: int) -> modern.DescribedGroup:
        return modern.DescribedGroup(69, f"Group {key} is not a consumer group.", key)

    return describing(modern.ConsumerGroupDescribeResponse, missing, *groups)


def described_classic(*groups: classic.DescribedGroup) -> Handler:
    """Answers DescribeGroups: what is missing is not found from version 6 on, and Dead before."""

    def missing(key: str, version: int) -> classic.DescribedGroup:
        is_told = version >= 6
        return classic.DescribedGroup(69 * is_told, f"Group {key} not found." if is_told else None, key, "Dead")

    return describing(classic.DescribeGroupsResponse, missing, *groups, asked="groups")


def classic_group(group_id: str, protocol_type: str, *members: classic.DescribedGroupMember) -> classic.DescribedGroup:
    return classic.DescribedGroup(0, None, group_id, "Stable", protocol_type, "range", members)


def consumer_group(group_id: str, *members: modern.Member) -> modern.DescribedGroup:
    return modern.DescribedGroup(0, None, group_id, "Assigning", 5, 4, "uniform", members)


def member(member_id: str, member_type: int) -> modern.Member:
    def assigned(**partitions: list[int]) -> modern.Assignment:
        return modern.Assignment([modern.TopicPartitions(bytes(16), topic, each) for topic, each in partitions.items()])

    instance_id, regex = ("static", "t.*") if member_id == "m1" else (None, None)
    now, target = assigned(t=[0, 1]), assigned(t=[1], u=[0])
    return modern.Member(
        member_id, instance_id, "rack", 5, "client", "/127.0.0.1", ["t"], regex, now, target, member_type
    )


async def test_consumer_groups() -> None:
    # K1099-30, K1099-31, K1099-32, K1099-33, K1099-36
    group = consumer_group("g", member("m1", 1), member("m2", 0), member("m3", -1))
    async with scripted({"ConsumerGroupDescribe": described(group)}) as (broker, admin):
        description = (await admin.describe_consumer_groups(["g"])).all()["g"]
        assert broker.count("DescribeGroups") == 0
    assert description.group_type is GroupType.CONSUMER
    assert description.group_state is GroupState.ASSIGNING
    assert (description.group_epoch, description.target_assignment_epoch) == (5, 4)
    assert description.partition_assignor == "uniform"
    assert not description.is_simple
    assert description.coordinator.port == broker.port
    assert description.authorized_operations is None
    assert description.members[0] == MemberDescription(
        member_id="m1",
        instance_id="static",
        client_id="client",
        host="/127.0.0.1",
        assignment=(TopicPartition("t", 0), TopicPartition("t", 1)),
        target_assignment=(TopicPartition("t", 1), TopicPartition("u", 0)),
        member_epoch=5,
        upgraded=True,
        rack_id="rack",
        subscribed_topics=("t",),
        subscribed_topic_regex="t.*",
    )
    assert [each.upgraded for each in description.members] == [True, False, None]


CLASSIC = classic_group(
    "c",
    "consumer",
    classic.DescribedGroupMember("m1", "static", "client", "/127.0.0.1", SUBSCRIPTION, ASSIGNMENT),
    classic.DescribedGroupMember("m2", None, "client", "/127.0.0.1", b"", b""),
    classic.DescribedGroupMember("m3", None, "client", "/127.0.0.1", b"\x00\x01garbage", b"\x00\x01\xff\xff\xff"),
    classic.DescribedGroupMember("m4", None, "client", "/127.0.0.1", b"\x00\x63" + SUBSCRIPTION[2:], ASSIGNMENT),
)


@pytest.mark.parametrize("code", [69, 35])
async def test_falls_back_to_describe_groups(code: int) -> None:
    # K1099-34, K1099-38, K1099-40
    handlers = {
        "ConsumerGroupDescribe": described(consumer_group("g"), modern.DescribedGroup(code, "no", "c")),
        "DescribeGroups": described_classic(CLASSIC),
    }
    async with scripted(handlers) as (broker, admin):
        descriptions = (await admin.describe_consumer_groups(["c", "g"])).all()
        assert broker.asked("DescribeGroups") == [newest(m.DescribeGroupsRequest(["c"]))]
    group = descriptions["c"]
    assert list(descriptions) == ["c", "g"]
    assert group.group_type is GroupType.CLASSIC
    assert (group.group_epoch, group.target_assignment_epoch) == (None, None)
    assert group.partition_assignor == "range"
    assert not group.is_simple
    first = group.members[0]
    assert first.assignment == (TopicPartition("t", 0), TopicPartition("t", 2))
    assert first.subscribed_topics == ("t",)
    assert (first.target_assignment, first.member_epoch, first.upgraded) == (None, None, None)
    assert first.instance_id == "static"
    assert (first.metadata, first.assignment_blob) == (SUBSCRIPTION, ASSIGNMENT)
    # What can't be read hides neither the member nor its group (GC-30).
    assert [(each.assignment, each.is_assignment_readable) for each in group.members[1:3]] == [((), True), ((), False)]
    assert [each.subscribed_topics for each in group.members] == [("t",), None, None, ("t",)]


async def test_groups_that_a_broker_repeats_as_not_found() -> None:
    """As Kafka 3.9 does: each partition of its offsets topic answers for all groups, and knows its own only."""

    def handle(message: m.ConsumerGroupDescribeRequest, version: int) -> RootMessage:
        answered = [(part, key) for part in message.group_ids for key in message.group_ids]
        return modern.ConsumerGroupDescribeResponse(
            groups=[
                consumer_group(key) if key == part else modern.DescribedGroup(69, None, key) for part, key in answered
            ]
        )

    handlers = {"ConsumerGroupDescribe": handle, "DescribeGroups": described_classic()}
    async with scripted(handlers, ranges={"DescribeGroups": (0, 5)}) as (_, admin):
        descriptions = (await admin.describe_consumer_groups(["g", "h"])).all()
    assert {key: group.group_state for key, group in descriptions.items()} == dict.fromkeys("gh", GroupState.ASSIGNING)


def listed(*groups: m.ListedGroup) -> Handler:
    return in_turn(m.ListGroupsResponse(groups=list(groups)))


async def test_groups_listed_as_classic_are_described_so_at_once() -> None:
    groups = m.ListedGroup("c", "consumer", "Stable", "classic"), m.ListedGroup("g", "consumer", "", "consumer")
    handlers = {
        "ListGroups": listed(*groups),
        "ConsumerGroupDescribe": described(consumer_group("g")),
        "DescribeGroups": described_classic(CLASSIC),
    }
    async with scripted(handlers) as (broker, admin):
        await admin.list_groups()
        descriptions = (await admin.describe_consumer_groups(["c", "g"])).all()
        assert broker.asked("ConsumerGroupDescribe") == [newest(m.ConsumerGroupDescribeRequest(["g"]))]
        assert broker.asked("DescribeGroups") == [newest(m.DescribeGroupsRequest(["c"]))]
    assert [group.group_type for group in descriptions.values()] == [GroupType.CLASSIC, GroupType.CONSUMER]


@pytest.mark.parametrize("versions", [(0, 6), (0, 5)])
async def test_a_group_that_has_changed_its_type_since_it_was_listed(versions: tuple[int, int]) -> None:
    groups = m.ListedGroup("g", "consumer", "Stable", "Classic"), m.ListedGroup("gone", "", "Empty", "Classic")
    handlers = {
        "ListGroups": listed(*groups),
        "ConsumerGroupDescribe": described(consumer_group("g")),
        "DescribeGroups": described_classic(),
    }
    async with scripted(handlers, ranges={"DescribeGroups": versions}) as (_, admin):
        await admin.list_groups()
        batch = await admin.describe_consumer_groups(["g", "gone"])
    assert batch.done["g"].group_type is GroupType.CONSUMER
    if versions == (0, 6):
        assert batch.failed == {"gone": errors.GroupIdNotFound("Group gone is not a consumer group.")}
    else:
        assert batch.done["gone"].group_state is GroupState.DEAD


async def test_without_the_api_all_groups_are_described_as_classic() -> None:
    # K1099-38, K1099-91, E2E-06
    ranges = {"ConsumerGroupDescribe": None}
    async with scripted({"DescribeGroups": described_classic(CLASSIC)}, ranges=ranges) as (_, admin):
        batch = await admin.describe_consumer_groups(["c", "gone"])
    assert batch.done["c"].group_epoch is None
    assert batch.failed == {"gone": errors.GroupIdNotFound("Group gone not found.")}


async def test_the_first_message_is_the_one_told() -> None:
    # K1099-38, K122-87
    async with scripted({"ConsumerGroupDescribe": described(), "DescribeGroups": described_classic()}) as (_, admin):
        batch = await admin.describe_consumer_groups(["share"])
    assert batch.failed == {"share": errors.GroupIdNotFound("Group share is not a consumer group.")}


async def test_groups_of_other_protocol_types() -> None:
    # K1099-39, GD-23
    workers = classic_group("w", "connect", classic.DescribedGroupMember("m", None, "c", "/h", b"\x00\x01", ASSIGNMENT))
    classic_groups = described_classic(workers, classic_group("simple", ""))
    handlers = {"ConsumerGroupDescribe": described(), "DescribeGroups": classic_groups}
    async with scripted(handlers) as (_, admin):
        batch = await admin.describe_consumer_groups(["w", "simple"])
        groups = (await admin.describe_classic_groups(["w", "simple"])).all()
    assert isinstance(batch.failed["w"], IllegalArgument)
    assert str(batch.failed["w"]) == "GroupId w is not a consumer group (connect)."
    assert batch.done["simple"].is_simple
    assert (groups["w"].protocol_type, groups["w"].protocol, groups["w"].is_simple) == ("connect", "range", False)
    assert groups["w"].members[0].assignment == ()
    assert groups["w"].members[0].assignment_blob == ASSIGNMENT


async def test_refusals_carry_the_servers_message() -> None:
    # K1099-95, K1099-96
    text = "The group has described topic(s) that the client is not authorized to describe."
    refused = [modern.DescribedGroup(30, "not for you", "secret"), modern.DescribedGroup(29, text, "t")]
    async with scripted({"ConsumerGroupDescribe": described(consumer_group("g"), *refused)}) as (_, admin):
        batch = await admin.describe_consumer_groups(["g", "secret", "t"])
    assert list(batch.done) == ["g"]
    told = {"secret": errors.GroupAuthorizationFailed("not for you"), "t": errors.TopicAuthorizationFailed(text)}
    assert batch.failed == told


@pytest.mark.parametrize(("highest", "is_sent"), [(2, False), (3, True)])
async def test_authorized_operations(highest: int, is_sent: bool) -> None:
    operations = (1 << 3 | 1 << 8) if is_sent else -(2**31)
    group = classic.DescribedGroup(0, None, "c", "Empty", "consumer", "", [], operations)
    ranges = {"ConsumerGroupDescribe": None, "DescribeGroups": (0, highest)}
    async with scripted({"DescribeGroups": described_classic(group)}, ranges=ranges) as (broker, admin):
        batch = await admin.describe_consumer_groups(["c"], include_authorized_operations=True)
        assert broker.asked("DescribeGroups") == [(highest, m.DescribeGroupsRequest(["c"], is_sent))]
        assert batch.done["c"].authorized_operations == (frozenset({"READ", "DESCRIBE"}) if is_sent else None)


def test_a_member_may_be_described_with_less() -> None:
    # K1099-35: who was known before those fields were, goes without them.
    short = MemberDescription("m", None, "client", "/127.0.0.1")
    assert short.assignment == ()
    longer = MemberDescription("m", "i", "client", "/127.0.0.1", (TopicPartition("t", 0),))
    for member in (short, longer):
        assert (member.target_assignment, member.member_epoch, member.upgraded, member.rack_id) == (None,) * 4
