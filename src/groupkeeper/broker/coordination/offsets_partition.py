"""Computes a group's partition of `__consumer_offsets`."""

from __future__ import annotations

from functools import lru_cache

from groupkeeper.coordinator.kernel.hash_order import java_hash

_INT32_MIN = -(1 << 31)


@lru_cache(maxsize=1024)  # a small cache, as group ids may be long
def partition_of_group(group_id: str, partition_count: int) -> int:
    """The partition of a group. The hash is Java's, over UTF-16 units."""
    return partition_of_one(group_id, partition_count)


def partition_of_one(group_id: str, partition_count: int) -> int:
    """As `partition_of_group` without its cache, for very many groups."""
    value = java_hash(group_id)
    return 0 if value == _INT32_MIN else abs(value) % partition_count
