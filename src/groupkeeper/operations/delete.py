"""Delete groups and committed offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Batch, Failure, GroupState, OffsetAndMetadata, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.errors import NothingToDelete
from groupkeeper.operations.plans.model import Kind
from groupkeeper.operations.plans.recording import (
    Begun,
    Outcome,
    Recorder,
    cluster_id_of,
    commit,
    committed_now,
    deletions,
    judged,
    known_cluster_id,
)
from groupkeeper.operations.reset import committed_offsets, parse_topic_argument
from groupkeeper.operations.topics import describe_topics
from groupkeeper.protocol.errors import GroupIdNotFound, KafkaError


class DeletedOffsets(NamedTuple):
    """What became of each partition, None: its offset is gone. Topics that cannot be described are apart.

    ``refused`` is the failure of the whole request, which every partition then has too.
    """

    partitions: dict[TopicPartition, Failure | None]
    topics: dict[str, Failure]
    refused: Failure | None = None

    @property
    def failure(self) -> Failure | None:
        """The first thing that the request failed with, None when the coordinator did all it was asked."""
        return self.refused or next((failure for failure in self.partitions.values() if failure is not None), None)


async def delete_offsets(
    admin: Admin,
    group_id: str,
    arguments: Sequence[str],
    recorder: Recorder | None = None,
    *,
    timeout_ms: int | None = None,
) -> DeletedOffsets:
    """Delete a group's committed offsets for topics, or ``topic:0,1,2``. Raises BadTopicArgument before anything else.

    A whole topic that cannot be described isn't part of the request, and doesn't keep the others from it.
    """
    parsed = [parse_topic_argument(argument) for argument in arguments]
    wanted = {TopicPartition(topic, number): None for topic, numbers in parsed for number in numbers or ()}
    topics = list(dict.fromkeys(topic for topic, numbers in parsed if numbers is None))
    described = await describe_topics(admin, topics, timeout_ms=timeout_ms)
    for topic in described.done.values():
        wanted |= {TopicPartition(topic.name, partition.partition): None for partition in topic.partitions}
    begun = None
    if recorder is not None:
        committed = await committed_now(admin, {group_id: list(wanted)}, timeout_ms=timeout_ms)
        begun = await _begin(admin, recorder, committed, Kind.DELETE, timeout_ms)
    try:
        deleted = await admin.delete_consumer_group_offsets(group_id, wanted, timeout_ms=timeout_ms)
    except (KafkaError, ClientError) as refusal:
        _end(recorder, begun, Batch({}, {group_id: refusal}))
        return DeletedOffsets(dict.fromkeys(wanted, refusal), dict(described.failed), refusal)
    _end(recorder, begun, Batch({group_id: deleted}))
    return DeletedOffsets({tp: deleted.failed.get(tp) for tp in wanted}, dict(described.failed))


class DeletedCommits(NamedTuple):
    """The offsets that are deleted, by partition, and why others aren't, by partition or topic."""

    done: dict[TopicPartition, int]
    failed: dict[TopicPartition | str, Failure]


async def delete_committed(
    admin: Admin,
    group_id: str,
    arguments: Sequence[str],
    recorder: Recorder | None = None,
    *,
    timeout_ms: int | None = None,
) -> DeletedCommits:
    """Delete offsets that are committed.

    A topic or partition without a committed offset fails with NothingToDelete, and isn't sent to the broker.
    Raises BadTopicArgument before anything else, GroupIdNotFound, and what the coordinator refuses of the whole group.
    """
    parsed = [parse_topic_argument(argument) for argument in arguments]
    committed = await committed_offsets(admin, group_id, timeout_ms=timeout_ms)
    if not committed:
        # A group that doesn't exist has no offsets either, and that answer alone would hide it.
        description = (await admin.describe_consumer_groups([group_id], timeout_ms=timeout_ms)).result(group_id)
        if description.group_state is GroupState.DEAD:
            raise GroupIdNotFound(f"Group {group_id} not found.")
    wanted: dict[TopicPartition, int] = {}
    deleted = DeletedCommits({}, {})
    for topic, numbers in parsed:
        if numbers is None:
            found = {partition: offset for partition, offset in committed.items() if partition.topic == topic}
            wanted |= {partition: offset.offset for partition, offset in found.items()}
            if not found:
                deleted.failed[topic] = _nothing_to_delete(topic)
        for number in numbers or ():
            partition = TopicPartition(topic, number)
            if partition in committed:
                wanted[partition] = committed[partition].offset
            else:
                deleted.failed[partition] = _nothing_to_delete(partition)
    if wanted:
        unwanted = {partition: committed[partition] for partition in wanted}
        cluster_id = await cluster_id_of(admin, timeout_ms=timeout_ms)
        plan = deletions({group_id: unwanted}, cluster_id, Kind.DELETE)
        batch = (await commit(admin, plan, recorder, timeout_ms=timeout_ms)).result(group_id)
        deleted.failed.update(batch.failed.items())
        deleted.done.update({partition: wanted[partition] for partition in batch.done})
    return deleted


def _nothing_to_delete(place: TopicPartition | str) -> NothingToDelete:
    return NothingToDelete(f"the group has no committed offset for {place}")


async def delete_groups(
    admin: Admin, group_ids: Sequence[str], recorder: Recorder | None = None, *, timeout_ms: int | None = None
) -> Batch[str, None]:
    """Delete groups of consumers. Others, which DeleteGroups would delete too, fail as they cannot be described."""
    described = await admin.describe_consumer_groups(group_ids, timeout_ms=timeout_ms)
    deleted: Batch[str, None] = Batch()
    if described.done:
        deleted = await delete_any_groups(admin, list(described.done), recorder, timeout_ms=timeout_ms)
    return Batch(dict(deleted.done), described.failed | deleted.failed)


async def delete_any_groups(
    admin: Admin, group_ids: Sequence[str], recorder: Recorder | None = None, *, timeout_ms: int | None = None
) -> Batch[str, None]:
    """Delete groups of whatever type, as DeleteGroups does. Their offsets are journalled as far as they can be had."""
    begun = None
    if recorder is not None:
        committed = await committed_now(admin, dict.fromkeys(group_ids), timeout_ms=timeout_ms)
        begun = await _begin(admin, recorder, committed, Kind.DELETE_GROUPS, timeout_ms)
    try:
        deleted = await admin.delete_consumer_groups(group_ids, timeout_ms=timeout_ms)
    except (KafkaError, ClientError) as refusal:
        _end(recorder, begun, Batch({}, dict.fromkeys(group_ids, refusal)))
        raise
    _end(recorder, begun, Batch({group_id: Batch() for group_id in deleted.done}, deleted.failed))
    return deleted


async def _begin(
    admin: Admin,
    recorder: Recorder,
    committed: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata | None]],
    kind: Kind,
    timeout_ms: int | None,
) -> Begun | None:
    """What is written down of it. Nothing is written when no offset goes."""
    if not any(commit for offsets in committed.values() for commit in offsets.values()):
        return None
    return recorder.begin(deletions(committed, await known_cluster_id(admin, timeout_ms=timeout_ms), kind))


def _end(recorder: Recorder | None, begun: Begun | None, outcome: Batch[str, Outcome]) -> None:
    if recorder is not None:
        recorder.end(begun, *judged(outcome))
