"""Topics and the cluster itself: Metadata, CreateTopics, DeleteTopics, DescribeCluster."""

from __future__ import annotations

from collections.abc import Iterable

from groupkeeper.client.admin.resources.controller import NOT_CONTROLLER, ask_controller, broker_timeout_ms
from groupkeeper.client.admin.types import (
    Batch,
    ClusterDescription,
    CreatedTopic,
    Failure,
    NewTopic,
    Node,
    PartitionDescription,
    TopicDescription,
    TopicListing,
    operation_names,
)
from groupkeeper.client.batch import batch_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import UnsupportedVersion
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import TopicAlreadyExists, UnknownTopicOrPartition, error_for
from groupkeeper.protocol.primitives import ZERO_UUID

_MISSING = "the reply has no result for topic {}"


async def describe_topics(
    cluster: Cluster, names: Iterable[str] | None, include_authorized_operations: bool, timeout_ms: int | None
) -> Batch[str, TopicDescription]:
    """Admin.describe_topics."""
    deadline = cluster.deadline("describeTopics", timeout_ms)
    wanted = None if names is None else list(dict.fromkeys(names))
    if wanted == []:
        return Batch()
    answer = await _metadata(cluster, wanted, deadline, include_authorized_operations)
    topic_by_name = {topic.name: topic for topic in answer.topics if topic.name is not None}
    batch: Batch[str, TopicDescription] = Batch()
    for name in topic_by_name if wanted is None else wanted:
        topic = topic_by_name.get(name)
        if topic is None:
            # A response about all topics (Metadata < 4) lacks unknown ones.
            batch.failed[name] = UnknownTopicOrPartition()
        elif topic.error_code:
            batch.failed[name] = error_for(topic.error_code)
        else:
            batch.done[name] = _description(cluster, name, topic)
    return batch


async def list_topics(cluster: Cluster, include_internal: bool, timeout_ms: int | None) -> list[TopicListing]:
    """Admin.list_topics."""
    answer = await _metadata(cluster, None, cluster.deadline("listTopics", timeout_ms), False)
    return sorted(
        TopicListing(topic.name, _topic_id(topic.topic_id), topic.is_internal)
        for topic in answer.topics
        if topic.name is not None and (include_internal or not topic.is_internal)
    )


async def _metadata(
    cluster: Cluster, names: list[str] | None, deadline: Deadline, include_authorized_operations: bool
) -> m.MetadataResponse:
    answer = await cluster.metadata(names, deadline, include_authorized_operations=include_authorized_operations)
    if answer.error_code:
        raise error_for(answer.error_code)
    return answer


