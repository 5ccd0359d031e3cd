"""One transaction coordinator at work: its partition's log, and the markers it sends out."""

from __future__ import annotations

import asyncio
from logging import getLogger

from groupkeeper.broker.runtime_log import map_log_error
from groupkeeper.broker.transaction_marker import Marker
from groupkeeper.coordinator.transaction_coordinator import TransactionCoordinator
from groupkeeper.coordinator.transaction_result import TransactionCall
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.errors import (
    CoordinatorLoadInProgress,
    InvalidProducerEpoch,
    KafkaError,
    NotCoordinator,
    TransactionCoordinatorFenced,
)
from groupkeeper.protocol.record_batch import Record, write_batch
from groupkeeper.protocol.transaction_log import (
    FLEXIBLE_VERSION,
    PLAIN_VERSION,
    decode_transaction,
    encode_transaction,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Protocol

    from groupkeeper.broker.topic_log import PartitionLog
    from groupkeeper.coordinator.transaction import TopicPartition, Transaction
    from groupkeeper.coordinator.transaction_result import TransactionResult, TransactionSettings
    from groupkeeper.protocol.primitives import Message

    class Surroundings(Protocol):
        """What a coordinator needs from the broker around it."""

        def now_ms(self) -> int: ...

        def new_producer_id(self) -> int: ...

        def write_marker(self, partition: TopicPartition, marker: Marker) -> None:
            """Ends a transaction in a partition; nothing happens when that is gone. Raises `KafkaError`."""


_log = getLogger("groupkeeper.broker")

_RECORDS_PER_TURN = 500
_RETRY_S = 0.1
_NO_SPARE = -1


class TransactionShard:
    """The coordinator of one partition of `__transaction_state`, driven as its `transaction_result` says.

    Every operation is one plain call. Markers are written within the call that decides a transaction, so its answer
    says that the outcome is visible; what can't be written then is tried again.

    Attributes:
        coordinator: the state machine.
        is_loading: whether the log is still being replayed.
        failure: None, or why the partition couldn't be loaded; it answers NOT_COORDINATOR then.
        has_resigned: whether it was told to, and nobody coordinates the partition until another one does.
    """

    def __init__(self, log: PartitionLog, settings: TransactionSettings, around: Surroundings) -> None:
        self.coordinator = TransactionCoordinator(settings)
        self.is_loading = True
        self.failure: str | None = None
        self.has_resigned = False
        self._log = log
        self._around = around
        self._value_version = FLEXIBLE_VERSION if settings.transaction_version > 0 else PLAIN_VERSION
        self._spare_producer_id = _NO_SPARE
        self._retries: dict[str, asyncio.TimerHandle] = {}

    async def load(self) -> None:
        """Replays the log, then completes what was decided."""
        try:
            since_turn = 0
            for count in self._load():
                since_turn += count
                if since_turn >= _RECORDS_PER_TURN:
                    since_turn = 0
                    await asyncio.sleep(0)
        except (MalformedMessage, KafkaError) as error:
            self.failure = str(error)
            _log.error("%r: cannot load its transactions: %s", self._log, error)
        if self.failure is None:
            self.begin()

    def _load(self) -> Iterator[int]:
        for _, records in self._log.records(self._log.log_start_offset):
            for record in records:
                decoded = decode_transaction(record.key or b"", record.value)
                if decoded is not None:
                    self.coordinator.replay(decoded)
            yield len(records)

    def begin(self) -> None:
        """Serves from now on; what the log holds is replayed."""
        self.is_loading = False
        for result in self.coordinator.resume():
            self._settle(result)

    def require_active(self) -> None:
        """Raises `CoordinatorLoadInProgress` or `NotCoordinator`."""
        if self.failure is not None:
            raise NotCoordinator
        if self.is_loading:
            raise CoordinatorLoadInProgress

    def unload(self) -> None:
        """Stops."""
        self.failure = "unloaded"
        for retry in self._retries.values():
            retry.cancel()
        self._retries.clear()

    def resign(self) -> None:
        """Stops as when another broker becomes the coordinator."""
        self.unload()
        self.has_resigned = True

    # ------------------------------------------------------------------ operations

    def ask(self, request: Message, version: int) -> Message:
        """The answer to a request; errors are answers too."""
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
        self, transactional_id: str, producer_id: int, producer_epoch: int, partition: TopicPartition
    ) -> None:
        """Raises `KafkaError` unless the partition is part of the producer's transaction."""
        self.require_active()
        self.coordinator.verify_partition(transactional_id, producer_id, producer_epoch, partition)

    def abort_timed_out(self) -> None:
        """Aborts transactions that take too long."""
        if self.failure is None and not self.is_loading:
            self._settle_all(self.coordinator.abort_timed_out(self._around.now_ms()))

    def expire_ids(self) -> None:
        """Forgets transactional ids that nobody uses."""
        if self.failure is None and not self.is_loading:
            self._settle_all((self.coordinator.expire_ids(self._around.now_ms()),))

    # ------------------------------------------------------------------ making it happen

    def _settle_all(self, results: Iterable[TransactionResult]) -> None:
        for result in results:
            try:
                self._settle(result)
            except KafkaError as error:
                _log.warning("%r: cannot append: %s", self._log, error)

    def _settle(self, result: TransactionResult) -> None:
        """Raises `KafkaError` when the records can't be appended; then nothing has happened."""
        now_ms = self._around.now_ms()
        if result.records:
            encoded = [encode_transaction(record, self._value_version) for record in result.records]
            try:
                self._log.append(write_batch([Record(*pair, (), now_ms) for pair in encoded]), now_ms)
            except KafkaError as error:
                raise map_log_error(error) from error
        for record in result.records:
            self.coordinator.replay(record)
        for change in result.soft:
            self.coordinator.apply(change)
        if result.ending is not None:
            self._finish(result.ending, set(result.ending.partitions))

    def _finish(self, ending: Transaction, untold: set[TopicPartition]) -> None:
        """Writes the missing markers, then the record that the transaction is over; what fails is done again later."""
        self._retries.pop(ending.transactional_id, None)
        marker = Marker(
            ending.producer_id, ending.producer_epoch, ending.is_commit, transaction_version=ending.client_version
        )
        try:
            for partition in sorted(untold):
                self._write_marker(partition, marker)
                untold.remove(partition)
            self._settle(self.coordinator.complete(ending.transactional_id, self._around.now_ms()))
        except KafkaError as error:
            _log.debug("%r: %s is not complete yet: %s", self._log, ending.transactional_id, error)
            loop = asyncio.get_running_loop()
            self._retries[ending.transactional_id] = loop.call_later(_RETRY_S, self._finish, ending, untold)

    def _write_marker(self, partition: TopicPartition, marker: Marker) -> None:
        try:
            self._around.write_marker(partition, marker)
        except (InvalidProducerEpoch, TransactionCoordinatorFenced) as error:
            _log.warning("a marker for %s-%d came too late: %s", *partition, error)
