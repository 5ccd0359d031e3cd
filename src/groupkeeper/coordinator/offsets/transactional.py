"""TxnOffsetCommit: offsets that a transaction commits together with the records it produced."""

from __future__ import annotations

from groupkeeper.coordinator.kernel.result import Call, Meter, ProducerEpoch, Record, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.offsets.commit import is_too_large, offset_rules
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol.errors import NONE, IllegalGeneration, InvalidGroupId, OffsetMetadataTooLarge
from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey
from groupkeeper.protocol.messages.offset_commit_value import OffsetCommitValue
from groupkeeper.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
)
from groupkeeper.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from groupkeeper.protocol.offsets_topic import Entry


def commit_transactional(
    state: StateView, settings: Settings, call: Call, request: TxnOffsetCommitRequest, now_ms: int
) -> Result:
    """Stores offsets that stay pending until the transaction ends.

    Whether the producer may write to the transaction is not asked here: the shell has verified it.
    """
    _check(state, request)
    records: list[Record] = []
    topics = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            error_code = NONE
            if is_too_large(partition.committed_metadata or "", settings.offset_metadata_max_bytes):
                error_code = OffsetMetadataTooLarge.code
            else:
                records.append(_offset_record(request.group_id, topic.name, partition, now_ms))
            partitions.append(TxnOffsetCommitResponsePartition(partition.partition_index, error_code))
        topics.append(TxnOffsetCommitResponseTopic(topic.name, partitions))
    return Result(
        TxnOffsetCommitResponse(topics=topics),
        records=tuple(records),
        transaction=ProducerEpoch(request.producer_id, request.producer_epoch),
        marks=((Meter.OFFSET_COMMIT, len(records)),) if records else (),
    )


def _check(state: StateView, request: TxnOffsetCommitRequest) -> None:
    """Refuses what the group may not commit."""
    if not request.group_id:
        raise InvalidGroupId
    group = state.groups.get(request.group_id)
    if group is not None:
        offset_rules(group).check_transaction(group, state.topics, request)
    elif request.generation_id >= 0:
        raise IllegalGeneration


def _offset_record(group_id: str, topic: str, partition: TxnOffsetCommitRequestPartition, now_ms: int) -> Entry:
    # Without the topic's id, as Apache Kafka.
    return Entry(
        OffsetCommitKey(group_id, topic, partition.partition_index),
        OffsetCommitValue(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=partition.committed_metadata or "",
            commit_timestamp=now_ms,
        ),
    )
