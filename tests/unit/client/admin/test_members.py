"""remove_members: LeaveGroup for static and dynamic members (GC-31)."""

import pytest
from tests.unit.client.admin.test_describing import classic_group, described, described_classic
from tests.unit.client.scripted_broker import Handler, in_turn, newest, scripted

from groupkeeper.client.admin.types import ALL, MemberToRemove
from groupkeeper.client.errors import MissingResult, UnsupportedVersion
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import GroupAuthorizationFailed, GroupIdNotFound, UnknownMemberId
from groupkeeper.protocol.messages import describe_groups_response as classic
from groupkeeper.protocol.primitives import RootMessage

STATIC, DYNAMIC = MemberToRemove("instance"), MemberToRemove(None, "member")


def leaving(error_code: int = 0, **code_by_member: int) -> Handler:
    def handle(message: m.LeaveGroupRequest, version: int) -> RootMessage:
        if version < 3:
            return m.LeaveGroupResponse(error_code=error_code or code_by_member.get(message.member_id, 0))

        def outcome(of: m.MemberIdentity) -> m.MemberResponse:
            code = code_by_member.get(of.group_instance_id or of.member_id, 0)
            return m.MemberResponse(of.member_id, of.group_instance_id, code)

        return m.LeaveGroupResponse(error_code=error_code, members=[outcome(each) for each in message.members])

    return handle


async def test_given_members_leave_in_one_request() -> None:
    async with scripted({"LeaveGroup": leaving(member=25)}) as (broker, admin):
        batch = await admin.remove_members("g", [STATIC, DYNAMIC], reason="tidying up")
        assert batch.done == {STATIC: None}
        assert batch.failed == {DYNAMIC: UnknownMemberId()}
        reason = "member was removed by an admin: tidying up"
        members = [m.MemberIdentity("", "instance", reason), m.MemberIdentity("member", None, reason)]
        assert broker.asked("LeaveGroup") == [newest(m.LeaveGroupRequest("g", "", members))]


async def test_all_members() -> None:
    group = classic_group(
        "g",
        "consumer",
        classic.DescribedGroupMember("m1", "static", "c", "/h", b"", b""),
        classic.DescribedGroupMember("m2", None, "c", "/h", b"", b""),
    )
    handlers = {
        "ConsumerGroupDescribe": described(),
        "DescribeGroups": described_classic(group, classic_group("empty", "consumer")),
        "LeaveGroup": leaving(),
    }
    async with scripted(handlers) as (broker, admin):
        batch = await admin.remove_members("g", ALL)
        assert batch.all() == {MemberToRemove("static"): None, MemberToRemove(None, "m2"): None}
        assert (await admin.remove_members("empty", ALL)).all() == {}
        assert (await admin.remove_members("g", [])).all() == {}
        assert broker.count("LeaveGroup") == 1
        with pytest.raises(GroupIdNotFound):
            await admin.remove_members("gone", ALL)


async def test_errors_of_the_whole_group() -> None:
    async with scripted({"LeaveGroup": in_turn(leaving(16), leaving(14), leaving(30))}) as (broker, admin):
        with pytest.raises(GroupAuthorizationFailed):
            await admin.remove_members("g", [STATIC])
        assert broker.count("FindCoordinator") == 2


async def test_members_left_out_of_the_answer() -> None:
    async with scripted({"LeaveGroup": in_turn(m.LeaveGroupResponse())}) as (_, admin):
        assert isinstance((await admin.remove_members("g", [STATIC])).failed[STATIC], MissingResult)


@pytest.mark.parametrize("highest", [3, 4])
async def test_without_reasons(highest: int) -> None:
    async with scripted({"LeaveGroup": leaving()}, ranges={"LeaveGroup": (0, highest)}) as (broker, admin):
        assert (await admin.remove_members("g", [STATIC, DYNAMIC], reason="x")).failed == {}
        assert broker.count("LeaveGroup") == 1


@pytest.mark.parametrize("highest", [0, 2])
async def test_one_dynamic_member_a_request_on_old_brokers(highest: int) -> None:
    other = MemberToRemove(None, "other")
    async with scripted({"LeaveGroup": leaving(other=25)}, ranges={"LeaveGroup": (0, highest)}) as (broker, admin):
        batch = await admin.remove_members("g", [DYNAMIC, other, STATIC])
        assert batch.done == {DYNAMIC: None}
        assert batch.failed[other] == UnknownMemberId()
        assert isinstance(batch.failed[STATIC], UnsupportedVersion)
        assert broker.count("LeaveGroup") == 2
