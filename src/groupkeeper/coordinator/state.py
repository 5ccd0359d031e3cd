"""The state of one coordinator: its groups and their offsets.

`State` is changed by replaying records, by the soft changes of a result, and by nothing else. Handlers get it as a
`StateView`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from groupkeeper.coordinator.handlers import handler_of, handler_of_key
from groupkeeper.coordinator.kernel.group import AnyGroup, Group, GroupType
from groupkeeper.coordinator.kernel.offset_store import OffsetStore, OffsetView
from groupkeeper.coordinator.kernel.result import Record
from groupkeeper.coordinator.kernel.settings import Settings, SettingsChange
from groupkeeper.coordinator.kernel.soft import GroupChange, SoftChange
from groupkeeper.coordinator.kernel.topics_image import TopicsChange, TopicsImage
from groupkeeper.protocol.errors import GroupIdNotFound
from groupkeeper.protocol.messages import GroupMetadataKey, OffsetCommitKey, OffsetCommitValue
from groupkeeper.protocol.offsets_topic import Tombstone


class StateView(Protocol):
    """The state as handlers get it: all of it, read-only."""

    @property
    def groups(self) -> Mapping[str, Group]: ...

    @property
    def offsets(self) -> OffsetView: ...

    @property
    def topics(self) -> TopicsImage:
        """The cluster's topics, as last provided by the driver."""

    @property
    def settings_by_group(self) -> Mapping[str, Settings]:
        """The settings of groups with settings of their own."""

    def of_kind(self, kind: type[AnyGroup]) -> Iterator[AnyGroup]:
        """The groups of a type."""

    def find(self, group_id: str, kind: type[AnyGroup]) -> AnyGroup | None:
        """The group with that id and type; None if there is none."""

    def require(self, group_id: str, kind: type[AnyGroup]) -> AnyGroup:
        """The group with that id and type. Raises `GroupIdNotFound` if there is none."""

    def why_missing(self, group_id: str, kind: type[AnyGroup]) -> str:
        """The message of `GroupIdNotFound` for a group that `find` does not return."""


class State:
    """The mutable state behind `StateView`."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self.topics = TopicsImage()
        self.settings_by_group: Mapping[str, Settings] = {}

    def of_kind(self, kind: type[AnyGroup]) -> Iterator[AnyGroup]:
        for group in self.groups.values():
            if isinstance(group, kind):
                yield group

    def find(self, group_id: str, kind: type[AnyGroup]) -> AnyGroup | None:
        group = self.groups.get(group_id)
        return group if isinstance(group, kind) else None

    def require(self, group_id: str, kind: type[AnyGroup]) -> AnyGroup:
        group = self.find(group_id, kind)
        if group is None:
            raise GroupIdNotFound(self.why_missing(group_id, kind))
        return group

    def why_missing(self, group_id: str, kind: type[AnyGroup]) -> str:
        if group_id not in self.groups:
            return f"Group {group_id} not found."
        return f"Group {group_id} is not a {kind.group_type.value} group."

    def replay(self, record: Record, log_offset: int, producer_id: int) -> None:
        """Applies a record of the log to the state. Skips records whose key types have no meaning here."""
        key = record.key
        if isinstance(key, OffsetCommitKey):
            if isinstance(record, Tombstone):
                self.offsets.remove(key.group, key.topic, key.partition)
                return
            # An offset, even a pending one, creates a simple group.
            if key.group not in self.groups:
                self.groups[key.group] = handler_of(GroupType.CLASSIC).new(key.group)
            value = record.value
            assert isinstance(value, OffsetCommitValue)
            self.offsets.put(key, value, log_offset, producer_id)
        else:
            self._replay_group(record, key.group if isinstance(key, GroupMetadataKey) else key.group_id)

    def apply(self, change: SoftChange) -> None:
        """Applies a soft change."""
        match change:
            case GroupChange():
                group = self.groups.get(change.group_id)
                if group is not None and group.group_type is change.group_type:
                    self.groups[change.group_id] = group.with_soft(change.soft)
            case TopicsChange(image):
                self.topics = image
            case SettingsChange(settings_by_group=settings_by_group):
                self.settings_by_group = settings_by_group

    def _replay_group(self, record: Record, group_id: str) -> None:
        """A record of another group type replaces a simple group, which exists because of its offsets only."""
        handler = handler_of_key(record.key)
        group = self.groups.get(group_id)
        if group is None or group.group_type is not handler.group_type:
            if isinstance(record, Tombstone):
                return
            group = handler.new(group_id)
        self.groups[group_id] = handler.replay(group, record)
        if isinstance(record, Tombstone) and isinstance(record.key, handler.head):
            del self.groups[group_id]
