"""Topics and the cluster itself: Metadata, CreateTopics, DeleteTopics, DescribeCluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from groupkeeper.client.admin.arguments import of_kind, several
from groupkeeper.client.admin.resources.controller import NOT_CONTROLLER, ask_controller
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
from groupkeeper.client.batch import batch_of, failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import UnsupportedVersion
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError, TopicAlreadyExists, UnknownTopicOrPartition, error_for
from groupkeeper.protocol.primitives import ZERO_UUID

V = TypeVar("V")

_MISSING = "the reply has no result for topic {}"


class TopicCalls:
    """Calls of Admin about topics and the cluster itself."""

    _cluster: Cluster

    async def describe_topics(
        self,
        names: Iterable[str] | None = None,
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[str, TopicDescription]:
        """Describe topics by name, or all that the caller may see (None), internal ones included.

        Never creates a topic. Fails per topic: UnknownTopicOrPartition, TopicAuthorizationFailed, InvalidTopic.
        """
        deadline = self._cluster.deadline("describeTopics", timeout_ms)
        wanted = None if names is None else list(dict.fromkeys(several(names, "names")))
        if wanted == []:
            return Batch()
        response = await self._cluster.metadata(
            wanted, deadline, include_authorized_operations=include_authorized_operations
        )
        topic_by_name = {topic.name: topic for topic in response.topics if topic.name is not None}
        batch: Batch[str, TopicDescription] = Batch()
        for name in topic_by_name if wanted is None else wanted:
            topic = topic_by_name.get(name)
            if topic is None:
                # A response about all topics (Metadata < 4) lacks unknown ones.
                batch.failed[name] = UnknownTopicOrPartition()
            elif topic.error_code:
                batch.failed[name] = error_for(topic.error_code)
            else:
                batch.done[name] = _description(self._cluster, name, topic)
        return batch

    async def list_topics(self, *, include_internal: bool = False, timeout_ms: int | None = None) -> list[TopicListing]:
        """The topics that the caller may see, sorted by name."""
        response = await self._cluster.metadata(None, self._cluster.deadline("listTopics", timeout_ms))
        return sorted(
            TopicListing(topic.name, _topic_id(topic.topic_id), topic.is_internal)
            for topic in response.topics
            if topic.name is not None and (include_internal or not topic.is_internal)
        )

    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        if_missing: bool = False,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[str, CreatedTopic]:
        """Create topics: TopicAlreadyExists, InvalidPartitions … per topic, with the broker's message.

        `if_missing`: an existing topic is left unchanged, and is in `done`, with `is_new` False.
        """
        deadline = self._cluster.deadline("createTopics", timeout_ms)
        creatable = [
            m.CreatableTopic(
                name=topic.name,
                num_partitions=-1 if topic.assignments else topic.num_partitions,
                replication_factor=-1 if topic.assignments else topic.replication_factor,
                assignments=[
                    m.CreatableReplicaAssignment(index, list(replicas))
                    for index, replicas in (topic.assignments or {}).items()
                ],
                configs=[m.CreatableTopicConfig(name, value) for name, value in topic.configs.items()],
            )
            for topic in of_kind(topics, NewTopic, "topics")
        ]
        response = await ask_controller(
            self._cluster,
            m.CreateTopicsResponse,
            lambda version: m.CreateTopicsRequest(creatable, deadline.left_ms(), validate_only),
            deadline,
            lambda response: any(topic.error_code == NOT_CONTROLLER for topic in response.topics),
        )

        def created(topic: m.CreatableTopicResult) -> CreatedTopic:
            configs = {each.name: each.value for each in topic.configs or ()} or None
            return CreatedTopic(
                topic.name, _topic_id(topic.topic_id), topic.num_partitions, topic.replication_factor, configs
            )

        results: dict[str, CreatedTopic | Failure] = {
            topic.name: failure_of(topic.error_code, topic.error_message) or created(topic) for topic in response.topics
        }
        batch = batch_of([topic.name for topic in creatable], results, _MISSING)
        if if_missing:
            _settle(batch, TopicAlreadyExists, lambda name: CreatedTopic(name, is_new=False))
        return batch

    async def delete_topics(
        self, names: Iterable[str], *, if_there: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Delete topics with their records: UnknownTopicOrPartition, TopicDeletionDisabled … per topic.

        `if_there`: a missing topic is in `done`, too.
        """
        deadline = self._cluster.deadline("deleteTopics", timeout_ms)
        wanted = list(dict.fromkeys(several(names, "names")))

        def build(version: int) -> m.DeleteTopicsRequest:
            timeout_ms = deadline.left_ms()
            if version >= 6:
                return m.DeleteTopicsRequest(
                    topics=[m.DeleteTopicState(name) for name in wanted], timeout_ms=timeout_ms
                )
            return m.DeleteTopicsRequest(topic_names=wanted, timeout_ms=timeout_ms)

        response = await ask_controller(
            self._cluster,
            m.DeleteTopicsResponse,
            build,
            deadline,
            lambda response: any(topic.error_code == NOT_CONTROLLER for topic in response.responses),
        )
        results: dict[str, Failure | None] = {
            topic.name or "": failure_of(topic.error_code, topic.error_message) for topic in response.responses
        }
        gone = frozenset(wanted)
        for key in [key for key in self._cluster.leaders if key[0] in gone]:
            del self._cluster.leaders[key]
        batch = batch_of(wanted, results, _MISSING)
        if if_there:
            _settle(batch, UnknownTopicOrPartition, lambda _: None)
        return batch

    async def describe_cluster(
        self, *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> ClusterDescription:
        """The cluster's id, controller and brokers."""
        deadline = self._cluster.deadline("describeCluster", timeout_ms)
        try:
            response = await self._cluster.ask_any(
                m.DescribeClusterResponse, m.DescribeClusterRequest(include_authorized_operations), deadline
            )
        except UnsupportedVersion:
            await self._cluster.refresh(deadline)
            controller = self._cluster.nodes.get(self._cluster.controller_id)
            return ClusterDescription(self._cluster.cluster_id, controller, tuple(self._cluster.nodes.values()))
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        nodes = {each.broker_id: Node(each.broker_id, each.host, each.port, each.rack) for each in response.brokers}
        return ClusterDescription(
            cluster_id=response.cluster_id,
            controller=nodes.get(response.controller_id),
            nodes=tuple(nodes.values()),
            authorized_operations=operation_names(response.cluster_authorized_operations),
        )


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
        error=failure_of(partition.error_code),
    )


def _topic_id(topic_id: bytes) -> bytes | None:
    return None if topic_id == ZERO_UUID else topic_id


def _settle(batch: Batch[str, V], kind: type[KafkaError], result: Callable[[str], V]) -> None:
    """Moves topics with such a failure to `done`."""
    for name in [name for name, failure in batch.failed.items() if isinstance(failure, kind)]:
        del batch.failed[name]
        batch.done[name] = result(name)
