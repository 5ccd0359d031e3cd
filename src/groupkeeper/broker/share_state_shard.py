"""One share coordinator at work: its partition's log of `__share_group_state`."""

from __future__ import annotations

import asyncio
from logging import getLogger
from time import perf_counter_ns

from groupkeeper.broker.runtime_log import CODECS, map_log_error
from groupkeeper.coordinator.share_state_coordinator import ShareStateCoordinator, ShareStateSettings
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.errors import CoordinatorLoadInProgress, KafkaError, NotCoordinator, RecordListTooLarge
from groupkeeper.protocol.record_batch import Record, write_batch
from groupkeeper.protocol.share_state_topic import decode_share_state, encode_share_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from groupkeeper.broker.meters import ShareMeters
    from groupkeeper.broker.topic_log import PartitionLog
    from groupkeeper.coordinator.share_state_coordinator import ShareStateResult

_log = getLogger("groupkeeper.broker")

_RECORDS_PER_TURN = 500


class ShareStateShard:
    """The share coordinator of one partition. Every operation is one plain call.

    Attributes:
        coordinator: the state machine.
        is_loading: whether the log is still being replayed.
        loaded: set once it is, and when it couldn't be.
        failure: None, or why the partition couldn't be loaded; it answers NOT_COORDINATOR then.
    """

    def __init__(self, log: PartitionLog, settings: ShareStateSettings, codec: int, meters: ShareMeters) -> None:
        self.coordinator = ShareStateCoordinator(settings)
        self.is_loading = True
        self.loaded = asyncio.Event()
        self.failure: str | None = None
        self._log = log
        self._compression = CODECS[codec]
        self._meters = meters
        self._removed_while_loading: list[tuple[Collection[bytes], int]] = []

    async def load(self) -> None:
        """Replays the log."""
        try:
            since_turn = 0
            for _, records in self._log.records(self._log.log_start_offset):
                for record in records:
                    decoded = decode_share_state(record.key or b"", record.value)
                    if decoded is not None:
                        self.coordinator.replay(decoded, record.offset)
                since_turn += len(records)
                if since_turn >= _RECORDS_PER_TURN:
                    since_turn = 0
                    await asyncio.sleep(0)
        except (MalformedMessage, KafkaError, OSError) as error:
            self.failure = str(error)
            _log.error("%r: cannot load its share state: %s", self._log, error)
        self.begin()

    def begin(self) -> None:
        """Serves from now on; what the log holds is replayed."""
        self.is_loading = False
        removed, self._removed_while_loading = self._removed_while_loading, []
        for topic_ids, now_ms in removed:
            self.remove_topics(topic_ids, now_ms)
        self.loaded.set()

    def unload(self) -> None:
        """Stops."""
        self.failure = "unloaded"
        self.loaded.set()

    def require_active(self) -> None:
        """Raises `CoordinatorLoadInProgress` or `NotCoordinator`."""
        if self.failure is not None:
            raise NotCoordinator
        if self.is_loading:
            raise CoordinatorLoadInProgress

    def settle(self, result: ShareStateResult, now_ms: int) -> None:
        """Makes a result happen. Raises `KafkaError` when its records can't be appended; then nothing has happened."""
        if not result.records:
            return
        began_ns = perf_counter_ns()
        batch = write_batch(
            [Record(*encode_share_state(record), (), now_ms) for record in result.records],
            compression=self._compression,
        )
        try:
            if len(batch) > self._log.config.max_message_bytes:
                raise RecordListTooLarge
            offset = self._log.append(batch, now_ms)
        except KafkaError as error:
            _log.warning("%r: cannot append: %s", self._log, error)
            raise map_log_error(error) from error
        for record_offset, record in enumerate(result.records, offset):
            self.coordinator.replay(record, record_offset)
        self._meters.wrote(began_ns)

    def remove_topics(self, topic_ids: Collection[bytes], now_ms: int) -> None:
        """Topics were deleted: forgets what share groups did there, after the load if it is under way."""
        if self.is_loading:
            self._removed_while_loading.append((topic_ids, now_ms))
            return
        self._settle_unasked(self.coordinator.remove_topics(topic_ids), now_ms)

    def snapshot_cold(self, now_ms: int) -> None:
        """Writes snapshots of what had none for long."""
        self._settle_unasked(self.coordinator.snapshot_cold(now_ms), now_ms)

    def prune(self) -> bool:
        """Drops records that snapshots made redundant; returns whether there were any."""
        if self.is_loading or self.failure is not None:
            return False
        offset = self.coordinator.redundant_offset
        if offset <= self._log.log_start_offset:
            return False
        self._log.advance_start(offset)
        self._meters.last_pruned[self._log.topic, self._log.index] = offset
        return True

    def _settle_unasked(self, result: ShareStateResult, now_ms: int) -> None:
        if self.is_loading or self.failure is not None:
            return
        try:
            self.settle(result, now_ms)
        except KafkaError:
            return  # said by `settle`; the next time tries again
