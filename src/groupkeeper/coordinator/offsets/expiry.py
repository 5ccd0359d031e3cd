"""Offsets that go without a request: by age, and with their topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from groupkeeper.coordinator.classic.group import ClassicGroup
from groupkeeper.coordinator.consumer.group import ConsumerGroup
from groupkeeper.coordinator.kernel.group_state import GroupState
from groupkeeper.coordinator.kernel.result import Meter, Record, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import Arm, OffsetExpiration
from groupkeeper.coordinator.offsets.store import CommittedOffset
from groupkeeper.coordinator.share.group import ShareGroup
from groupkeeper.coordinator.state import StateView
from groupkeeper.coordinator.streams.group import StreamsGroup
from groupkeeper.coordinator.views import removal_of
from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey
from groupkeeper.protocol.offsets_topic import Tombstone
from groupkeeper.protocol.primitives import ZERO_UUID

BaseTime: TypeAlias = Callable[[CommittedOffset], int]
"""From when on the age of an offset counts."""


def expire_offsets(state: StateView, settings: Settings, now_ms: int) -> Result:
    """One pass over all groups: removes expired offsets, and Empty groups that have none left."""
    records: list[Record] = []
    expired_count = 0
    for group in state.groups.values():
        if isinstance(group, ShareGroup):
            continue  # they have no offsets of this kind, and never expire
        expired = _expired_offsets(state, group, settings, now_ms)
        records.extend(expired)
        expired_count += len(expired)
        is_bare = len(expired) == _offset_count(state, group.group_id) and not state.offsets.pending_of_group(
            group.group_id
        )
        if is_bare and group.state is GroupState.EMPTY:
            records.extend(removal_of(group))
    return Result(
        records=tuple(records),
        is_atomic=False,
        timers=(next_pass(settings),),
        marks=((Meter.OFFSET_EXPIRATION, expired_count),) if expired_count else (),
    )


def next_pass(settings: Settings, share: float = 1) -> Arm:
    """The timer of the next pass, after a share of the interval."""
    return Arm(OffsetExpiration(), int(settings.offsets_retention_check_interval_ms * share))


def _expired_offsets(
    state: StateView, group: ClassicGroup | ConsumerGroup | StreamsGroup, settings: Settings, now_ms: int
) -> list[Tombstone]:
    base_time = _base_time(group)
    if base_time is None:
        return []
    return [
        Tombstone(OffsetCommitKey(group.group_id, topic, partition))
        for topic, offsets in state.offsets.of_group(group.group_id).items()
        if not group.is_subscribed_to(topic)
        for partition, offset in offsets.items()
        if _has_expired(offset, base_time, settings.offsets_retention_ms, now_ms)
        and not state.offsets.is_pending(group.group_id, topic, partition)
    ]


def _base_time(group: ClassicGroup | ConsumerGroup | StreamsGroup) -> BaseTime | None:
    """The time that the age of a commit counts from; None when the group's offsets don't expire now."""
    if isinstance(group, ConsumerGroup | StreamsGroup):
        return _commit_time
    roster = group.roster
    if roster.protocol_type is None:
        return _commit_time
    if group.state is GroupState.EMPTY:
        empty_since_ms = roster.state_since_ms
        return _commit_time if empty_since_ms is None else lambda _: empty_since_ms
    if group.state is GroupState.STABLE and roster.uses_consumer_protocol() and roster.subscribed_topics is not None:
        return _commit_time
    return None


def _commit_time(offset: CommittedOffset) -> int:
    return offset.commit_timestamp_ms


def _has_expired(offset: CommittedOffset, base_time: BaseTime, retention_ms: int, now_ms: int) -> bool:
    if offset.expire_timestamp_ms is not None:
        return now_ms >= offset.expire_timestamp_ms
    return now_ms - base_time(offset) >= retention_ms


def _offset_count(state: StateView, group_id: str) -> int:
    return sum(len(partitions) for partitions in state.offsets.of_group(group_id).values())


def remove_topics(state: StateView, topic_ids: Mapping[str, bytes]) -> Result:
    """Topics were deleted (name → id): their offsets go, except those of an earlier topic of the name, and what
    share groups keep of them.
    """
    records: list[Record] = []
    if any(isinstance(group, ShareGroup) for group in state.groups.values()):
        from groupkeeper.coordinator.share import offsets as share_group_offsets

        records.extend(share_group_offsets.remove_topics(state, frozenset(topic_ids.values())))
    for group_id in state.groups:
        for topic, topic_id in topic_ids.items():
            partitions = {
                partition
                for partition, offset in state.offsets.of_group(group_id).get(topic, {}).items()
                if offset.topic_id in (ZERO_UUID, topic_id)
            }
            for (pending_topic, partition), producers in state.offsets.pending_of_group(group_id).items():
                if pending_topic == topic and any(o.topic_id in (ZERO_UUID, topic_id) for o in producers.values()):
                    partitions.add(partition)
            records.extend(Tombstone(OffsetCommitKey(group_id, topic, partition)) for partition in sorted(partitions))
    return Result(records=tuple(records), is_atomic=False)
