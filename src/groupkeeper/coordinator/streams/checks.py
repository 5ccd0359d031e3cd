"""Checks of a StreamsGroupHeartbeat that don't depend on its group, and of the topology in it (Kafka 4.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from groupkeeper.coordinator.epochs.checks import check_texts
from groupkeeper.coordinator.epochs.group import LEFT_STATICALLY_EPOCH
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import InvalidRequest, StreamsInvalidTopology
from groupkeeper.protocol.messages import streams_group_topology_value as stored
from groupkeeper.protocol.messages.streams_group_heartbeat_request import TopicInfo, Topology


def check_request(request: m.StreamsGroupHeartbeatRequest) -> None:
    """Raises `InvalidRequest`, `StreamsInvalidTopology`."""
    _check_features(request)
    check_texts(
        MemberId=request.member_id, GroupId=request.group_id, InstanceId=request.instance_id, RackId=request.rack_id
    )
    if request.member_epoch == 0:
        _check_join(request)
    elif request.member_epoch == LEFT_STATICALLY_EPOCH and request.instance_id is None:
        raise InvalidRequest("InstanceId can't be null.")
    elif request.member_epoch < LEFT_STATICALLY_EPOCH:
        raise InvalidRequest(f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.")
    kinds = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if None in kinds and any(kind is not None for kind in kinds):
        raise InvalidRequest("If one task-type is non-null, all must be non-null.")
    if request.member_epoch != 0 and request.topology is not None:
        raise InvalidRequest("Topology can only be provided when (re-)joining.")


def _check_features(request: m.StreamsGroupHeartbeatRequest) -> None:
    """Refuses features that the protocol has and Kafka 4.4 doesn't support yet. Offsets of tasks are accepted: only
    warm-up tasks depend on them, and none are assigned.
    """
    if request.topology is not None and any(one.source_topic_regex for one in request.topology.subtopologies):
        raise InvalidRequest("Regular expressions for source topics are not supported yet.")


def _check_join(request: m.StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
    kinds = {"Active": request.active_tasks, "Standby": request.standby_tasks, "Warmup": request.warmup_tasks}
    for name, tasks in kinds.items():
        if tasks is None or tasks:
            raise InvalidRequest(f"{name}Tasks must be empty when (re-)joining.")
    if request.topology is None:
        raise InvalidRequest("Topology must be non-null when (re-)joining.")
    if request.topology.epoch < 0:
        raise InvalidRequest("Topology epoch must be non-negative.")
    _check_topology(request.topology)


def _check_topology(topology: Topology) -> None:
    for subtopology_id, count in Counter(one.subtopology_id for one in topology.subtopologies).items():
        if count > 1:
            raise StreamsInvalidTopology(f"Subtopology {subtopology_id} is there {count} times.")
    for one in topology.subtopologies:
        for topic in one.state_changelog_topics:
            if topic.partitions != 0:
                raise StreamsInvalidTopology(
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}."
                )


def read_topology(topology: Topology) -> stored.StreamsGroupTopologyValue:
    """The topology of a request in the form of the log."""
    return stored.StreamsGroupTopologyValue(
        topology.epoch,
        [
            stored.Subtopology(
                one.subtopology_id,
                list(one.source_topics),
                list(one.source_topic_regex),
                _infos(one.state_changelog_topics),
                list(one.repartition_sink_topics),
                _infos(one.repartition_source_topics),
                [
                    stored.CopartitionGroup(
                        list(group.source_topics), list(group.source_topic_regex), list(group.repartition_source_topics)
                    )
                    for group in one.copartition_groups
                ],
            )
            for one in topology.subtopologies
        ],
    )


def _infos(topics: Iterable[TopicInfo]) -> list[stored.TopicInfo]:
    return [
        stored.TopicInfo(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            [stored.TopicConfig(config.key, config.value) for config in topic.topic_configs],
        )
        for topic in topics
    ]
