"""DescribeLogDirs (35): how many bytes each partition takes."""

from __future__ import annotations

import os
from collections.abc import Iterator

from groupkeeper.broker.apis._access import require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.long_requests import in_turns
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.DescribeLogDirsRequest)
    require_cluster(broker, call, Operation.DESCRIBE)
    parts_by_topic: dict[str, list[m.DescribeLogDirsPartition]] = {}
    async for log in in_turns(_wanted(broker, request)):
        if log is not None and call.node in log.placement.replicas:
            part = m.DescribeLogDirsPartition(log.index, log.size, 0, False)
            parts_by_topic.setdefault(log.topic, []).append(part)
    path = os.path.abspath(broker.storage_path)
    disk = os.statvfs(path)
    result = m.DescribeLogDirsResult(
        log_dir=path,
        topics=[m.DescribeLogDirsTopic(name, parts) for name, parts in parts_by_topic.items()],
        total_bytes=disk.f_blocks * disk.f_frsize,
        usable_bytes=disk.f_bavail * disk.f_frsize,
    )
    return m.DescribeLogDirsResponse(results=[result])


def _wanted(broker: Broker, request: m.DescribeLogDirsRequest) -> Iterator[PartitionLog | None]:
    """None for each partition that does not exist."""
    if request.topics is None:
        for name in broker.topics.names():
            topic = broker.topics.get(name)
            yield from list(topic.partitions) if topic is not None else ()
        return
    for wanted in request.topics:
        topic = broker.topics.get(wanted.topic)
        if topic is None:
            yield None
        else:
            yield from map(topic.partition, wanted.partitions)
