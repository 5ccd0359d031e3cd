"""States of a cluster, and commands to run on each: recorded from the official tools, replayed with ours.

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
    """``records``: how many each partition of a topic has. ``starts``: log starts above 0. ``files``: by their names.

    ``commands`` are of kafka-consumer-groups unless another tool is named in front. They are run one after the other;
    one with ``!`` in front changes the offsets, which are then put back. ``share_starts``: the start offsets of share
    groups without members. ``release``: of the tools; the broker is the newest one.
    """

    name: str
    commands: Sequence[str]
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
    """The tool that a command is of, as in ``kafka-groups``."""
    first = command.removeprefix("!").split()[0]
    return first if first.startswith("kafka-") else "kafka-consumer-groups"


def arguments(command: str, servers: str, folder: Path) -> list[str]:
    """A command's arguments for one cluster; ``{folder}`` is where the files are."""
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
    """Commit the stage's offsets, and set those of share groups, ``but_for`` some groups."""
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
    answer = await connection.ask(
        m.DeleteRecordsRequest([wanted], int(PATIENCE_S * 1000)), 2, m.DeleteRecordsResponse, PATIENCE_S
    )
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
        given = m.SyncGroupRequestAssignment(
            joined.member_id, encode_assignment(m.ConsumerProtocolAssignment(assigned))
        )
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


VIEWS = ("", "--offsets", "--members", "--state", "--offsets --verbose", "--members --verbose", "--state --verbose")


def views(group: str) -> list[str]:
    """A description of a group, or --all-groups, in all views."""
    return [f"--describe {group} {view}".strip() for view in VIEWS]


EMPTY = Stage(
    "empty",
    [
        "--list",
        "--list --state --type",
        "--describe --all-groups",
        "--describe --group nope",
        "--describe --group nope --group zip --state",
        "--describe --group=",
        "--delete --group nope --group none",
        "--delete --all-groups",
        "--delete-offsets --group nope --topic nothere:0 --topic nothere",
        "--reset-offsets --all-groups --all-topics --to-earliest --dry-run",
        "--reset-offsets --all-groups --all-topics --to-earliest --dry-run --export",
        "--reset-offsets --group nope --all-topics --to-latest --dry-run",
        "--reset-offsets --group nope --to-latest --dry-run",
        "--list --timeout abc",
        "--list --timeout x --timeout 1",
        "--list --zap",
        "--describe --group streams-app --group nope",
        "--describe --group completing --group was-consumer --state",
        "--reset-offsets --group g --topic nothere --topic ord.* --to-latest --dry-run",
        "--reset-offsets --group g --topic ord.*:0 --topic nothere:0 --to-latest --dry-run",
        "--reset-offsets --group g --topic nothere:0 --topic ord.*:0 --to-latest --dry-run",
        "--reset-offsets --group g --topic nothere --topic= --to-latest --dry-run",
        "--list --describe --group g",
        "--validate-regex ord(ers|.*)",
        "kafka-groups --list",
        "kafka-groups --list --group-type mystery",
        "kafka-groups --list --consumer --share",
        "kafka-groups --list --zap",
        "kafka-groups --consumer",
        "kafka-get-offsets",
        "kafka-get-offsets --topic nothere",
        "kafka-get-offsets --topic (?P<name>a)",
        "kafka-get-offsets --topic '\\p{Foo}'",
        "kafka-get-offsets --topic 'a{'",
        "kafka-get-offsets --time yesterday",
        "kafka-get-offsets --topic-partitions a:0:1",
        "kafka-get-offsets --topic-partitions a --topic a",
        "kafka-get-offsets --partitions 0,a",
        "kafka-get-offsets --zap",
    ],
)

RECORDS = {"orders": (10, 20, 0), "payments": (5, 5), "a-topic-with-a-long-name": (3,)}

