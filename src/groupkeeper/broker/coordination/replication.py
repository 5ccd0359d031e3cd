"""Answers of coordinators that wait until all replicas in sync have what was written. Only where some lag, or where
there are too few of them; then the log of a coordinator has records behind its high watermark.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any

from groupkeeper.broker.call import Call
from groupkeeper.broker.coordination.shard_host import ShardHost
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.waiter import wait_until
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import CoordinatorNotAvailable, NotCoordinator
from groupkeeper.protocol.primitives import RootMessage


def groups_written(request: RootMessage) -> Iterable[str]:
    """The groups whose coordinators the answer to a request waits for: those of requests that Apache Kafka 4.4.0
    schedules as writes, whether anything is written or not.
    """
    match request:
        case m.OffsetFetchRequest():
            return [group.group_id for group in request.groups] if request.require_stable else ()
        case m.DeleteGroupsRequest():
            return request.groups_names
        case (
            m.OffsetCommitRequest() | m.TxnOffsetCommitRequest() | m.OffsetDeleteRequest()
            | m.JoinGroupRequest() | m.SyncGroupRequest() | m.HeartbeatRequest() | m.LeaveGroupRequest()
            | m.ConsumerGroupHeartbeatRequest() | m.ShareGroupHeartbeatRequest() | m.StreamsGroupHeartbeatRequest()
            | m.AlterShareGroupOffsetsRequest() | m.DeleteShareGroupOffsetsRequest()
        ):  # fmt: skip
            return (request.group_id,)
    return ()


def transactions_written(request: RootMessage) -> Iterable[str]:
    """The same for transactional ids."""
    match request:
        case m.InitProducerIdRequest():
            return (request.transactional_id or "",)
        case m.AddPartitionsToTxnRequest():
            return [request.v3_and_below_transactional_id, *(one.transactional_id for one in request.transactions)]
        case m.AddOffsetsToTxnRequest() | m.EndTxnRequest():
            return (request.transactional_id,)
    return ()


async def once_replicated(
    call: Call, work: Awaitable[RootMessage | None], waits: Iterable[tuple[ShardHost[Any], Iterable[str], int]]
) -> RootMessage | None:
    """The answer to a request, once replicas have what is written for its keys; each host has its own, and how many
    milliseconds the answer waits at most. Raises `NotCoordinator` where another node coordinates meanwhile, else
    `CoordinatorNotAvailable` (OffsetFetch `NotCoordinator`); what was written may stay all the same, as in Apache
    Kafka. A refusal does not wait.
    """
    answer = await work
    if _is_refused(answer):
        return answer
    late = NotCoordinator if isinstance(call.message, m.OffsetFetchRequest) else CoordinatorNotAvailable
    for host, keys, timeout_ms in waits:
        for key in keys:
            if key and host.shards and not await _is_replicated(host.shard_of(key).log, call.node, timeout_ms):
                raise late
    return answer


def _is_refused(answer: RootMessage | None) -> bool:
    """Whether nothing was written for it: it has an error, or all of its partitions have."""
    if isinstance(answer, m.OffsetCommitResponse | m.TxnOffsetCommitResponse):
        return all(each.error_code for topic in answer.topics for each in topic.partitions)
    return bool(getattr(answer, "error_code", 0))


async def _is_replicated(log: PartitionLog, node: int, timeout_ms: int) -> bool:
    at, epoch, end_offset = log.placement, log.placement.epoch, log.log_end_offset
    if at.leader != node:
        return True

    def is_decided() -> bool:
        return log.high_watermark >= end_offset or at.epoch != epoch or log.failure is not None

    await wait_until(log, is_decided, asyncio.get_running_loop().time() + timeout_ms / 1000)
    if at.epoch != epoch or log.failure is not None:
        raise NotCoordinator
    return is_decided()
