"""Drives one transaction coordinator: its partition's log, and the markers that it writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from logging import DEBUG, WARNING, getLogger
from typing import Protocol

from groupkeeper.broker.coordination.pending_replication import PendingReplication
from groupkeeper.broker.coordination.shard_host import Shard, pause_s
from groupkeeper.broker.coordination.transaction_marker import Marker
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.coordinator.transactions.coordinator import TransactionCoordinator
from groupkeeper.coordinator.transactions.result import TransactionCall, TransactionResult, TransactionSettings
from groupkeeper.coordinator.transactions.transaction import TopicPartition, Transaction
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.primitives import Message
from groupkeeper.protocol.record_batch import BatchHeader, Record
from groupkeeper.protocol.transaction_log import (
    FLEXIBLE_VERSION,
    PLAIN_VERSION,
    TransactionRecord,
    decode_transaction,
    encode_transaction,
)


class Surroundings(Protocol):
    """The functions that a coordinator needs from its broker."""

    def now_ms(self) -> int: ...

    def new_producer_id(self) -> int: ...

    def write_marker(self, tp: TopicPartition, marker: Marker, sender: PartitionLog) -> PendingReplication | None:
        """Ends a transaction in a partition, for the coordinator with the log `sender`; does nothing if the partition
        was deleted. Returns the marker if in-sync replicas still lack it. Raises `KafkaError`.
        """


_log = getLogger("groupkeeper.broker")

_RETRY_S = 0.1
_LONGEST_RETRY_S = 10.0
_QUIET_ATTEMPTS = 4
_NO_SPARE = -1
_MissingMarkers = dict[TopicPartition, PendingReplication | None]
"""The partitions of an ending transaction that need a marker (None), or whose marker in-sync replicas still lack."""


class TransactionShard(Shard["TransactionRecord"]):
    """The coordinator of one partition of `__transaction_state`, driven as described in
    `groupkeeper.coordinator.transactions.result`.

    Every operation is one plain call. Markers are written within the call that decides a transaction, so the outcome is
    visible when it replies; markers that can't be written then are retried. If replicas lag, markers are written once
    in-sync replicas have the outcome, and the transaction completes once they have the markers.

    Attributes:
        coordinator: the state machine.
    """

    def __init__(self, log: PartitionLog, settings: TransactionSettings, around: Surroundings) -> None:
        super().__init__(log)
        self.coordinator = TransactionCoordinator(settings)
        self._around = around
        self.take_settings(settings)
        self._spare_producer_id = _NO_SPARE
        self._ends: dict[str, int] = {}
        self._loaded_end = 0
        self._retries: dict[str, asyncio.TimerHandle | asyncio.Task[None]] = {}

    def take_settings(self, settings: TransactionSettings) -> None:
        """Applies changed settings."""
        self.coordinator.settings = settings
        self._value_version = FLEXIBLE_VERSION if settings.transaction_version > 0 else PLAIN_VERSION

    def _replay(self, header: BatchHeader, records: Iterable[Record]) -> None:
        for record in records:
            self.record = record
            decoded = decode_transaction(record.key or b"", record.value)
            if decoded is not None:
                self.coordinator.replay(decoded)

    def _encode(self, record: TransactionRecord) -> tuple[bytes, bytes | None]:
        return encode_transaction(record, self._value_version)

    def _apply(self, record: TransactionRecord, offset: int, producer_id: int) -> None:
        self.coordinator.replay(record)
        if self.log.placement.held_high_watermark is not None:
            self._ends[record.transactional_id] = offset + 1

    def _resume(self) -> None:
        self._loaded_end = self.log.log_end_offset
        for result in self.coordinator.resume():
            self._settle(result)

    def unload(self) -> None:
        """Stops."""
        super().unload()
        for retry in self._retries.values():
            retry.cancel()
        self._retries.clear()

    # ------------------------------------------------------------------ operations

    def ask(self, request: Message, version: int) -> Message:
        """The response to a request; errors are responses too."""
        try:
            self.require_active()
            if self._spare_producer_id == _NO_SPARE:
                self._spare_producer_id = self._around.new_producer_id()
            call = TransactionCall(request, version, self._spare_producer_id)
            result = self.coordinator.handle(call, self._around.now_ms())
            if result.takes_producer_id:
                self._spare_producer_id = _NO_SPARE
            self._settle(result)
        except KafkaError as error:
            return self.coordinator.refuse(request, error)
        assert result.response is not None
        return result.response

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
        client_version: int = 0,
    ) -> None:
        """Makes partitions part of a producer's transaction. Raises `KafkaError`."""
        self.require_active()
        self._settle(
            self.coordinator.add_partitions(
                transactional_id, producer_id, producer_epoch, partitions, self._around.now_ms(), client_version
            )
        )

    def verify_partition(
        self, transactional_id: str, producer_id: int, producer_epoch: int, tp: TopicPartition
    ) -> None:
        """Raises `KafkaError` unless the partition is part of the producer's transaction."""
        self.require_active()
        self.coordinator.verify_partition(transactional_id, producer_id, producer_epoch, tp)

    def is_replicated(self, transactional_id: str) -> bool:
        """Whether all in-sync replicas have the state of a transactional id."""
        return self.log.high_watermark >= self._end_of(transactional_id)

    async def until_replicated(self, transactional_id: str, patience_ms: int | None = None) -> None:
        """Waits until `is_replicated`, at most for the transaction's timeout. Raises as `replicated`."""
        if not self.is_replicated(transactional_id):
            timeout_ms = self.coordinator.transactions[transactional_id].timeout_ms
            await self.replicated(self._end_of(transactional_id), min(patience_ms or timeout_ms, timeout_ms))

    def _end_of(self, transactional_id: str) -> int:
        """The offset after the last record of a transactional id, or a later offset that is replicated."""
        return self._ends.get(transactional_id, self._loaded_end)

    def abort_timed_out(self) -> None:
        """Aborts timed-out transactions, and forgets the end offsets of replicated records."""
        self._ends = {one: end for one, end in self._ends.items() if end > self.log.high_watermark}
        self._settle_all(self.coordinator.abort_timed_out(self._around.now_ms()))

    def expire_ids(self) -> None:
        """Expires transactional ids that are not used."""
        self._settle_all((self.coordinator.expire_ids(self._around.now_ms()),))

    # ------------------------------------------------------------------ making it happen

    def _settle_all(self, results: Iterable[TransactionResult]) -> None:
        for result in results:
            try:
                self._settle(result)
            except KafkaError as error:
                if self.failure is not None:
                    return
                self.log_refusal(error)

    def _settle(self, result: TransactionResult) -> None:
        """Carries out a result. Raises `KafkaError` as `write` does."""
        if result.records:
            if self.log.placement.has_too_few_in_sync(self.log.config.min_insync_replicas):
                raise errors.CoordinatorNotAvailable  # unlike group coordinators, it writes as with acks=all
            self.write(result.records, self._around.now_ms(), is_atomic=result.is_atomic)
        with self.fail_stop:
            for change in result.soft:
                self.coordinator.apply(change)
            if result.ending is not None:
                self._finish(result.ending, dict.fromkeys(result.ending.partitions))
        if self.failure is not None:
            raise errors.UnknownServerError

    def _finish_then(
        self, ending: Transaction, missing: _MissingMarkers, awaited: Iterable[PendingReplication], attempts: int
    ) -> None:
        """Calls `_finish` once one of `awaited` is decided."""

        async def finish() -> None:
            waiting = [asyncio.ensure_future(one.wait_until_decided()) for one in awaited]
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waiting:
                    one.cancel()
            self._finish(ending, missing, attempts)

        self._retries[ending.transactional_id] = asyncio.get_running_loop().create_task(finish())

    def _finish(self, ending: Transaction, missing: _MissingMarkers, attempts: int = 1) -> None:
        """Ends a transaction step by step: waits until in-sync replicas have the outcome, writes missing markers, waits
        until in-sync replicas have these, and writes the completing record. Failed writes are retried later.
        """
        self._retries.pop(ending.transactional_id, None)
        if not self.is_replicated(ending.transactional_id):
            if self.log.failure is None:  # else a reload of the log decides
                outcome = PendingReplication(self.log, self._end_of(ending.transactional_id))
                self._finish_then(ending, missing, [outcome], attempts)
            return
        marker = Marker(
            ending.producer_id, ending.producer_epoch, ending.is_commit, transaction_version=ending.client_version
        )
        with self.fail_stop:
            try:
                self._write_markers(missing, marker)
                if missing:
                    markers = [one for one in missing.values() if one is not None]
                    self._finish_then(ending, missing, markers, attempts)
                    return
                self._settle(self.coordinator.complete(ending.transactional_id, self._around.now_ms()))
            except KafkaError as error:
                if self.failure is None:
                    self._finish_later(ending, missing, attempts, error)
                return
            if attempts > _QUIET_ATTEMPTS:
                _log.warning("%r: the transaction of %s is complete now", self.log, ending.transactional_id)

    def _finish_later(self, ending: Transaction, missing: _MissingMarkers, attempts: int, error: KafkaError) -> None:
        # The first attempts fail whenever a broker starts, because groups are loaded later.
        level = DEBUG if attempts < _QUIET_ATTEMPTS else WARNING
        tps = ", ".join(f"{topic}-{index}" for topic, index in sorted(missing)) or "its own record"
        _log.log(
            level,
            "%r: the transaction of %s is not complete, its marker is not written to %s yet: %s",
            self.log,
            ending.transactional_id,
            tps,
            error.__cause__ or error,
        )
        delay_s = pause_s(_RETRY_S, attempts - 1, _LONGEST_RETRY_S)
        loop = asyncio.get_running_loop()
        self._retries[ending.transactional_id] = loop.call_later(delay_s, self._finish, ending, missing, attempts + 1)

    def _write_markers(self, missing: _MissingMarkers, marker: Marker) -> None:
        """Writes the missing markers. If one can't be written, writes the others, then raises its `KafkaError`."""
        refusal = None
        for tp in sorted(missing):
            written = missing[tp]
            try:
                if written is None or written.has_moved:
                    written = missing[tp] = self._write_marker(tp, marker)
            except KafkaError as error:
                refusal = error
                continue
            if written is None or written.is_committed:
                del missing[tp]
        if refusal is not None:
            raise refusal

    def _write_marker(self, tp: TopicPartition, marker: Marker) -> PendingReplication | None:
        try:
            return self._around.write_marker(tp, marker, self.log)
        except (errors.InvalidProducerEpoch, errors.TransactionCoordinatorFenced) as error:
            _log.warning("a marker for %s-%d came too late: %s", *tp, error)
            return None
