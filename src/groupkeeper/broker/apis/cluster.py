"""APIs that describe a cluster, and move its partitions, leaders and nodes. Moves take effect at once, as all nodes
share one log.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from groupkeeper.broker.apis._access import cluster_operations, require_cluster
from groupkeeper.broker.apis.topics import check_assignment
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.protocol import METADATA_TOPIC, errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError, code_of
from groupkeeper.protocol.messages.describe_quorum_response import Listener, PartitionData, ReplicaState, TopicData
from groupkeeper.protocol.messages.elect_leaders_response import PartitionResult
from groupkeeper.protocol.primitives import RootMessage

_UNCLEAN = 1
_NODES_SINCE = 2
"""The first version of DescribeQuorum with the nodes' addresses."""


async def handle_unregister(broker: Broker, call: Call, request: m.UnregisterBrokerRequest) -> RootMessage:
    require_cluster(broker, call, Operation.ALTER)
    # Kafka unregisters a running broker, which registers again at once.
    if request.broker_id in broker.topics.placements.running:
        raise errors.UnknownTopicOrPartition
    raise errors.BrokerIdNotRegistered(f"Broker ID {request.broker_id} is not currently registered")


async def handle_elect(broker: Broker, call: Call, request: m.ElectLeadersRequest) -> m.ElectLeadersResponse:
    require_cluster(broker, call, Operation.ALTER)
    wanted: list[tuple[str, Sequence[int]]] = [
        (topic.topic, topic.partitions) for topic in request.topic_partitions or ()
    ]
    if request.topic_partitions is None:
        topics = filter(None, map(broker.topics.get, broker.topics.names()))
        wanted = [(topic.name, range(len(topic.partitions))) for topic in topics]
    logs = {(name, index): broker.topics.partition(name, index) for name, indexes in wanted for index in indexes}
    is_unclean = request.election_type == _UNCLEAN
    outcomes = await broker.elect_leaders(filter(None, logs.values()), is_unclean=is_unclean)
    results = []
    for name, indexes in wanted:
        parts = []
        for index in indexes:
            log = logs[name, index]
            error: KafkaError | None = None
            if log is not None:
                error = outcomes[log]
            elif broker.topics.get(name) is None:
                error = errors.UnknownTopicOrPartition(f"No such topic as {name}")
            else:
                error = errors.UnknownTopicOrPartition(f"No such partition as {name}-{index}")
            # A request for all partitions leaves out those that need no election.
            if request.topic_partitions is not None or not isinstance(error, errors.ElectionNotNeeded):
                parts.append(PartitionResult(index, code_of(error), None if error is None else error.message))
        results.append(m.ReplicaElectionResult(name, parts))
    return m.ElectLeadersResponse(replica_election_results=results)


def refuse_elect(call: Call, request: m.ElectLeadersRequest, error: KafkaError) -> m.ElectLeadersResponse:
    elections = [
        m.ReplicaElectionResult(
            topic.topic, [PartitionResult(index, error.code, error.message) for index in topic.partitions]
        )
        for topic in request.topic_partitions or ()
    ]
    return m.ElectLeadersResponse(0, error.code if call.api_version else 0, elections)


async def handle_reassign(
    broker: Broker, call: Call, request: m.AlterPartitionReassignmentsRequest
) -> m.AlterPartitionReassignmentsResponse:
    require_cluster(broker, call, Operation.ALTER)
    responses = []
    targets = {}
    may_resize = request.allow_replication_factor_change
    for topic in request.topics:
        parts = []
        for part in topic.partitions:
            error: KafkaError | None = None
            try:
                log = _log_to_move(broker, topic.name, part, may_resize=may_resize)
                targets[log] = part.replicas
            except KafkaError as refusal:
                error = refusal
            message = None if error is None or error.message == error.text else error.message
            parts.append(m.ReassignablePartitionResponse(part.partition_index, code_of(error), message))
        responses.append(m.ReassignableTopicResponse(topic.name, parts))
    await broker.reassign(targets)
    return m.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None, responses=responses
    )


def refuse_reassign(
    call: Call, request: m.AlterPartitionReassignmentsRequest, error: KafkaError
) -> m.AlterPartitionReassignmentsResponse:
    responses = []
    for topic in request.topics:
        parts = [
            m.ReassignablePartitionResponse(one.partition_index, error.code, error.message) for one in topic.partitions
        ]
        responses.append(m.ReassignableTopicResponse(topic.name, parts))
    return m.AlterPartitionReassignmentsResponse(
        error_code=error.code, error_message=error.message, responses=responses
    )


