"""The server-side assignors: balance, stickiness, and that nobody gets what it did not ask for."""

import time
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupkeeper.coordinator.assignors import ASSIGNORS
from groupkeeper.coordinator.assignors.spec import GroupSpec, MemberSpec, TargetAssignment


def _topic(index: int) -> bytes:
    return index.to_bytes(16, "big")


def _size(target: TargetAssignment) -> int:
    return sum(len(partitions) for partitions in target.values())


def _pairs(target: TargetAssignment) -> set[tuple[bytes, int]]:
    return {(topic_id, partition) for topic_id, partitions in target.items() for partition in partitions}


def _group(subscriptions: Mapping[str, set[int]], counts: Mapping[int, int]) -> GroupSpec:
    members = {name: MemberSpec(frozenset(map(_topic, topics))) for name, topics in subscriptions.items()}
    subscribed = set().union(*subscriptions.values())
    partition_counts = {_topic(index): count for index, count in counts.items() if index in subscribed}
    return GroupSpec(members, partition_counts, len({frozenset(topics) for topics in subscriptions.values()}) == 1)


@st.composite
def groups(draw: st.DrawFn) -> GroupSpec:
    counts = {index: draw(st.integers(1, 9)) for index in range(draw(st.integers(1, 5)))}
    names = [f"m{index}" for index in range(draw(st.integers(1, 7)))]
    if draw(st.booleans()):
        return _group({name: set(counts) for name in names}, counts)
    return _group({name: draw(st.sets(st.sampled_from(sorted(counts)))) for name in names}, counts)


def _with_targets(spec: GroupSpec, targets: Mapping[str, TargetAssignment]) -> GroupSpec:
    members = {
        name: MemberSpec(member.topic_ids, targets.get(name, {}), member.instance_id)
        for name, member in spec.members.items()
    }
    return GroupSpec(members, spec.partition_counts, spec.is_homogeneous)


def _check_complete(spec: GroupSpec, targets: Mapping[str, TargetAssignment]) -> None:
    """Every partition that somebody wants has one reader, who wants it."""
    assigned = [pair for target in targets.values() for pair in _pairs(target)]
    assert len(assigned) == len(set(assigned))
    wanted = frozenset[bytes]().union(*(member.topic_ids for member in spec.members.values()))
    assert set(assigned) == {(t, p) for t in wanted for p in range(spec.partition_counts[t])}
    assert targets.keys() == spec.members.keys()
    for name, target in targets.items():
        assert target.keys() <= spec.members[name].topic_ids
        assert all(target.values())


@pytest.mark.parametrize("name", ["uniform", "range"])
@given(spec=groups())
@settings(max_examples=60)
def test_every_partition_has_one_subscribed_reader(name: str, spec: GroupSpec) -> None:
    targets = ASSIGNORS[name](spec)
    _check_complete(spec, targets)
    assert ASSIGNORS[name](spec) == targets


@given(spec=groups())
@settings(max_examples=60)
def test_uniform_is_balanced(spec: GroupSpec) -> None:
    # GN-22
    targets = ASSIGNORS["uniform"](spec)
    if spec.is_homogeneous:
        sizes = [_size(target) for target in targets.values()]
        assert max(sizes) - min(sizes) <= 1
    for name, target in targets.items():
        for topic_id in target:
            others = [other for other, member in spec.members.items() if topic_id in member.topic_ids]
            assert _size(target) - min(_size(targets[other]) for other in others) <= 1, (name, topic_id)


@given(spec=groups())
@settings(max_examples=40)
def test_uniform_leaves_a_balanced_group_alone(spec: GroupSpec) -> None:
    # GN-22: assigning again moves nothing.
    targets = ASSIGNORS["uniform"](spec)
    assert ASSIGNORS["uniform"](_with_targets(spec, targets)) == targets


@given(spec=groups(), data=st.data())
@settings(max_examples=40)
def test_uniform_moves_no_more_than_it_must(spec: GroupSpec, data: st.DataObject) -> None:
    # GN-22: when a member of a homogeneous group leaves, the others keep everything.
    if not spec.is_homogeneous or len(spec.members) == 1:
        return
    targets = ASSIGNORS["uniform"](spec)
    leaver = data.draw(st.sampled_from(sorted(spec.members)))
    rest = {name: member for name, member in _with_targets(spec, targets).members.items() if name != leaver}
    after = ASSIGNORS["uniform"](GroupSpec(rest, spec.partition_counts, is_homogeneous=True))
    for name in rest:
        assert _pairs(targets[name]) <= _pairs(after[name])


def test_uniform_ignores_what_can_not_be_kept() -> None:
    # GN-22: two members that claim the same, partitions and topics that are gone.
    claims = {_topic(1): frozenset({0, 1, 7}), _topic(9): frozenset({0})}
    members = {name: MemberSpec(frozenset({_topic(1)}), claims) for name in "ab"}
    spec = GroupSpec(members, {_topic(1): 4}, is_homogeneous=True)
    assert ASSIGNORS["uniform"](spec) == {"a": {_topic(1): {0, 1}}, "b": {_topic(1): {2, 3}}}


def test_range_gives_consecutive_partitions_static_members_first() -> None:
    # GN-21
    topics = frozenset({_topic(1), _topic(2)})
    members = {"a": MemberSpec(topics), "b": MemberSpec(topics, {}, "i2"), "c": MemberSpec(topics, {}, "i1")}
    targets = ASSIGNORS["range"](GroupSpec(members, {_topic(1): 4, _topic(2): 2}, is_homogeneous=True))
    assert targets == {
        "c": {_topic(1): {0, 1}, _topic(2): {0}},
        "b": {_topic(1): {2}, _topic(2): {1}},
        "a": {_topic(1): {3}},
    }


@pytest.mark.parametrize("name", ["uniform", "range"])
def test_large_groups_take_seconds(name: str) -> None:
    # GN-22
    topics = frozenset(map(_topic, range(100)))
    members = {f"member-{index:05}": MemberSpec(topics) for index in range(10_000)}
    spec = GroupSpec(members, dict.fromkeys(topics, 1_000), is_homogeneous=True)
    started = time.process_time()
    targets = ASSIGNORS[name](spec)
    assert time.process_time() - started < 10
    assert sum(map(_size, targets.values())) == 100_000


def test_large_groups_of_different_subscriptions_take_seconds() -> None:
    # GN-22
    topics = [_topic(index) for index in range(100)]
    members = {
        f"member-{index:05}": MemberSpec(frozenset(topics[index % 97 : index % 97 + 20])) for index in range(5_000)
    }
    spec = GroupSpec(members, dict.fromkeys(topics, 500), is_homogeneous=False)
    started = time.process_time()
    targets = ASSIGNORS["uniform"](spec)
    assert time.process_time() - started < 20
    _check_complete(spec, targets)
