"""Delete groups and committed offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Batch, Failure, GroupState, GroupType, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.errors import GroupIsActive, NotAsCommitted, NotOfConsumers
from groupkeeper.operations.plans.cluster_state import describe
from groupkeeper.operations.plans.execution import Applied
from groupkeeper.operations.plans.fit import PlanFit
from groupkeeper.operations.plans.model import Kind, PlanTrouble
from groupkeeper.operations.plans.recorder import Recorder, begin_deletion, committed_now, end_part
from groupkeeper.operations.plans.reset import INACTIVE, parse_topic_argument
from groupkeeper.operations.topics import describe_topics
from groupkeeper.protocol.errors import GroupIdNotFound, KafkaError, NonEmptyGroup


class DeletedOffsets(NamedTuple):
    """The result for each partition; None: its offset is deleted. Topics that cannot be described are apart.

    `refused`: the failure of the whole request, which every partition then has too.
    """

    partitions: dict[TopicPartition, Failure | None]
    topics: dict[str, Failure]
    refused: Failure | None = None

    @property
    def failure(self) -> Failure | None:
        """The first failure of the request, None when all requested offsets were deleted."""
        return self.refused or next((failure for failure in self.partitions.values() if failure is not None), None)


async def delete_offsets(
    admin: Admin, group_id: str, arguments: Sequence[str], recorder: Recorder | None = None
) -> DeletedOffsets:
    """Delete a group's committed offsets for topics, or `topic:0,1,2`. Raises BadTopicArgument before anything else.

    A whole topic that cannot be described isn't part of the request, and doesn't keep the others from it.
    """
    parsed = [parse_topic_argument(argument) for argument in arguments]
    wanted = {TopicPartition(topic, number): None for topic, numbers in parsed for number in numbers or ()}
    topics = list(dict.fromkeys(topic for topic, numbers in parsed if numbers is None))
    described = await describe_topics(admin, topics)
    for topic in described.done.values():
        wanted |= dict.fromkeys(topic.topic_partitions)
    begun = None
    if recorder is not None:
        committed = await committed_now(admin, {group_id: list(wanted)})
        begun = await begin_deletion(admin, recorder, committed, Kind.DELETE)
    try:
        deleted = await admin.delete_consumer_group_offsets(group_id, wanted)
    except (KafkaError, ClientError) as refusal:
        await end_part(recorder, begun, Batch({}, {group_id: refusal}))
        return DeletedOffsets(dict.fromkeys(wanted, refusal), dict(described.failed), refusal)
    await end_part(recorder, begun, Batch({group_id: deleted}))
    return DeletedOffsets({tp: deleted.failed.get(tp) for tp in wanted}, dict(described.failed))


async def find_deletion(admin: Admin, group_ids: Sequence[str]) -> Batch[str, int | None]:
    """How many committed offsets would be deleted with each consumer group; None: unknown. Changes nothing.

    Others fail: NotOfConsumers for groups of other types, NonEmptyGroup with the names of the members.
    """
    described = await describe(admin, group_ids)
    failed = dict(described.failed)
    for group_id, failure in described.failed.items():
        if isinstance(failure, NotOfConsumers):
            failed[group_id] = NotOfConsumers(deletes=GroupType.SHARE)
    for group_id, group in described.done.items():
        if group.group_type is GroupType.STREAMS:
            failed[group_id] = NotOfConsumers(deletes=GroupType.STREAMS)
        elif group.group_state is GroupState.DEAD:  # brokers before 4.0 describe what doesn't exist
            failed[group_id] = GroupIdNotFound(f"Group {group_id} not found.")
        elif group.group_state not in INACTIVE:
            failed[group_id] = NonEmptyGroup(str(GroupIsActive(group_id, group.group_state, group.members)))
    wanted = [group_id for group_id in described.done if group_id not in failed]
    committed = await committed_now(admin, dict.fromkeys(wanted)) if wanted else {}
    return Batch({key: len(committed[key]) if key in committed else None for key in wanted}, failed)


async def delete_any_groups(
    admin: Admin, group_ids: Sequence[str], recorder: Recorder | None = None
) -> Batch[str, None]:
    """Delete groups of any type, as DeleteGroups does. Their offsets are journalled as far as they can be fetched."""
    begun = None
    if recorder is not None:
        committed = await committed_now(admin, dict.fromkeys(group_ids))
        begun = await begin_deletion(admin, recorder, committed, Kind.DELETE_GROUPS)
    try:
        deleted = await admin.delete_consumer_groups(group_ids)
    except (KafkaError, ClientError) as refusal:
        await end_part(recorder, begun, Batch({}, dict.fromkeys(group_ids, refusal)))
        raise
    await end_part(recorder, begun, Batch({group_id: Batch() for group_id in deleted.done}, deleted.failed))
    return deleted


async def delete_compared(admin: Admin, group_ids: Sequence[str], fit: PlanFit, recorder: Recorder | None) -> Applied:
    """Delete groups whose offsets were just compared with a plan, and check that they no longer exist."""
    deleted = await delete_any_groups(admin, group_ids, recorder)
    left = await describe(admin, list(deleted.done)) if deleted.done else Batch()
    failed = dict(deleted.failed)
    for group_id, group in left.done.items():
        if group.group_state is not GroupState.DEAD:
            failed[group_id] = NotAsCommitted("deleted, but it exists again: another client uses it")
    done = tuple(group for group in fit.ready if group.group_id not in failed)
    return Applied(done, (), tuple(PlanTrouble(group_id, None, why) for group_id, why in failed.items()))
