"""StreamsGroupDescribe (89): epochs, topology, members and tasks of streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable

from groupkeeper.coordinator.assignors.spec import Task, TaskRole
from groupkeeper.coordinator.epochs.checks import describe_all
from groupkeeper.coordinator.kernel.result import Immediate, Result
from groupkeeper.coordinator.state import StateView
from groupkeeper.coordinator.streams.description import describe_topology
from groupkeeper.coordinator.streams.group import StreamsGroup, StreamsMember
from groupkeeper.coordinator.streams.records import task_ids
from groupkeeper.coordinator.streams.topology import ConfiguredTopology, TopologyRecord
from groupkeeper.protocol.java_hash import in_timeline_order
from groupkeeper.protocol.messages import streams_group_describe_response as described
from groupkeeper.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from groupkeeper.protocol.messages.streams_group_topology_value import TopicInfo

ASSIGNOR = "sticky"
"""The one that streams groups have, by Kafka's name."""


def describe_streams_groups(state: StateView, request: StreamsGroupDescribeRequest) -> Result:
    """Describes streams groups; groups of another type are not found."""
    describe = _describe_whole if request.include_topology_description else _describe
    groups = describe_all(state, StreamsGroup, request.group_ids, describe, described.DescribedGroup)
    return Immediate(described.StreamsGroupDescribeResponse(groups=groups))


def _describe_whole(group: StreamsGroup) -> described.DescribedGroup:
    one = _describe(group)
    describe_topology(group, one)
    return one


def _describe(group: StreamsGroup) -> described.DescribedGroup:
    return described.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=ASSIGNOR,
        topology=None if group.topology is None else _topology(group.topology, group.soft.configured),
        members=[_describe_member(group, group.members[one]) for one in in_timeline_order(group.members)],
    )


def _topology(topology: TopologyRecord, configured: ConfiguredTopology | None) -> described.Topology:
    """The topology; with the decided numbers of partitions once all topics exist."""
    counts = configured.partition_counts if configured is not None and configured.problem is None else {}

    def infos(topics: Iterable[TopicInfo]) -> list[described.TopicInfo]:
        return [
            described.TopicInfo(
                topic.name,
                counts.get(topic.name, topic.partitions),
                topic.replication_factor,
                [
                    described.KeyValue(one.key, one.value)
                    for one in sorted(topic.topic_configs, key=lambda one: one.key)
                ],
            )
            for topic in sorted(topics, key=lambda topic: topic.name)
        ]

    return described.Topology(
        topology.epoch,
        [
            described.Subtopology(
                one.subtopology_id,
                sorted(one.source_topics),
                sorted(one.repartition_sink_topics),
                infos(one.state_changelog_topics),
                infos(one.repartition_source_topics),
            )
            for one in sorted(topology.value.subtopologies, key=lambda one: one.subtopology_id)
        ],
    )


def _describe_member(group: StreamsGroup, member: StreamsMember) -> described.Member:
    return described.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if member.endpoint is None else described.Endpoint(*member.endpoint),
        client_tags=[described.KeyValue(*tag) for tag in member.client_tags],
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(group.targets.get(member.member_id, ())),
    )


def _assignment(tasks: Iterable[Task]) -> described.Assignment:
    return described.Assignment(*(task_ids(tasks, role, described.TaskIds) for role in TaskRole))
