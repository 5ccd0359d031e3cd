"""Real Kafkas from 0.10.1 to 4.4.0: what a broker lacks gives the result or the error that it should.

Where the official tools of 4.4.0 can talk to the broker, ours must print the same.
"""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.apache_kafka import require as require_apache_kafka
from tests.conformance.brokers import PROPERTIES, wait_for
from tests.conformance.client.admin.waiting import until
from tests.conformance.clients import CLIENTS, ConsumerOptions
from tests.conformance.member import Member
from tests.conformance.official import compare, ours
from tools.apache_kafka import ApacheKafka, java_command

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.resources.types import ConfigResource
from groupkeeper.client.admin.types import (
    Batch,
    GroupState,
    GroupType,
    NewTopic,
    OffsetAndMetadata,
    OffsetSpec,
    TopicPartition,
)
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import UnsupportedVersion
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import GroupIdNotFound

pytestmark = pytest.mark.conformance

VERSIONS = ("0.10.1.1", "2.3.1", "2.8.2", "3.9.1", "4.0.0", "4.3.1", "4.4.0")
TOOL = "consumer-groups"
TOPIC = "orders"
EMPTY, OTHER, LIVE, MISSING = "empty", "other", "live", "missing"
P0, P1 = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)


class Old:
    """A broker with two groups that have offsets, and one with a member."""

    def __init__(self, version: str, broker: ApacheKafka) -> None:
        self.broker = broker
        major, minor = version.split(".")[:2]
        self.version = (int(major), int(minor))

    def admin(self) -> Admin:
        return Admin(self.broker.bootstrap_servers)

    def says(self, words: str) -> str:
        """What our tool prints."""
        return ours(TOOL, self.broker.bootstrap_servers, *words.split()).stdout

    def _create_topic(self) -> None:
        """By the tool of its time: its CreateTopics has a version that no client of today has."""
        command = f"--zookeeper {self.broker.zookeeper} --create --topic {TOPIC} --partitions 2 --replication-factor 1"
        command_line = java_command("kafka.admin.TopicCommand", *command.split(), version=self.broker.version)
        subprocess.run(command_line, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=50)

    async def set_the_scene(self) -> None:
        async with self.admin() as admin:
            if self.version < (0, 11):
                self._create_topic()
            else:
                assert not (await admin.create_topics([NewTopic(TOPIC, 2, 1)])).failed
            for group_id in (EMPTY, OTHER):
                offsets = {P0: OffsetAndMetadata(0, metadata="note"), P1: OffsetAndMetadata(0)}
                altered = await admin.alter_consumer_group_offsets(group_id, offsets)
                assert not altered.failed


@pytest.fixture(scope="module", params=VERSIONS)
def old(apache_jars: None, request: pytest.FixtureRequest) -> Iterator[Old]:
    version: str = request.param
    require_apache_kafka(version)
    properties: dict[str, str] = dict(PROPERTIES)
    if version.startswith("3.9"):
        # The consumer protocol's early access (KIP-848): ConsumerGroupDescribe has version 0 only.
        properties["group.coordinator.rebalance.protocols"] = "classic,consumer"
    with ApacheKafka(properties, version=version) as broker:
        old = Old(version, broker)
        asyncio.run(old.set_the_scene())
        options_of_member = ConsumerOptions(group=LIVE)
        with Member(CLIENTS["confluent"], broker.bootstrap_servers, options_of_member, [TOPIC]) as member:
            wait_for(lambda: len(member.assignment) == 2, "the member's assignment", timeout=40)
            yield old


async def test_listing_groups(old: Old) -> None:
    async with old.admin() as admin:
        everything = await admin.list_groups()
        assert {EMPTY, OTHER, LIVE} <= set(everything.groups)
        live = everything.groups[LIVE]
        if old.version < (2, 6):
            assert live.group_state is None  # K518-62
        else:
            assert live.group_state == GroupState.STABLE
        stable = await admin.list_groups(states=[GroupState.STABLE])
        if old.version < (2, 6):
            (failure,) = stable.failed.values()  # K518-60
            assert isinstance(failure, UnsupportedVersion)
            assert "but we need v4 or newer to request groups by states" in str(failure)
            assert not stable.groups
        else:
            assert set(stable.groups) == {LIVE}
        # K518-61
        assert set((await admin.list_groups(types=[GroupType.CLASSIC])).groups) >= {EMPTY, OTHER, LIVE}
        assert set((await admin.list_groups(types=[GroupType.CLASSIC, GroupType.CONSUMER])).groups) >= {EMPTY, LIVE}
        consumer = await admin.list_groups(types=[GroupType.CONSUMER])
        if old.version < (3, 8):
            (failure,) = consumer.failed.values()
            assert isinstance(failure, UnsupportedVersion)
            assert "v5 or newer" in str(failure)
        else:
            assert not consumer.failed
            assert LIVE not in consumer.groups


