"""The coordinators' records in a partition log: appending, and the error for clients when that fails."""

from __future__ import annotations

from collections.abc import Sequence

from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.coordinator.kernel.result import ProducerEpoch
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.record_batch import write_pairs

Pair = tuple[bytes, bytes | None]
"""Key and value."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_MAPPED: dict[type[KafkaError], type[KafkaError]] = {
    errors.NetworkException: errors.CoordinatorLoadInProgress,
    errors.UnknownTopicOrPartition: errors.CoordinatorNotAvailable,
    errors.NotEnoughReplicas: errors.CoordinatorNotAvailable,
    errors.NotEnoughReplicasAfterAppend: errors.CoordinatorNotAvailable,
    errors.RequestTimedOut: errors.CoordinatorNotAvailable,
    errors.NotLeaderOrFollower: errors.NotCoordinator,
    errors.KafkaStorageError: errors.NotCoordinator,
    errors.MessageTooLarge: errors.UnknownServerError,
    errors.RecordListTooLarge: errors.UnknownServerError,
    errors.InvalidFetchSize: errors.UnknownServerError,
}


def map_log_error(error: KafkaError) -> KafkaError:
    """The error for clients of the coordinator when its log raised `error`."""
    mapped = _MAPPED.get(type(error))
    return error if mapped is None else mapped()


def append_pairs(
    log: PartitionLog,
    pairs: Sequence[Pair],
    now_ms: int,
    *,
    compression: str = "none",
    transaction: ProducerEpoch | None = None,
) -> int:
    """Appends records, as keys and values, in one batch (part of a producer's transaction if one is given); returns the
    first record's offset. Raises the log's `KafkaError`, or `RecordListTooLarge`; then nothing was appended.
    """
    producer_id, producer_epoch = transaction or (-1, -1)
    batch = write_pairs(
        pairs,
        now_ms,
        base_offset=log.log_end_offset,
        partition_leader_epoch=log.placement.epoch,
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=transaction is not None,
    )
    config = log.config
    if len(batch) > config.max_message_bytes:
        raise errors.RecordListTooLarge
    if transaction is not None or config.message_timestamp_type == "LogAppendTime":
        return log.append(batch, now_ms)
    return log.append_built(batch, len(pairs), now_ms)
