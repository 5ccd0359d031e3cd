"""Share groups: description, offsets, what is retried, and brokers that don't have them."""

import pytest
from tests.unit.client.scripted_broker import describing, in_turn, newest, scripted

from groupkeeper.cli.java import values as java
from groupkeeper.client.admin.types import GroupState, ShareMemberDescription, SharePartitionOffset, TopicPartition
from groupkeeper.client.errors import CallTimedOut, MissingResult
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import alter_share_group_offsets_request as alter
from groupkeeper.protocol.messages import alter_share_group_offsets_response as altered
from groupkeeper.protocol.messages import delete_share_group_offsets_request as delete
from groupkeeper.protocol.messages import delete_share_group_offsets_response as deleted
from groupkeeper.protocol.messages import describe_share_group_offsets_request as listing
from groupkeeper.protocol.messages import describe_share_group_offsets_response as listed
from groupkeeper.protocol.messages import share_group_describe_response as described
from groupkeeper.protocol.primitives import RootMessage

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def not_found(key: str, version: int) -> described.DescribedGroup:
    return described.DescribedGroup(69, f"Group {key} not found.", key)


async def test_descriptions() -> None:
    # K1099-06, K1099-14, K1099-37, GS-21
    assigned = [described.TopicPartitions(bytes(16), "a", [1, 0]), described.TopicPartitions(bytes(16), "b", [0])]
    members = [
        described.Member("m2", "rack", 7, "two", "/127.0.0.1", ["a", "b"], described.Assignment(assigned)),
        described.Member("m1", None, 6, "one", "/127.0.0.2", ["a"]),
    ]
    group = described.DescribedGroup(0, None, "g", "Stable", 8, 7, "simple", members, 1 << 8 | 1 << 3)
    handler = describing(m.ShareGroupDescribeResponse, not_found, group)
    async with scripted({"ShareGroupDescribe": handler}) as (broker, admin):
        batch = await admin.describe_share_groups(["g", "x", "g"], include_authorized_operations=True)
        assert broker.asked("ShareGroupDescribe") == [newest(m.ShareGroupDescribeRequest(["g", "x"], True))]
    description = batch.done["g"]
    assert (description.group_state, description.partition_assignor) == (GroupState.STABLE, "simple")
    assert (description.group_epoch, description.target_assignment_epoch) == (8, 7)
    assert description.coordinator.port == broker.port
    assert description.authorized_operations == frozenset({"READ", "DESCRIBE"})
    assert description.members == (
        ShareMemberDescription("m2", "two", "/127.0.0.1", 7, (A1, A0, B0), "rack", ("a", "b")),
        ShareMemberDescription("m1", "one", "/127.0.0.2", 6, (), None, ("a",)),
    )
    assert batch.failed == {"x": errors.GroupIdNotFound("Group x not found.")}


def partition(
    index: int, start: int, epoch: int = 0, lag: int = -1, code: int = 0
) -> listed.DescribeShareGroupOffsetsResponsePartition:
    message = "refused" if code else None
    return listed.DescribeShareGroupOffsetsResponsePartition(index, start, epoch, lag, code, message)


async def test_offsets() -> None:
    # GS-15, GS-16, GS-21
    def answer(message: listing.DescribeShareGroupOffsetsRequest, version: int) -> RootMessage:
        topic, group = listed.DescribeShareGroupOffsetsResponseTopic, listed.DescribeShareGroupOffsetsResponseGroup
        of_a = [partition(0, 5, 2, 3 if version >= 1 else -1), partition(1, -1)]
        topics = [topic("a", bytes(16), of_a), topic("b", bytes(16), [partition(0, 0, -1, -1, 29)])]
        groups = [group("g", topics), group("x", [], 30, "no"), group("named", [])]
        wanted = {group.group_id for group in message.groups}
        return listed.DescribeShareGroupOffsetsResponse(groups=[each for each in groups if each.group_id in wanted])

    handlers = {"DescribeShareGroupOffsets": answer}
    async with scripted(handlers) as (broker, admin):
        batch = await admin.list_share_group_offsets({"g": None, "x": None, "named": [B0, A1, A0]})
        [(version, request)] = broker.asked("DescribeShareGroupOffsets")
    group, topic = listing.DescribeShareGroupOffsetsRequestGroup, listing.DescribeShareGroupOffsetsRequestTopic
    groups = [group("g", None), group("x", None), group("named", [topic("b", [0]), topic("a", [1, 0])])]
    assert (version, request) == (1, listing.DescribeShareGroupOffsetsRequest(groups))
    assert batch.done["g"].done == {A0: SharePartitionOffset(5, 2, 3), A1: None}
    assert batch.done["g"].failed == {B0: errors.TopicAuthorizationFailed("refused")}
    assert list(batch.failed) == ["x"]
    missing = {tp: type(why) for tp, why in batch.done["named"].failed.items()}
    assert missing == dict.fromkeys([B0, A1, A0], MissingResult)

    async with scripted(handlers, ranges={"DescribeShareGroupOffsets": (0, 0)}) as (_, admin):
        offsets = (await admin.list_share_group_offsets({"g": None})).all()["g"]
    assert offsets.done[A0] == SharePartitionOffset(5, 2, None)  # a broker before 4.2 doesn't tell the lag


