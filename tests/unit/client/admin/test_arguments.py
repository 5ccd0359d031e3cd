"""One thing where a collection is meant is refused before a broker is asked: a text would be taken letter by letter."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from tests.unit.client.scripted_broker import scripted

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.resources.access_types import Acl, AclFilter, AclOperation, AclResourceType, QuotaEntity
from groupkeeper.client.admin.resources.types import ConfigResource
from groupkeeper.client.admin.types import (
    ALL,
    GroupState,
    MemberToRemove,
    NewTopic,
    OffsetAndMetadata,
    OffsetSpec,
    Position,
    TopicPartition,
)
from groupkeeper.client.errors import IllegalArgument
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import RootMessage

ACL = Acl("User:alice", AclOperation.READ, AclResourceType.TOPIC, "orders")
PLACE = TopicPartition("orders", 0)

CALLS: dict[str, Callable[[Any], Awaitable[object]]] = {
    "delete groups": lambda admin: admin.delete_consumer_groups("billing"),
    "delete share groups": lambda admin: admin.delete_share_groups("billing"),
    "delete topics": lambda admin: admin.delete_topics("orders"),
    "delete offsets": lambda admin: admin.delete_consumer_group_offsets("billing", PLACE),
    "delete offsets of groups": lambda admin: admin.delete_offsets_of_groups({"billing": PLACE}),
    "partitions to delete left out": lambda admin: admin.delete_offsets_of_groups({"billing": None}),
    "delete share offsets": lambda admin: admin.delete_share_group_offsets("billing", "orders"),
    "states": lambda admin: admin.list_groups(states="Stable"),
    "one state": lambda admin: admin.list_groups(states=GroupState.STABLE),
    "types": lambda admin: admin.list_groups(types="Classic"),
    "protocol types": lambda admin: admin.list_groups(protocol_types="consumer"),
    "describe": lambda admin: admin.describe_consumer_groups("billing"),
    "describe classic": lambda admin: admin.describe_classic_groups("billing"),
    "describe share": lambda admin: admin.describe_share_groups("billing"),
    "describe streams": lambda admin: admin.describe_streams_groups("billing"),
    "offsets": lambda admin: admin.list_consumer_group_offsets({"billing": PLACE}),
    "share offsets": lambda admin: admin.list_share_group_offsets({"billing": "orders"}),
    "committed": lambda admin: admin.list_committed_offsets("billing"),
    "coordinators": lambda admin: admin.find_coordinators("billing"),
    "topics": lambda admin: admin.describe_topics("orders"),
    "create topics": lambda admin: admin.create_topics(NewTopic("orders", 1, 1)),
    "times": lambda admin: admin.record_timestamps(Position("orders", 0, 5)),
    "settings": lambda admin: admin.broker_settings("log.dirs"),
    "topics' settings": lambda admin: admin.topic_settings("orders", ["retention.ms"]),
    "names of settings": lambda admin: admin.topic_settings(["orders"], "retention.ms"),
    "configs": lambda admin: admin.describe_configs(ConfigResource.topic("orders")),
    "names of configs": lambda admin: admin.describe_configs([ConfigResource.topic("orders")], names="retention.ms"),
    "acls": lambda admin: admin.create_acls(ACL),
    "filters of acls": lambda admin: admin.delete_acls(AclFilter()),
    "users": lambda admin: admin.describe_scram_users("alice"),
    "transactional ids": lambda admin: admin.describe_transactions("payments"),
    "ids to fence": lambda admin: admin.fence_producers("payments"),
    "states of transactions": lambda admin: admin.list_transactions(states="Ongoing"),
    "producers": lambda admin: admin.describe_producers(PLACE),
    "log dirs": lambda admin: admin.describe_log_dirs(partitions=PLACE),
    "one member": lambda admin: admin.remove_members("billing", MemberToRemove("static")),
    "a member's id": lambda admin: admin.remove_members("billing", "static"),
    "members left out": lambda admin: admin.remove_members("billing", None),
}


@pytest_asyncio.fixture
async def admin() -> AsyncIterator[Admin]:
    """Without a broker."""
    unconnected = Admin("127.0.0.1:1", default_timeout_ms=1000)
    yield unconnected
    await unconnected.close()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_one_thing_is_no_collection(admin: Admin, call: Callable[[Any], Awaitable[object]]) -> None:
    with pytest.raises(IllegalArgument, match="must be a collection"):
        await call(admin)


FILTERS: dict[str, tuple[Callable[[Any, Any], Awaitable[object]], RootMessage]] = {
    "DescribeConfigs": (
        lambda admin, of: admin.describe_configs(of([ConfigResource.topic("orders")]), names=of(["retention.ms"])),
        m.DescribeConfigsResponse(),
    ),
    "ListTransactions": (
        lambda admin, of: admin.list_transactions(states=of(["Ongoing"]), producer_ids=of([5])),
        m.ListTransactionsResponse(),
    ),
    "DescribeLogDirs": (
        lambda admin, of: admin.describe_log_dirs(of([0]), partitions=of([PLACE])),
        m.DescribeLogDirsResponse(),
    ),
    "DescribeUserScramCredentials": (
        lambda admin, of: admin.describe_scram_users(of(["alice"])),
        m.DescribeUserScramCredentialsResponse(),
    ),
    "ListGroups": (
        lambda admin, of: admin.list_groups(states=of(["Stable"]), types=of(["Classic"])),
        m.ListGroupsResponse(),
    ),
}
"""Calls whose collections are optional, by their API, with the answer of a broker that has nothing."""


@pytest.mark.parametrize("api", FILTERS)
async def test_an_iterator_asks_for_the_same_as_a_list(api: str) -> None:
    call, answer = FILTERS[api]
    async with scripted({api: lambda *_: answer}) as (broker, admin):
        for of in (list, iter):
            await call(admin, of)
    (_, by_list), (_, by_iterator) = broker.asked(api)
    assert by_iterator == by_list


MAPPINGS: dict[str, Callable[[Any], Awaitable[object]]] = {
    "offsets of one group": lambda admin: admin.list_consumer_group_offsets("billing"),
    "of a list of groups": lambda admin: admin.list_share_group_offsets(["billing"]),
    "a partition without a spec": lambda admin: admin.list_offsets([PLACE]),
    "offsets to commit": lambda admin: admin.alter_consumer_group_offsets("billing", [PLACE]),
    "partitions for groups": lambda admin: admin.alter_offsets_of_groups({"billing": [PLACE]}),
    "records": lambda admin: admin.delete_records([PLACE]),
    "partitions of topics": lambda admin: admin.create_partitions("orders"),
    "configs": lambda admin: admin.alter_configs(ConfigResource.topic("orders")),
    "quotas": lambda admin: admin.alter_client_quotas(QuotaEntity(user="alice")),
    "passwords": lambda admin: admin.alter_scram_users("alice"),
    "one config": lambda admin: admin.alter_configs({ConfigResource.topic("orders"): "retention.ms"}),
}


@pytest.mark.parametrize("call", MAPPINGS.values(), ids=MAPPINGS)
async def test_what_is_no_mapping_is_refused(admin: Admin, call: Callable[[Any], Awaitable[object]]) -> None:
    with pytest.raises(IllegalArgument, match="must be a mapping"):
        await call(admin)


OTHERS: dict[str, tuple[Callable[[Any], Awaitable[object]], str]] = {
    "a name for a topic": (lambda admin: admin.create_topics(["orders"]), "topics: 'orders' is no NewTopic"),
    "a pair for a partition": (
        lambda admin: admin.list_offsets({("orders", 0): OffsetSpec.latest()}),
        "specs: ('orders', 0) is no TopicPartition",
    ),
    "topics for partitions": (
        lambda admin: admin.delete_consumer_group_offsets("billing", ["orders"]),
        "partitions: 'orders' is no TopicPartition",
    ),
    "offsets of a topic": (
        lambda admin: admin.alter_consumer_group_offsets("billing", {"orders": 1}),
        "offsets: 'orders' is no TopicPartition",
    ),
    "records of a topic": (lambda admin: admin.delete_records({"orders": 5}), "before: 'orders' is no TopicPartition"),
    "configs by name": (lambda admin: admin.describe_configs(["orders"]), "resources: 'orders' is no ConfigResource"),
    "changes by name": (
        lambda admin: admin.alter_configs({"orders": {"retention.ms": "1"}}),
        "changes: 'orders' is no ConfigResource",
    ),
    "a text for a number": (
        lambda admin: admin.create_partitions({"orders": "3"}),
        "totals: '3' is no int and no NewPartitions",
    ),
    "a truth for a number": (
        lambda admin: admin.create_partitions({"orders": True}),
        "totals: True is no int and no NewPartitions",
    ),
    "a plain password": (
        lambda admin: admin.alter_scram_users({"alice": "secret"}),
        "changes: a value is no ScramPassword and no ScramRemoval",
    ),
    "a number for an offset": (
        lambda admin: admin.alter_consumer_group_offsets("billing", {PLACE: 5}),
        f"offsets[{PLACE!r}]: 5 is no OffsetAndMetadata",
    ),
    "a number for an offset of a group": (
        lambda admin: admin.alter_offsets_of_groups({"billing": {PLACE: 5}}),
        f"offsets['billing'][{PLACE!r}]: 5 is no OffsetAndMetadata",
    ),
    "an offset for a number": (
        lambda admin: admin.alter_share_group_offsets("billing", {PLACE: OffsetAndMetadata(5)}),
        f"offsets[{PLACE!r}]: {OffsetAndMetadata(5)!r} is no int",
    ),
    "a number for a spec": (lambda admin: admin.list_offsets({PLACE: 5}), f"specs[{PLACE!r}]: 5 is no OffsetSpec"),
    "several groups": (
        lambda admin: admin.alter_consumer_group_offsets(["billing"], {PLACE: OffsetAndMetadata(5)}),
        "group_id: ['billing'] is no str",
    ),
    "groups to delete offsets of": (
        lambda admin: admin.delete_consumer_group_offsets(["billing"], [PLACE]),
        "group_id: ['billing'] is no str",
    ),
    "groups to remove members of": (
        lambda admin: admin.remove_members(["billing"], ALL),
        "group_id: ['billing'] is no str",
    ),
    "a duration": (
        lambda admin: admin.list_groups(timeout_ms="5s"),
        "timeout_ms is a number of milliseconds, not '5s'",
    ),
    "several servers": (
        lambda admin: Admin.connect(["127.0.0.1:1"]),  # type: ignore[arg-type]
        "bootstrap servers are one text of host:port separated by commas, not ['127.0.0.1:1']",
    ),
    "a user for an entity": (
        lambda admin: admin.alter_client_quotas({"alice": {"producer_byte_rate": 1}}),
        "changes: 'alice' is no QuotaEntity",
    ),
    "a user for a filter": (lambda admin: admin.describe_acls("User:alice"), "wanted: 'User:alice' is no AclFilter"),
    "an id for a producer": (lambda admin: admin.abort_transaction(PLACE, 5), "producer: 5 is no ProducerState"),
}


@pytest.mark.parametrize(("call", "text"), OTHERS.values(), ids=OTHERS)
async def test_what_is_of_another_kind_is_named(
    admin: Admin, call: Callable[[Any], Awaitable[object]], text: str
) -> None:
    with pytest.raises(IllegalArgument) as refused:
        await call(admin)
    assert str(refused.value) == text


async def test_removing_all_members_must_be_said(admin: Any) -> None:
    with pytest.raises(TypeError):
        await admin.remove_members("billing")
