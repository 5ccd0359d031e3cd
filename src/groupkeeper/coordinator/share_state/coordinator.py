"""The share coordinator of one partition of `__share_group_state`: the persisted state of share groups in their
partitions.

A state machine without I/O like the group coordinator: its operations read the state and return records; only `replay`
changes it, so live state equals the state replayed after a restart. Its driver appends the records of an operation,
replays them, and only then answers.

`partition_count` of an operation is the topic's current number of partitions, 0 if it does not exist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from groupkeeper.coordinator.share_state.state import (
    UNKNOWN_OFFSET,
    SharePartitionKey,
    ShareState,
    StateBatch,
    combine_batches,
)
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import FencedLeaderEpoch, FencedStateEpoch, InvalidRequest, UnknownTopicOrPartition
from groupkeeper.protocol.messages import share_snapshot_value, share_update_value
from groupkeeper.protocol.share_state_topic import ShareSnapshot, ShareStateRecord, ShareTombstone, ShareUpdate

_NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class ShareStateSettings:
    """The settings of the share coordinator; Kafka's names and defaults."""

    share_coordinator_snapshot_update_records_per_snapshot: int = 500
    share_coordinator_cold_partition_snapshot_interval_ms: int = 300_000


class ShareStateResult(NamedTuple):
    """The records that an operation appends, and the state that it found or made. Without `is_atomic` the records are
    independent and may be appended in several batches; otherwise all or none must be appended.
    """

    records: tuple[ShareStateRecord, ...] = ()
    state: ShareState | None = None
    is_atomic: bool = True