def _log_to_move(broker: Broker, name: str, part: m.ReassignablePartition, *, may_resize: bool) -> PartitionLog:
    """The log of a partition that may have these replicas. Raises `KafkaError`."""
    topic = broker.topics.get(name)
    if topic is None:
        raise errors.UnknownTopicOrPartition(f"Unable to find a topic named {name}.")
    log = topic.partition(part.partition_index)
    if log is None:
        raise errors.UnknownTopicOrPartition(f"Unable to find partition {name}:{part.partition_index}.")
    if part.replicas is None:
        at = log.placement
        if not at.is_moving:
            raise errors.NoReassignmentInProgress
        if set(at.isr).isdisjoint(at.original) and not log.config.unclean_leader_election_enable:
            raise errors.InvalidReplicaAssignment(
                f"Unable to revert partition assignment for {name}:{log.index} because it would require an unclean "
                "leader election."
            )
        return log
    check_assignment(broker.topics.placements, part.replicas)
    before, wanted = len(log.placement.original), len(part.replicas)
    if before != wanted and not may_resize:
        raise errors.InvalidReplicationFactor(f"The replication factor is changed from {before} to {wanted}")
    return log


async def handle_move(
    broker: Broker, call: Call, request: m.AlterReplicaLogDirsRequest
) -> m.AlterReplicaLogDirsResponse:
    require_cluster(broker, call, Operation.ALTER)
    results = []
    path = os.path.abspath(broker.storage_path)  # as in DescribeLogDirs
    for directory in request.dirs:
        for wanted in directory.topics:
            topic = broker.topics.get(wanted.name)
            parts = []
            for index in wanted.partitions:
                error: KafkaError | None = None
                if directory.path != path:
                    error = errors.LogDirNotFound()
                elif topic is None or topic.partition(index) is None:
                    error = errors.UnknownTopicOrPartition()
                parts.append(m.AlterReplicaLogDirPartitionResult(index, code_of(error)))
            results.append(m.AlterReplicaLogDirTopicResult(wanted.name, parts))
    return m.AlterReplicaLogDirsResponse(results=results)


def refuse_move(call: Call, request: m.AlterReplicaLogDirsRequest, error: KafkaError) -> m.AlterReplicaLogDirsResponse:
    results = [
        m.AlterReplicaLogDirTopicResult(
            topic.name, [m.AlterReplicaLogDirPartitionResult(index, error.code) for index in topic.partitions]
        )
        for one in request.dirs
        for topic in one.topics
    ]
    return m.AlterReplicaLogDirsResponse(results=results)


async def handle_quorum(broker: Broker, call: Call, request: m.DescribeQuorumRequest) -> m.DescribeQuorumResponse:
    require_cluster(broker, call, Operation.DESCRIBE)
    requested = [(topic.topic_name, [part.partition_index for part in topic.partitions]) for topic in request.topics]
    if requested != [(METADATA_TOPIC, [0])]:
        error = errors.UnknownTopicOrPartition
        topics = [
            TopicData(name, [PartitionData(index, error.code, error.text) for index in indexes])
            for name, indexes in requested
        ]
        return m.DescribeQuorumResponse(topics=topics)
    now_ms = call.received_ms
    voters = [ReplicaState(one, last_fetch_timestamp=now_ms, last_caught_up_timestamp=now_ms) for one in broker.fronts]
    part = PartitionData(0, leader_id=broker.controller_known_to(call.node), leader_epoch=1, current_voters=voters)
    endpoints = broker.endpoints(call)
    nodes = [m.Node(one.node_id, [Listener(call.listener, one.host, one.port)]) for one in endpoints]
    return m.DescribeQuorumResponse(
        topics=[TopicData(METADATA_TOPIC, [part])], nodes=nodes if call.api_version >= _NODES_SINCE else ()
    )


_BROKERS = 1
_CONTROLLERS = 2


async def handle_describe(broker: Broker, call: Call, request: m.DescribeClusterRequest) -> m.DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        raise errors.MismatchedEndpointType(
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        )
    if request.endpoint_type != _BROKERS:
        raise errors.UnsupportedEndpointType(f"Unsupported endpoint type {request.endpoint_type}")
    return m.DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.controller_known_to(call.node),
        brokers=[m.DescribeClusterBroker(*one) for one in broker.endpoints(call)],
        cluster_authorized_operations=cluster_operations(
            broker, call, wanted=request.include_cluster_authorized_operations
        ),
    )


async def handle_reassignments(
    broker: Broker, call: Call, request: m.ListPartitionReassignmentsRequest
) -> m.ListPartitionReassignmentsResponse:
    """The reassignments in progress, whose added replicas are not in sync yet."""
    require_cluster(broker, call, Operation.DESCRIBE)
    wanted = None if request.topics is None else {one.name: set(one.partition_indexes) for one in request.topics}
    found: dict[str, list[m.OngoingPartitionReassignment]] = {}
    for log in broker.topics.logs():
        at = log.placement
        if at.is_moving and (wanted is None or log.index in wanted.get(log.topic, ())):
            row = m.OngoingPartitionReassignment(log.index, at.replicas, at.adding, at.removing)
            found.setdefault(log.topic, []).append(row)
    topics = [m.OngoingTopicReassignment(name, rows) for name, rows in found.items()]
    return m.ListPartitionReassignmentsResponse(error_message=None, topics=topics)
