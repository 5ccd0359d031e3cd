"""Drives one share coordinator: its partition's log of `__share_group_state`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from logging import getLogger

from groupkeeper.broker.coordination.shard_host import Shard
from groupkeeper.broker.coordination.shard_log import CODECS
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.meters import ShareMeters
from groupkeeper.coordinator.share_state.coordinator import ShareStateCoordinator, ShareStateResult, ShareStateSettings
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.record_batch import BatchHeader, Record
from groupkeeper.protocol.share_state_topic import ShareStateRecord, decode_share_state, encode_share_state

_log = getLogger("groupkeeper.broker")


class ShareStateShard(Shard["ShareStateRecord"]):
    """The share coordinator of one partition. Every operation is one plain call.

    Attributes:
        coordinator: the state machine.
        loaded: set once the log is replayed, or could not be.
    """

    def __init__(
        self,
        log: PartitionLog,
        settings: ShareStateSettings,
        now_ms: Callable[[], int],
        codec: int,
        meters: ShareMeters,
    ) -> None:
        super().__init__(log, CODECS[codec])
        self.coordinator = ShareStateCoordinator(settings)
        self.loaded = asyncio.Event()
        self._now_ms = now_ms
        self._meters = meters

    def _replay(self, header: BatchHeader, records: Iterable[Record]) -> None:
        for record in records:
            self.record = record
            decoded = decode_share_state(record.key or b"", record.value)
            if decoded is not None:
                self.coordinator.replay(decoded, record.offset)

    def _encode(self, record: ShareStateRecord) -> tuple[bytes, bytes | None]:
        return encode_share_state(record)

    def _apply(self, record: ShareStateRecord, offset: int, producer_id: int) -> None:
        self.coordinator.replay(record, offset)

    def _appended(self, since_ns: int, now_ns: int) -> None:
        self._meters.wrote(since_ns, now_ns)

    def _resume(self) -> None:
        self.loaded.set()

    def unload(self) -> None:
        """Stops the coordinator."""
        super().unload()
        self.loaded.set()

    def settle(self, result: ShareStateResult, now_ms: int) -> None:
        """Carries out a result. Raises `KafkaError` as `write` does."""
        if result.records:
            try:
                self.write(result.records, now_ms, is_atomic=result.is_atomic)
            except KafkaError as error:
                if self.failure is None:
                    self.log_refusal(error)
                raise

    def _forget_topics(self, topic_ids: Mapping[str, bytes]) -> None:
        self.settle(self.coordinator.remove_topics(topic_ids.values()), self._now_ms())

    def snapshot_cold(self, now_ms: int) -> None:
        """Writes snapshots of share-partitions without a recent one."""
        with suppress(KafkaError):  # logged by `settle`; the next round tries again
            self.settle(self.coordinator.snapshot_cold(now_ms), now_ms)

    def prune(self) -> None:
        """Deletes records that snapshots have made redundant."""
        offset = self.coordinator.redundant_offset
        if self.log.log_start_offset < offset <= self.log.high_watermark:
            self.log.advance_start(offset)
            self._meters.last_pruned[self.log.topic, self.log.index] = offset