class ShareStateWrite(NamedTuple):
    """A write by a share-partition's leader. An epoch of −1 is not checked; a start offset of −1 keeps the stored
    offset.
    """

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class ShareStateCoordinator:
    """The coordinator of one partition, for the share-partitions whose key hashes to it."""

    def __init__(self, settings: ShareStateSettings) -> None:
        self._settings = settings
        self._states: dict[SharePartitionKey, ShareState] = {}
        self._leader_epochs: dict[SharePartitionKey, int] = {}
        self._state_epochs: dict[SharePartitionKey, int] = {}
        self._update_counts: dict[SharePartitionKey, int] = {}
        self._snapshot_offsets: dict[SharePartitionKey, int] = {}

    @property
    def states(self) -> Mapping[SharePartitionKey, ShareState]:
        """The stored states, read-only."""
        return self._states

    @property
    def redundant_offset(self) -> int:
        """Records of the log below this offset are no longer needed: every share-partition has a later snapshot. −1
        when there is none.
        """
        return min(self._snapshot_offsets.values(), default=-1)

    # --- computing: none of these changes anything

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, partition_count: int, now_ms: int
    ) -> ShareStateResult:
        """Initializes a share-partition at an offset. Raises `InvalidRequest`, `FencedStateEpoch`,
        `UnknownTopicOrPartition`.
        """
        _require_partition(key)
        _require_epochs(state_epoch=state_epoch)
        self._check_state_epoch(key, state_epoch)
        _require_existence(key, partition_count)
        known = self._states.get(key)
        state = ShareState(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=state_epoch,
            start_offset=start_offset,
            delivery_complete_count=-1 if start_offset == UNKNOWN_OFFSET else 0,
            create_timestamp=now_ms,
            write_timestamp=now_ms,
        )
        return ShareStateResult((_snapshot(key, state),), state)

    def write(
        self, key: SharePartitionKey, written: ShareStateWrite, partition_count: int, now_ms: int
    ) -> ShareStateResult:
        """Stores the write of a leader. Raises `InvalidRequest` for a share-partition that was never
        initialized, `FencedLeaderEpoch`, `FencedStateEpoch`, `UnknownTopicOrPartition`.
        """
        _require_partition(key)
        _require_epochs(leader_epoch=written.leader_epoch, state_epoch=written.state_epoch)
        state = self._known(key, "Write")
        self._check_leader_epoch(key, written.leader_epoch)
        self._check_state_epoch(key, written.state_epoch)
        _require_existence(key, partition_count)
        return ShareStateResult((self._record(key, state, written, state.leader_epoch, now_ms),))

    def read(self, key: SharePartitionKey, leader_epoch: int, partition_count: int, now_ms: int) -> ShareStateResult:
        """The state for a new leader, whose epoch fences earlier leaders. Raises the errors of `write` except for the
        state epoch.
        """
        _require_partition(key)
        _require_epochs(leader_epoch=leader_epoch)
        state = self._known(key, "Read")
        self._check_leader_epoch(key, leader_epoch)
        _require_existence(key, partition_count)
        if leader_epoch == self._leader_epochs.get(key):
            return ShareStateResult((), state)
        written = ShareStateWrite(
            state.state_epoch, leader_epoch, state.start_offset, state.delivery_complete_count, ()
        )
        return ShareStateResult((self._record(key, state, written, leader_epoch, now_ms),), state)

    def summary(self, key: SharePartitionKey, partition_count: int) -> ShareState:
        """The state, without changing its leader; an unknown share-partition has start offset −1. Raises
        `InvalidRequest`, `UnknownTopicOrPartition`.
        """
        _require_partition(key)
        _require_existence(key, partition_count)
        return self._states.get(key, ShareState())

    def delete(self, key: SharePartitionKey, partition_count: int) -> ShareStateResult:
        """Deletes a share-partition, known or not. Raises `InvalidRequest`, `UnknownTopicOrPartition`."""
        _require_partition(key)
        _require_existence(key, partition_count)
        return ShareStateResult(() if key not in self._states else (_tombstone(key),))

    def remove_topics(self, topic_ids: Collection[bytes]) -> ShareStateResult:
        """Deletes all share-partitions of topics that were deleted."""
        return ShareStateResult(
            tuple(_tombstone(key) for key in self._states if key.topic_id in topic_ids), is_atomic=False
        )

    def snapshot_cold(self, now_ms: int) -> ShareStateResult:
        """Snapshots of share-partitions without a recent snapshot, so that the log before them can be removed; none if
        the last snapshot of every share-partition is already such a snapshot. [Kafka 4.4.0 ShareCoordinatorShard]
        """
        if all(state.create_timestamp != state.write_timestamp for state in self._states.values()):
            return ShareStateResult()
        latest_ms = now_ms - self._settings.share_coordinator_cold_partition_snapshot_interval_ms
        return ShareStateResult(
            tuple(
                _snapshot(key, replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp=now_ms))
                for key, state in self._states.items()
                if state.write_timestamp <= latest_ms
            ),
            is_atomic=False,
        )

    def _known(self, key: SharePartitionKey, operation: str) -> ShareState:
        state = self._states.get(key)
        if state is None:
            raise InvalidRequest(f"{operation} operation on uninitialized share partition not allowed.")
        return state

    def _check_leader_epoch(self, key: SharePartitionKey, leader_epoch: int) -> None:
        if leader_epoch < self._leader_epochs.get(key, leader_epoch):
            raise FencedLeaderEpoch

    def _check_state_epoch(self, key: SharePartitionKey, state_epoch: int) -> None:
        if state_epoch < self._state_epochs.get(key, state_epoch):
            raise FencedStateEpoch

    def _record(
        self, key: SharePartitionKey, state: ShareState, written: ShareStateWrite, leader_epoch: int, now_ms: int
    ) -> ShareStateRecord:
        """An update record, or a snapshot after enough updates."""
        complete = written.delivery_complete_count
        if written.start_offset < state.start_offset:  # a later write of the leader has overtaken this one
            complete = state.delivery_complete_count
        elif written.start_offset == state.start_offset:
            complete = max(complete, state.delivery_complete_count)
        start_offset = max(written.start_offset, state.start_offset)
        if not self._has_enough_updates(key):
            batches = combine_batches((), written.batches, start_offset)
            written = written._replace(start_offset=start_offset, delivery_complete_count=complete, batches=batches)
            return _update(key, state.snapshot_epoch, leader_epoch, written)
        return _snapshot(
            key,
            ShareState(
                snapshot_epoch=state.snapshot_epoch + 1,
                state_epoch=state.state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=complete,
                batches=combine_batches(state.batches, written.batches, start_offset),
                create_timestamp=now_ms,
                write_timestamp=now_ms,
            ),
        )

    def _has_enough_updates(self, key: SharePartitionKey) -> bool:
        limit = self._settings.share_coordinator_snapshot_update_records_per_snapshot
        return self._update_counts.get(key, 0) >= limit

    # --- changing: driven by the log, nothing else

    def replay(self, record: ShareStateRecord, log_offset: int = -1) -> None:
        """Applies a record of the log to the state."""
        key = SharePartitionKey(record.key.group_id, record.key.topic_id, record.key.partition)
        match record:
            case ShareTombstone():
                self._states.pop(key, None)
                for by_key in (self._leader_epochs, self._state_epochs, self._update_counts, self._snapshot_offsets):
                    by_key.pop(key, None)
            case ShareSnapshot(_, snapshot):
                self._raise_epoch(self._leader_epochs, key, snapshot.leader_epoch)
                self._raise_epoch(self._state_epochs, key, snapshot.state_epoch)
                self._states[key] = _read_snapshot(snapshot)
                if self._has_enough_updates(key):
                    self._update_counts[key] = 0
                self._snapshot_offsets[key] = log_offset
            case ShareUpdate(_, update):
                self._raise_epoch(self._leader_epochs, key, update.leader_epoch)
                self._states[key] = _apply_update(self._states.get(key), update)
                self._update_counts[key] = self._update_counts.get(key, 0) + 1

    @staticmethod
    def _raise_epoch(epochs: dict[SharePartitionKey, int], key: SharePartitionKey, epoch: int) -> None:
        epochs[key] = max(epochs.get(key, epoch), epoch)


