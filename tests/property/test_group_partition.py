"""Which partition of `__consumer_offsets` a group belongs to (GP-01)."""

from struct import unpack

from hypothesis import example, given
from hypothesis import strategies as st

from groupkeeper.broker.coordination.offsets_partition import partition_of_group


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
