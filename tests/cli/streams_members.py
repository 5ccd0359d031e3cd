"""Members of streams groups, made by raw heartbeats, so that their ids and epochs are the same each time."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.connection import Connection
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.streams_group_heartbeat_request import Subtopology, TaskIds, Topology

LEAVES = -1
NOT_READY = (14, 15, 16)


class StreamsMember(NamedTuple):
    """`tasks`: how many active ones it is to get, None: it only joins. `leaves`: then, so that offsets stay."""

    group_id: str
    member_id: str
    client_id: str
    subtopologies: Sequence[Subtopology]
    tasks: int | None
    commits: Mapping[tuple[str, int], tuple[int, int]] = {}
    leaves: bool = False
    process_id: str = "process-1"


async def join(admin: Admin, connection: Connection, member: StreamsMember, patience_s: float) -> None:
    """Join, beat until the tasks are assigned, run them, and commit. The membership outlives the connection."""
    (await admin.find_coordinators([member.group_id])).all()
    async with asyncio.timeout(patience_s):
        told = await _beat(connection, member, 0, patience_s)
        given = told.active_tasks or []
        while member.tasks is not None and sum(len(each.partitions) for each in given) != member.tasks:
            await asyncio.sleep(0.05)
            told = await _beat(connection, member, told.member_epoch, patience_s)
            given = told.active_tasks or given
        if member.tasks is not None:
            running = [TaskIds(each.subtopology_id, each.partitions) for each in given]
            told = await _beat(connection, member, told.member_epoch, patience_s, running)
    for (topic, partition), (offset, leader_epoch) in member.commits.items():
        await _commit(connection, member, told.member_epoch, topic, [(partition, offset, leader_epoch)], patience_s)
    if member.leaves:
        await _beat(connection, member, LEAVES, patience_s)
    connection.abort()


async def _beat(
    connection: Connection,
    member: StreamsMember,
    epoch: int,
    patience_s: float,
    running: Sequence[TaskIds] | None = None,
) -> m.StreamsGroupHeartbeatResponse:
    request = m.StreamsGroupHeartbeatRequest(member.group_id, member.member_id, epoch, rebalance_timeout_ms=300_000)
    if epoch == 0:
        request.topology = Topology(0, list(member.subtopologies))
        request.process_id = member.process_id
    if epoch == 0 or running is not None:
        request.active_tasks, request.standby_tasks, request.warmup_tasks = list(running or ()), [], []
    while True:
        answer = await connection.ask(request, 0, m.StreamsGroupHeartbeatResponse, patience_s)
        if answer.error_code not in NOT_READY:
            assert answer.error_code == 0, answer
            return answer


async def _commit(
    connection: Connection,
    member: StreamsMember,
    epoch: int,
    topic: str,
    offsets: Sequence[tuple[int, int, int]],
    patience_s: float,
) -> None:
    parts = [m.OffsetCommitRequestPartition(*offset) for offset in offsets]
    topics = [m.OffsetCommitRequestTopic(topic, partitions=parts)]
    request = m.OffsetCommitRequest(member.group_id, epoch, member.member_id, topics=topics)
    answer = await connection.ask(request, 9, m.OffsetCommitResponse, patience_s)
    assert [part.error_code for each in answer.topics for part in each.partitions] == [0] * len(offsets)
