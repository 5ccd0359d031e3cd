"""DescribeLogDirs (35): how many bytes each partition takes."""

from __future__ import annotations

import os
from asyncio import sleep
from collections.abc import Iterator

from groupkeeper.broker.apis._access import require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from groupkeeper.protocol.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from groupkeeper.protocol.primitives import RootMessage

_TURN = 1000
"""Partitions that are looked up before other clients have their turn."""


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, DescribeLogDirsRequest)
    require_cluster(broker, call, Operation.DESCRIBE)
    topics, count = [], 0
    for name, logs in _wanted(broker, request):
        parts = []
        for log in (one for one in logs if call.node in one.placement.replicas):
            parts.append(DescribeLogDirsPartition(log.index, log.size, 0, False))
            count += 1
            if count % _TURN == 0:
                await sleep(0)
        if parts:
            topics.append(DescribeLogDirsTopic(name, parts))
    path = os.path.abspath(broker.storage_path)
    disk = os.statvfs(path)
    result = DescribeLogDirsResult(
        log_dir=path,
        topics=topics,
        total_bytes=disk.f_blocks * disk.f_frsize,
        usable_bytes=disk.f_bavail * disk.f_frsize,
    )
    return DescribeLogDirsResponse(results=[result])


def _wanted(broker: Broker, request: DescribeLogDirsRequest) -> Iterator[tuple[str, list[PartitionLog]]]:
    if request.topics is None:
        for name in broker.topics.names():
            topic = broker.topics.get(name)
            yield name, list(topic.partitions) if topic is not None else []
        return
    for wanted in request.topics:
        found = (broker.topics.partition(wanted.topic, index) for index in wanted.partitions)
        yield wanted.topic, [log for log in found if log is not None]