INACTIVE = Stage(
    "inactive",
    [
        *views("--group billing"),
        *views("--all-groups"),
        "--list",
        "--list --state",
        "--list --type --state empty",
        "--describe --group zeta --group billing",
        "--describe --group billing --group nope",
        "--reset-offsets --group billing --all-topics --to-earliest --dry-run",
        "--reset-offsets --group billing --all-topics --to-latest",
        "--reset-offsets --group billing --topic orders --to-current --dry-run",
        "--reset-offsets --group billing --topic orders:0,2 --topic payments --to-offset 7 --dry-run",
        "--reset-offsets --group billing --all-topics --shift-by=-8 --dry-run",
        "--reset-offsets --group billing --all-topics --shift-by 9223372036854775807 --dry-run",
        "--reset-offsets --group billing --topic orders:2 --shift-by 1 --dry-run",
        "--reset-offsets --group billing --all-topics --to-datetime 2023-11-14T22:13:23.500 --dry-run",
        "--reset-offsets --group billing --all-topics --to-datetime 2023-11-14T23:13:23.500+01:00 --dry-run",
        "--reset-offsets --group billing --all-topics --to-datetime 2023-11-14T22:13:23 --dry-run",
        "--reset-offsets --group billing --all-topics --to-datetime 2024-01-01T00:00:00.000 --dry-run",
        "--reset-offsets --group billing --all-topics --by-duration PT1H --dry-run",
        "--reset-offsets --group billing --all-topics --by-duration P1M --dry-run",
        "--reset-offsets --group billing --topic nothere --to-earliest --dry-run",
        "--reset-offsets --group billing --topic orders:9 --to-earliest --dry-run",
        "--reset-offsets --group billing --topic zzz --topic no/way --topic orders --to-earliest --dry-run",
        "--reset-offsets --group zeta --group billing --topic orders:2 --shift-by 1 --dry-run",
        "--reset-offsets --group billing --topic orders:one --to-earliest --dry-run",
        "--reset-offsets --group billing --topic orders: --to-earliest --dry-run",
        "--reset-offsets --group new --topic payments --to-latest --dry-run --export",
        "--reset-offsets --all-groups --all-topics --to-current --dry-run --export",
        "--reset-offsets --group billing --from-file {folder}/plan.csv --dry-run",
        "--reset-offsets --group billing --group zeta --from-file {folder}/plans.csv --dry-run",
        "--reset-offsets --group billing --from-file {folder}/gaps.csv --dry-run",
        "--reset-offsets --group other --from-file {folder}/plans.csv --dry-run",
        "--reset-offsets --group billing --from-file {folder}/none.csv --dry-run",
        "--delete-offsets --group billing --topic nothere --topic orders:7",
        "!--reset-offsets --group billing --all-topics --to-latest --execute",
        "!--reset-offsets --group billing --group zeta --topic orders:1 --shift-by 1 --execute",
        "!--reset-offsets --group new --topic payments --to-earliest --execute --export",
        "!--delete-offsets --group billing --topic orders --topic payments:1",
        "kafka-groups --list",
        "kafka-groups --list --consumer",
        "kafka-groups --list --group-type classic --protocol consumer",
        "kafka-groups --list --share",
        "kafka-get-offsets --exclude-internal-topics",
        "kafka-get-offsets --exclude-internal-topics --time earliest",
        "kafka-get-offsets --topic orders --time 1700000006000",
        "kafka-get-offsets --topic orders --time max-timestamp",
        "kafka-get-offsets --topic '[op].*' --partitions 0,1 --time -1",
        "kafka-get-offsets --topic-partitions orders:1-,a.*:0,pay.*:-1",
        "kafka-get-offsets --topic '\\p{Lower}+'",
        "kafka-get-offsets --topic '(?i)ORD(?-i)ers|[a-q&&[^b-o]].*' --partitions 0",
        "kafka-get-offsets --topic-partitions '\\Qorders\\E:1-,(?<p>pay)ments:0'",
        "kafka-get-offsets --exclude-internal-topics --time -9",
        "!--delete --group billing --group nope",
        "!--delete --all-groups",
    ],
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
    [
        *views("--group app"),
        *views("--group fixed"),
        *views("--group waiting"),
        "--list --state",
        "--list --state stable,completingrebalance",
        "--describe --all-groups --state",
        "kafka-groups --list",
        "--reset-offsets --group app --topic orders --to-earliest --execute",
        "--reset-offsets --group app --group nope --topic orders:0 --to-earliest --dry-run",
        "--delete --group app --group fixed",
        "--delete-offsets --group app --topic orders",
        "--delete-offsets --group waiting --topic orders:0 --topic payments",
    ],
    RECORDS,
    {},
    {"app": {("orders", 0): OffsetAndMetadata(4, 0), ("orders", 2): OffsetAndMetadata(0)}},
    [
        Live("app", "client-of-app", ["orders"], {"orders": [0, 1]}),
        Live("fixed", "client", ["orders", "payments"], {"payments": [1, 0], "orders": [2]}, "instance-1"),
        Live("waiting", "client", ["orders"], None),
    ],
)

SHARE_VIEWS = [
    f"{view} {verbose}".strip() for view in ("", "--offsets", "--members", "--state") for verbose in ("", "--verbose")
]


