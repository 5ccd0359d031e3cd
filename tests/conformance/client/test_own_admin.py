"""Our Admin on real brokers with real members: ours by default, Apache Kafka with BROKER_UNDER_TEST=apache."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import confluent_kafka
import pytest
import pytest_asyncio
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from tests.conformance.brokers import RunningBroker, new_broker, wait_for
from tests.conformance.clients import CLIENTS, Client, ConsumerOptions, Sent
from tests.conformance.member import Member
from tools.apache_kafka import ApacheKafka

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    ALL,
    GroupState,
    GroupType,
    ListedOffset,
    MemberToRemove,
    NewTopic,
    OffsetAndMetadata,
    OffsetSpec,
    TopicPartition,
)
from groupkeeper.client.errors import UnsupportedVersion
from groupkeeper.protocol import errors

T0 = 1_700_000_000_000


@pytest_asyncio.fixture
async def own(broker: RunningBroker) -> AsyncIterator[Admin]:
    async with Admin(broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def live_group(broker: RunningBroker, topic: str, name: str, client: Client) -> Iterator[str]:
    """A Stable classic group of one static member of each client library in turn, which owns all partitions."""
    options = ConsumerOptions(group=name, instance_id="static-1", session_timeout_ms=30_000)
    with Member(client, broker.bootstrap_servers, options, [topic]) as member:
        wait_for(lambda: len(member.assignment) == 6, "the assignment")
        yield name


async def test_topics(own: Admin, name: str) -> None:
    created = await own.create_topics([NewTopic(name, 3, 1), NewTopic("no/slash", 1)])
    assert list(created.done) == [name]
    assert isinstance(created.failed["no/slash"], errors.InvalidTopicException)
    assert isinstance((await own.create_topics([NewTopic(name, 3)])).failed[name], errors.TopicAlreadyExists)
    described = await own.describe_topics([name, f"{name}-missing"])
    assert described.failed == {f"{name}-missing": errors.UnknownTopicOrPartition()}
    topic = described.done[name]
    assert topic.topic_id == created.done[name].topic_id
    found = [(each.partition, each.leader is not None, each.error) for each in topic.partitions]
    assert found == [(0, True, None), (1, True, None), (2, True, None)]
    assert name in [each.name for each in await own.list_topics()]
    assert name in (await own.describe_topics()).done
    deleted = await own.delete_topics([name, f"{name}-missing"])
    assert list(deleted.done) == [name]
    assert isinstance(deleted.failed[f"{name}-missing"], errors.UnknownTopicOrPartition)


async def test_cluster(own: Admin, broker: RunningBroker) -> None:
    cluster = await own.describe_cluster()
    assert cluster.cluster_id
    assert cluster.controller in cluster.nodes
    assert sorted(f"{node.host}:{node.port}" for node in cluster.nodes) == broker.bootstrap_servers.split(",")


async def test_log_offsets(own: Admin, broker: RunningBroker, topic: str) -> None:
    stamps = [T0, T0 + 5000, T0 + 1000]
    CLIENTS["confluent"].produce(broker.bootstrap_servers, topic, [Sent(b"x", timestamp_ms=stamp) for stamp in stamps])
    p0, p1 = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def offset_of(tp: TopicPartition, spec: OffsetSpec) -> tuple[int, int]:
        found = (await own.list_offsets({tp: spec})).all()[tp]
        return found.offset, found.timestamp

    assert await offset_of(p0, OffsetSpec.earliest()) == (0, -1)
    assert await offset_of(p0, OffsetSpec.latest()) == (3, -1)
    assert await offset_of(p0, OffsetSpec.for_timestamp(T0 + 1)) == (1, T0 + 5000)
    assert await offset_of(p0, OffsetSpec.max_timestamp()) == (1, T0 + 5000)
    assert await offset_of(p0, OffsetSpec.for_timestamp(T0 + 5001)) == (-1, -1)
    assert await offset_of(p1, OffsetSpec.latest()) == (0, -1)
    assert await offset_of(p1, OffsetSpec.max_timestamp()) == (-1, -1)
    committed = await own.list_offsets({p0: OffsetSpec.latest()}, read_committed=True)
    assert committed.all()[p0].offset == 3
    unknown = {TopicPartition(topic, 99): OffsetSpec.latest(), p0: OffsetSpec.latest()}
    batch = await own.list_offsets(unknown)
    assert isinstance(batch.done[p0], ListedOffset)
    assert batch.failed == {TopicPartition(topic, 99): errors.UnknownTopicOrPartition()}


async def test_offsets_of_groups_without_members(own: Admin, topic: str) -> None:
    # K88-10, K88-11, K88-40 … K88-42, K496-10, K496-12, GO-12
    p0, p1 = TopicPartition(topic, 0), TopicPartition(topic, 1)
    gone = TopicPartition(f"{topic}-missing", 0)
    offsets = {p0: OffsetAndMetadata(5, 0, "note"), p1: OffsetAndMetadata(7), gone: OffsetAndMetadata(1)}
    altered = await own.alter_consumer_group_offsets(topic, offsets)
    assert list(altered.done) == [p0, p1]
    assert altered.failed == {gone: errors.UnknownTopicOrPartition()}

    batch = await own.list_consumer_group_offsets(
        {topic: None, f"{topic}-missing": None, f"{topic}-named": [p0], f"{topic}-none": []}
    )
    assert batch.failed == {}
    assert batch.done[topic].all() == {p0: OffsetAndMetadata(5, 0, "note"), p1: OffsetAndMetadata(7)}
    assert batch.done[f"{topic}-missing"].all() == {}
    assert batch.done[f"{topic}-named"].all() == {p0: None}
    assert batch.done[f"{topic}-none"].all() == {}

    deleted = await own.delete_consumer_group_offsets(topic, [p1, gone, TopicPartition(topic, 5)])
    assert list(deleted.done) == [p1, TopicPartition(topic, 5)]
    assert deleted.failed == {gone: errors.UnknownTopicOrPartition()}
    assert list((await own.list_consumer_group_offsets({topic: None})).all()[topic].done) == [p0]
    with pytest.raises(errors.GroupIdNotFound):
        await own.delete_consumer_group_offsets(f"{topic}-missing", [p0])
    with pytest.raises(errors.InvalidGroupId):  # K496-19
        await own.delete_consumer_group_offsets("", [p0])


async def test_simple_groups(own: Admin, topic: str) -> None:
    # K518-16, K518-35, K1099-39, GD-01 … GD-05
    group = f"{topic}-simple"
    await own.alter_consumer_group_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(1)})
    listing = (await own.list_groups()).all()[group]
    assert (listing.group_type, listing.group_state, listing.protocol_type) == (GroupType.CLASSIC, GroupState.EMPTY, "")
    assert listing.is_simple
    assert group not in (await own.list_groups(states=[GroupState.STABLE])).all()
    assert group in (await own.list_groups(states=["empty"], types=["Classic"])).all()  # K518-11
    assert group not in (await own.list_groups(types=["Consumer"])).all()
    assert (await own.list_groups(states=["NoSuchState"])).all() == {}  # K518-12

    batch = await own.describe_consumer_groups([group, f"{group}-missing"])
    description = batch.done[group]
    assert (description.is_simple, description.group_type) == (True, GroupType.CLASSIC)
    assert (description.group_state, description.members) == (GroupState.EMPTY, ())
    assert batch.failed == {f"{group}-missing": errors.GroupIdNotFound(f"Group {group}-missing not found.")}
    assert list((await own.describe_classic_groups([group])).all()) == [group]

    coordinators = (await own.find_coordinators([group, "any"])).all()
    assert coordinators[group] == description.coordinator
    deleted = await own.delete_consumer_groups([group, f"{group}-missing"])
    assert list(deleted.done) == [group]
    assert isinstance(deleted.failed[f"{group}-missing"], errors.GroupIdNotFound)
    assert group not in (await own.list_groups()).all()


async def test_groups_with_members(own: Admin, topic: str, live_group: str) -> None:
    # K1099-32 … K1099-40, K496-11, K496-42, GC-31, GD-02, GO-04
    description = (await own.describe_consumer_groups([live_group])).all()[live_group]
    assert (description.group_type, description.group_state) == (GroupType.CLASSIC, GroupState.STABLE)
    assert (description.group_epoch, description.partition_assignor, description.is_simple) == (None, "range", False)
    [member] = description.members
    assert member.instance_id == "static-1"
    assert sorted(member.assignment) == [TopicPartition(topic, index) for index in range(6)]
    assert member.subscribed_topics == (topic,)
    assert (member.upgraded, member.member_epoch, member.target_assignment) == (None, None, None)
    assert "127.0.0.1" in member.host
    classic = (await own.describe_classic_groups([live_group])).all()[live_group]
    assert (classic.protocol_type, classic.protocol, classic.members) == ("consumer", "range", (member,))

    p0 = TopicPartition(topic, 0)
    altered = await own.alter_consumer_group_offsets(live_group, {p0: OffsetAndMetadata(1)})
    assert altered.failed == {p0: errors.UnknownMemberId()}
    assert isinstance((await own.delete_consumer_groups([live_group])).failed[live_group], errors.NonEmptyGroup)
    deleted = await own.delete_consumer_group_offsets(live_group, [p0])
    assert deleted.failed == {p0: errors.GroupSubscribedToTopic()}

    removed = await own.remove_members(
        live_group, [MemberToRemove("static-1"), MemberToRemove("nobody")], reason="test"
    )
    assert list(removed.done) == [MemberToRemove("static-1")]
    assert isinstance(removed.failed[MemberToRemove("nobody")], errors.UnknownMemberId)


async def test_removing_all_members(own: Admin, broker: RunningBroker, topic: str, name: str) -> None:
    # GC-31: a static member stays in its group after it has gone, until it is removed.
    options = ConsumerOptions(group=name, instance_id="gone", session_timeout_ms=30_000)

    def come_and_go() -> None:
        with Member(CLIENTS["confluent"], broker.bootstrap_servers, options, [topic]) as member:
            wait_for(lambda: len(member.assignment) == 6, "the assignment")
            member.stop()

    await asyncio.to_thread(come_and_go)
    assert len((await own.describe_consumer_groups([name])).all()[name].members) == 1
    assert (await own.remove_members(name, ALL)).all() == {MemberToRemove("gone"): None}
    assert (await own.describe_consumer_groups([name])).all()[name].members == ()


async def test_hundreds_of_groups(own: Admin, topic: str) -> None:
    # K88-45, K518-33
    groups = [f"{topic}-{index:03}" for index in range(500)]
    partitions = [TopicPartition(topic, index) for index in range(6)]

    async def commit(group: str, offset: int) -> None:
        offsets = {tp: OffsetAndMetadata(offset) for tp in partitions}
        (await own.alter_consumer_group_offsets(group, offsets)).all()

    await asyncio.gather(*(commit(group, index) for index, group in enumerate(groups)))
    assert set(groups) <= set((await own.list_groups()).all())
    offsets = (await own.list_consumer_group_offsets(dict.fromkeys(groups))).all()
    for index, group in enumerate(groups):
        assert offsets[group].all() == dict.fromkeys(sorted(offsets[group].done), OffsetAndMetadata(index))
        assert len(offsets[group].done) == 6
    assert len((await own.describe_consumer_groups(groups)).all()) == 500
    assert len((await own.delete_consumer_groups(groups)).all()) == 500
    assert not set(groups) & set((await own.list_groups()).all())


async def test_a_restart_is_survived(broker: RunningBroker, topic: str) -> None:
    # The connection is made again, and a loading coordinator is waited for (K88-43).
    mortal = new_broker("apache" if isinstance(broker, ApacheKafka) else "groupkeeper")
    await asyncio.to_thread(mortal.start)
    try:
        async with Admin(mortal.bootstrap_servers) as admin:
            await admin.create_topics([NewTopic(topic, 1, 1)])
            tp = TopicPartition(topic, 0)
            (await admin.alter_consumer_group_offsets("g", {tp: OffsetAndMetadata(3)})).all()
            await asyncio.to_thread(mortal.kill)
            calls = asyncio.gather(
                admin.list_consumer_group_offsets({"g": None}, timeout_ms=60_000),
                admin.list_groups(timeout_ms=60_000),
                admin.describe_topics([topic], timeout_ms=60_000),
                admin.list_offsets({tp: OffsetSpec.latest()}, timeout_ms=60_000),
            )
            await asyncio.to_thread(mortal.start)
            offsets, groups, topics, latest = await calls
            assert offsets.all()["g"].all() == {tp: OffsetAndMetadata(3)}
            assert list(groups.all()) == ["g"]
            assert list(topics.all()) == [topic]
            assert latest.all()[tp].offset == 0
    finally:
        await asyncio.to_thread(mortal.stop)


@pytest.mark.conformance
async def test_what_one_may_not_see_does_not_break_the_rest(apache_jars: None) -> None:
    # K88-20 … K88-22, K496-30, K496-31, K518-20, GD-05, GD-06, GA-01: real authorization of an anonymous client.
    acls = [deny(ResourceType.GROUP, "secret"), deny(ResourceType.TOPIC, "hidden")]
    p0, hidden = TopicPartition("t", 0), TopicPartition("hidden", 0)
    offsets = {p0: OffsetAndMetadata(1), hidden: OffsetAndMetadata(2)}
    with ApacheKafka(
        {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
        }
    ) as guarded:
        async with Admin(guarded.bootstrap_servers) as admin:
            await admin.create_topics([NewTopic("t", 1, 1), NewTopic("hidden", 1, 1)])
            for group in ("open", "secret"):
                (await admin.alter_consumer_group_offsets(group, offsets)).all()
            librdkafka = AdminClient({"bootstrap.servers": guarded.bootstrap_servers})
            for future in librdkafka.create_acls(acls).values():
                future.result(20)
            async with asyncio.timeout(20):
                while {"hidden"} != (await admin.describe_topics(["t", "hidden"])).failed.keys():
                    pass  # the rules reach the broker a moment after the answer

            batch = await admin.list_consumer_group_offsets({"open": None, "secret": None})
            assert batch.done["open"].all() == {p0: OffsetAndMetadata(1)}  # K88-22
            assert isinstance(batch.failed["secret"], errors.GroupAuthorizationFailed)
            named = (await admin.list_consumer_group_offsets({"open": [p0, hidden]})).all()["open"]
            assert named.done == {p0: OffsetAndMetadata(1)}
            assert named.failed == {hidden: errors.TopicAuthorizationFailed()}  # K88-21

            found = await admin.find_coordinators(["open", "secret"])
            assert list(found.done) == ["open"]
            assert found.failed["secret"] == errors.GroupAuthorizationFailed(
                "FindCoordinator request for groupId `secret` failed due to authorization failure"
            )
            described = await admin.describe_consumer_groups(["open", "secret"])
            assert list(described.done) == ["open"]
            assert isinstance(described.failed["secret"], errors.GroupAuthorizationFailed)
            deleted = await admin.delete_consumer_groups(["secret", "missing"])
            told = {group: type(failure) for group, failure in deleted.failed.items()}
            assert told == {"secret": errors.GroupAuthorizationFailed, "missing": errors.GroupIdNotFound}
            altered = await admin.alter_consumer_group_offsets("open", offsets)
            assert (altered.done, altered.failed) == ({p0: None}, {hidden: errors.TopicAuthorizationFailed()})
            removed = await admin.delete_consumer_group_offsets("open", [p0, hidden])
            assert (removed.done, removed.failed) == ({p0: None}, {hidden: errors.TopicAuthorizationFailed()})
            with pytest.raises(errors.GroupAuthorizationFailed):
                await admin.delete_consumer_group_offsets("secret", [p0])
            latest = await admin.list_offsets({p0: OffsetSpec.latest(), hidden: OffsetSpec.latest()})
            assert (list(latest.done), latest.failed) == ([p0], {hidden: errors.TopicAuthorizationFailed()})
            topics = await admin.describe_topics(["t", "hidden"])
            assert (list(topics.done), topics.failed) == (["t"], {"hidden": errors.TopicAuthorizationFailed()})
            assert [topic.name for topic in await admin.list_topics()] == ["t"]


def deny(kind: ResourceType, name: str) -> AclBinding:
    """Nobody may do anything with it."""
    return AclBinding(
        kind, name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", AclOperation.ALL, AclPermissionType.DENY
    )


@pytest.mark.conformance
async def test_consumer_groups_of_apache(apache_kafka: ApacheKafka, name: str) -> None:
    # K1099-30 … K1099-33: KIP-848 groups as Apache Kafka answers them.
    servers = apache_kafka.bootstrap_servers
    async with Admin(servers) as admin:
        await admin.create_topics([NewTopic(name, 6, 1)])
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": servers, "group.id": name, "group.protocol": "consumer", "client.id": "me"}
        )
        consumer.subscribe([name])

        def has_all() -> bool:
            consumer.poll(0.05)
            return len(consumer.assignment()) == 6

        await asyncio.to_thread(wait_for, has_all, "the assignment")
        group = (await admin.describe_consumer_groups([name], include_authorized_operations=True)).all()[name]
        listing = (await admin.list_groups(types=[GroupType.CONSUMER])).all()[name]
        classic = await admin.describe_classic_groups([name])
        offsets = (await admin.list_consumer_group_offsets({name: None}, require_stable=True)).all()
        await asyncio.to_thread(consumer.close)
    assert (listing.group_type, listing.protocol_type) == (GroupType.CONSUMER, "consumer")
    assert (group.group_type, group.group_state) == (GroupType.CONSUMER, GroupState.STABLE)
    assert group.group_epoch == group.target_assignment_epoch
    assert group.authorized_operations is not None
    assert "DESCRIBE" in group.authorized_operations
    [described] = group.members
    assert described.upgraded is True
    assert (described.client_id, described.instance_id, described.subscribed_topics) == ("me", None, (name,))
    assert described.member_epoch == group.group_epoch
    assert sorted(described.assignment) == [TopicPartition(name, index) for index in range(6)]
    assert described.target_assignment is not None
    assert sorted(described.target_assignment) == sorted(described.assignment)
    assert isinstance(classic.failed[name], errors.GroupIdNotFound)
    assert offsets[name].failed == {}


@pytest.mark.conformance
async def test_specs_of_tiered_storage_on_apache(apache_kafka: ApacheKafka, name: str) -> None:
    tp = TopicPartition(name, 0)
    async with Admin(apache_kafka.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic(name, 1, 1)])
        for spec in (OffsetSpec.earliest_local(), OffsetSpec.latest_tiered(), OffsetSpec.earliest_pending_upload()):
            failure = (await admin.list_offsets({tp: spec})).failed.get(tp)
            assert not isinstance(failure, UnsupportedVersion)