def _require_epochs(*, leader_epoch: int = 0, state_epoch: int = 0) -> None:
    for name, epoch in (("leader", leader_epoch), ("state", state_epoch)):
        if epoch < 0:
            raise InvalidRequest(f"The {name} epoch cannot be a negative number.")


def _require_partition(key: SharePartitionKey) -> None:
    if key.partition < 0:
        raise InvalidRequest("The partition id cannot be a negative number.")


def _require_existence(key: SharePartitionKey, partition_count: int) -> None:
    if key.partition >= partition_count:
        raise UnknownTopicOrPartition


# --- records


def _snapshot(key: SharePartitionKey, state: ShareState) -> ShareSnapshot:
    return ShareSnapshot(
        m.ShareSnapshotKey(*key),
        m.ShareSnapshotValue(
            snapshot_epoch=state.snapshot_epoch,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
            create_timestamp=state.create_timestamp,
            write_timestamp=state.write_timestamp,
            state_batches=[share_snapshot_value.StateBatch(*batch) for batch in state.batches],
        ),
    )


def _update(key: SharePartitionKey, snapshot_epoch: int, leader_epoch: int, written: ShareStateWrite) -> ShareUpdate:
    return ShareUpdate(
        m.ShareUpdateKey(*key),
        m.ShareUpdateValue(
            snapshot_epoch=snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=written.start_offset,
            delivery_complete_count=written.delivery_complete_count,
            state_batches=[share_update_value.StateBatch(*batch) for batch in written.batches],
        ),
    )


def _tombstone(key: SharePartitionKey) -> ShareTombstone:
    return ShareTombstone(m.ShareSnapshotKey(*key))


def _read_snapshot(value: m.ShareSnapshotValue) -> ShareState:
    return ShareState(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        _read_batches(value.state_batches),
        value.create_timestamp,
        value.write_timestamp,
    )


def _apply_update(state: ShareState | None, value: m.ShareUpdateValue) -> ShareState:
    batches = _read_batches(value.state_batches)
    if state is None:
        return ShareState(
            value.snapshot_epoch, 0, value.leader_epoch, value.start_offset, value.delivery_complete_count, batches
        )
    start_offset = state.start_offset if value.start_offset == UNKNOWN_OFFSET else value.start_offset
    return replace(
        state,
        leader_epoch=state.leader_epoch if value.leader_epoch == _NO_EPOCH else value.leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=combine_batches(state.batches, batches, start_offset),
    )


def _read_batches(
    batches: Iterable[share_snapshot_value.StateBatch | share_update_value.StateBatch],
) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in batches
    )
