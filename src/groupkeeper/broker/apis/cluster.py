"""APIs that move partitions, leaders and nodes of a cluster. What is possible is done at once: there is one log."""

from __future__ import annotations

from collections.abc import Sequence

from groupkeeper.broker.apis._access import require_cluster
from groupkeeper.broker.apis.create_topics import check_assignment
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.topics import METADATA_TOPIC
from groupkeeper.protocol.errors import (
    BrokerIdNotRegistered,
    ElectionNotNeeded,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    KafkaError,
    LogDirNotFound,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
    code_of,
)
from groupkeeper.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from groupkeeper.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from groupkeeper.protocol.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from groupkeeper.protocol.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from groupkeeper.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from groupkeeper.protocol.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)
from groupkeeper.protocol.messages.elect_leaders_request import ElectLeadersRequest
from groupkeeper.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from groupkeeper.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from groupkeeper.protocol.primitives import RootMessage

_UNCLEAN = 1
_NODES_SINCE = 2
"""The first version of DescribeQuorum that can tell where the nodes are."""


async def handle(broker: Broker, call: Call) -> RootMessage:
    reads = isinstance(call.message, DescribeQuorumRequest)
    require_cluster(broker, call, Operation.DESCRIBE if reads else Operation.ALTER)
    match call.message:
        case ElectLeadersRequest() as request:
            return await _elect(broker, request)
        case AlterPartitionReassignmentsRequest() as reassignments:
            return await _reassign(broker, reassignments)
        case AlterReplicaLogDirsRequest() as moves:
            return _move(broker, moves)
        case DescribeQuorumRequest() as quorum:
            return _describe_quorum(broker, call, quorum)
        case UnregisterBrokerRequest(broker_id=broker_id):
            # Kafka unregisters a broker that runs, and that registers again at once.
            if broker_id in broker.topics.placements.running:
                raise UnknownTopicOrPartition
            raise BrokerIdNotRegistered(f"Broker ID {broker_id} is not currently registered")
    raise AssertionError(f"no request of this module: {call.api_key}")


def refuse(call: Call, error: KafkaError) -> RootMessage:
    from groupkeeper.broker.apis import not_offered

    match call.message:
        case AlterReplicaLogDirsRequest(dirs=dirs):
            results = [
                AlterReplicaLogDirTopicResult(
                    topic.name, [AlterReplicaLogDirPartitionResult(index, error.code) for index in topic.partitions]
                )
                for one in dirs
                for topic in one.topics
            ]
            return AlterReplicaLogDirsResponse(results=results)
        case ElectLeadersRequest(topic_partitions=wanted):
            elections = [
                ReplicaElectionResult(
                    topic.topic, [PartitionResult(index, error.code, error.message) for index in topic.partitions]
                )
                for topic in wanted or ()
            ]
            code = error.code if call.api_version else 0
            return ElectLeadersResponse(error_code=code, replica_election_results=elections)
        case AlterPartitionReassignmentsRequest(topics=topics):
            responses = [
                ReassignableTopicResponse(
                    topic.name,
                    [
                        ReassignablePartitionResponse(one.partition_index, error.code, error.message)
                        for one in topic.partitions
                    ],
                )
                for topic in topics
            ]
            return AlterPartitionReassignmentsResponse(
                error_code=error.code, error_message=error.message, responses=responses
            )
    return not_offered.refuse(call, error)