def share_views(group: str) -> list[str]:
    """A description of a share group, or --all-groups, in all views."""
    return [f"kafka-share-groups --describe {group} {view}".strip() for view in SHARE_VIEWS]


SHARE_USAGE = [
    f"kafka-share-groups {arguments}".strip()
    for arguments in (
        "",
        "--group g",
        "--list --zap",
        "--list --describe --group g",
        "--list --delete --all-groups",
        "--list --group g",
        "--list --topic t",
        "--list --members",
        "--list --verbose",
        "--list --state Sleeping",
        "--list --state stable,Sleeping,",
        "--list --state Assigning",
        "--list --state ,",
        "--list --state 'Stable, empty'",
        "--list --state=",
        "--list --state a --state b",
        "--list --timeout abc",
        "--list --timeout 1 --timeout 2",
        "--list --timeout 99999999999999999999",
        "--list --command-config {folder}/none.properties",
        "--list --all-groups",
        "--describe",
        "--describe --group",
        "--describe --group g --all-groups",
        "--describe --group g --topic t",
        "--describe --group g --members --offsets",
        "--describe --group g --state Stable",
        "--describe --group g --state --state",
        "--describe --group g --state a --state b",
        "--describe --delete --group g",
        "--delete",
        "--delete --group g --all-groups",
        "--delete --group g --topic t",
        "--delete --group g --all-topics",
        "--delete-offsets",
        "--delete-offsets --group g",
        "--delete-offsets --topic t",
        "--delete-offsets --all-groups --topic t",
        "--delete-offsets --group g --all-groups --topic t",
        "--reset-offsets",
        "--reset-offsets --execute --dry-run",
        "--reset-offsets --dry-run",
        "--reset-offsets --dry-run --group g",
        "--reset-offsets --dry-run --all-groups --all-topics --to-latest",
        "--reset-offsets --dry-run --group g --all-groups --all-topics --to-latest",
        "--reset-offsets --dry-run --group g --all-topics",
        "--reset-offsets --group g --all-topics --to-latest",
        "--reset-offsets --dry-run --group g --all-topics --to-latest --to-earliest",
        "--reset-offsets --dry-run --group g --all-topics --to-latest --to-datetime x",
        "--reset-offsets --dry-run --group g --group h --all-topics --to-latest",
        "--reset-offsets --dry-run --group g --topic t --list --to-latest",
        "--version",
    )
]

SHARE_EMPTY = Stage(
    "share-empty",
    [
        *SHARE_USAGE,
        "kafka-share-groups --list",
        "kafka-share-groups --list --state",
        "kafka-share-groups --describe --all-groups",
        "kafka-share-groups --describe --all-groups --members",
        "kafka-share-groups --describe --all-groups --state --verbose",
        "kafka-share-groups --describe --group nope",
        "kafka-share-groups --describe --group nope --group zip --state",
        "kafka-share-groups --describe --group=",
        "kafka-share-groups --delete --all-groups",
        "kafka-share-groups --delete --group nope",
        "kafka-share-groups --delete --group=",
        "kafka-share-groups --delete-offsets --group nope --topic nothere",
        "kafka-share-groups --delete-offsets --group= --topic nothere",
        "kafka-share-groups --reset-offsets --group nope --all-topics --to-earliest --dry-run",
        "kafka-share-groups --reset-offsets --group nope --topic nothere --to-earliest --dry-run",
        "kafka-share-groups --reset-offsets --group nope --topic nothere:0 --to-latest --execute",
        "kafka-share-groups --reset-offsets --group= --all-topics --to-latest --dry-run",
        "!kafka-share-groups --reset-offsets --group nope --all-topics --to-latest --execute",
    ],
)

RESET_SET = "kafka-share-groups --reset-offsets --group set"

