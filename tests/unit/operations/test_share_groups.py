"""Share groups found among others, and their lag."""

from collections.abc import Mapping
from typing import Any

from tests.unit.client.admin.test_share_groups import not_found
from tests.unit.client.scripted_broker import describing, scripted

from groupkeeper.client.admin.types import (
    Failure,
    OffsetAndMetadata,
    ShareMemberDescription,
    SharePartitionOffset,
    TopicPartition,
)
from groupkeeper.operations.groups import among
from groupkeeper.operations.lag import LagStatus, PartitionLag, of_share_group
from groupkeeper.protocol.errors import GroupAuthorizationFailed, GroupIdNotFound, TopicAuthorizationFailed
from groupkeeper.protocol.messages.share_group_describe_response import DescribedGroup, ShareGroupDescribeResponse

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)

FAILED: Mapping[str, Failure] = {
    "share": GroupIdNotFound(),
    "hidden": GroupIdNotFound(),
    "nowhere": GroupIdNotFound(),
    "dead": GroupIdNotFound(),
    "refused": GroupAuthorizationFailed(),
}


async def test_share_groups_are_found_among_unknown_ones() -> None:
    handler = describing(
        ShareGroupDescribeResponse,
        not_found,
        DescribedGroup(0, None, "share", "Empty", 1, 1),
        DescribedGroup(0, None, "dead", "Dead"),
        DescribedGroup(29, "the topics are hidden", "hidden"),
    )
    async with scripted({"ShareGroupDescribe": handler}) as (broker, admin):
        found = await among(FAILED, admin.describe_share_groups)
        request: Any = broker.asked("ShareGroupDescribe")[0][1]
        assert request.group_ids == ["share", "hidden", "nowhere", "dead"]
        await among({"refused": GroupAuthorizationFailed()}, admin.describe_share_groups)
        assert broker.count("ShareGroupDescribe") == 1
    assert list(found.done) == ["share"]
    assert found.failed == {"hidden": TopicAuthorizationFailed("the topics are hidden")}


async def test_brokers_without_share_groups_have_none() -> None:
    async with scripted(ranges={"ShareGroupDescribe": None}) as (_, admin):
        found = await among(FAILED, admin.describe_share_groups)
    assert (found.done, found.failed) == ({}, {})


def test_the_lag_is_the_brokers() -> None:
    # GS-16: 10 records from the start offset on, 4 of them done.
    member = ShareMemberDescription("m", "client", "/127.0.0.1", 1)
    row = PartitionLag("g", "a", 0, OffsetAndMetadata(5), 0, 15, None, 10, 0, LagStatus.OK, member, None)
    shared = of_share_group(row, {A0: SharePartitionOffset(5, 0, 6)})
    assert (shared.lag, shared.done_ahead) == (6, 4)
    # A broker before 4.2 doesn't tell the lag: offsets alone don't either.
    assert of_share_group(row, {A0: SharePartitionOffset(5, 0, None)}) == row._replace(lag=None)
    assert of_share_group(row, {A0: None}) == row._replace(lag=None)
    # The log has grown, or its end isn't known.
    grown = of_share_group(row._replace(log_end_offset=10), {A0: SharePartitionOffset(5, 0, 6)})
    assert (grown.lag, grown.done_ahead) == (6, 0)
    endless = of_share_group(row._replace(log_end_offset=None), {A0: SharePartitionOffset(5, 0, 6)})
    assert (endless.lag, endless.done_ahead) == (6, None)
