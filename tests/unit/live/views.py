"""Groups as collectors find them, made by hand."""

from collections.abc import Sequence
from typing import Any

from groupkeeper.client.admin.types import (
    ConsumerGroupDescription,
    GroupState,
    GroupType,
    MemberDescription,
    Node,
    OffsetAndMetadata,
    TopicPartition,
)
from groupkeeper.live.cluster_poll import topic_views
from groupkeeper.live.model import NOTHING_WAITS, ClusterSnapshot, GroupView, Polls, Wait, WaitSum
from groupkeeper.live.standings import GroupStanding
from groupkeeper.live.waits import longest
from groupkeeper.operations.lag import LagStatus, PartitionLag, judge, sum_by_group
from groupkeeper.operations.problems import Problem

NODE = Node(1, "127.0.0.1", 9092)


def row(topic: str, partition: int, committed: int | None, end: int | None = 100, start: int = 0) -> PartitionLag:
    commit = None if committed is None else OffsetAndMetadata(committed)
    lag, lost, status = judge(commit, start, end, end, None)
    return PartitionLag("", topic, partition, commit, start, end, None, lag, lost, status, None, None)


def member(name: str, *partitions: TopicPartition, **more: Any) -> MemberDescription:
    return MemberDescription(f"{name}-id", None, name, "/127.0.0.1", partitions, **more)


def described(
    group_id: str = "g", *members: MemberDescription, epoch: int | None = None, state: GroupState = GroupState.STABLE
) -> ConsumerGroupDescription:
    kind = GroupType.CLASSIC if epoch is None else GroupType.CONSUMER
    return ConsumerGroupDescription(group_id, kind, state, False, "range", members, NODE, epoch, epoch)


def view(
    group_id: str = "g",
    rows: Sequence[PartitionLag] = (),
    waits: Sequence[Wait] | None = None,
    description: ConsumerGroupDescription | None = None,
    *,
    rebalances: int = 0,
    progress_ms: int | None = None,
    problems: tuple[Problem, ...] = (),
    state: GroupState | None = GroupState.STABLE,
) -> GroupView:
    rows = [each._replace(group_id=group_id) for each in rows]
    waits = (
        [Wait(None) if each.lag else NOTHING_WAITS if each.lag == 0 else Wait(None, is_waiting=False) for each in rows]
        if waits is None
        else waits
    )
    known = description or described(group_id)
    is_known = description is not None or not problems
    topics = dict.fromkeys(each.topic for each in rows)
    standing = [] if progress_ms is None else [GroupStanding(topic, 0, progress_ms) for topic in topics]
    committed = sum(each.committed.offset for each in rows if each.committed is not None) if rows else None
    return GroupView(
        group_id,
        known.group_type if is_known else None,
        (state if description is None else known.group_state) if is_known else None,
        known if is_known else None,
        None,
        rows,
        waits,
        topic_views(group_id, rows, waits, description, standing),
        sum_by_group(group_id, rows),
        longest(rows, waits) if rows else WaitSum(0),
        rebalances,
        committed,
        progress_ms,
        problems,
    )


def snapshot(
    *groups: GroupView,
    cluster: str = "prod",
    at_ms: int | None = 1_700_000_000_000,
    problems: tuple[Problem, ...] = (),
    cluster_id: str = "cluster-id",
) -> ClusterSnapshot:
    polls = Polls(1, 0, at_ms) if at_ms is not None else Polls(1, 1)
    by_id = {group.group_id: group for group in groups}
    return ClusterSnapshot(cluster, at_ms, 0.25, by_id, problems, polls, len(by_id), cluster_id, (NODE,))


__all__ = ["LagStatus", "described", "member", "row", "snapshot", "view"]
