"""Java's hashes of texts, by which groups have their partitions, and by whose order brokers and tools answer.

Orders depend on the keys only: restarts and compactions don't change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

_INT32 = 2**32
_GOLDEN = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: Fibonacci hashing."""

K = TypeVar("K")


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


@lru_cache(maxsize=1024)  # a small cache, as group ids may be long
def partition_of_group(group_id: str, partition_count: int) -> int:
    """The group's partition of `__consumer_offsets`."""
    return partition_of_one(group_id, partition_count)


def partition_of_one(group_id: str, partition_count: int) -> int:
    """As `partition_of_group` without its cache, for very many groups."""
    value = java_hash(group_id)
    return 0 if value == -_INT32 // 2 else abs(value) % partition_count


def in_timeline_order(keys: Iterable[str]) -> list[str]:
    """The keys in the order of the tables in Apache Kafka's coordinator (4.4.0 TimelineHashMap).

    A slot is the highest bits of the hash product, so the product gives the order for any table size.
    """
    return sorted(keys, key=lambda key: (java_hash(key) * _GOLDEN % 2**64, key))


def in_map_order(keys: Iterable[K], hash_of: Callable[[K], int], capacity: float, buckets: int = 16) -> list[K]:
    """The keys in the order of a `java.util.HashMap` that began with `buckets`, and has doubled them up to `capacity`:
    ⁴⁄₃ of its entries. Keys in one bucket stay as given.
    """
    while buckets < capacity:
        buckets *= 2
    return sorted(keys, key=lambda key: bucket(hash_of(key), buckets))


def bucket(hash_code: int, buckets: int) -> int:
    """Where a `java.util.HashMap` has keys of this hash code."""
    return (hash_code ^ (hash_code & 0xFFFFFFFF) >> 16) & (buckets - 1)
