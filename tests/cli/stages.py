"""States of a cluster, on which commands are recorded from the official tools and replayed with ours.

A stage is set up the same way on Apache Kafka, when `tools.record_cli` records, and on the embedded broker, when
the tests replay. Groups are made by raw requests, so that every offset, epoch and timestamp is the same each time.
"""

import asyncio
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.cli import share_members, streams_members
from tests.cli.share_members import ShareMember
from tests.cli.streams_members import StreamsMember

from groupkeeper.client.addresses import parse_bootstrap_servers
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Batch, NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.client.connection import Connection
from groupkeeper.client.opener import open_connection
from groupkeeper.client.security.transport import Security
from groupkeeper.client.settings import Settings
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import encode_assignment, encode_subscription
from groupkeeper.protocol.errors import TopicAlreadyExists
from groupkeeper.protocol.messages.consumer_protocol_assignment import TopicPartition as Assigned
from groupkeeper.protocol.record_batch import Record, write_batch

GOLDENS = Path(__file__).parent / "goldens"

SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.share.max.session.timeout.ms": "600000",
    "group.share.session.timeout.ms": "600000",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.max.session.timeout.ms": "600000",
    "group.streams.session.timeout.ms": "600000",
    "offsets.topic.num.partitions": "4",
}
"""Of the brokers, Apache's and ours."""

FIRST_MS = 1_700_000_000_000
"""The timestamp of each partition's first record; the others follow a second apart."""

FOREVER = {"retention.ms": "-1"}
"""The records are old, and shall stay."""

PATIENCE_S = 30.0
MEMBER_ID_REQUIRED = 79
NOT_READY = (3, 5, 6)


class Live(NamedTuple):
    """A classic group with one member, who keeps the partitions given; None: it never gets any."""

    group_id: str
    client_id: str
    topics: Sequence[str]
    assignment: Mapping[str, Sequence[int]] | None
    instance_id: str | None = None


class Stage(NamedTuple):
    """`records`: how many each partition of a topic has. `starts`: log starts above 0. `files`: by their names.

    `share_starts`: the start offsets of share groups without members. `release`: of the tools; the broker is the
    newest one.
    """

    name: str
    records: Mapping[str, Sequence[int]] = {}
    starts: Mapping[tuple[str, int], int] = {}
    commits: Mapping[str, Mapping[tuple[str, int], OffsetAndMetadata]] = {}
    live: Sequence[Live] = ()
    files: Mapping[str, str] = {}
    share_starts: Mapping[str, Mapping[tuple[str, int], int]] = {}
    share_members: Sequence[ShareMember] = ()
    streams_members: Sequence[StreamsMember] = ()
    release: str = "4.3.1"

    def live_groups(self) -> set[str]:
        """The groups with members, or that had some."""
        classic = {live.group_id for live in self.live}
        return (
            classic | {each.group_id for each in self.share_members} | {each.group_id for each in self.streams_members}
        )


def tool_of(command: str) -> str:
    """The tool that a command is of, as in `kafka-groups`."""
    first = command.removeprefix("!").split()[0]
    return first if first.startswith("kafka-") else "kafka-consumer-groups"


def arguments(command: str, servers: str, folder: Path) -> list[str]:
    """A command's arguments for one cluster; `{folder}` is where the files are."""
    words = shlex.split(command.removeprefix("!").removeprefix(tool_of(command)))
    return ["--bootstrap-server", servers, *(word.replace("{folder}", str(folder)) for word in words)]


async def set_up(stage: Stage, servers: str, folder: Path) -> None:
    """Make topics, records, groups and files on an empty cluster."""
    for name, text in stage.files.items():
        (folder / name).write_bytes(text.encode())
    async with Admin(servers, default_timeout_ms=int(PATIENCE_S * 1000)) as admin:
        await _make_topics(stage, admin, servers)
        connection = await connect(servers, "stage")
        for (topic, partition), offset in stage.starts.items():
            await _delete_records(connection, topic, partition, offset)
        connection.abort()
        await commit(stage, admin)
        for live in stage.live:
            await _join(admin, live, servers)
        await _join_groups(admin, stage, stage.live_groups(), servers)


