"""Which partition of `__consumer_offsets` a group belongs to (GP-01)."""

from __future__ import annotations

_INT32 = 1 << 32
_INT32_MIN = -(1 << 31)


def partition_of_group(group_id: str, partition_count: int) -> int:
    """The partition of a group. The hash is Java's, over UTF-16 units."""
    value = java_hash(group_id)
    return 0 if value == _INT32_MIN else abs(value) % partition_count


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: 32 bits, signed."""
    value = 0
    # A lone surrogate can't come from the wire, but must not end in an exception either.
    units = text.encode("utf-16-le", "surrogatepass")
    for position in range(0, len(units), 2):
        value = (31 * value + units[position] + (units[position + 1] << 8)) % _INT32
    return value - _INT32 if value >= _INT32 // 2 else value
