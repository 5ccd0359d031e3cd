"""Requests at the edges of what may be asked, by a name that says what is special about them."""

from collections.abc import Iterator

from groupkeeper.protocol import messages as m
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
        old, new = m.FindCoordinatorRequest("g"), m.FindCoordinatorRequest(coordinator_keys=["g", "h", "g"])
        yield f"find v{version}", old if version < 4 else new, version
    yield "find the empty group", m.FindCoordinatorRequest(""), 3
    yield "find nothing", m.FindCoordinatorRequest(coordinator_keys=[]), 6
    for key in ("g", "g:t", "g:not-an-id:0", "g:AAAAAAAAAAAAAAAAAAAAAQ:x", ":AAAAAAAAAAAAAAAAAAAAAQ:0"):
        yield f"find share {key}", m.FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6
    coordinator_keys = ["g:AAAAAAAAAAAAAAAAAAAAAQ:0"]
    yield ("find share too early", m.FindCoordinatorRequest(key_type=2, coordinator_keys=coordinator_keys), 5)
    yield "find share by old request", m.FindCoordinatorRequest("g:AAAAAAAAAAAAAAAAAAAAAQ:0", 2), 3


def _offsets() -> Iterator[Edge]:
    def commit(version: int, *topics: m.OffsetCommitRequestTopic, group: str = GROUP, retention: int = -1) -> Edge:
        return (
            f"commit v{version} {topics}",
            m.OffsetCommitRequest(group, topics=topics, retention_time_ms=retention),
            version,
        )

    one = [m.OffsetCommitRequestPartition(0, 5)]
    for version in range(2, 10):
        yield commit(version, m.OffsetCommitRequestTopic("ta", partitions=one))
    yield commit(9)
    yield commit(9, m.OffsetCommitRequestTopic("ta"))
    yield commit(
        9, m.OffsetCommitRequestTopic("ta", partitions=[*one, *one]), m.OffsetCommitRequestTopic("ta", partitions=one)
    )
    yield commit(9, m.OffsetCommitRequestTopic("", partitions=one))
    yield commit(9, m.OffsetCommitRequestTopic("ta", partitions=[m.OffsetCommitRequestPartition(-1, 5)]))
    yield commit(9, m.OffsetCommitRequestTopic("tb", partitions=[m.OffsetCommitRequestPartition(0, -5, -1, None)]))
    yield commit(9, m.OffsetCommitRequestTopic("tb", partitions=[m.OffsetCommitRequestPartition(1, 2**62, 7, "😀é")]))
    yield commit(10, m.OffsetCommitRequestTopic("", bytes(16), one))
    yield commit(4, m.OffsetCommitRequestTopic("ta", partitions=one), retention=1_000_000)
    for version in range(1, 8):
        everything = None if version > 1 else [m.OffsetFetchRequestTopic("ta", [0])]
        yield f"fetch v{version}", m.OffsetFetchRequest(GROUP, everything), version
        yield f"fetch nothing v{version}", m.OffsetFetchRequest(GROUP, []), version
        twice = [m.OffsetFetchRequestTopic("ta", [0, 0, -1, 9]), m.OffsetFetchRequestTopic("ta", [0])]
        yield f"fetch twice v{version}", m.OffsetFetchRequest(GROUP, twice), version
    for version in range(8, 11):
        groups = [m.OffsetFetchRequestGroup(GROUP, topics=None)] * 2
        yield (f"fetch v{version}", m.OffsetFetchRequest(groups=groups), version)
        yield f"fetch no group v{version}", m.OffsetFetchRequest(groups=[]), version
        no_id = [m.OffsetFetchRequestTopics("" if version > 9 else "ta", bytes(16), [0])]
        yield (
            f"fetch without id v{version}",
            m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(GROUP, topics=no_id)]),
            version,
        )
        member = m.OffsetFetchRequestGroup(GROUP, "m" if version > 8 else None, 3 if version > 8 else -1, None)
        yield f"fetch as member v{version}", m.OffsetFetchRequest(groups=[member], require_stable=True), version
    same = m.OffsetDeleteRequestTopic("ta", [m.OffsetDeleteRequestPartition(0), m.OffsetDeleteRequestPartition(0)])
    yield "delete the same twice", m.OffsetDeleteRequest(GROUP, [same]), 0
    yield "delete it again", m.OffsetDeleteRequest(GROUP, [same]), 0
    yield "delete from nobody", m.OffsetDeleteRequest("", [same]), 0
    yield "fetch what is left", m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(GROUP, topics=None)]), 9


def _listings() -> Iterator[Edge]:
    for version in range(7):
        yield f"describe v{version}", m.DescribeGroupsRequest([GROUP, GROUP, "", "nobody"], version >= 3), version
        yield f"describe nothing v{version}", m.DescribeGroupsRequest([]), version
    for version in range(6):
        yield f"list v{version}", m.ListGroupsRequest(), version
    for states in (("",), ("Dead",), (" EMPTY ",), ("Empty", "x"), ("preparingrebalance",)):
        yield f"list {states}", m.ListGroupsRequest(states), 5
    for types in (("",), ("CLASSIC",), (" classic",), ("share", "streams"), ("x", "Classic")):
        yield f"list {types}", m.ListGroupsRequest((), types), 5
    for version in range(2):
        request = m.ConsumerGroupDescribeRequest([GROUP, "nobody", "", "nobody"], True)
        yield f"consumer describe v{version}", request, version
        yield f"consumer describe nothing v{version}", m.ConsumerGroupDescribeRequest([]), version
    for version in range(3):
        yield f"delete v{version}", m.DeleteGroupsRequest(["nobody", "nobody", ""]), version
        yield f"delete nothing v{version}", m.DeleteGroupsRequest([]), version
    yield "delete the simple group", m.DeleteGroupsRequest([GROUP, GROUP]), 2


def _membership() -> Iterator[Edge]:
    offers = [m.JoinGroupRequestProtocol("range", b"")]
    for version in range(10):
        for session_ms in (-1, 0, 999, 1_800_001):
            request = m.JoinGroupRequest(GROUP, session_ms, 1000 if version else -1, "m", None, "consumer", offers)
            yield f"join v{version} session {session_ms}", request, version
        nobody = m.JoinGroupRequest("", 10_000, 1000 if version else -1, "m", None, "consumer", offers)
        yield f"join no group v{version}", nobody, version
    for version in range(6):
        named = ("consumer", "range") if version >= 5 else (None, None)
        yield f"sync no group v{version}", m.SyncGroupRequest("", 1, "m", None, *named), version
        yield f"sync nobody's v{version}", m.SyncGroupRequest("nobody", 1, "m", None, *named), version
    yield "sync without names", m.SyncGroupRequest("", 1, "m"), 5
    for version in range(5):
        yield f"heartbeat no group v{version}", m.HeartbeatRequest("", 1, "m"), version
        yield f"heartbeat nobody's v{version}", m.HeartbeatRequest("nobody", 1, "m"), version
    for version in range(6):
        for group in ("", "nobody"):
            members = [m.MemberIdentity("m"), m.MemberIdentity("")]
            old, new = (m.LeaveGroupRequest(group, "m"), m.LeaveGroupRequest(group, members=members))
            yield f"leave {group} v{version}", old if version < 3 else new, version
    yield "leave without anybody", m.LeaveGroupRequest("nobody", members=[]), 5
    yield "leave no group without anybody", m.LeaveGroupRequest("", members=[]), 5
