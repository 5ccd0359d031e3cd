"""Every kind of record in the offsets topic of a real broker: groups of all types come, commit, change and go."""

import asyncio
import base64
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.conformance.brokers import wait_for

from groupkeeper.client.addresses import parse_bootstrap_servers
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.security.choice import security_of
from groupkeeper.client.settings import Settings
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.streams_group_heartbeat_request import Subtopology, Topology

__all__ = ["classic_groups", "newer_groups"]

PATIENCE_S = 60
TOPICS = ("orders", "payments")

H = TypeVar("H", m.ConsumerGroupHeartbeatResponse, m.ShareGroupHeartbeatResponse, m.StreamsGroupHeartbeatResponse)


def classic_groups(servers: str) -> None:
    """Topics with records; members that join, commit with metadata and leave; transactions; deletions."""
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(topic, 4, 1) for topic in TOPICS]).values():
        made.result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": servers})
    for number in range(200):
        producer.produce(TOPICS[number % 2], b"%d" % number)
    assert producer.flush(PATIENCE_S) == 0
    with member(servers, "classic") as first, member(servers, "classic", **{"group.instance.id": "static-1"}) as second:
        places = [TopicPartition("orders", number, number + 1, metadata="m" * number) for number in range(4)]
        # The first member gives up its partitions only while it polls.
        wait_for(lambda: first.poll(0.1) is None and second.poll(0.1) is None and second.assignment(), "an assignment",
                 PATIENCE_S)  # fmt: skip
        second.commit(offsets=places, asynchronous=False)
    for number in range(30):
        commit(servers, f"simple-{number % 7}", TopicPartition("payments", number % 4, number))
    commit(servers, "имя", TopicPartition("orders", 0, 5, metadata="ünï\U0001f600" * 50))
    with member(servers, "transactional") as reader:
        wait_for(lambda: reader.poll(0.1) is None and reader.assignment(), "an assignment", PATIENCE_S)
        writer = Producer({"bootstrap.servers": servers, "transactional.id": "writer"})
        writer.init_transactions(PATIENCE_S)
        for number in range(4):
            writer.begin_transaction()
            offsets = [TopicPartition("orders", 0, number)]
            writer.send_offsets_to_transaction(offsets, reader.consumer_group_metadata(), PATIENCE_S)
            (writer.commit_transaction if number % 2 else writer.abort_transaction)(PATIENCE_S)
    for gone in admin.delete_consumer_groups(["simple-0", "simple-1"]).values():
        gone.result(PATIENCE_S)


def newer_groups(servers: str) -> None:
    """Consumer groups of KIP-848 (by name, by pattern, static), share groups and streams groups."""
    with member(servers, "consumer", **{"group.protocol": "consumer"}) as first:
        wait_for(lambda: first.poll(0.1) is None and len(first.assignment()) == 8, "an assignment", PATIENCE_S)
        with member(servers, "consumer", **{"group.protocol": "consumer", "group.instance.id": "static-2"}) as second:
            wait_for(lambda: first.poll(0.1) is None and second.poll(0.1) is None and second.assignment(), "a share",
                     PATIENCE_S)  # fmt: skip
            first.commit(offsets=[TopicPartition("orders", 0, 7)], asynchronous=False)
    with member(servers, "migrated") as old:
        wait_for(lambda: old.poll(0.1) is None and old.assignment(), "an assignment", PATIENCE_S)
        with member(servers, "migrated", **{"group.protocol": "consumer"}) as new:
            wait_for(lambda: old.poll(0.1) is None and new.poll(0.1) is None and new.assignment(), "a migration",
                     PATIENCE_S)  # fmt: skip
    asyncio.run(_heartbeats(servers))


@contextmanager
def member(servers: str, group_id: str, **settings: Any) -> Iterator[Consumer]:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": group_id, "enable.auto.commit": False,
         "auto.offset.reset": "latest", **settings}
    )  # fmt: skip
    consumer.subscribe(list(TOPICS))
    try:
        yield consumer
    finally:
        consumer.close()


def commit(servers: str, group_id: str, place: TopicPartition) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group_id})
    consumer.commit(offsets=[place], asynchronous=False)
    consumer.close()


async def _heartbeats(servers: str) -> None:
    properties: dict[str, str] = {}
    cluster = Cluster(parse_bootstrap_servers(servers), Settings.of_properties(properties), security_of(properties))
    try:
        await cluster.connect(cluster.deadline("connect", None))
        member_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        pattern = m.ConsumerGroupHeartbeatRequest(
            "pattern", member_id, subscribed_topic_names=[], subscribed_topic_regex="ord.*", rebalance_timeout_ms=9000,
            topic_partitions=[], rack_id="rack-1", server_assignor="range",
        )  # fmt: skip
        share = m.ShareGroupHeartbeatRequest("share", member_id, subscribed_topic_names=["orders"])
        topology = Topology(1, [Subtopology("0", source_topics=["orders", "payments"])])
        streams = m.StreamsGroupHeartbeatRequest(
            "streams", member_id, topology=topology, active_tasks=[], standby_tasks=[], warmup_tasks=[],
            process_id="process-1", rebalance_timeout_ms=9000, client_tags=[],
        )  # fmt: skip
        kinds: tuple[tuple[Any, type[Any]], ...] = (
            (pattern, m.ConsumerGroupHeartbeatResponse),
            (share, m.ShareGroupHeartbeatResponse),
            (streams, m.StreamsGroupHeartbeatResponse),
        )
        for request, answer_type in kinds:
            await _live(cluster, request, answer_type)
    finally:
        await cluster.close()


async def _live(cluster: Cluster, request: Any, answer_type: type[H]) -> None:
    """Join, beat until something is assigned, and leave."""

    async def beat(epoch: int) -> H:
        request.member_epoch = epoch
        deadline = cluster.deadline("heartbeat", PATIENCE_S * 1000)
        for _ in range(100):
            answer = await cluster.ask_any(answer_type, request, deadline)
            if answer.error_code not in (14, 15, 16):  # the coordinator comes up
                assert not answer.error_code, answer
                return answer
            await cluster.backoff().pause(deadline)
        raise AssertionError("no coordinator")

    answer = await beat(0)
    if isinstance(request, m.StreamsGroupHeartbeatRequest):
        request.topology = None  # it is told when joining only
    for _ in range(100):
        assigned: Any = getattr(answer, "assignment", None) or getattr(answer, "active_tasks", None)
        if assigned and getattr(assigned, "topic_partitions", assigned):
            break
        await cluster.backoff().pause(cluster.deadline("wait", None))
        answer = await beat(answer.member_epoch)
    else:
        raise AssertionError(f"nothing is assigned: {answer}")
    await beat(-1)
