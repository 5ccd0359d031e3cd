"""The iteration order of the tables in Apache Kafka's coordinator (4.4.0 TimelineHashMap), which is the order in its
replies.

It depends on the keys only: restarts and compactions don't change it.
"""

from __future__ import annotations

from collections.abc import Iterable

_INT32 = 2**32
_GOLDEN = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: Fibonacci hashing."""


def in_hash_order(keys: Iterable[str]) -> list[str]:
    """The keys in the order of their slots. A slot is the highest bits of the hash product, so the product gives the
    order for any table size.
    """
    return sorted(keys, key=lambda key: (java_hash(key) * _GOLDEN % 2**64, key))


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: 32 bits, signed."""
    value = 0
    if text.isascii():
        for unit in text.encode():
            value = (31 * value + unit) & 0xFFFFFFFF
        return value - _INT32 if value >= _INT32 // 2 else value
    # A lone surrogate can't come from the wire, but must not raise an exception either.
    units = text.encode("utf-16-le", "surrogatepass")
    for position in range(0, len(units), 2):
        value = (31 * value + units[position] + (units[position + 1] << 8)) % _INT32
    return value - _INT32 if value >= _INT32 // 2 else value
