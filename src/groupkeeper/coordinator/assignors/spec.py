"""The input and output of assignors: of partitions, and of the tasks of Kafka Streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeAlias

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


class TaskRole(IntEnum):
    """The role of a member in a task: processing it, or keeping a copy of its state. Kafka 4.4.0 assigns no warm-up
    tasks.
    """

    ACTIVE = 0
    STANDBY = 1
    WARMUP = 2


class Task(NamedTuple):
    """A partition of a subtopology, in a role."""

    role: TaskRole
    subtopology_id: str
    partition: int


Tasks: TypeAlias = frozenset[Task]