SHARE = Stage(
    "share",
    [
        "kafka-share-groups --list",
        "kafka-share-groups --list --state",
        "kafka-share-groups --list --state stable",
        "kafka-share-groups --list --state EMPTY,Dead",
        *share_views("--group working"),
        *share_views("--group alone"),
        *share_views("--group set"),
        *share_views("--group left"),
        *share_views("--group waiting"),
        "kafka-share-groups --describe --all-groups",
        "kafka-share-groups --describe --all-groups --members --verbose",
        "kafka-share-groups --describe --all-groups --state --verbose",
        "kafka-share-groups --describe --group set --group working --group set",
        "kafka-share-groups --describe --group set --group nope",
        "kafka-share-groups --describe --group set --group nope --group zip --members",
        "kafka-share-groups --describe --group billing",
        "kafka-share-groups --describe --group billing --state",
        "kafka-share-groups --describe --group app --members",
        "kafka-share-groups --delete --group working --group alone",
        "kafka-share-groups --delete --group billing",
        "kafka-share-groups --delete --group working --group nope --group billing --group app",
        "kafka-share-groups --delete-offsets --group working --topic orders",
        "kafka-share-groups --delete-offsets --group working --topic nothere --topic orders",
        "kafka-share-groups --delete-offsets --group billing --topic orders",
        "kafka-share-groups --delete-offsets --group app --topic orders",
        "kafka-share-groups --delete-offsets --group set --group left --topic orders",
        "kafka-share-groups --delete-offsets --group set --topic nothere",
        "!kafka-share-groups --delete-offsets --group set --topic orders:0 --topic a-topic-with-a-long-name",
        "kafka-share-groups --delete-offsets --group set --topic=",
        "kafka-share-groups --reset-offsets --group working --all-topics --to-earliest --execute",
        "kafka-share-groups --reset-offsets --group working --topic orders --to-latest --dry-run",
        f"{RESET_SET} --all-topics --to-earliest --dry-run",
        f"{RESET_SET} --all-topics --to-latest --dry-run",
        "kafka-share-groups --reset-offsets --group left --all-topics --to-latest --dry-run",
        f"{RESET_SET} --topic orders --to-earliest --dry-run",
        f"{RESET_SET} --topic orders:0,2 --topic payments --to-latest --dry-run",
        f"{RESET_SET} --all-topics --topic payments:1 --to-latest --dry-run",
        f"{RESET_SET} --topic orders:9 --to-earliest --dry-run",
        f"{RESET_SET} --topic orders:one --to-earliest --dry-run",
        f"{RESET_SET} --topic orders: --to-earliest --dry-run",
        f"{RESET_SET} --topic orders:0:1 --to-earliest --dry-run",
        f"{RESET_SET} --topic nothere --to-earliest --dry-run",
        f"{RESET_SET} --topic 'no/slash' --to-earliest --dry-run",
        f"{RESET_SET} --topic nothere:0 --to-earliest --execute",
        f"{RESET_SET} --topic= --to-earliest --dry-run",
        f"{RESET_SET} --all-topics --to-datetime 2023-11-14T22:13:23.500 --dry-run",
        f"{RESET_SET} --topic orders --to-datetime 2023-11-14T23:13:23.500+01:00 --dry-run",
        f"{RESET_SET} --all-topics --to-datetime 2024-01-01T00:00:00.000 --dry-run",
        f"{RESET_SET} --all-topics --to-datetime 2023-11-14T22:13:23 --dry-run",
        f"{RESET_SET} --all-topics --to-datetime yesterday --dry-run",
        f"{RESET_SET} --all-topics --to-datetime= --dry-run",
        f"{RESET_SET} --all-topics --to-datetime 2023-11-14T22:13:23.500 --to-datetime x --dry-run",
        "kafka-share-groups --reset-offsets --group billing --topic orders --to-earliest --dry-run",
        "kafka-share-groups --reset-offsets --group app --all-topics --to-earliest --dry-run",
        "kafka-share-groups --reset-offsets --group billing --topic orders --to-earliest --execute",
        f"!{RESET_SET} --all-topics --to-earliest --execute",
        f"!{RESET_SET} --topic orders:1 --topic payments --to-latest --execute",
        "!kafka-share-groups --reset-offsets --group new --topic payments --to-latest --execute",
        "!kafka-share-groups --delete-offsets --group set --topic orders",
        "!kafka-share-groups --delete-offsets --group set --topic payments --topic orders --topic orders",
        "!kafka-share-groups --delete-offsets --group set --topic payments --topic nothere",
        "!kafka-share-groups --delete --group set --group nope --group working",
        "!kafka-share-groups --delete --group 'другая группа' --group set",
        "!kafka-share-groups --delete --all-groups",
        "kafka-groups --list",
        "kafka-groups --list --share",
        "kafka-groups --list --protocol share",
        "kafka-consumer-groups --list --state --type",
        "kafka-consumer-groups --describe --group working",
        "kafka-consumer-groups --describe --group set --state",
        "kafka-consumer-groups --delete --group working",
        "kafka-consumer-groups --delete-offsets --group set --topic orders",
        "kafka-consumer-groups --reset-offsets --group set --all-topics --to-earliest --dry-run",
        "!kafka-consumer-groups --delete --group set --group billing",
    ],
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
