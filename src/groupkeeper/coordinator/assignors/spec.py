"""The input and output of an assignor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

TargetAssignment: TypeAlias = Mapping[bytes, frozenset[int]]
"""Partitions by topic id; topics without partitions are absent."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member: the ids of the existing topics that it subscribes to, and its current target assignment."""

    topic_ids: frozenset[bytes]
    target: TargetAssignment = field(default_factory=dict)
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group to assign: members by id, and the number of partitions of each subscribed topic that exists."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]
    is_homogeneous: bool
    """Whether all members subscribe to the same topics."""
