"""The order in which Kafka describes settings: that of Java's hash maps."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from groupkeeper.protocol.java_hash import bucket, in_map_order, java_hash

_SIZE_OF_ALL = 512
_DECLARED = """
    max.request.partition.size.limit fetch.purgatory.purge.interval.requests controlled.shutdown.enable
    leader.imbalance.check.interval.seconds alter. create.topic.policy.class.name log.remote group.max
    group.share.delivery listener offset group.consumer.max.size group. kafka. num.recovery group.share. log. metric
    controller.quota group.share.min.record transaction principal.builder.class share.coordinator
    group.share.min.partition controller.quorum ssl. sasl. security group.share.max.record sasl.oauthbearer.scope
    sasl.oauthbearer delegation
""".split()
"""Prefixes of names in the order in which Kafka's classes declare the settings. They decide between names in one bucket
of the hash map. The longest prefix counts; names without one come first.
"""
_BY_LENGTH = sorted(_DECLARED, key=len, reverse=True)


def in_java_order(names: Collection[str], entries: int) -> list[str]:
    """Names in the order of a Java hash map with `entries` entries, which is Kafka's order of given settings."""
    return in_map_order(names, java_hash, entries / 0.75)


def in_kafkas_order(names: Iterable[str]) -> list[str]:
    """Settings of a broker in the order in which Kafka 4.4.0 describes all of them."""
    return sorted(names, key=lambda name: (bucket(java_hash(name), _SIZE_OF_ALL), _declared(name), name))


def _declared(name: str) -> int:
    return next((_DECLARED.index(start) for start in _BY_LENGTH if name.startswith(start)), -1)
