"""Share groups with a real Java consumer: our Admin and kafka-share-groups beside the official tool."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.acts import begin_with_the_first_record
from tests.conformance.brokers import RunningBroker
from tests.conformance.clients import CLIENTS, Sent
from tests.conformance.conftest import make_topic
from tools.apache_kafka import cache_folder, run_tool

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import GroupState, GroupType, TopicPartition
from groupkeeper.protocol.errors import GroupIdNotFound, NonEmptyGroup, UnknownTopicOrPartition

SOURCE = Path(__file__).parent / "java" / "ShareMember.java"

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("apache_jars"), pytest.mark.timeout(180)]


@pytest.fixture
def working(broker: RunningBroker, name: str) -> Iterator[str]:
    """A share group whose member has accepted 4 of 10 records of a topic of its name, and holds the others."""
    servers = broker.bootstrap_servers
    make_topic(AdminClient({"bootstrap.servers": servers}), name, 1)
    CLIENTS["confluent"].produce(servers, name, [Sent(b"%d" % number) for number in range(10)])
    begin_with_the_first_record(servers, name)
    java = ["java", "-XX:+UseSerialGC", "-cp", f"{cache_folder()}/jars/*", str(SOURCE)]
    command = [*java, servers, name, name, "4", "m"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as member:
        assert member.stdout is not None
        assert member.stdout.readline() == "accepted 4\n"
        yield name
        member.communicate(timeout=60)


def ours(servers: str, *arguments: str) -> tuple[str, str]:
    program = "import sys; from groupkeeper.cli.dropin.kafka_share_groups import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "--bootstrap-server", servers, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout, done.stderr


def theirs(servers: str, *arguments: str) -> tuple[str, str]:
    done = run_tool("kafka-share-groups", "--bootstrap-server", servers, *arguments)
    assert done.returncode == 0
    return done.stdout, done.stderr


def test_a_group_at_work(broker: RunningBroker, working: str) -> None:
    # K1099-37, K1099-70 … K1099-82, GS-16, GS-17, GS-18, GS-19, GS-21, E2E-08
    servers, group, tp = broker.bootstrap_servers, working, TopicPartition(working, 0)

    async def look() -> None:
        async with Admin(servers) as admin:
            listing = (await admin.list_groups(types=["Share"])).all()[group]
            assert (listing.group_type, listing.protocol_type) == (GroupType.SHARE, "share")
            description = (await admin.describe_share_groups([group])).all()[group]
            [member] = description.members
            assert (description.group_state, description.partition_assignor) == (GroupState.STABLE, "simple")
            assert (member.client_id, member.assignment, member.subscribed_topics) == ("m", (tp,), (group,))
            assert member.member_epoch == description.target_assignment_epoch <= description.group_epoch
            [offsets] = (await admin.list_share_group_offsets({group: None})).all().values()
            found = offsets.all()[tp]
            assert found is not None
            # The start offset that is stored moves with the next write only; the lag is right at once.
            assert found.start_offset in (0, 4)
            assert (found.leader_epoch, found.lag) == (0, 6)
            with pytest.raises(NonEmptyGroup):
                await admin.alter_share_group_offsets(group, {tp: 0})
            with pytest.raises(NonEmptyGroup):
                await admin.delete_share_group_offsets(group, [group])
            assert isinstance((await admin.delete_share_groups([group])).failed[group], NonEmptyGroup)

    asyncio.run(look())
    for view in ("--offsets", "--members", "--state"):
        for verbose in ([], ["--verbose"]):
            arguments = ["--describe", "--group", group, view, *verbose]
            assert ours(servers, *arguments) == theirs(servers, *arguments)
    words = ["groups", "offsets", group, "--bootstrap-server", servers, "--output", "json"]
    report = subprocess.run([sys.executable, "-m", "groupkeeper", *words], check=True, capture_output=True, timeout=60)
    [row] = json.loads(report.stdout)["offsets"]
    assert (row["committed_offset"] + row["done_ahead"], row["lag"], row["client_id"]) == (4, 6, "m")
    output, _ = ours(servers, "--describe", "--group", group)
    assert re.search(rf"^{group} +{group} +0 +[04] +6$", output, re.MULTILINE)


def test_a_group_that_is_left(broker: RunningBroker, name: str) -> None:
    # K1099-14, K1099-80, GS-15, GS-17 … GS-19, GS-21, E2E-08
    servers = broker.bootstrap_servers
    make_topic(AdminClient({"bootstrap.servers": servers}), name, 2)
    CLIENTS["confluent"].produce(servers, name, [Sent(b"%d" % number, partition=1) for number in range(7)])
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)

    async def operate() -> None:
        async with Admin(servers) as admin:
            altered = await admin.alter_share_group_offsets(name, {second: 3, TopicPartition(f"{name}-x", 0): 1})
            assert (list(altered.done), [type(why) for why in altered.failed.values()]) == (
                [second],
                [UnknownTopicOrPartition],
            )
            listed = (await admin.list_share_group_offsets({name: [first, second], f"{name}-none": None})).all()
            assert listed[name].done[first] is None
            found = listed[name].done[second]
            assert found is not None
            assert (found.start_offset, found.lag) == (3, 4)
            assert listed[f"{name}-none"].done == {}
            described = await admin.describe_share_groups([name, f"{name}-none"])
            assert (described.done[name].group_state, described.done[name].members) == (GroupState.EMPTY, ())
            assert isinstance(described.failed[f"{name}-none"], GroupIdNotFound)
            deleted = await admin.delete_share_group_offsets(name, [name, f"{name}-x"])
            assert (list(deleted.done), list(deleted.failed)) == ([name], [f"{name}-x"])
            with pytest.raises(GroupIdNotFound):
                await admin.delete_share_group_offsets(f"{name}-none", [name])
            assert (await admin.delete_share_groups([name])).all() == {name: None}
            assert name not in (await admin.list_groups()).all()

    asyncio.run(operate())
