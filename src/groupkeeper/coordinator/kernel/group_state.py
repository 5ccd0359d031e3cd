"""Names of group states and types, as Kafka spells them on the wire."""

from __future__ import annotations

from enum import Enum


class GroupState(Enum):
    """State of a group of any type. ASSIGNING and RECONCILING belong to consumer and streams
    groups only, NOT_READY to streams groups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"


class GroupType(Enum):
    """Type of a group, as ListGroups spells it."""

    __hash__ = object.__hash__  # Enum's is slower, and each commit needs this hash

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
