"""Deleting groups (DeleteGroups) and removing their members (LeaveGroup)."""

from __future__ import annotations

from collections.abc import Iterable

from groupkeeper.client.admin.coordinators import of_one_group, routed
from groupkeeper.client.admin.types import All, Batch, Failure, MemberToRemove
from groupkeeper.client.batch import batch_of, failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import UnsupportedVersion
from groupkeeper.client.peer import Peer
from groupkeeper.client.router import one_by_one
from groupkeeper.protocol.errors import error_for
from groupkeeper.protocol.messages import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

_GROUPS_PER_REQUEST = 100

_REASON = "member was removed by an admin"
_MAX_REASON_CHARACTERS = 255


async def delete_groups(
    cluster: Cluster, call: str, group_ids: Iterable[str], timeout_ms: int | None
) -> Batch[str, None]:
    """Admin.delete_consumer_groups and Admin.delete_share_groups, which ``call`` names for the text of a timeout."""
    from groupkeeper.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse

    deadline = cluster.deadline(call, timeout_ms)

    async def ask(peer: Peer, keys: list[str], deadline: Deadline) -> dict[str, Failure | None]:
        answer = await peer.ask(DeleteGroupsResponse, DeleteGroupsRequest(keys), deadline)
        return {
            each.group_id: error_for(each.error_code, each.error_message) if each.error_code else None
            for each in answer.results
        }

    return await routed(cluster, deadline, ask, chunk=_GROUPS_PER_REQUEST).run(list(group_ids))


async def remove_members(
    cluster: Cluster, group_id: str, members: Iterable[MemberToRemove] | All, reason: str | None, timeout_ms: int | None
) -> Batch[MemberToRemove, None]:
    """Admin.remove_members."""
    deadline = cluster.deadline("removeMembersFromConsumerGroup", timeout_ms)
    if isinstance(members, All):
        members = await _all_members(cluster, group_id, deadline)
    wanted = list(dict.fromkeys(members))
    if not wanted:
        return Batch()
    text = f"{_REASON}: {reason}" if reason else _REASON

    async def ask(peer: Peer, keys: list[str], deadline: Deadline) -> dict[str, Batch[MemberToRemove, None] | Failure]:
        return {group_id: await _leave(peer, group_id, wanted, text[:_MAX_REASON_CHARACTERS], deadline)}

    return await of_one_group(cluster, deadline, group_id, ask)


async def _all_members(cluster: Cluster, group_id: str, deadline: Deadline) -> list[MemberToRemove]:
    from groupkeeper.client.admin.group_descriptions import describe_consumer_groups, member_identities

    left_ms = int(deadline.left_s() * 1000)
    description = (await describe_consumer_groups(cluster, [group_id], False, left_ms)).result(group_id)
    return [MemberToRemove(*identity) for identity in member_identities(description.members)]


async def _leave(
    peer: Peer, group_id: str, members: list[MemberToRemove], reason: str, deadline: Deadline
) -> Batch[MemberToRemove, None] | Failure:
    try:
        answer = await peer.ask(
            LeaveGroupResponse, lambda version: _batch_request(version, group_id, members, reason), deadline
        )
    except _OneMemberPerRequest:
        return await _leave_one_by_one(peer, group_id, members, deadline)
    if answer.error_code:
        return error_for(answer.error_code)
    answers = {
        MemberToRemove(each.group_instance_id, each.member_id): failure_of(each.error_code) for each in answer.members
    }
    return batch_of(members, answers, "the reply has no result for {}")


class _OneMemberPerRequest(UnsupportedVersion):
    """LeaveGroup < 3."""


def _batch_request(version: int, group_id: str, members: list[MemberToRemove], reason: str) -> LeaveGroupRequest:
    if version < 3:
        raise _OneMemberPerRequest(
            f"Version {version} leave group request only supports single member instance than {len(members)} members"
        )
    identities = [MemberIdentity(member.member_id, member.instance_id, reason) for member in members]
    return LeaveGroupRequest(group_id=group_id, members=identities)


async def _leave_one_by_one(
    peer: Peer, group_id: str, members: list[MemberToRemove], deadline: Deadline
) -> Batch[MemberToRemove, None]:
    async def ask_one(member: MemberToRemove) -> None:
        if member.instance_id is not None:
            raise UnsupportedVersion(
                "The broker only supports LeaveGroup v2 or older, but we need v3 or newer to remove a static member "
                "by its instance id."
            )
        answer = await peer.ask(
            LeaveGroupResponse,
            LeaveGroupRequest(group_id=group_id, member_id=member.member_id),
            deadline,
            max_version=2,
        )
        if answer.error_code:
            raise error_for(answer.error_code)

    batch: Batch[MemberToRemove, None] = Batch()
    for member, answer in (await one_by_one(members, ask_one)).items():
        if answer is None:
            batch.done[member] = None
        else:
            batch.failed[member] = answer
    return batch