def _description(cluster: Cluster, name: str, topic: m.MetadataResponseTopic) -> TopicDescription:
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return TopicDescription(
        name=name,
        topic_id=_topic_id(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=tuple(_partition(cluster, partition) for partition in partitions),
        authorized_operations=operation_names(topic.topic_authorized_operations),
    )


def _partition(cluster: Cluster, partition: m.MetadataResponsePartition) -> PartitionDescription:
    epoch = partition.leader_epoch
    return PartitionDescription(
        partition=partition.partition_index,
        leader=cluster.nodes.get(partition.leader_id),
        leader_epoch=None if epoch < 0 else epoch,
        replicas=tuple(partition.replica_nodes),
        isr=tuple(partition.isr_nodes),
        offline=tuple(partition.offline_replicas),
        error=error_for(partition.error_code) if partition.error_code else None,
    )


def _topic_id(topic_id: bytes) -> bytes | None:
    return None if topic_id == ZERO_UUID else topic_id


async def create_topics(
    cluster: Cluster, topics: Iterable[NewTopic], validate_only: bool, timeout_ms: int | None
) -> Batch[str, CreatedTopic]:
    """Admin.create_topics."""
    from groupkeeper.protocol.messages.create_topics_request import (
        CreatableReplicaAssignment,
        CreatableTopic,
        CreatableTopicConfig,
        CreateTopicsRequest,
    )
    from groupkeeper.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse

    deadline = cluster.deadline("createTopics", timeout_ms)
    creatable = [
        CreatableTopic(
            name=topic.name,
            num_partitions=-1 if topic.assignments else topic.num_partitions,
            replication_factor=-1 if topic.assignments else topic.replication_factor,
            assignments=[
                CreatableReplicaAssignment(index, list(replicas))
                for index, replicas in (topic.assignments or {}).items()
            ],
            configs=[CreatableTopicConfig(name, value) for name, value in topic.configs.items()],
        )
        for topic in topics
    ]

    def build(version: int) -> CreateTopicsRequest:
        return CreateTopicsRequest(creatable, broker_timeout_ms(deadline), validate_only)

    answer = await ask_controller(
        cluster,
        CreateTopicsResponse,
        build,
        deadline,
        lambda answer: any(topic.error_code == NOT_CONTROLLER for topic in answer.topics),
    )

    def created(topic: CreatableTopicResult) -> CreatedTopic:
        configs = {each.name: each.value for each in topic.configs or ()} or None
        return CreatedTopic(
            topic.name, _topic_id(topic.topic_id), topic.num_partitions, topic.replication_factor, configs
        )

    results: dict[str, CreatedTopic | Failure] = {
        topic.name: error_for(topic.error_code, topic.error_message) if topic.error_code else created(topic)
        for topic in answer.topics
    }
    return batch_of([topic.name for topic in creatable], results, _MISSING)


async def delete_topics(cluster: Cluster, names: Iterable[str], timeout_ms: int | None) -> Batch[str, None]:
    """Admin.delete_topics."""
    from groupkeeper.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

    deadline = cluster.deadline("deleteTopics", timeout_ms)
    wanted = list(dict.fromkeys(names))

    def build(version: int) -> DeleteTopicsRequest:
        timeout_ms = broker_timeout_ms(deadline)
        if version >= 6:
            return DeleteTopicsRequest(topics=[DeleteTopicState(name) for name in wanted], timeout_ms=timeout_ms)
        return DeleteTopicsRequest(topic_names=wanted, timeout_ms=timeout_ms)

    answer = await ask_controller(
        cluster,
        DeleteTopicsResponse,
        build,
        deadline,
        lambda answer: any(topic.error_code == NOT_CONTROLLER for topic in answer.responses),
    )
    results: dict[str, Failure | None] = {
        topic.name or "": error_for(topic.error_code, topic.error_message) if topic.error_code else None
        for topic in answer.responses
    }
    for name in wanted:
        for key in [key for key in cluster.leaders if key[0] == name]:
            del cluster.leaders[key]
    return batch_of(wanted, results, _MISSING)


def with_those_there(batch: Batch[str, CreatedTopic]) -> Batch[str, CreatedTopic]:
    """The same, with topics that exist as done."""
    there = [name for name, failure in batch.failed.items() if isinstance(failure, TopicAlreadyExists)]
    done = batch.done | {name: CreatedTopic(name, is_new=False) for name in there}
    return Batch(done, {name: failure for name, failure in batch.failed.items() if name not in there})


def with_those_gone(batch: Batch[str, None]) -> Batch[str, None]:
    """The same, with topics that don't exist as done."""
    gone = [name for name, failure in batch.failed.items() if isinstance(failure, UnknownTopicOrPartition)]
    done = batch.done | dict.fromkeys(gone)
    return Batch(done, {name: failure for name, failure in batch.failed.items() if name not in gone})


async def describe_cluster(
    cluster: Cluster, include_authorized_operations: bool, timeout_ms: int | None
) -> ClusterDescription:
    """Admin.describe_cluster."""
    from groupkeeper.protocol.messages import DescribeClusterRequest, DescribeClusterResponse

    deadline = cluster.deadline("describeCluster", timeout_ms)
    try:
        answer = await cluster.ask_any(
            DescribeClusterResponse, DescribeClusterRequest(include_authorized_operations), deadline
        )
    except UnsupportedVersion:
        await cluster.refresh(deadline)
        controller = cluster.nodes.get(cluster.controller_id)
        return ClusterDescription(cluster.cluster_id, controller, tuple(cluster.nodes.values()))
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message)
    nodes = {each.broker_id: Node(each.broker_id, each.host, each.port, each.rack) for each in answer.brokers}
    return ClusterDescription(
        cluster_id=answer.cluster_id,
        controller=nodes.get(answer.controller_id),
        nodes=tuple(nodes.values()),
        authorized_operations=operation_names(answer.cluster_authorized_operations),
    )
