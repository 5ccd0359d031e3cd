"""Plans: for each partition of each group, the committed offset, the planned one, and the consequences. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from groupkeeper.client.admin.types import Failure, OffsetAndMetadata, TopicPartition


def is_same(one: OffsetAndMetadata | None, other: OffsetAndMetadata | None) -> bool:
    """Whether two commits are the same. An unknown leader epoch equals any: brokers before 2.1 don't keep them."""
    if one is None or other is None or one == other:
        return one == other
    epochs = (one.leader_epoch, other.leader_epoch)
    return one[::2] == other[::2] and (None in epochs or epochs[0] == epochs[1])


class Change(NamedTuple):
    """The change of one committed offset. None: not known, unless a field says otherwise."""

    before: OffsetAndMetadata | None
    """None: nothing was committed."""
    after: OffsetAndMetadata | None
    """None: the offset is deleted."""
    log_start_offset: int | None = None
    """When the plan was made, as the next one."""
    log_end_offset: int | None = None
    before_ms: int | None = None
    """The timestamp of the record at the offset before; None: there is none, or it wasn't read."""
    after_ms: int | None = None
    """The timestamp of the record at the offset after; None: there is none, or it wasn't read."""
    why: str = ""
    """For people."""
    skips: int | None = None
    """The most unread records that an offset from another log skips; None: to be counted from `before`."""
    replays: int | None = None
    """The most read records that are then read again; None: to be counted from `before`."""
    certainty: str = ""
    """How the offset of a clone is known (docs/plans.md); empty in other plans."""

    @property
    def skipped(self) -> int | None:
        """How many offsets of the log are skipped, None when not known; there may be fewer records."""
        if self.skips is not None:
            return self.skips
        moved = self.moved
        return None if moved is None else max(0, moved)

    @property
    def replayed(self) -> int | None:
        """How many offsets of the log are read again, None when not known."""
        if self.replays is not None:
            return self.replays
        moved = self.moved
        return None if moved is None else max(0, -moved)

    @property
    def moved(self) -> int | None:
        """The move in offsets, counted within the log; negative for a rewind."""
        before, after, log_start, log_end = self.before, self.after, self.log_start_offset, self.log_end_offset
        if before is None or after is None or log_start is None or log_end is None:
            return None
        start, end = before.offset, after.offset
        if log_start <= start <= log_end and log_start <= end <= log_end:
            return end - start
        return min(max(end, log_start), log_end) - min(max(start, log_start), log_end)

    @property
    def clamped(self) -> Change:
        """This change, with a planned offset outside of the log clamped to the nearer end."""
        after, log_start, log_end = self.after, self.log_start_offset, self.log_end_offset
        if after is None or log_start is None or log_end is None or log_start <= after.offset <= log_end:
            return self
        offset = min(max(after.offset, log_start), log_end)
        return self._replace(after=after._replace(offset=offset, leader_epoch=None))


class AdjustmentKind(StrEnum):
    """Why the planned offset differs from the requested one."""

    ABOVE_LOG_END = "above the log end"
    BELOW_LOG_START = "below the log start"
    NOTHING_LATER = "no record from that time on"


class Adjustment(NamedTuple):
    """`asked` is the requested offset, or the requested time in ms; `used` the offset that is planned instead."""

    kind: AdjustmentKind
    tp: TopicPartition
    asked: int
    used: int


class GroupPlan(NamedTuple):
    """The changes of one group by partition, with adjustments of requested offsets. Making a plan changes nothing.

    `state`: the group's state when the plan was made, "" if it was not looked up.
    """

    group_id: str
    changes: dict[TopicPartition, Change]
    adjustments: tuple[Adjustment, ...] = ()
    state: str = ""

    @property
    def offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets to commit; without partitions whose offset is deleted."""
        return {tp: change.after for tp, change in self.changes.items() if change.after is not None}

    @property
    def deleted(self) -> list[TopicPartition]:
        """The partitions whose offset is deleted."""
        return [tp for tp, change in self.changes.items() if change.after is None]

    @property
    def committed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets that were committed for these partitions."""
        return {tp: change.before for tp, change in self.changes.items() if change.before is not None}


class PlannedTopic(NamedTuple):
    """A topic when the plan was made. `topic_id` None: the brokers are too old to have ids.

    `partitions`: how many it had, None when the plan is for some of them by number.
    """

    topic_id: str | None
    partitions: int | None


class Subject(StrEnum):
    """The kind of names in a change: groups, or a transaction, by its id or its producer."""

    GROUP = "group"
    TRANSACTION = "transaction"


class Kind(StrEnum):
    """The purpose of a plan."""

    RESET = "reset"
    UNDO = "undo"
    DELETE = "delete-offsets"
    DELETE_GROUPS = "delete-groups"
    CLONE = "clone"
    SWEEP = "sweep"
    SHARE_RESET = "share-reset"
    SHARE_CLONE = "share-clone"
    SHARE_DELETE = "share-delete-offsets"
    SHARE_DELETE_GROUPS = "share-delete-groups"
    ABORT_TRANSACTION = "abort-transaction"

    @property
    def subject(self) -> Subject:
        return Subject.TRANSACTION if self is Kind.ABORT_TRANSACTION else Subject.GROUP


class Plan(NamedTuple):
    """Changes of groups of one cluster. In a sweep, an unchanged offset is recommitted."""

    cluster_id: str | None
    """None: not known."""
    groups: tuple[GroupPlan, ...]
    kind: Kind = Kind.RESET
    made_ms: int = 0
    """When, since 1970."""
    command: tuple[str, ...] = ()
    """How it was made, without secrets."""
    topics: Mapping[str, PlannedTopic] = {}
    """Known facts of its topics, by name."""
    undoes: str | None = None
    """The id of the change in the journal that this takes back; None for all others."""
    principal: str = ""
    """Who made it for the brokers; empty where that isn't known."""
    settles: bool = False
    """Journalled even if all is as planned already, as the change that it takes back has no outcome."""

    @property
    def size(self) -> int:
        """The number of partitions, over all groups."""
        return sum(len(group.changes) for group in self.groups)


class PlanTrouble(NamedTuple):
    """Why something isn't part of a plan, or was not done. `topic_partition` None: the whole group, or everything."""

    group_id: str | None
    topic_partition: TopicPartition | str | None
    failure: Failure

    @property
    def topic_and_partition(self) -> tuple[str | None, int | None]:
        """The topic and the partition; None: the trouble is not about one."""
        named = self.topic_partition
        return named if isinstance(named, TopicPartition) else (named, None)
