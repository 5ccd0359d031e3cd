"""The simple assignor: everybody gets about as much, every partition has about as many members, what is had stays."""

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from groupkeeper.coordinator.assignors import simple
from groupkeeper.coordinator.assignors.spec import MemberSpec, TargetAssignment

T1, T2, T3 = (bytes([n]) * 16 for n in (1, 2, 3))


def shared_out(
    targets: Mapping[str, TargetAssignment], partitions: Mapping[bytes, int], *, is_homogeneous: bool = True
) -> dict[str, TargetAssignment]:
    assignable = {topic_id: range(count) for topic_id, count in partitions.items()}
    members = {member_id: MemberSpec(frozenset(partitions), target) for member_id, target in targets.items()}
    return simple.assign(members, assignable, is_homogeneous=is_homogeneous)


def loads(assigned: Mapping[str, TargetAssignment]) -> list[int]:
    return [sum(map(len, target.values())) for target in assigned.values()]


def holders(assigned: Mapping[str, TargetAssignment]) -> Counter[tuple[bytes, int]]:
    return Counter((t, p) for target in assigned.values() for t, some in target.items() for p in some)


def test_more_members_than_partitions() -> None:  # GS-06
    assigned = shared_out({name: {} for name in "abcde"}, {T1: 2})
    assert sorted(loads(assigned)) == [1, 1, 1, 1, 2]
    assert holders(assigned) == {(T1, 0): 3, (T1, 1): 3}


def test_nothing_to_assign() -> None:  # GS-06
    assert shared_out({"a": {T1: frozenset({0})}}, {}) == {"a": {}}
    assert simple.assign({}, {T1: range(2)}, is_homogeneous=True) == {}


_TARGETS = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=1),
    st.dictionaries(st.sampled_from([T1, T2, T3]), st.frozensets(st.integers(0, 6), max_size=7)),
    min_size=1,
)


@given(targets=_TARGETS, partitions=st.dictionaries(st.sampled_from([T1, T2]), st.integers(1, 6), min_size=1))
def test_everybody_has_enough_and_everything_is_read(
    targets: dict[str, TargetAssignment], partitions: dict[bytes, int]
) -> None:  # GS-06
    assigned = shared_out(targets, partitions)
    count = sum(partitions.values())
    sharing = -(-len(targets) // count)
    held = holders(assigned)
    assert held.keys() == {(topic_id, index) for topic_id, total in partitions.items() for index in range(total)}
    assert max(held.values()) <= sharing
    assert min(loads(assigned)) >= 1
    assert max(loads(assigned)) <= -(-sharing * count // len(targets))
    assert shared_out(assigned, partitions) == assigned
