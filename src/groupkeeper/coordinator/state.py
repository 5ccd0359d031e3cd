"""All that one coordinator knows: its groups and their offsets.

`State` is changed by replaying records, by the soft changes of a result, and by nothing else. Handlers get it as a
`StateView`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol, TypeAlias

from groupkeeper.coordinator.classic.group import ClassicChange, ClassicGroup
from groupkeeper.coordinator.classic.record import read_roster
from groupkeeper.coordinator.consumer.group import ConsumerChange, ConsumerGroup
from groupkeeper.coordinator.consumer.replay import CONSUMER_GROUP_KEYS, ConsumerGroupKey, replay
from groupkeeper.coordinator.kernel.result import Record
from groupkeeper.coordinator.kernel.settings import Settings, SettingsChange
from groupkeeper.coordinator.kernel.soft import SoftChange
from groupkeeper.coordinator.kernel.topics_image import TopicsChange, TopicsImage
from groupkeeper.coordinator.offsets.store import OffsetStore, OffsetView
from groupkeeper.coordinator.share.group import ShareChange, ShareGroup
from groupkeeper.coordinator.streams.group import StreamsChange, StreamsGroup
from groupkeeper.protocol.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from groupkeeper.protocol.messages.group_metadata_key import GroupMetadataKey
from groupkeeper.protocol.messages.group_metadata_value import GroupMetadataValue
from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey
from groupkeeper.protocol.messages.offset_commit_value import OffsetCommitValue
from groupkeeper.protocol.messages.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from groupkeeper.protocol.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from groupkeeper.protocol.messages.share_group_metadata_key import ShareGroupMetadataKey
from groupkeeper.protocol.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from groupkeeper.protocol.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from groupkeeper.protocol.messages.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from groupkeeper.protocol.offsets_topic import Entry, Tombstone

Group: TypeAlias = ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup
"""A group of any type."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.protocol.streams_records import StreamsKey

_ShareGroupKey: TypeAlias = (
    ShareGroupMetadataKey
    | ShareGroupMemberMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupStatePartitionMetadataKey
)


class StateView(Protocol):
    """What handlers may see: everything, to read."""

    @property
    def groups(self) -> Mapping[str, Group]: ...

    @property
    def offsets(self) -> OffsetView: ...

    @property
    def topics(self) -> TopicsImage:
        """The topics of the cluster as the shell last told them."""

    @property
    def settings_by_group(self) -> Mapping[str, Settings]:
        """The settings of the groups that have some of their own."""

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """The classic or simple group of that id; None when there is none, or one of another type."""


class State:
    """The mutable state behind `StateView`."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._offsets = OffsetStore()
        self._topics = TopicsImage()
        self._settings_by_group: Mapping[str, Settings] = {}

    @property
    def groups(self) -> Mapping[str, Group]:
        return self._groups

    @property
    def offsets(self) -> OffsetStore:
        return self._offsets

    @property
    def topics(self) -> TopicsImage:
        return self._topics

    @property
    def settings_by_group(self) -> Mapping[str, Settings]:
        return self._settings_by_group

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def replay(self, record: Record, log_offset: int, producer_id: int) -> None:
        """Makes a record of the log part of the state. Records of key types without meaning here are skipped."""
        key = record.key
        if isinstance(key, OffsetCommitKey):
            self._replay_offset(record, key, log_offset, producer_id)
        elif isinstance(key, GroupMetadataKey):
            self._replay_classic_group(record, key.group)
        elif isinstance(key, CONSUMER_GROUP_KEYS):
            self._replay_consumer_group(record, key)
        elif isinstance(key, _ShareGroupKey):
            self._replay_share_group(record, key)
        else:
            self._replay_streams_group(record, key)

    def replay_end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """A transaction marker: what the producer left pending becomes committed or is dropped."""
        self._offsets.end_transaction(producer_id, is_commit=is_commit)

    def apply(self, change: SoftChange) -> None:
        """Takes over a soft change; one for a group that is gone has nothing to change."""
        match change:
            case ClassicChange(group_id, soft):
                group = self._groups.get(group_id)
                if isinstance(group, ClassicGroup):
                    self._groups[group_id] = replace(group, soft=soft)
            case ConsumerChange(group_id, consumer_soft):
                consumer_group = self._groups.get(group_id)
                if isinstance(consumer_group, ConsumerGroup):
                    consumer_group.soft = consumer_soft
            case ShareChange(group_id, share_soft):
                share_group = self._groups.get(group_id)
                if isinstance(share_group, ShareGroup):
                    share_group.soft = share_soft
            case StreamsChange(group_id, streams_soft):
                streams_group = self._groups.get(group_id)
                if isinstance(streams_group, StreamsGroup):
                    streams_group.soft = streams_soft
            case TopicsChange(image):
                self._topics = image
            case SettingsChange(settings_by_group=settings_by_group):
                self._settings_by_group = settings_by_group

    def _replay_classic_group(self, record: Record, group_id: str) -> None:
        if isinstance(record, Tombstone):
            if isinstance(self._groups.get(group_id), ClassicGroup):
                del self._groups[group_id]
            return
        assert isinstance(record.value, GroupMetadataValue)
        self._groups[group_id] = ClassicGroup(group_id, read_roster(record.value))

    def _replay_consumer_group(self, record: Record, key: ConsumerGroupKey) -> None:
        group = self._groups.get(key.group_id)
        if not isinstance(group, ConsumerGroup):
            if isinstance(record, Tombstone):
                return
            # It may take the place of a simple group that offsets alone have made.
            group = self._groups[key.group_id] = ConsumerGroup(key.group_id)
        replay(group, record)
        if isinstance(record, Tombstone) and isinstance(key, ConsumerGroupMetadataKey):
            del self._groups[key.group_id]

    def _replay_share_group(self, record: Record, key: _ShareGroupKey) -> None:
        # Imported late: a broker without share groups starts without them.
        from groupkeeper.coordinator.share.replay import replay as replay_share

        group = self._groups.get(key.group_id)
        if not isinstance(group, ShareGroup):
            if isinstance(record, Tombstone):
                return
            group = self._groups[key.group_id] = ShareGroup(key.group_id)
        replay_share(group, record)
        if isinstance(record, Tombstone) and isinstance(key, ShareGroupMetadataKey):
            del self._groups[key.group_id]

    def _replay_streams_group(self, record: Record, key: StreamsKey) -> None:
        from groupkeeper.coordinator.streams.replay import replay as replay_streams
        from groupkeeper.protocol.messages.streams_group_metadata_key import StreamsGroupMetadataKey

        group = self._groups.get(key.group_id)
        if not isinstance(group, StreamsGroup):
            if isinstance(record, Tombstone):
                return
            group = self._groups[key.group_id] = StreamsGroup(key.group_id)
        replay_streams(group, record)
        if isinstance(record, Tombstone) and isinstance(key, StreamsGroupMetadataKey):
            del self._groups[key.group_id]

    def _replay_offset(self, record: Record, key: OffsetCommitKey, log_offset: int, producer_id: int) -> None:
        if isinstance(record, Entry):
            # Offsets alone make a simple group, pending ones too.
            if key.group not in self._groups:
                self._groups[key.group] = ClassicGroup.new(key.group)
            assert isinstance(record.value, OffsetCommitValue)
            self._offsets.put(key, record.value, log_offset, producer_id)
        else:
            self._offsets.remove(key.group, key.topic, key.partition)