async def test_alter_offsets() -> None:
    # GS-17, GS-21: 14 and 27 are waited for.
    outcome, outcomes = altered.AlterShareGroupOffsetsResponsePartition, altered.AlterShareGroupOffsetsResponseTopic
    failed = outcome(0, 3, "This server …")
    responses = [outcomes("a", bytes(16), [outcome(0)]), outcomes("b", bytes(16), [failed])]
    done = altered.AlterShareGroupOffsetsResponse(responses=responses)
    again = [altered.AlterShareGroupOffsetsResponse(error_code=code) for code in (14, 27, 16)]
    async with scripted({"AlterShareGroupOffsets": in_turn(*again, done)}) as (broker, admin):
        batch = await admin.alter_share_group_offsets("g", {A0: 3, B0: 0, A1: 9})
        asked = broker.asked("AlterShareGroupOffsets")
    part, topic = alter.AlterShareGroupOffsetsRequestPartition, alter.AlterShareGroupOffsetsRequestTopic
    topics = [topic("a", [part(0, 3), part(1, 9)]), topic("b", [part(0, 0)])]
    assert asked == [(0, alter.AlterShareGroupOffsetsRequest("g", topics))] * 4
    assert batch.done == {A0: None}
    assert batch.failed[B0] == errors.UnknownTopicOrPartition("This server …")
    assert isinstance(batch.failed[A1], MissingResult)


async def test_delete_offsets() -> None:
    # GS-18, GS-21
    topic = deleted.DeleteShareGroupOffsetsResponseTopic
    responses = [topic("a"), topic("b", bytes(16), 3, "There is no offset information to delete.")]
    answer = deleted.DeleteShareGroupOffsetsResponse(responses=responses)
    async with scripted({"DeleteShareGroupOffsets": in_turn(answer)}) as (broker, admin):
        batch = await admin.delete_share_group_offsets("g", ["a", "b", "a", "c"])
        asked = broker.asked("DeleteShareGroupOffsets")
    topics = [delete.DeleteShareGroupOffsetsRequestTopic(name) for name in ("a", "b", "c")]
    assert asked == [(0, delete.DeleteShareGroupOffsetsRequest("g", topics))]
    assert batch.done == {"a": None}
    assert batch.failed["b"] == errors.UnknownTopicOrPartition("There is no offset information to delete.")
    assert isinstance(batch.failed["c"], MissingResult)


async def test_failures_of_the_whole_group_are_raised() -> None:
    # GS-17, GS-18
    text = "The group is not empty."
    handlers = {
        "AlterShareGroupOffsets": in_turn(altered.AlterShareGroupOffsetsResponse(0, 68, text)),
        "DeleteShareGroupOffsets": in_turn(deleted.DeleteShareGroupOffsetsResponse(0, 68, text)),
    }
    async with scripted(handlers) as (_, admin):
        with pytest.raises(errors.NonEmptyGroup, match=text):
            await admin.alter_share_group_offsets("g", {A0: 1})
        with pytest.raises(errors.NonEmptyGroup, match=text):
            await admin.delete_share_group_offsets("g", ["a"])


async def test_delete_groups() -> None:
    # GS-19, GD-05
    result = m.DeletableGroupResult
    results = [result("g"), result("h", 68), result("i", 134, "The plugin failed.")]
    handlers = {"DeleteGroups": in_turn(m.DeleteGroupsResponse(results=results))}
    async with scripted(handlers) as (broker, admin):
        batch = await admin.delete_share_groups(["g", "h", "i"])
        assert broker.asked("DeleteGroups") == [newest(m.DeleteGroupsRequest(["g", "h", "i"]))]
    assert batch.done == {"g": None}
    assert batch.failed == {"h": errors.NonEmptyGroup(), "i": errors.GroupDeletionFailed("The plugin failed.")}
    # The official tools don't show the reason.
    assert java.message(batch.failed["i"]) == errors.GroupDeletionFailed.text
    handlers = {"DeleteGroups": in_turn(m.DeleteGroupsResponse(results=[m.DeletableGroupResult("g", 14)]))}
    async with scripted(handlers) as (_, admin):
        failure = (await admin.delete_share_groups(["g"], timeout_ms=50)).failed["g"]
    assert isinstance(failure, CallTimedOut)
    assert str(failure).startswith("deleteShareGroups timed out")