async def put_back(stage: Stage, servers: str) -> None:
    """The topics and committed offsets as they were at the beginning, after a command has changed them."""
    live = stage.live_groups()
    async with Admin(servers) as admin:
        listed = (await admin.list_groups()).all()
        left = {member.group_id for member in stage.streams_members if member.leaves}
        (await admin.delete_consumer_groups((set(listed) - live) | (left & listed.keys()))).all()
        await _make_topics(stage, admin, servers)
        await commit(stage, admin, live)
        await _join_groups(admin, stage, left | (live - listed.keys()), servers)


async def _make_topics(stage: Stage, admin: Admin, servers: str) -> None:
    """Make those topics that there are not, with their records; the controller knows which, brokers a moment later."""
    topics = [NewTopic(name, len(counts), 1, configs=FOREVER) for name, counts in stage.records.items()]
    made = await admin.create_topics(topics) if topics else Batch()
    assert all(isinstance(failure, TopicAlreadyExists) for failure in made.failed.values())
    missing = {name: stage.records[name] for name in made.done}
    connection = await connect(servers, "stage")
    for topic, counts in missing.items():
        for partition, count in enumerate(counts):
            await _produce(connection, topic, partition, count)
    connection.abort()


async def _join_groups(admin: Admin, stage: Stage, group_ids: Collection[str], servers: str) -> None:
    for share in stage.share_members:
        if share.group_id in group_ids:
            await share_members.join(admin, await connect(servers, share.client_id), share, PATIENCE_S)
    for streams in stage.streams_members:
        if streams.group_id in group_ids:
            await streams_members.join(admin, await connect(servers, streams.client_id), streams, PATIENCE_S)


async def commit(stage: Stage, admin: Admin, but_for: Collection[str] = ()) -> None:
    """Commit the stage's offsets, and set those of share groups, `but_for` some groups."""
    for group_id, starts in stage.share_starts.items():
        (await admin.alter_share_group_offsets(group_id, {TopicPartition(*at): n for at, n in starts.items()})).all()
    for group_id, offsets in stage.commits.items():
        if group_id not in but_for:
            wanted = {TopicPartition(*place): offset for place, offset in offsets.items()}
            (await admin.alter_consumer_group_offsets(group_id, wanted)).all()


async def connect(servers: str, client_id: str) -> Connection:
    """A connection for raw requests."""
    address = parse_bootstrap_servers(servers)[0]
    return await open_connection(address, Settings(client_id=client_id), Security(), PATIENCE_S)


async def _produce(connection: Connection, topic: str, partition: int, count: int) -> None:
    if not count:
        return
    records = [Record(b"key", b"value", timestamp=FIRST_MS + 1000 * number) for number in range(count)]
    produced = m.TopicProduceData(topic, partition_data=[m.PartitionProduceData(partition, write_batch(records))])
    request = m.ProduceRequest(acks=-1, timeout_ms=int(PATIENCE_S * 1000), topic_data=[produced])
    async with asyncio.timeout(PATIENCE_S):
        # A new partition takes a moment until its leader knows of it.
        while (error_code := await _produce_once(connection, request)) in NOT_READY:
            pass
    assert error_code == 0


async def _produce_once(connection: Connection, request: m.ProduceRequest) -> int:
    answer = await connection.ask(request, 9, m.ProduceResponse, PATIENCE_S)
    return answer.responses[0].partition_responses[0].error_code


async def _delete_records(connection: Connection, topic: str, partition: int, offset: int) -> None:
    wanted = m.DeleteRecordsTopic(topic, [m.DeleteRecordsPartition(partition, offset)])
    timeout_ms = int(PATIENCE_S * 1000)
    answer = await connection.ask(m.DeleteRecordsRequest([wanted], timeout_ms), 2, m.DeleteRecordsResponse, PATIENCE_S)
    assert answer.topics[0].partitions[0].error_code == 0


