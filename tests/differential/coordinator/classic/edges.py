"""Requests at the edges of what may be asked, by a name that says what is special about them."""

from __future__ import annotations

from collections.abc import Iterator

from groupkeeper.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from groupkeeper.protocol.messages.delete_groups_request import DeleteGroupsRequest
from groupkeeper.protocol.messages.describe_groups_request import DescribeGroupsRequest
from groupkeeper.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from groupkeeper.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from groupkeeper.protocol.messages.list_groups_request import ListGroupsRequest
from groupkeeper.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from groupkeeper.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from groupkeeper.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest
from groupkeeper.protocol.primitives import RootMessage

Edge = tuple[str, RootMessage, int]
"""Name, request, version."""

GROUP = "edges"


def edges() -> Iterator[Edge]:
    """In this order: some prepare what later ones look at."""
    yield from _find_coordinator()
    yield from _offsets()
    yield from _listings()
    yield from _membership()


def _find_coordinator() -> Iterator[Edge]:
    for version in range(7):
        old, new = FindCoordinatorRequest("g"), FindCoordinatorRequest(coordinator_keys=["g", "h", "g"])
        yield f"find v{version}", old if version < 4 else new, version
    yield "find the empty group", FindCoordinatorRequest(""), 3
    yield "find nothing", FindCoordinatorRequest(coordinator_keys=[]), 6
    for key in ("g", "g:t", "g:not-an-id:0", "g:AAAAAAAAAAAAAAAAAAAAAQ:x", ":AAAAAAAAAAAAAAAAAAAAAQ:0"):
        yield f"find share {key}", FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6
    yield "find share too early", FindCoordinatorRequest(key_type=2, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAQ:0"]), 5
    yield "find share by old request", FindCoordinatorRequest("g:AAAAAAAAAAAAAAAAAAAAAQ:0", 2), 3


def _offsets() -> Iterator[Edge]:
    def commit(version: int, *topics: OffsetCommitRequestTopic, group: str = GROUP, retention: int = -1) -> Edge:
        return (
            f"commit v{version} {topics}",
            OffsetCommitRequest(group, topics=topics, retention_time_ms=retention),
            version,
        )

    one = [OffsetCommitRequestPartition(0, 5)]
    for version in range(2, 10):
        yield commit(version, OffsetCommitRequestTopic("ta", partitions=one))
    yield commit(9)
    yield commit(9, OffsetCommitRequestTopic("ta"))
    yield commit(
        9, OffsetCommitRequestTopic("ta", partitions=[*one, *one]), OffsetCommitRequestTopic("ta", partitions=one)
    )
    yield commit(9, OffsetCommitRequestTopic("", partitions=one))
    yield commit(9, OffsetCommitRequestTopic("ta", partitions=[OffsetCommitRequestPartition(-1, 5)]))
    yield commit(9, OffsetCommitRequestTopic("tb", partitions=[OffsetCommitRequestPartition(0, -5, -1, None)]))
    yield commit(9, OffsetCommitRequestTopic("tb", partitions=[OffsetCommitRequestPartition(1, 2**62, 7, "😀é")]))
    yield commit(10, OffsetCommitRequestTopic("", bytes(16), one))
    yield commit(4, OffsetCommitRequestTopic("ta", partitions=one), retention=1_000_000)
    for version in range(1, 8):
        everything = None if version > 1 else [OffsetFetchRequestTopic("ta", [0])]
        yield f"fetch v{version}", OffsetFetchRequest(GROUP, everything), version
        yield f"fetch nothing v{version}", OffsetFetchRequest(GROUP, []), version
        twice = [OffsetFetchRequestTopic("ta", [0, 0, -1, 9]), OffsetFetchRequestTopic("ta", [0])]
        yield f"fetch twice v{version}", OffsetFetchRequest(GROUP, twice), version
    for version in range(8, 11):
        yield f"fetch v{version}", OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, topics=None)] * 2), version
        yield f"fetch no group v{version}", OffsetFetchRequest(groups=[]), version
        no_id = [OffsetFetchRequestTopics("" if version > 9 else "ta", bytes(16), [0])]
        yield (
            f"fetch without id v{version}",
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, topics=no_id)]),
            version,
        )
        member = OffsetFetchRequestGroup(GROUP, "m" if version > 8 else None, 3 if version > 8 else -1, None)
        yield f"fetch as member v{version}", OffsetFetchRequest(groups=[member], require_stable=True), version
    same = OffsetDeleteRequestTopic("ta", [OffsetDeleteRequestPartition(0), OffsetDeleteRequestPartition(0)])
    yield "delete the same twice", OffsetDeleteRequest(GROUP, [same]), 0
    yield "delete it again", OffsetDeleteRequest(GROUP, [same]), 0
    yield "delete from nobody", OffsetDeleteRequest("", [same]), 0
    yield "fetch what is left", OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, topics=None)]), 9


