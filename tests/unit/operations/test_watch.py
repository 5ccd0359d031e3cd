"""What changed in a group, from two descriptions of it."""

from groupkeeper.client.admin.types import (
    ConsumerGroupDescription,
    GroupState,
    GroupType,
    MemberDescription,
    Node,
    TopicPartition,
)
from groupkeeper.operations.watch import Partitions, WatchedChange, What, changes

T0, T1, T2 = (TopicPartition("t", index) for index in range(3))


def member(
    member_id: str,
    *assignment: TopicPartition,
    epoch: int | None = None,
    target: Partitions | None = None,
    upgraded: bool | None = None,
) -> MemberDescription:
    return MemberDescription(member_id, None, "client", "/host", assignment, target, epoch, upgraded)


def group(
    state: GroupState, *members: MemberDescription, epoch: int | None = None, target: int | None = None
) -> ConsumerGroupDescription:
    kind = GroupType.CLASSIC if epoch is None else GroupType.CONSUMER
    return ConsumerGroupDescription("g", kind, state, False, "range", members, Node(1, "h", 9092), epoch, target)


def told(before: ConsumerGroupDescription | None, after: ConsumerGroupDescription | None) -> list[tuple[object, ...]]:
    found = list(changes("g", before, after))
    assert all(change.group_id == "g" for change in found)
    return [(one.member.member_id if one.member else None, one.what, one.before, one.after) for one in found]


def test_a_group_that_is_new() -> None:
    classic = group(GroupState.STABLE, member("b", T1), member("a", T0))
    assert told(None, classic) == [
        (None, What.TYPE, None, "Classic"),
        (None, What.STATE, None, "Stable"),
        (None, What.ASSIGNOR, None, "range"),
        ("a", What.JOINED, None, (T0,)),
        ("b", What.JOINED, None, (T1,)),
    ]
    assert told(classic, classic) == []


def test_a_rebalance() -> None:
    before = group(GroupState.STABLE, member("a", T1, T0, epoch=2, target=(T0, T1)), epoch=2, target=2)
    after = group(
        GroupState.RECONCILING,
        member("b", epoch=3, target=(T1,), upgraded=True),
        member("a", T0, T1, epoch=2, target=(T0,)),
        epoch=3,
        target=3,
    )
    assert told(before, after) == [
        (None, What.STATE, "Stable", "Reconciling"),
        (None, What.GROUP_EPOCH, 2, 3),
        (None, What.TARGET_EPOCH, 2, 3),
        ("a", What.TARGET_ASSIGNMENT, (T0, T1), (T0,)),
        ("b", What.JOINED, None, ()),
        ("b", What.MEMBER_EPOCH, None, 3),
        ("b", What.UPGRADED, None, True),
        ("b", What.TARGET_ASSIGNMENT, None, (T1,)),
    ]


def test_the_order_of_partitions_is_no_change() -> None:
    before, after = member("a", T0, T1, epoch=1), member("a", T1, T0, epoch=1)
    assert told(group(GroupState.STABLE, before, epoch=1), group(GroupState.STABLE, after, epoch=1)) == []


def test_members_and_groups_that_go() -> None:
    gone = member("a", T1, T0)
    before = group(GroupState.STABLE, gone, member("b", T2))
    assert list(changes("g", before, group(GroupState.STABLE, member("b", T0, T1, T2)))) == [
        WatchedChange("g", What.LEFT, (T0, T1), None, gone),
        WatchedChange("g", What.ASSIGNMENT, (T2,), (T0, T1, T2), member("b", T0, T1, T2)),
    ]
    assert told(before, None)[:2] == [(None, What.TYPE, "Classic", None), (None, What.STATE, "Stable", None)]