async def _join(admin: Admin, live: Live, servers: str) -> None:
    """Join, and sync unless the member is to wait for its assignment. The group outlives the connection."""
    (await admin.find_coordinators([live.group_id])).all()
    connection = await connect(servers, live.client_id)
    member_id = ""
    while True:
        protocol = m.JoinGroupRequestProtocol("range", encode_subscription(m.ConsumerProtocolSubscription(live.topics)))
        request = m.JoinGroupRequest(
            live.group_id, 300_000, 300_000, member_id, live.instance_id, "consumer", [protocol]
        )
        joined = await connection.ask(request, 9, m.JoinGroupResponse, PATIENCE_S)
        if joined.error_code != MEMBER_ID_REQUIRED:
            break
        member_id = joined.member_id
    assert joined.error_code == 0
    if live.assignment is not None:
        assigned = [Assigned(topic, partitions) for topic, partitions in live.assignment.items()]
        assignment = encode_assignment(m.ConsumerProtocolAssignment(assigned))
        given = m.SyncGroupRequestAssignment(joined.member_id, assignment)
        synced = await connection.ask(
            m.SyncGroupRequest(
                live.group_id, joined.generation_id, joined.member_id, live.instance_id, "consumer", "range", [given]
            ),
            5,
            m.SyncGroupResponse,
            PATIENCE_S,
        )
        assert synced.error_code == 0
    connection.abort()


EMPTY = Stage("empty")

RECORDS = {"orders": (10, 20, 0), "payments": (5, 5), "a-topic-with-a-long-name": (3,)}

INACTIVE = Stage(
    "inactive",
    RECORDS,
    {("orders", 1): 5},
    {
        "billing": {
            ("orders", 0): OffsetAndMetadata(4),
            ("orders", 1): OffsetAndMetadata(12, 0, "note"),
            ("payments", 1): OffsetAndMetadata(5),
        },
        "zeta": {("a-topic-with-a-long-name", 0): OffsetAndMetadata(99), ("orders", 0): OffsetAndMetadata(9)},
    },
    files={
        "plan.csv": "orders,0,2\norders,1,999\n",
        "plans.csv": '"billing",orders,0,2\nzeta, orders,0,3\nzeta,orders,0,1\n',
        "gaps.csv": "orders,0\n",
    },
)

ACTIVE = Stage(
    "active",
    RECORDS,
    {},
    {"app": {("orders", 0): OffsetAndMetadata(4, 0), ("orders", 2): OffsetAndMetadata(0)}},
    [
        Live("app", "client-of-app", ["orders"], {"orders": [0, 1]}),
        Live("fixed", "client", ["orders", "payments"], {"payments": [1, 0], "orders": [2]}, "instance-1"),
        Live("waiting", "client", ["orders"], None),
    ],
)

BOTH = Stage("both", RECORDS, INACTIVE.starts, {**INACTIVE.commits, **ACTIVE.commits}, ACTIVE.live[:1])
"""Of the groups of `ACTIVE` only the first."""

SHARE_EMPTY = Stage("share-empty")

SHARE = Stage(
    "share",
    RECORDS,
    {("orders", 1): 5},
    {"billing": {("orders", 0): OffsetAndMetadata(4)}},
    [Live("app", "client", ["orders"], {"orders": [0, 1]})],
    share_starts={
        "set": {("orders", 0): 3, ("orders", 1): 20, ("payments", 0): 0, ("a-topic-with-a-long-name", 0): 2},
        "другая группа": {("payments", 1): 99},
        "100% of a long name, with $SIGNS": {("payments", 1): 4, ("orders", 2): 0},
    },
    share_members=[
        ShareMember("left", "gone", "client", ["payments"], 2, leaves=True),
        ShareMember("alone", "member-2", "client-of-alone", ["payments", "orders"], 5),
        ShareMember("working", "b-member", "client-of-working", ["orders"], 3),
        ShareMember("working", "a-member-with-a-rather-long-id", "client", ["payments"], 2),
        ShareMember("waiting", "w", "client", ["not-made-yet"], 0),
    ],
)
