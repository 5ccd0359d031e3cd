"""Members of share groups, made by raw heartbeats, so that their ids and epochs are the same each time."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.connection import Connection
from groupkeeper.protocol import messages as m

LEAVES = -1
NOT_READY = (14, 15, 16)


class ShareMember(NamedTuple):
    """`partitions`: how many it is to get before the stage is ready. `leaves`: after that, so that offsets stay."""

    group_id: str
    member_id: str
    client_id: str
    topics: Sequence[str]
    partitions: int
    leaves: bool = False


async def join(admin: Admin, connection: Connection, member: ShareMember, patience_s: float) -> None:
    """Join, and beat until the partitions are assigned. The membership outlives the connection."""
    (await admin.find_coordinators([member.group_id])).all()
    epoch = 0
    async with asyncio.timeout(patience_s):
        while True:
            topics = member.topics if epoch == 0 else None
            answer = await _beat(connection, member, epoch, topics, patience_s)
            if answer.error_code not in NOT_READY:
                assert answer.error_code == 0, answer.error_message
                epoch = answer.member_epoch
                if await _is_assigned(admin, member):
                    break
            await asyncio.sleep(0.02)
    if member.leaves:
        left = await _beat(connection, member, LEAVES, None, patience_s)
        assert left.error_code == 0
    connection.abort()


async def _is_assigned(admin: Admin, member: ShareMember) -> bool:
    """Whether the member has its partitions, and the group's epochs have met."""
    group = (await admin.describe_share_groups([member.group_id])).result(member.group_id)
    [own] = [each for each in group.members if each.member_id == member.member_id]
    return (
        len(own.assignment) == member.partitions
        and own.member_epoch == group.target_assignment_epoch == group.group_epoch
        # A subscription to a topic makes the group's epoch rise once more, when the topic's state is initialized.
        and group.group_epoch > 2 * bool(member.partitions)
    )


async def _beat(
    connection: Connection, member: ShareMember, epoch: int, topics: Sequence[str] | None, patience_s: float
) -> m.ShareGroupHeartbeatResponse:
    subscribed_topic_names = list(topics) if topics is not None else None
    request = m.ShareGroupHeartbeatRequest(member.group_id, member.member_id, epoch, None, subscribed_topic_names)
    return await connection.ask(request, 1, m.ShareGroupHeartbeatResponse, patience_s)
