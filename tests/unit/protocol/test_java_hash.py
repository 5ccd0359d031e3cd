"""Java's hashes of texts: the partition of `__consumer_offsets` that a group belongs to (GP-01), and orders."""

from struct import unpack

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from groupkeeper.protocol.java_hash import in_map_order, in_timeline_order, java_hash, partition_of_group


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [("foo", 24), ("group1", 40), ("my-group", 12), ("", 0), ("polygenelubricants", 0), ("é😀", 12)],
)
def test_partition_of_group(group_id: str, partition: int) -> None:  # GP-01
    assert partition_of_group(group_id, 50) == partition


def test_hashes() -> None:  # GP-01
    # Known values of java.lang.String.hashCode.
    assert [java_hash(text) for text in ("", "hello", "polygenelubricants")] == [0, 99162322, -(2**31)]
    assert partition_of_group("polygenelubricants", 7) == 0


@given(group_id=st.text(), count=st.integers(1, 1_000))
@example(group_id="polygenelubricants", count=50)
@example(group_id="é😀", count=50)
def test_hash_is_a_polynomial_over_utf16_units(group_id: str, count: int) -> None:
    encoded = group_id.encode("utf-16-be")
    units = unpack(f">{len(encoded) // 2}H", encoded)
    total = sum(unit * 31 ** (len(units) - 1 - position) for position, unit in enumerate(units))
    as_int32 = (total + 2**31) % 2**32 - 2**31
    expected = 0 if as_int32 == -(2**31) else abs(as_int32) % count
    assert partition_of_group(group_id, count) == expected


def test_the_order_of_answers_is_that_of_apaches_tables() -> None:
    # E2E-05; as Apache's ConsumerGroupDescribeRequestTest has it
    assert in_timeline_order(["member-1", "member-2"]) == ["member-2", "member-1"]
    assert in_timeline_order(reversed(["a", "b", "c"])) == in_timeline_order(["a", "b", "c"])


def test_large_maps_take_the_hash_without_its_sign() -> None:
    # Java shifts by >>>: with the sign of -2^31 the second key would be the last of these 2^17 buckets.
    assert in_map_order([2**16, -(2**31), 3 * 2**15], lambda code: code, 2**17) == [-(2**31), 2**16, 3 * 2**15]
