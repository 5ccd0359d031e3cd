"""More partitions for topics, fewer records in them, and how much lies where on the brokers' disks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from groupkeeper.client.admin.arguments import keyed, mapped, of_kind, one_of, several
from groupkeeper.client.admin.log_offsets import of_leaders
from groupkeeper.client.admin.resources import controller
from groupkeeper.client.admin.types import Batch, Failure, TopicPartition
from groupkeeper.client.batch import batch_of, failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import ClientError, IllegalArgument
from groupkeeper.client.peer import Peer
from groupkeeper.client.topology import by_topic
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError, error_for

if TYPE_CHECKING:
    from groupkeeper.client.admin.resources.types import LogDir, NewPartitions

_PARTITIONS_PER_REQUEST = 5000
_LOWEST = -1


class PartitionCalls:
    """Calls of Admin on partitions and their logs."""

    _cluster: Cluster

    async def create_partitions(
        self, totals: Mapping[str, int | NewPartitions], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Give topics more partitions: `{"orders": 12}` is the new total.

        Records with keys go to other partitions from then on. Fails per topic: InvalidPartitions when the topic has as
        many already, UnknownTopicOrPartition, TopicAuthorizationFailed (this needs ALTER on it),
        InvalidReplicaAssignment.
        """
        from groupkeeper.client.admin.resources.types import NewPartitions

        for total in mapped(totals, "totals").values():
            one_of(total, (int, NewPartitions), "totals")
        deadline = self._cluster.deadline("createPartitions", timeout_ms)
        if not totals:
            return Batch()

        def topic_of(name: str, wanted: int | NewPartitions) -> m.CreatePartitionsTopic:
            new = NewPartitions(wanted) if isinstance(wanted, int) else wanted
            assignments = (
                None if new.assignments is None else [m.CreatePartitionsAssignment(ids) for ids in new.assignments]
            )
            return m.CreatePartitionsTopic(name, new.total_count, assignments)

        topics = [topic_of(name, wanted) for name, wanted in totals.items()]
        response = await controller.ask_controller(
            self._cluster,
            m.CreatePartitionsResponse,
            lambda version: m.CreatePartitionsRequest(topics, deadline.left_ms(), validate_only),
            deadline,
            lambda response: any(topic.error_code == controller.NOT_CONTROLLER for topic in response.results),
        )
        results: dict[str, Failure | None] = {
            topic.name: failure_of(topic.error_code, topic.error_message) for topic in response.results
        }
        return batch_of(totals, results, "createPartitions: the reply has no result for {}")

    async def delete_records(
        self, before: Mapping[TopicPartition, int | None], *, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, int]:
        """Delete the records before an offset of each partition, for good; None: all present records. The result is the
        new log start offset. Fails per partition: OffsetOutOfRange beyond the high watermark, PolicyViolation for a
        compacted topic, UnknownTopicOrPartition, TopicAuthorizationFailed (this needs DELETE).
        """
        before = keyed(before, TopicPartition, "before")
        for tp, offset in before.items():
            if offset is not None and offset < 0:
                raise IllegalArgument(f"{tp}: an offset must not be negative: {offset}; None deletes all records")
        deadline = self._cluster.deadline("deleteRecords", timeout_ms)

        async def ask(peer: Peer, keys: list[TopicPartition]) -> dict[TopicPartition, int | Failure]:
            offsets = {key: _LOWEST if (offset := before[key]) is None else offset for key in keys}
            topics = by_topic((key.topic, m.DeleteRecordsPartition(key.partition, offsets[key])) for key in keys)
            requested = [m.DeleteRecordsTopic(name, partitions) for name, partitions in topics.items()]
            response = await peer.ask(
                m.DeleteRecordsResponse, lambda version: m.DeleteRecordsRequest(requested, deadline.left_ms()), deadline
            )
            return {
                TopicPartition(topic.name, each.partition_index): failure_of(each.error_code) or each.low_watermark
                for topic in response.topics
                for each in topic.partitions
            }

        return await of_leaders(self._cluster, deadline, ask, chunk=_PARTITIONS_PER_REQUEST).run(list(before))

    async def describe_log_dirs(
        self,
        broker_ids: Iterable[int] | None = None,
        *,
        partitions: Iterable[TopicPartition] | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[int, dict[str, LogDir]]:
        """The log directories of brokers by path, with their replicas and sizes; None: all brokers. `partitions`:
        only replicas of these; None: all. Fails per broker: ClusterAuthorizationFailed (this needs DESCRIBE on the
        cluster; without it, brokers before 3.2 return nothing), IllegalArgument for a broker that doesn't exist.
        """
        wanted = None if broker_ids is None else list(dict.fromkeys(several(broker_ids, "broker_ids")))
        requested = None
        if partitions is not None:
            topics = by_topic(of_kind(partitions, TopicPartition, "partitions"))
            requested = [m.DescribableLogDirTopic(name, each) for name, each in topics.items()]
        deadline = self._cluster.deadline("describeLogDirs", timeout_ms)
        results: dict[int, dict[str, LogDir] | Failure] = {}
        request = m.DescribeLogDirsRequest(requested)
        if wanted is None:
            everyone = await controller.ask_every_broker(
                self._cluster, m.DescribeLogDirsResponse, request, deadline, lambda response: response.error_code
            )
            results = {node.id: _log_dirs(response) for node, response in everyone.items()}
            return batch_of(results, results, "describeLogDirs: no reply from broker {}")
        for broker_id in wanted:
            try:
                response = await controller.ask_broker(
                    self._cluster, broker_id, m.DescribeLogDirsResponse, request, deadline
                )
                results[broker_id] = _log_dirs(response)
            except (ClientError, KafkaError) as error:
                results[broker_id] = error
        return batch_of(wanted, results, "describeLogDirs: no reply from broker {}")


def _log_dirs(response: m.DescribeLogDirsResponse | Failure) -> dict[str, LogDir] | Failure:
    if isinstance(response, Failure):
        return response
    if response.error_code:
        return error_for(response.error_code)
    return {each.log_dir: _log_dir(each) for each in response.results}


def _log_dir(found: m.DescribeLogDirsResult) -> LogDir:
    from groupkeeper.client.admin.resources.types import LogDir, Replica

    replicas: Mapping[TopicPartition, Replica] = {
        TopicPartition(topic.name, each.partition_index): Replica(
            each.partition_size, each.offset_lag, each.is_future_key
        )
        for topic in found.topics
        for each in topic.partitions
    }
    return LogDir(
        replicas=dict(replicas),
        total_bytes=None if found.total_bytes < 0 else found.total_bytes,
        usable_bytes=None if found.usable_bytes < 0 else found.usable_bytes,
        error=failure_of(found.error_code),
    )
