"""A share coordinator with a log in memory, seen from one share-partition."""

from __future__ import annotations

import re
from collections.abc import Mapping

from groupkeeper.coordinator.share_state.coordinator import (
    ShareStateCoordinator,
    ShareStateResult,
    ShareStateSettings,
    ShareStateWrite,
)
from groupkeeper.coordinator.share_state.state import SharePartitionKey, ShareState, StateBatch
from groupkeeper.protocol.share_state_topic import ShareStateRecord, decode_share_state, encode_share_state

TOPIC = bytes(range(16))


def batches(text: str) -> tuple[StateBatch, ...]:
    """`0-9:2/1`: offsets, state, deliveries."""
    return tuple(StateBatch(*map(int, re.split("[-:/]", one))) for one in text.split())


class Store:
    """Operations on one share-partition; `at` looks at another one of the same coordinator."""

    def __init__(self, *, updates_per_snapshot: int = 500, partition_count: int = 3) -> None:
        self.settings = ShareStateSettings(updates_per_snapshot)
        self.coordinator = ShareStateCoordinator(self.settings)
        self.written: list[ShareStateRecord] = []
        self.partition_count = partition_count
        self.now_ms = 1_700_000_000_000
        self.key = SharePartitionKey("g", TOPIC, 0)

    def at(self, partition: int) -> Store:
        other = object.__new__(Store)
        other.__dict__ = {**self.__dict__, "key": self.key._replace(partition=partition)}
        return other

    @property
    def state(self) -> ShareState:
        return self.coordinator.states[self.key]

    def _settle(self, result: ShareStateResult) -> None:
        for record in result.records:
            self.coordinator.replay(record, len(self.written))
            self.written.append(record)

    def initialize(self, state_epoch: int = 1, start_offset: int = 0) -> None:
        self._settle(
            self.coordinator.initialize(self.key, state_epoch, start_offset, self.partition_count, self.now_ms)
        )

    def write(
        self,
        *,
        state_epoch: int | None = None,
        leader_epoch: int | None = None,
        start_offset: int = 0,
        added: tuple[StateBatch, ...] = (),
        complete: int = 0,
    ) -> None:
        """Epochs: None is the one that is known."""
        known = self.coordinator.states.get(self.key, ShareState())
        state_epoch = max(known.state_epoch, 0) if state_epoch is None else state_epoch
        leader_epoch = max(known.leader_epoch, 0) if leader_epoch is None else leader_epoch
        written = ShareStateWrite(state_epoch, leader_epoch, start_offset, complete, added)
        self._settle(self.coordinator.write(self.key, written, self.partition_count, self.now_ms))

    def read(self, leader_epoch: int = 0) -> ShareState:
        result = self.coordinator.read(self.key, leader_epoch, self.partition_count, self.now_ms)
        self._settle(result)
        assert result.state is not None
        return result.state

    def summary(self) -> ShareState:
        return self.coordinator.summary(self.key, self.partition_count)

    def delete(self) -> None:
        self._settle(self.coordinator.delete(self.key, self.partition_count))

    def remove_topics(self, *topic_ids: bytes) -> None:
        self._settle(self.coordinator.remove_topics(topic_ids))

    def snapshot_cold(self) -> None:
        self._settle(self.coordinator.snapshot_cold(self.now_ms))

    def bytes_of(self, offset: int) -> tuple[bytes, bytes | None]:
        return encode_share_state(self.written[offset])

    def rebuilt(self, from_offset: int = 0) -> Mapping[SharePartitionKey, ShareState]:
        """The states that the log gives, from an offset on."""
        other = ShareStateCoordinator(self.settings)
        for offset in range(from_offset, len(self.written)):
            record = decode_share_state(*self.bytes_of(offset))
            assert record is not None
            other.replay(record, offset)
        return other.states
