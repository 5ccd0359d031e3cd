"""Log directories and replica sizes on the brokers' disks (DescribeLogDirs)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groupkeeper.client.admin.resources.controller import ask_broker, ask_every_broker
from groupkeeper.client.admin.resources.types import LogDir, Replica
from groupkeeper.client.admin.types import Batch, Failure, TopicPartition
from groupkeeper.client.batch import batch_of, failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import ClientError
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError, error_for


async def describe_log_dirs(
    cluster: Cluster,
    broker_ids: Iterable[int] | None,
    partitions: Iterable[TopicPartition] | None,
    timeout_ms: int | None,
) -> Batch[int, dict[str, LogDir]]:
    """Admin.describe_log_dirs."""
    deadline = cluster.deadline("describeLogDirs", timeout_ms)
    topics: dict[str, list[int]] = {}
    for each in partitions or ():
        topics.setdefault(each.topic, []).append(each.partition)
    requested = None if partitions is None else [m.DescribableLogDirTopic(name, each) for name, each in topics.items()]
    answers: dict[int, dict[str, LogDir] | Failure] = {}
    request = m.DescribeLogDirsRequest(requested)
    if broker_ids is None:
        everyone = await ask_every_broker(
            cluster, m.DescribeLogDirsResponse, request, deadline, lambda answer: answer.error_code
        )
        answers = {node.id: _log_dirs(answer) for node, answer in everyone.items()}
        return batch_of(answers, answers, "describeLogDirs: no reply from broker {}")
    wanted = list(dict.fromkeys(broker_ids))
    for broker_id in wanted:
        try:
            answer = await ask_broker(cluster, broker_id, m.DescribeLogDirsResponse, request, deadline)
            answers[broker_id] = _log_dirs(answer)
        except (ClientError, KafkaError) as error:
            answers[broker_id] = error
    return batch_of(wanted, answers, "describeLogDirs: no reply from broker {}")


def _log_dirs(answer: m.DescribeLogDirsResponse | Failure) -> dict[str, LogDir] | Failure:
    if isinstance(answer, Failure):
        return answer
    if answer.error_code:
        return error_for(answer.error_code)
    return {each.log_dir: _log_dir(each) for each in answer.results}


def _log_dir(found: m.DescribeLogDirsResult) -> LogDir:
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
