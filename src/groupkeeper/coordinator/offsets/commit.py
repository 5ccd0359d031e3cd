"""OffsetCommit and TxnOffsetCommit, OffsetFetch, OffsetDelete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeVar

from groupkeeper.coordinator.handlers import OffsetRules, handler_of
from groupkeeper.coordinator.kernel.group import Group
from groupkeeper.coordinator.kernel.result import Arm, GroupCall, Immediate, Meter, ProducerEpoch, Record, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import NONE, KafkaError
from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey
from groupkeeper.protocol.messages.offset_commit_request import OffsetCommitRequest
from groupkeeper.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from groupkeeper.protocol.messages.offset_commit_value import OffsetCommitValue
from groupkeeper.protocol.messages.offset_delete_request import OffsetDeleteRequest
from groupkeeper.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from groupkeeper.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from groupkeeper.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from groupkeeper.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from groupkeeper.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from groupkeeper.protocol.offsets_topic import Entry, Tombstone
from groupkeeper.protocol.primitives import ZERO_UUID

FIRST_COMMIT_VERSION_WITH_GROUP_ID_NOT_FOUND: Final = 9
FIRST_TRANSACTIONAL_COMMIT_VERSION_WITH_TOPIC_IDS: Final = 6
_COMMITS: Final = Meter.OFFSET_COMMIT
P = TypeVar("P")
"""A partition of an OffsetCommit or TxnOffsetCommit response."""


# --- commit


def commit(state: StateView, settings: Settings, call: GroupCall, request: OffsetCommitRequest, now_ms: int) -> Result:
    """Stores offsets. The API's module has resolved the topics: each has its name and, if known, its id."""
    timers = _check_commit(state, call, request)
    retention_ms = request.retention_time_ms
    expire_ms = -1 if retention_ms == -1 else now_ms + retention_ms
    stored = _Stored(request.group_id, settings, now_ms)
    topics = []
    for topic in request.topics:
        name, topic_id = topic.name, topic.topic_id
        responses = stored.add(name, topic_id, topic.partitions, OffsetCommitResponsePartition, expire_ms)
        topics.append(OffsetCommitResponseTopic(name, topic_id, responses))
    records = stored.records
    return Result(
        OffsetCommitResponse(0, topics),
        records=tuple(records),
        timers=timers,
        marks=((_COMMITS, len(records)),) if records else (),
    )


def commit_transactional(
    state: StateView, settings: Settings, call: GroupCall, request: TxnOffsetCommitRequest, now_ms: int
) -> Result:
    """Stores offsets that stay pending until the transaction ends.

    The API's module has verified that the producer may write to the transaction.
    """
    _check_transaction(state, call, request)
    stored = _Stored(request.group_id, settings, now_ms)
    topics = []
    for topic in request.topics:
        # Store it without the topic's id, as Apache Kafka does.
        responses = stored.add(topic.name, ZERO_UUID, topic.partitions, TxnOffsetCommitResponsePartition)
        topics.append(TxnOffsetCommitResponseTopic(topic.name, topic.topic_id, responses))
    records = stored.records
    return Result(
        TxnOffsetCommitResponse(topics=topics),
        records=tuple(records),
        transaction=ProducerEpoch(request.producer_id, request.producer_epoch),
        marks=((_COMMITS, len(records)),) if records else (),
    )


class _Partition(Protocol):
    """A partition of an OffsetCommit or TxnOffsetCommit request."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class _Stored:
    """The records of one commit.

    Attributes:
        records: in the order of the request, for the partitions that were not refused.
    """

    def __init__(self, group_id: str, settings: Settings, now_ms: int) -> None:
        self.records: list[Record] = []
        self._group_id = group_id
        self._limit = settings.offset_metadata_max_bytes
        self._now_ms = now_ms

    def add(
        self,
        topic: str,
        topic_id: bytes,
        partitions: Iterable[_Partition],
        response: Callable[[int, int], P],
        expire_ms: int = -1,
    ) -> list[P]:
        """Adds partitions of a topic; returns a response for each, made of its index and error code."""
        responses = []
        for one in partitions:
            index, metadata = one.partition_index, one.committed_metadata or ""
            if metadata and is_too_large(metadata, self._limit):
                responses.append(response(index, errors.OffsetMetadataTooLarge.code))
                continue
            value = OffsetCommitValue(
                one.committed_offset, one.committed_leader_epoch, metadata, self._now_ms, expire_ms, topic_id
            )
            self.records.append(Entry(OffsetCommitKey(self._group_id, topic, index), value))
            responses.append(response(index, NONE))
        return responses


def _check_commit(state: StateView, call: GroupCall, request: OffsetCommitRequest) -> tuple[Arm, ...]:
    """Refuses a commit that the group does not allow; returns the renewal of the member's session."""
    group = state.groups.get(request.group_id)
    if group is not None:
        return offset_rules(group).check_commit(group, state.topics, call, request)
    if request.generation_id_or_member_epoch < 0:
        return ()
    raise (
        errors.GroupIdNotFound
        if call.version >= FIRST_COMMIT_VERSION_WITH_GROUP_ID_NOT_FOUND
        else errors.IllegalGeneration
    )


