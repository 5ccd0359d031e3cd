"""Descriptions of streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable

from groupkeeper.client.admin.coordinators import by_group, coordinator_at, routed
from groupkeeper.client.admin.streams_types import (
    StreamsGroupDescription,
    StreamsMemberDescription,
    StreamsNode,
    StreamsSubtopology,
    StreamsTask,
    StreamsTasks,
    StreamsTopic,
    StreamsTopology,
    TopologyStatus,
)
from groupkeeper.client.admin.types import Batch, Failure, GroupState, Node, operation_names
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import UnsupportedVersion
from groupkeeper.client.peer import Peer
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import streams_group_describe_response as response

_GROUPS_PER_REQUEST = 100
_TOPOLOGIES_SINCE = 1
_STATUSES = {status.value: status for status in TopologyStatus}
_KINDS = {1: "source", 2: "processor", 3: "sink"}


async def describe_streams_groups(
    cluster: Cluster,
    group_ids: Iterable[str],
    include_authorized_operations: bool,
    include_topology: bool,
    timeout_ms: int | None,
) -> Batch[str, StreamsGroupDescription]:
    """Admin.describe_streams_groups."""
    deadline = cluster.deadline("describeStreamsGroups", timeout_ms)

    async def ask(peer: Peer, keys: list[str]) -> dict[str, StreamsGroupDescription | Failure]:
        response = await peer.ask(
            m.StreamsGroupDescribeResponse,
            lambda version: _request(version, keys, include_authorized_operations, include_topology),
            deadline,
        )
        return by_group(response.groups, lambda group: _description(group, coordinator_at(peer)))

    return await routed(cluster, deadline, ask, chunk=_GROUPS_PER_REQUEST).run(list(group_ids))


def _request(
    version: int, group_ids: list[str], include_authorized_operations: bool, include_topology: bool
) -> m.StreamsGroupDescribeRequest:
    if include_topology and version < _TOPOLOGIES_SINCE:
        raise UnsupportedVersion(f"Attempted to write a non-default includeTopologyDescription at version {version}")
    return m.StreamsGroupDescribeRequest(group_ids, include_authorized_operations, include_topology)


def _description(group: response.DescribedGroup, coordinator: Node) -> StreamsGroupDescription:
    topology = group.topology
    subtopologies = () if topology is None else topology.subtopologies or ()
    return StreamsGroupDescription(
        group_id=group.group_id,
        group_state=GroupState.parse(group.group_state),
        members=tuple(_member(member) for member in group.members),
        coordinator=coordinator,
        group_epoch=group.group_epoch,
        target_assignment_epoch=group.assignment_epoch,
        topology_epoch=None if topology is None else topology.epoch,
        subtopologies=tuple(_subtopology(one) for one in subtopologies),
        authorized_operations=operation_names(group.authorized_operations),
        assignor=group.assignor_name,
        topology_status=_STATUSES.get(group.topology_description_status, TopologyStatus.FAILED),
        topology=None if group.topology_description is None else _application(group.topology_description),
    )


def _application(topology: response.TopologyDescription) -> StreamsTopology:
    return StreamsTopology(
        tuple((part.subtopology_id, tuple(map(_node, part.nodes))) for part in topology.subtopologies),
        tuple((_node(store.source), _node(store.processor)) for store in topology.global_stores),
    )


def _node(node: response.TopologyDescriptionNode) -> StreamsNode:
    topics = node.source_topics if node.sink_topic is None else (node.sink_topic,)
    kind = _KINDS.get(node.node_type, f"kind {node.node_type}")
    return StreamsNode(node.name, kind, tuple(topics), tuple(node.stores), tuple(node.successors))


def _subtopology(subtopology: response.Subtopology) -> StreamsSubtopology:
    return StreamsSubtopology(
        subtopology.subtopology_id,
        tuple(subtopology.source_topics),
        tuple(subtopology.repartition_sink_topics),
        tuple(_topic(topic) for topic in subtopology.state_changelog_topics),
        tuple(_topic(topic) for topic in subtopology.repartition_source_topics),
    )


def _topic(topic: response.TopicInfo) -> StreamsTopic:
    return StreamsTopic(topic.name, topic.partitions, topic.replication_factor, _pairs(topic.topic_configs))


def _pairs(pairs: Iterable[response.KeyValue]) -> tuple[tuple[str, str], ...]:
    return tuple((pair.key, pair.value) for pair in pairs)


def _member(member: response.Member) -> StreamsMemberDescription:
    endpoint = member.user_endpoint
    return StreamsMemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        member_epoch=member.member_epoch,
        process_id=member.process_id,
        topology_epoch=member.topology_epoch,
        assignment=_tasks(member.assignment),
        target_assignment=_tasks(member.target_assignment),
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        client_tags=_pairs(member.client_tags),
        task_offsets=_offsets(member.task_offsets),
        task_end_offsets=_offsets(member.task_end_offsets),
        is_classic=member.is_classic,
    )


def _tasks(assignment: response.Assignment) -> StreamsTasks:
    return StreamsTasks(_ids(assignment.active_tasks), _ids(assignment.standby_tasks), _ids(assignment.warmup_tasks))


def _ids(tasks: Iterable[response.TaskIds]) -> tuple[StreamsTask, ...]:
    return tuple(StreamsTask(some.subtopology_id, partition) for some in tasks for partition in some.partitions)


def _offsets(offsets: Iterable[response.TaskOffset]) -> tuple[tuple[StreamsTask, int], ...]:
    return tuple((StreamsTask(one.subtopology_id, one.partition), one.offset) for one in offsets)