def _listings() -> Iterator[Edge]:
    for version in range(7):
        yield f"describe v{version}", DescribeGroupsRequest([GROUP, GROUP, "", "nobody"], version >= 3), version
        yield f"describe nothing v{version}", DescribeGroupsRequest([]), version
    for version in range(6):
        yield f"list v{version}", ListGroupsRequest(), version
    for states in (("",), ("Dead",), (" EMPTY ",), ("Empty", "x"), ("preparingrebalance",)):
        yield f"list {states}", ListGroupsRequest(states), 5
    for types in (("",), ("CLASSIC",), (" classic",), ("share", "streams"), ("x", "Classic")):
        yield f"list {types}", ListGroupsRequest((), types), 5
    for version in range(2):
        request = ConsumerGroupDescribeRequest([GROUP, "nobody", "", "nobody"], True)
        yield f"consumer describe v{version}", request, version
        yield f"consumer describe nothing v{version}", ConsumerGroupDescribeRequest([]), version
    for version in range(3):
        yield f"delete v{version}", DeleteGroupsRequest(["nobody", "nobody", ""]), version
        yield f"delete nothing v{version}", DeleteGroupsRequest([]), version
    yield "delete the simple group", DeleteGroupsRequest([GROUP, GROUP]), 2


def _membership() -> Iterator[Edge]:
    offers = [JoinGroupRequestProtocol("range", b"")]
    for version in range(10):
        for session_ms in (-1, 0, 999, 1_800_001):
            request = JoinGroupRequest(GROUP, session_ms, 1000 if version else -1, "m", None, "consumer", offers)
            yield f"join v{version} session {session_ms}", request, version
        nobody = JoinGroupRequest("", 10_000, 1000 if version else -1, "m", None, "consumer", offers)
        yield f"join no group v{version}", nobody, version
    for version in range(6):
        named = ("consumer", "range") if version >= 5 else (None, None)
        yield f"sync no group v{version}", SyncGroupRequest("", 1, "m", None, *named), version
        yield f"sync nobody's v{version}", SyncGroupRequest("nobody", 1, "m", None, *named), version
    yield "sync without names", SyncGroupRequest("", 1, "m"), 5
    for version in range(5):
        yield f"heartbeat no group v{version}", HeartbeatRequest("", 1, "m"), version
        yield f"heartbeat nobody's v{version}", HeartbeatRequest("nobody", 1, "m"), version
    for version in range(6):
        for group in ("", "nobody"):
            old, new = (
                LeaveGroupRequest(group, "m"),
                LeaveGroupRequest(group, members=[MemberIdentity("m"), MemberIdentity("")]),
            )
            yield f"leave {group} v{version}", old if version < 3 else new, version
    yield "leave without anybody", LeaveGroupRequest("nobody", members=[]), 5
    yield "leave no group without anybody", LeaveGroupRequest("", members=[]), 5