async def _elect(broker: Broker, request: ElectLeadersRequest) -> ElectLeadersResponse:
    wanted: list[tuple[str, Sequence[int]]] = [
        (topic.topic, topic.partitions) for topic in request.topic_partitions or ()
    ]
    if request.topic_partitions is None:
        topics = filter(None, map(broker.topics.get, broker.topics.names()))
        wanted = [(topic.name, range(len(topic.partitions))) for topic in topics]
    places = [(name, index) for name, indexes in wanted for index in indexes]
    found = [broker.topics.partition(*place) for place in places]
    logs = [one for one in found if one is not None]
    errors = await broker.elect_leaders(logs, is_unclean=request.election_type == _UNCLEAN)
    results = []
    for name, indexes in wanted:
        parts = []
        for index in indexes:
            log = broker.topics.partition(name, index)
            error: KafkaError | None = None
            if log is not None:
                error = errors[log]
            elif broker.topics.get(name) is None:
                error = UnknownTopicOrPartition(f"No such topic as {name}")
            else:
                error = UnknownTopicOrPartition(f"No such partition as {name}-{index}")
            # Without names, those that need no election are left out.
            if request.topic_partitions is not None or not isinstance(error, ElectionNotNeeded):
                parts.append(PartitionResult(index, code_of(error), None if error is None else error.message))
        results.append(ReplicaElectionResult(name, parts))
    return ElectLeadersResponse(replica_election_results=results)


async def _reassign(broker: Broker, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
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
            parts.append(ReassignablePartitionResponse(part.partition_index, code_of(error), message))
        responses.append(ReassignableTopicResponse(topic.name, parts))
    await broker.reassign(targets)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None, responses=responses
    )


def _log_to_move(broker: Broker, name: str, part: ReassignablePartition, *, may_resize: bool) -> PartitionLog:
    """The log of a partition that may have these replicas. Raises `KafkaError`."""
    topic = broker.topics.get(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"Unable to find a topic named {name}.")
    log = topic.partition(part.partition_index)
    if log is None:
        raise UnknownTopicOrPartition(f"Unable to find partition {name}:{part.partition_index}.")
    if part.replicas is None:
        at = log.placement
        if not at.is_moving:
            raise NoReassignmentInProgress
        if set(at.isr).isdisjoint(at.original) and not log.config.unclean_leader_election_enable:
            raise InvalidReplicaAssignment(
                f"Unable to revert partition assignment for {name}:{log.index} because it would require an unclean "
                "leader election."
            )
        return log
    check_assignment(broker.topics.placements, part.replicas)
    before, wanted = len(log.placement.original), len(part.replicas)
    if before != wanted and not may_resize:
        raise InvalidReplicationFactor(f"The replication factor is changed from {before} to {wanted}")
    return log


def _move(broker: Broker, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    results = []
    for directory in request.dirs:
        for wanted in directory.topics:
            topic = broker.topics.get(wanted.name)
            parts = []
            for index in wanted.partitions:
                error: KafkaError | None = None
                if directory.path != broker.storage_path:
                    error = LogDirNotFound()
                elif topic is None or topic.partition(index) is None:
                    error = UnknownTopicOrPartition()
                parts.append(AlterReplicaLogDirPartitionResult(index, code_of(error)))
            results.append(AlterReplicaLogDirTopicResult(wanted.name, parts))
    return AlterReplicaLogDirsResponse(results=results)


def _describe_quorum(broker: Broker, call: Call, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    requested = [(topic.topic_name, [part.partition_index for part in topic.partitions]) for topic in request.topics]
    if requested != [(METADATA_TOPIC, [0])]:
        error = UnknownTopicOrPartition
        topics = [
            TopicData(name, [PartitionData(index, error.code, error.text) for index in indexes])
            for name, indexes in requested
        ]
        return DescribeQuorumResponse(topics=topics)
    now_ms = call.received_ms
    voters = [ReplicaState(one, last_fetch_timestamp=now_ms, last_caught_up_timestamp=now_ms) for one in broker.fronts]
    part = PartitionData(0, leader_id=broker.controller_id, leader_epoch=1, current_voters=voters)
    endpoints = broker.endpoints(call.listener)
    nodes = [Node(one.node_id, [Listener(call.listener, one.host, one.port)]) for one in endpoints]
    return DescribeQuorumResponse(
        topics=[TopicData(METADATA_TOPIC, [part])], nodes=nodes if call.api_version >= _NODES_SINCE else ()
    )
