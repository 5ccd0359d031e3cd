"""Delete committed offsets (K496-50 and following)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Batch, Failure, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.reset import parse_topic_argument
from groupkeeper.protocol.errors import KafkaError


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
    admin: Admin, group_id: str, arguments: Sequence[str], *, timeout_ms: int | None = None
) -> DeletedOffsets:
    """Delete a group's committed offsets for topics, or ``topic:0,1,2``. Raises BadTopicArgument before anything else.

    A whole topic that cannot be described isn't part of the request, and doesn't keep the others from it (K496-58).
    """
    parsed = [parse_topic_argument(argument) for argument in arguments]
    wanted = {TopicPartition(topic, number): None for topic, numbers in parsed for number in numbers or ()}
    topics = list(dict.fromkeys(topic for topic, numbers in parsed if numbers is None))
    described = await admin.describe_topics(topics, timeout_ms=timeout_ms) if topics else Batch()
    for topic in described.done.values():
        wanted |= {TopicPartition(topic.name, partition.partition): None for partition in topic.partitions}
    try:
        deleted = await admin.delete_consumer_group_offsets(group_id, wanted, timeout_ms=timeout_ms)
    except (KafkaError, ClientError) as refusal:
        return DeletedOffsets(dict.fromkeys(wanted, refusal), dict(described.failed), refusal)
    return DeletedOffsets({tp: deleted.failed.get(tp) for tp in wanted}, dict(described.failed))
