"""The partitions that each member's endpoint serves, for interactive queries (KIP-1071)."""

from __future__ import annotations

from groupkeeper.coordinator.assignors.spec import TaskRole
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.coordinator.streams.group import StreamsGroup, StreamsMember, TaskEpochs
from groupkeeper.coordinator.streams.records import task_ids
from groupkeeper.protocol.messages import streams_group_heartbeat_response as response_message


def endpoints_of(
    group: StreamsGroup, asking: StreamsMember, topics: TopicsImage
) -> list[response_message.EndpointToPartitions]:
    """The endpoints of all members that have one; the caller's comes last."""
    others = [member for member in group.members.values() if member.member_id != asking.member_id]
    return [
        response_message.EndpointToPartitions(
            response_message.Endpoint(*member.endpoint),
            _partitions(group, member.assigned, TaskRole.ACTIVE, topics),
            _partitions(group, member.assigned, TaskRole.STANDBY, topics),
        )
        for member in (*others, asking)
        if member.endpoint is not None
    ]


def _partitions(
    group: StreamsGroup, tasks: TaskEpochs, role: TaskRole, topics: TopicsImage
) -> list[response_message.TopicPartition]:
    """The partitions that tasks of a role read: a task reads the partition with its number in every topic that
    has it.
    """
    assert group.topology is not None
    indexes = dict(task_ids(tasks, role, lambda subtopology_id, partitions: (subtopology_id, partitions)))
    found = []
    for topic, subtopology_id in sorted(group.topology.subtopology_by_source.items()):
        shape = topics.topics.get(topic)
        if shape is not None and subtopology_id in indexes:
            read = [index for index in indexes[subtopology_id] if index < shape.partition_count]
            found.append(response_message.TopicPartition(topic, read))
    return found
