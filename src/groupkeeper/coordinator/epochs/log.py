"""The log records of groups with member epochs, and their replay. All types have these records, in own classes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from groupkeeper.coordinator.epochs.group import LEFT_EPOCH, G, M, T
from groupkeeper.coordinator.kernel.result import Record
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.offsets_topic import Entry, Tombstone

Made = TypeVar("Made")
"""The class of a topic's partitions in a message."""


class RecordClasses(NamedTuple):
    """Key classes, called with the group id (and the member id, for records of members), and the value of target
    epochs.
    """

    group: Callable[[str], Any]
    member: Callable[[str, str], Any]
    target_epoch: Callable[[str], Any]
    target_epoch_value: Callable[[int, int], Any]
    target: Callable[[str, str], Any]
    assignment: Callable[[str, str], Any]


class GroupLog(Generic[G, M, T]):
    """Writes and replays the records of a group; nothing else changes a group.

    Attributes:
        classes: of the type's records.
        member_class: of the type's members, called with the member id.
        left: the fields of a member after its assignment was removed.
    """

    classes: ClassVar[RecordClasses]
    member_class: ClassVar[type[Any]]
    left: ClassVar[Mapping[str, Any]]

    # --- what each group type defines

    def read_member(self, member: M, value: Any) -> M:
        """The member as its record describes it."""
        raise NotImplementedError

    def read_assignment(self, member: M, value: Any) -> M:
        """The member with its current assignment, epochs and state."""
        raise NotImplementedError

    def read_target(self, value: Any) -> T:
        """A target assignment."""
        raise NotImplementedError

    def take_epoch(self, group: G, value: Any) -> None:
        """The group's epoch, and the fingerprint of its topics that belongs to it."""
        group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash

    def take_other(self, group: G, key: Any, value: Any) -> None:
        """Applies a record of a kind that only this group type has."""

    def count_member(self, group: G, member: M, by: int) -> None:
        """Adds a member to the counts of subscriptions (1), or removes it (-1)."""

    def move_assignment(self, group: G, old: M | None, new: M) -> None:
        """Called before a member's current assignment changes."""

    def other_tombstones(self, group: G) -> tuple[Iterable[Record], Iterable[Record]]:
        """Tombstones of the records that only this type has: the ones before the group's tombstone, and the ones after
        it.
        """
        return (), ()

    # --- writing

    def target_epoch_record(self, group_id: str, assignment_epoch: int, time_ms: int) -> Entry:
        """The epoch of all target assignments; it is written after them."""
        classes = self.classes
        return Entry(classes.target_epoch(group_id), classes.target_epoch_value(assignment_epoch, time_ms))

    def member_tombstones(self, group_id: str, member_id: str) -> list[Record]:
        """Removes a member: its current assignment, its target assignment and the member itself, in this order."""
        classes = self.classes
        return [Tombstone(key(group_id, member_id)) for key in (classes.assignment, classes.target, classes.member)]

    def group_tombstones(self, group: G) -> list[Record]:
        """Removes a group with all its records, in Kafka's order."""
        group_id, classes = group.group_id, self.classes
        before, after = self.other_tombstones(group)
        return [
            *(Tombstone(classes.assignment(group_id, one)) for one in group.members),
            *(Tombstone(classes.target(group_id, one)) for one in group.targets),
            Tombstone(classes.target_epoch(group_id)),
            *(Tombstone(classes.member(group_id, one)) for one in group.members),
            *before,
            Tombstone(classes.group(group_id)),
            *after,
        ]

    # --- replaying

    def replay(self, group: G, record: Record) -> None:
        """Applies a record to the group; the caller handles records that remove the group itself.

        Raises `MalformedMessage` for tombstones in another order than members and groups are removed in.
        """
        key: Any = record.key
        value = record.value if isinstance(record, Entry) else None
        kind, classes = type(key), self.classes
        if kind is classes.assignment:
            self._replay_assignment(group, key.member_id, value)
        elif kind is classes.member:
            self._replay_member(group, key.member_id, value)
        elif kind is classes.target:
            if value is None:
                group.targets.pop(key.member_id, None)
            else:
                group.targets[key.member_id] = self.read_target(value)
        elif kind is classes.target_epoch:
            self._replay_target_epoch(group, value)
        elif kind is not classes.group:
            self.take_other(group, key, value)
        elif value is not None:
            self.take_epoch(group, value)
        else:
            _require(not group.members, f"group {group.group_id} is deleted with members")
            _require(not group.targets, f"group {group.group_id} is deleted with targets")

    def _replay_target_epoch(self, group: G, value: Any) -> None:
        if value is None:
            _require(not group.targets, f"the target of group {group.group_id} is deleted with members")
            group.assignment_epoch = -1
        else:
            group.assignment_epoch, group.assignment_time_ms = value.assignment_epoch, value.assignment_timestamp

    def _replay_member(self, group: G, member_id: str, value: Any) -> None:
        old = group.members.get(member_id)
        if old is not None:
            self.count_member(group, old, -1)
        if value is not None:
            group.members[member_id] = member = self.read_member(old or self.member_class(member_id), value)
            self.count_member(group, member, 1)
        elif old is not None:
            _require(old.member_epoch == LEFT_EPOCH, f"member {member_id} is deleted before its assignment")
            _require(member_id not in group.targets, f"member {member_id} is deleted before its target")
            del group.members[member_id]

    def _replay_assignment(self, group: G, member_id: str, value: Any) -> None:
        old = group.members.get(member_id)
        if value is not None:
            member = self.read_assignment(old or self.member_class(member_id), value)
        elif old is not None:
            member = replace(old, member_epoch=LEFT_EPOCH, previous_member_epoch=LEFT_EPOCH, **self.left)
        else:
            return
        self.move_assignment(group, old, member)
        group.members[member_id] = member


def by_topic(partitions: Mapping[bytes, Collection[int]], make: Callable[[bytes, list[int]], Made]) -> list[Made]:
    """Partitions by topic id in the form of messages, sorted. `make`: a message's class for those of one topic."""
    return [make(topic_id, sorted(partitions[topic_id])) for topic_id in sorted(partitions)]


def count_subscriptions(counts: dict[str, int], names: Iterable[str], by: int) -> None:
    """Adds 1 or -1 for each name; names without subscribers are removed from the table."""
    for name in names:
        count = counts.get(name, 0) + by
        if count:
            counts[name] = count
        else:
            del counts[name]


def _require(is_in_order: bool, reason: str) -> None:
    if not is_in_order:
        raise MalformedMessage(reason)