async def test_describing_groups(old: Old) -> None:
    async with old.admin() as admin:
        described = await admin.describe_consumer_groups([LIVE, EMPTY, MISSING])
        live = described.done[LIVE]
        # K1099-91, K1099-92
        assert (live.group_type, live.group_state) == (GroupType.CLASSIC, GroupState.STABLE)
        assert (live.group_epoch, live.target_assignment_epoch) == (None, None)
        (member,) = live.members
        assert (member.member_epoch, member.upgraded) == (None, None)
        assert set(member.assignment or ()) == {P0, P1}
        assert described.done[EMPTY].group_state == GroupState.EMPTY
        if old.version < (4, 0):
            assert described.done[MISSING].group_state == GroupState.DEAD
        else:
            assert isinstance(described.failed[MISSING], GroupIdNotFound)


async def test_fetching_offsets(old: Old) -> None:
    async with old.admin() as admin:
        named = await admin.list_consumer_group_offsets({EMPTY: [P0, P1]}, require_stable=True)  # K88-72
        assert named.done[EMPTY].done[P0] == OffsetAndMetadata(0, metadata="note")
        # K88-73, K88-74: before 3.0 one group a request; before 0.10.2 not without naming partitions.
        several = await admin.list_consumer_group_offsets({EMPTY: None, OTHER: None, MISSING: None})
        if old.version < (0, 11):
            assert {type(failure) for failure in several.failed.values()} == {UnsupportedVersion}  # K88-70
            assert "v2 or newer" in str(several.failed[EMPTY])
        else:
            assert set(several.done[EMPTY].done) == set(several.done[OTHER].done) == {P0, P1}
            assert not several.done[MISSING].done


async def test_deleting_offsets(old: Old) -> None:
    async with old.admin() as admin:
        group_id = "to delete from"
        await admin.alter_consumer_group_offsets(group_id, {P0: OffsetAndMetadata(1)})
        if old.version < (2, 4):
            with pytest.raises(UnsupportedVersion, match="does not support OFFSET_DELETE"):  # K496-70
                await admin.delete_consumer_group_offsets(group_id, [P0])
        else:
            deleted: Batch[TopicPartition, None] = await admin.delete_consumer_group_offsets(group_id, [P0])
            assert not deleted.failed
        gone = await admin.delete_consumer_groups([group_id])
        if old.version < (1, 1):
            assert isinstance(gone.failed[group_id], UnsupportedVersion)
        else:
            assert group_id not in (await admin.list_groups()).groups


async def test_offsets_of_logs(old: Old) -> None:
    async with old.admin() as admin:
        listed = await admin.list_offsets({P0: OffsetSpec.latest(), P1: OffsetSpec.earliest()})
        assert {each.offset for each in listed.done.values()} == {0}


async def test_a_group_of_the_early_consumer_protocol(old: Old) -> None:
    if old.version != (3, 9):
        pytest.skip("ConsumerGroupDescribe 0 without 1 is 3.9's")
    async with old.admin() as admin:
        peer = next(iter(admin._cluster._bootstrap))
        request = m.ConsumerGroupHeartbeatRequest(
            group_id="early", rebalance_timeout_ms=60000, subscribed_topic_names=[TOPIC], topic_partitions=[]
        )
        connection = await peer._connection(Deadline("heartbeat", 10_000))
        answer = await connection.ask(request, 0, m.ConsumerGroupHeartbeatResponse, 10)
        assert answer.error_code == 0
        described = (await admin.describe_consumer_groups(["early"])).done["early"]
        assert described.group_type == GroupType.CONSUMER
        assert [each.upgraded for each in described.members] == [None]  # K1099-90
        assert described.group_epoch is not None
    command = "--describe --group early --members --verbose"
    compare(TOOL, old.broker.bootstrap_servers, *command.split())
    assert "UPGRADED" not in old.says(command)