def _check_transaction(state: StateView, call: GroupCall, request: TxnOffsetCommitRequest) -> None:
    """Refuses a transactional commit that the group does not allow; old versions get only `IllegalGeneration`."""
    if not request.group_id:
        raise errors.InvalidGroupId
    group = state.groups.get(request.group_id)
    is_told = call.version >= FIRST_TRANSACTIONAL_COMMIT_VERSION_WITH_TOPIC_IDS
    if group is None:
        if request.generation_id_or_member_epoch >= 0:
            raise errors.GroupIdNotFound if is_told else errors.IllegalGeneration
        return
    try:
        offset_rules(group).check_transaction(group, state.topics, request)
    except errors.StaleMemberEpoch as error:
        raise error if is_told else errors.IllegalGeneration() from error


def offset_rules(group: Group) -> OffsetRules:
    """The rules of the group's type. Raises `GroupIdNotFound` for types without committed offsets."""
    rules = handler_of(group.group_type).offsets
    if rules is None:
        raise errors.GroupIdNotFound
    return rules


def is_too_large(metadata: str, limit: int) -> bool:
    """Whether a metadata text is longer than `limit` UTF-16 units."""
    return len(metadata) * 2 > limit and len(metadata.encode("utf-16-le", "surrogatepass")) > 2 * limit


# --- fetch


def fetch(state: StateView, request: OffsetFetchRequest) -> Result:
    """Answers an OffsetFetch in its version-8 form, with any number of groups of this coordinator.

    Topics are requested by name; with a topic id too, offsets of another topic of that name are not returned.
    """
    groups = []
    for group in request.groups:
        error = _check_fetch(state, group)
        if error is not None:
            groups.append(OffsetFetchResponseGroup(group.group_id, error_code=error.code))
            continue
        wanted = group.topics
        if wanted is None:
            committed = sorted(state.offsets.of_group(group.group_id).items())
            wanted = [
                OffsetFetchRequestTopics(topic, partition_indexes=sorted(offsets)) for topic, offsets in committed
            ]
        topics = [_fetch_topic(state, group.group_id, topic, request.require_stable) for topic in wanted]
        groups.append(OffsetFetchResponseGroup(group.group_id, topics))
    kind = Result if request.require_stable else Immediate
    return kind(OffsetFetchResponse(groups=groups))


def _check_fetch(state: StateView, request: OffsetFetchRequestGroup) -> KafkaError | None:
    group = state.groups.get(request.group_id)
    rules = None if group is None else handler_of(group.group_type).offsets
    return None if rules is None else rules.check_fetch(group, request)


def _fetch_topic(
    state: StateView, group_id: str, topic: OffsetFetchRequestTopics, require_stable: bool
) -> OffsetFetchResponseTopics:
    offsets = state.offsets.of_group(group_id).get(topic.name, {})
    topic_id = topic.topic_id
    partitions = []
    for partition in topic.partition_indexes:
        offset = offsets.get(partition)
        if require_stable and state.offsets.is_pending(group_id, topic.name, partition):
            found = OffsetFetchResponsePartitions(partition, -1, -1, "", errors.UnstableOffsetCommit.code)
        elif offset is None or (topic_id != ZERO_UUID and offset.topic_id not in (ZERO_UUID, topic_id)):
            found = OffsetFetchResponsePartitions(partition, -1, -1, "", NONE)
        else:
            committed, metadata = offset.committed_offset, offset.metadata
            found = OffsetFetchResponsePartitions(partition, committed, offset.leader_epoch, metadata, NONE)
        partitions.append(found)
    return OffsetFetchResponseTopics(topic.name, topic_id, partitions)


# --- delete


def delete(state: StateView, request: OffsetDeleteRequest) -> Result:
    """Removes committed offsets of topics that the group does not use (KIP-496)."""
    if not request.group_id:
        raise errors.InvalidGroupId
    group = state.groups.get(request.group_id)
    if group is None:
        raise errors.GroupIdNotFound
    rules = offset_rules(group)
    rules.check_delete(group)
    records: list[Record] = []
    topics = []
    deleted = 0
    for topic in request.topics:
        indexes = [one.partition_index for one in topic.partitions]
        error_code = NONE
        if group.is_subscribed_to(topic.name):
            error_code = errors.GroupSubscribedToTopic.code
        else:
            committed = state.offsets.of_group(group.group_id).get(topic.name, {})
            records.extend(
                Tombstone(OffsetCommitKey(group.group_id, topic.name, index))
                for index in indexes
                if index in committed or state.offsets.is_pending(group.group_id, topic.name, index)
            )
            deleted += sum(index in committed for index in indexes)
        partitions = [OffsetDeleteResponsePartition(index, error_code) for index in indexes]
        topics.append(OffsetDeleteResponseTopic(topic.name, partitions))
    return Result(
        OffsetDeleteResponse(topics=topics),
        records=tuple(records),
        marks=((Meter.OFFSET_DELETION, deleted),) if deleted else (),
    )


def all_offset_tombstones(state: StateView, group_id: str) -> list[Record]:
    """A tombstone for every partition with a committed or pending offset of the group."""
    tps = {
        (topic, partition): None
        for topic, partitions in state.offsets.of_group(group_id).items()
        for partition in partitions
    }
    tps.update(dict.fromkeys(state.offsets.pending_of_group(group_id)))
    return [Tombstone(OffsetCommitKey(group_id, topic, partition)) for topic, partition in tps]
