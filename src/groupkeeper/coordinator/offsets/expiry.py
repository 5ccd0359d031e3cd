"""Removes offsets without a request: expired ones, by `groupkeeper.rules.expiry`, and those of deleted topics."""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.coordinator.handlers import OffsetRules, handler_of
from groupkeeper.coordinator.kernel.group import Group, GroupState
from groupkeeper.coordinator.kernel.result import Arm, Meter, Record, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import OffsetExpiration
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey
from groupkeeper.protocol.offsets_topic import Tombstone
from groupkeeper.protocol.primitives import ZERO_UUID
from groupkeeper.rules.expiry import expires_ms


def expire_offsets(state: StateView, settings: Settings, now_ms: int) -> Result:
    """One pass over all groups: removes expired offsets, and Empty groups without remaining offsets."""
    records: list[Record] = []
    expired_count = 0
    for group in state.groups.values():
        handler = handler_of(group.group_type)
        if handler.offsets is None:
            continue
        expired = _expired_offsets(state, group, handler.offsets, settings, now_ms)
        records.extend(expired)
        expired_count += len(expired)
        count = sum(map(len, state.offsets.of_group(group.group_id).values()))
        is_bare = len(expired) == count and not state.offsets.pending_of_group(group.group_id)
        if is_bare and group.state is GroupState.EMPTY:
            records.extend(handler.removal(group))
    return Result(
        records=tuple(records),
        is_atomic=False,
        timers=(next_pass(settings),),
        marks=((Meter.OFFSET_EXPIRATION, expired_count),) if expired_count else (),
    )


def next_pass(settings: Settings, share: float = 1) -> Arm:
    """The timer of the next pass, after a fraction of the interval."""
    return Arm(OffsetExpiration(), int(settings.offsets_retention_check_interval_ms * share))


def _expired_offsets(
    state: StateView, group: Group, rules: OffsetRules, settings: Settings, now_ms: int
) -> list[Tombstone]:
    if not rules.do_offsets_age(group):
        return []
    retention_ms, since_ms = settings.offsets_retention_ms, rules.aging_since_ms(group)
    return [
        Tombstone(OffsetCommitKey(group.group_id, topic, partition))
        for topic, offsets in state.offsets.of_group(group.group_id).items()
        if not group.is_subscribed_to(topic)
        for partition, offset in offsets.items()
        if now_ms >= expires_ms(offset.expire_timestamp_ms, offset.commit_timestamp_ms, retention_ms, since_ms)
        and not state.offsets.is_pending(group.group_id, topic, partition)
    ]


def remove_topics(state: StateView, topic_ids: Mapping[str, bytes]) -> Result:
    """Topics were deleted (name → id): removes their offsets, except offsets of an earlier topic with that name, and
    the groups' own state about them.
    """
    records: list[Record] = []
    for group_type in {group.group_type: None for group in state.groups.values()}:
        records.extend(handler_of(group_type).remove_topics(state, frozenset(topic_ids.values())))
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
