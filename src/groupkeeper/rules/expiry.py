"""When committed offsets expire, by the rules of Apache Kafka's coordinators. All times are ms since 1970."""

from __future__ import annotations


def do_offsets_age(*, has_members: bool, is_settled: bool, are_topics_known: bool) -> bool:
    """Whether offsets of a group may expire at all. Offsets of topics that a member reads never do.

    `has_members`: also if the only one is a static member that is away, until its session ends. `is_settled`: a
    classic group with members is Stable; True for other types. `are_topics_known`: the topics that the members read
    are known; for a classic group this needs the consumer protocol.
    """
    return not has_members or (is_settled and are_topics_known)


def emptied_ms(*, has_protocol: bool, has_members: bool, state_since_ms: int | None) -> int | None:
    """Since when a classic group has had no members: the age of all its offsets counts from then. None: each offset's
    age counts from its commit.

    `has_protocol`: the group has a protocol type, as a member has joined it once. `state_since_ms`: None or
    negative: not known.
    """
    is_known = has_protocol and not has_members and state_since_ms is not None and state_since_ms >= 0
    return state_since_ms if is_known else None


def expires_ms(own_ms: int | None, committed_ms: int, retention_ms: int, since_ms: int | None = None) -> int:
    """When an offset expires: at the time that its commit named (`own_ms`; None: it named none), else when its age
    reaches the brokers' retention. `since_ms`: the age counts from then, not from the commit, see `emptied_ms`.
    """
    return own_ms if own_ms is not None else (committed_ms if since_ms is None else since_ms) + retention_ms
