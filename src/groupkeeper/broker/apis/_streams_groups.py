"""The common code of the APIs of streams groups."""

from __future__ import annotations

from groupkeeper.broker.broker import Broker
from groupkeeper.protocol.errors import KafkaError, UnsupportedVersion


def trouble_of(broker: Broker) -> KafkaError | None:
    """The error for every request of streams groups if they are not served; None if they are."""
    is_allowed = "streams" in broker.config.group_coordinator_rebalance_protocols
    is_on = broker.config.features.get("streams.version", 1) > 0
    return None if is_allowed and is_on else UnsupportedVersion()
