"""Consumer groups of the new protocol: heartbeats a second through the sockets, and a large group that becomes stable.

Heartbeats are measured on Apache Kafka 4.4.0 in the same run, with the same client, where `tools/apache_kafka.py` can
start it. CPU time is the broker's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from tools.apache_kafka import ApacheKafka, ApacheKafkaUnavailable

from bench.broker import Wire, running_broker, used_cpu_s, used_memory_mb
from groupkeeper.protocol.framing import decode_response, encode_request
from groupkeeper.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from groupkeeper.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from groupkeeper.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from groupkeeper.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from groupkeeper.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from groupkeeper.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from groupkeeper.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from groupkeeper.protocol.messages.metadata_response import MetadataResponse
from groupkeeper.protocol.primitives import RootMessage

HEARTBEATS = 40_000
AT_A_TIME = 200
MEMBERS = 100
LARGE = 10_000
PATIENCE_S = 120.0
VERSION = 1


class Member:
    """What a consumer knows of itself."""

    def __init__(self, group_id: str, member_id: str) -> None:
        self.group_id = group_id  # and the topic that it reads
        self.member_id = member_id
        self.epoch = 0
        self.owned: list[TopicPartitions] = []

    def joining(self) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            self.group_id, self.member_id, 0, None, None, 300_000, [self.group_id], topic_partitions=[]
        )

    def living(self) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(self.group_id, self.member_id, self.epoch)

    def reporting(self) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            self.group_id, self.member_id, self.epoch, topic_partitions=list(self.owned)
        )

    def hear(self, answer: ConsumerGroupHeartbeatResponse) -> bool:
        """Believes an answer; returns whether it said anything new."""
        if answer.error_code:
            raise SystemExit(f"{self.member_id}: error {answer.error_code} {answer.error_message}")
        is_new = answer.member_epoch != self.epoch or answer.assignment is not None
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = [TopicPartitions(one.topic_id, one.partitions) for one in answer.assignment.topic_partitions]
        return is_new


async def connect(address: str, partitions: int, group_id: str) -> Wire:
    """A connection to a broker that coordinates the group, and has a topic of its name."""
    host, port = address.rsplit(":", 1)
    wire = Wire(*await asyncio.open_connection(host, int(port)))
    await wire.call(CreateTopicsRequest([CreatableTopic(group_id, partitions, 1)], 30_000), 7)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = await wire.call(FindCoordinatorRequest(coordinator_keys=[group_id]), 4)
        metadata = await wire.call(MetadataRequest([MetadataRequestTopic(name=group_id)]), 12)
        probe = await wire.call(ConsumerGroupDescribeRequest([group_id]), VERSION)
        assert isinstance(found, FindCoordinatorResponse)
        assert isinstance(metadata, MetadataResponse)
        assert isinstance(probe, ConsumerGroupDescribeResponse)
        is_loaded = probe.groups[0].error_code == 69
        if found.coordinators[0].error_code == 0 and len(metadata.topics[0].partitions) == partitions and is_loaded:
            return wire
        await asyncio.sleep(0.2)
    raise SystemExit("the broker was not ready in time")


async def ask_all(wire: Wire, requests: Sequence[RootMessage]) -> list[ConsumerGroupHeartbeatResponse]:
    """Sends requests without waiting in between, and takes the answers."""
    answers = []
    for start in range(0, len(requests), AT_A_TIME):
        some = requests[start : start + AT_A_TIME]
        wire.writer.write(b"".join(encode_request(1, "bench", request, VERSION) for request in some))
        for _ in some:
            answers.append(decode_response(ConsumerGroupHeartbeatResponse, await wire.receive(), VERSION)[1])
    return answers


async def settle(wire: Wire, members: Sequence[Member]) -> int:
    """Lets everybody heartbeat until nobody is told anything new, and the group is Stable; returns the rounds."""
    deadline = time.monotonic() + PATIENCE_S
    for member, answer in zip(members, await ask_all(wire, [one.joining() for one in members]), strict=True):
        member.hear(answer)
    rounds = 1
    while time.monotonic() < deadline:
        rounds += 1
        answers = await ask_all(wire, [one.reporting() for one in members])
        has_news = [member.hear(answer) for member, answer in zip(members, answers, strict=True)]
        if not any(has_news):
            described = await wire.call(ConsumerGroupDescribeRequest([members[0].group_id]), VERSION)
            assert isinstance(described, ConsumerGroupDescribeResponse)
            if described.groups[0].group_state == "Stable":
                return rounds
            await asyncio.sleep(0.2)
    raise SystemExit("the group did not become stable in time")


async def measure_heartbeats(name: str, address: str, pid: int) -> float:
    """CPU microseconds that a heartbeat costs the broker."""
    group_id = f"bench-{time.time_ns()}"
    wire = await connect(address, MEMBERS, group_id)
    members = [Member(group_id, f"member-{index}") for index in range(MEMBERS)]
    await settle(wire, members)
    frames = b"".join(encode_request(1, "bench", member.living(), VERSION) for member in members)
    best = (float("inf"), float("inf"))
    for _ in range(3):  # the first warms a virtual machine up
        cpu, started = used_cpu_s(pid), time.perf_counter()
        for _ in range(HEARTBEATS // AT_A_TIME):
            wire.writer.write(frames * (AT_A_TIME // MEMBERS))
            for _ in range(AT_A_TIME):
                await wire.receive()
        elapsed, used = time.perf_counter() - started, used_cpu_s(pid) - cpu
        best = min(best, (used / HEARTBEATS * 1e6, elapsed / HEARTBEATS * 1e6))
    wire.writer.close()
    each = best[0]
    print(f"{name:12} {1e6 / best[1]:8.0f} heartbeats/s on one connection, {each:5.1f} µs of its CPU each", flush=True)
    return each


async def measure_large_group(address: str, pid: int) -> None:
    group_id = f"bench-{time.time_ns()}"
    wire = await connect(address, LARGE, group_id)
    members = [Member(group_id, f"member-{index:05}") for index in range(LARGE)]
    cpu, memory, started = used_cpu_s(pid), used_memory_mb(pid), time.perf_counter()
    rounds = await settle(wire, members)
    elapsed, cpu = time.perf_counter() - started, used_cpu_s(pid) - cpu
    print(
        f"groupkeeper  {LARGE} members, {LARGE} partitions: Stable after {elapsed:.1f} s and {rounds} rounds of "
        f"heartbeats; its CPU {cpu:.1f} s, memory {memory:.0f} -> {used_memory_mb(pid):.0f} MB",
        flush=True,
    )
    wire.writer.close()


def main() -> None:
    with running_broker() as (address, pid):
        each = asyncio.run(measure_heartbeats("groupkeeper", address, pid))
        asyncio.run(measure_large_group(address, pid))
    print(f"             one core does {1e6 / each:.0f} heartbeats/s")
    try:
        with ApacheKafka({}) as other:
            asyncio.run(measure_heartbeats("Apache Kafka", other.bootstrap_servers, other.pid))
    except ApacheKafkaUnavailable as unavailable:
        print(f"without Apache Kafka: {unavailable}")


if __name__ == "__main__":
    main()