COMMANDS = (
    *(f"{TOOL} {words}" for words in (
        "--list",
        "--list --state",
        "--list --state Stable",
        "--list --type",
        "--list --type consumer",
        "--describe --group empty",
        "--describe --group live --members --verbose",
        "--describe --group live --state",
        "--describe --group missing",
        "--describe --group empty --group other --offsets --verbose",
        "--reset-offsets --group empty --topic orders --to-latest --dry-run",
        "--reset-offsets --group empty --all-topics --to-earliest --dry-run",
        "--delete-offsets --group missing --topic orders",
        "--delete --group missing",
    )),
    *(f"get-offsets --topic {TOPIC} --time {time}" for time in (-2, -3, -4, -5)),
    "groups --list --group-type share", "share-groups --list", "streams-groups --list --state Stable",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command(old: Old, command: str) -> None:
    tool, *words = command.split()
    if old.version >= (2, 1):
        compare(tool, old.broker.bootstrap_servers, *words)
        return
    # The official tools of 4.4.0 don't support such brokers (KIP-896).
    said = ours(tool, old.broker.bootstrap_servers, *words)
    assert said.returncode in (0, 1)
    assert "Traceback" not in said.stderr


def test_the_command_on_the_oldest(old: Old) -> None:
    if old.version >= (2, 1):
        pytest.skip("compared with the official tool instead")
    assert set(old.says("--list").split()) >= {EMPTY, OTHER, LIVE}
    assert "we need v2 or newer to request all topic partitions" in old.says(f"--describe --group {EMPTY}")
    assert "orders:0,1" in old.says(f"--describe --group {LIVE} --members --verbose")
    assert "The node does not support DELETE_GROUPS" in old.says(f"--delete --group {EMPTY}")


async def test_configs_partitions_and_records(old: Old) -> None:
    """What every broker from 0.11 on can do, in the version that it speaks."""
    if old.version < (0, 11):
        pytest.skip("a broker of before DeleteRecords and DescribeConfigs")
    topic, name = ConfigResource.topic("resources"), "resources"
    tp = TopicPartition(name, 0)
    async with old.admin() as admin:
        made = await admin.create_topics([NewTopic(name, 1, 1)], if_missing=True)
        assert made.all()[name].is_new
        assert not (await admin.create_topics([NewTopic(name, 1, 1)], if_missing=True)).all()[name].is_new
        await admin.create_partitions({name: 2})
        described = await until(
            lambda: admin.describe_topics([name]),
            lambda found: name in found.done and len(found.done[name].partitions) == 2,
        )
        assert described.failed == {}
        assert (await admin.delete_records({tp: None})).all() == {tp: 0}
        altered = await admin.alter_configs({topic: {"retention.ms": "3600000"}})
        assert altered.failed == {}
        configs = await until(
            lambda: admin.describe_configs([topic], names=["retention.ms", "cleanup.policy"], include_synonyms=True),
            lambda found: found.all()[topic]["retention.ms"].value == "3600000",
        )
        assert configs.done[topic]["cleanup.policy"].is_default
        assert configs.done[topic]["retention.ms"].source == "DYNAMIC_TOPIC_CONFIG"
        (node,) = (await admin.describe_cluster()).nodes
        assert (await admin.broker_settings(["num.partitions"])).keys() == {"num.partitions"}
        log_dirs = (await admin.describe_log_dirs(partitions=[tp])).all()[node.id]
        assert [list(each.replicas) for each in log_dirs.values()] == [[tp]]
        assert (await admin.delete_topics([name], if_there=True)).failed == {}


async def test_what_came_with_a_later_release(old: Old) -> None:
    if old.version < (0, 11):
        pytest.skip("a broker that no call beside those on groups is for")
    calls: dict[tuple[int, int], Callable[[Admin], Awaitable[Any]]] = {
        (2, 6): Admin.describe_client_quotas,
        (2, 7): lambda admin: admin.describe_scram_users(),
        (2, 8): lambda admin: admin.describe_producers([P0]),
        (3, 0): lambda admin: admin.list_transactions(),
    }
    async with old.admin() as admin:
        for release, call in calls.items():
            result = await told(call(admin))
            if old.version >= release:
                assert not isinstance(result, Exception), result
            else:
                assert isinstance(result, UnsupportedVersion), (release, result)
                assert f"Kafka has it from {release[0]}.{release[1]} on" in str(result)


async def told(call: Awaitable[Any]) -> object:
    """What a call has found, or why it has not."""
    try:
        result = await call
        return result.all() if hasattr(result, "all") else result
    except UnsupportedVersion as error:
        return error
