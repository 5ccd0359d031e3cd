"""A cluster with members of groups and an open transaction, and what else a client may ask about it: by ids of topics,
in the newest versions, as a replica would.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tests.broker.test_cluster_apis import part
from tests.differential.security.every_request import ALSO_GONE, BATCH, TOPICS, UNKNOWN_PRODUCER, each, of
from tests.patience import until

from groupkeeper.protocol.record_batch import Record, write_batch

Ask = Callable[[Any, int], Any]

LIVE = {"gc": "consumer", "gs": "share", "gt": "streams"}
OPEN = "xl"
"""A transaction with both topics in it."""
SESSION_MS = 1_700_000
SETTINGS = {
    f"group.{kind}.{name}": str(SESSION_MS)
    for kind in LIVE.values()
    for name in ("session.timeout.ms", "max.session.timeout.ms")
} | {"transaction.max.timeout.ms": str(2 * SESSION_MS), "group.streams.initial.rebalance.delay.ms": "0"}
"""The delay of streams groups is 0: Apache Kafka assigns no tasks at its end if each member was heard only once."""
_TRANSACTIONAL = write_batch(
    [Record(b"k", b"v", timestamp=1)],
    producer_id=UNKNOWN_PRODUCER,
    producer_epoch=0,
    base_sequence=0,
    is_transactional=True,
)
_NO_TOPIC = bytes(15) + b"N"


def settle(ask: Ask) -> None:
    """Members of each type of group join for as long as tests take, and a transaction begins."""
    tasks = part(88, "Subtopology", subtopology_id="0", source_topics=[*TOPICS])
    joins: list[tuple[Any, int]] = [
        (of(68, "gc", "m-c", 0, rebalance_timeout_ms=SESSION_MS, subscribed_topic_names=[*TOPICS],
            topic_partitions=[]), 1),
        (of(76, "gs", "m-s", 0, None, [*TOPICS]), 1),
        (of(88, "gt", "m-t", 0, rebalance_timeout_ms=SESSION_MS, process_id="p", active_tasks=[], standby_tasks=[],
            warmup_tasks=[], topology=part(88, "Topology", epoch=1, subtopologies=[tasks])), 0),
    ]  # fmt: skip
    for request, version in joins:
        until(lambda request=request, version=version: ask(request, version).error_code == 0)  # type: ignore[misc]
    started = []
    until(lambda: started.append(ask(of(22, OPEN, SESSION_MS), 4)) or not started[-1].error_code)  # type: ignore[func-returns-value]
    added = each(24, "AddPartitionsToTxnTopic", TOPICS, partitions=[0])
    fields = {"v3_and_below_transactional_id": OPEN, "v3_and_below_topics": added}
    ids = {"v3_and_below_producer_id": started[-1].producer_id, "v3_and_below_producer_epoch": 0}

    def is_added() -> bool:
        topics = ask(of(24, **fields, **ids), 3).results_by_topic_v3_and_below
        return not any(one.partition_error_code for topic in topics for one in topic.results_by_partition)

    until(is_added)
    # The share coordinator learns of a group's partitions a moment after its first member.
    wanted = [part(90, "DescribeShareGroupOffsetsRequestGroup", group_id="gs", topics=None)]
    until(lambda: len(ask(of(90, wanted), 0).groups[0].topics) == len(TOPICS))


def more(topic_ids: Mapping[str, bytes]) -> dict[str, tuple[Any, int]]:
    """Requests that leave things as they are, by their names, with versions."""
    ids = [*topic_ids.values(), _NO_TOPIC]
    return {**of_ids(ids), **of_replicas(), **of_live_groups(), **of_transactions(), **of_settings()}


def of_ids(ids: list[bytes]) -> dict[str, tuple[Any, int]]:
    fetched = [part(1, "FetchPartition", partition_max_bytes=100)]
    produced = [part(0, "PartitionProduceData", index=0, records=BATCH)]
    commit = [part(8, "OffsetCommitRequestPartition", partition_index=0, committed_offset=1)]
    named = each(3, "MetadataRequestTopic", ids, "topic_id")
    for one in named:
        one.name = None
    offsets = each(9, "OffsetFetchRequestTopics", ids, "topic_id", partition_indexes=[0])
    shared = each(78, "FetchTopic", ids[:-1], "topic_id", partitions=[part(78, "FetchPartition", partition_index=0)])
    gone = [
        part(20, "DeleteTopicState", topic_id=_NO_TOPIC),
        *each(20, "DeleteTopicState", ["gone", "t-gone", "t-gone"]),
        part(20, "DeleteTopicState"),
        part(20, "DeleteTopicState", name="both", topic_id=_NO_TOPIC),
    ]
    return {
        "Metadata by ids": (of(3, named, False, False, True), 13),
        "Fetch by ids": (of(1, topics=each(1, "FetchTopic", ids, "topic_id", partitions=fetched)), 17),
        "Produce by ids": (
            of(0, None, -1, 5000, each(0, "TopicProduceData", ids, "topic_id", partition_data=produced)), 13),
        "OffsetCommit by ids": (
            of(8, "ga", topics=each(8, "OffsetCommitRequestTopic", ids, "topic_id", partitions=commit)), 10),
        "OffsetFetch by ids": (
            of(9, groups=each(9, "OffsetFetchRequestGroup", ["ga", "gb"], "group_id", topics=offsets)), 10),
        "OffsetFetch of all by ids": (
            of(9, groups=each(9, "OffsetFetchRequestGroup", ["ga", "gb"], "group_id", topics=None)), 10),
        "DeleteTopics of states": (of(20, gone, timeout_ms=5000), 6),
        "ShareFetch of a new session": (of(78, "ga", "A" * 22, 0, 0, 1, 1000, 0, 5, topics=shared), 2),
    }  # fmt: skip


def of_replicas() -> dict[str, tuple[Any, int]]:
    fetched = [part(1, "FetchPartition", partition_max_bytes=100)]
    epochs = [part(23, "OffsetForLeaderPartition", partition=0, leader_epoch=0)]
    topics = each(34, "AlterReplicaLogDirTopic", ["ta"], partitions=[0])
    moved = part(34, "AlterReplicaLogDir", path="/gone", topics=topics)
    listed = each(35, "DescribableLogDirTopic", ALSO_GONE, "topic", partitions=[0])
    return {
        "Fetch of a replica": (
            of(1, replica_id=7, topics=each(1, "FetchTopic", ALSO_GONE, "topic", partitions=fetched)), 11),
        "OffsetForLeaderEpoch of a replica": (
            of(23, 7, each(23, "OffsetForLeaderTopic", TOPICS, "topic", partitions=epochs)), 4),
        "AlterReplicaLogDirs": (of(34, [moved]), 2),
        "DescribeLogDirs of topics": (of(35, listed), 4),
        "FindCoordinator of share state": (of(10, key_type=2, coordinator_keys=[f"ga:{'A' * 22}:0"]), 6),
    }  # fmt: skip


def of_live_groups() -> dict[str, tuple[Any, int]]:
    names = [*LIVE, "ga"]
    tasks = part(88, "Subtopology", subtopology_id="0", source_topics=["ta"], repartition_sink_topics=["tr"],
                 repartition_source_topics=[part(88, "TopicInfo", name="tr", partitions=1)],
                 state_changelog_topics=[part(88, "TopicInfo", name="other-log")])  # fmt: skip
    sinks = part(88, "Subtopology", subtopology_id="0", source_topics=["ta"], repartition_sink_topics=["tb"])
    described = each(90, "DescribeShareGroupOffsetsRequestGroup", names, "group_id", topics=None)
    return {
        "DescribeGroups of live groups": (of(15, names, True), 6),
        "ConsumerGroupDescribe of live groups": (of(69, names, True), 1),
        "ShareGroupDescribe of live groups": (of(77, names, True), 1),
        "DescribeShareGroupOffsets of all topics": (of(90, described), 0),
        "DeleteShareGroupOffsets of a live group": (
            of(92, "gs", each(92, "DeleteShareGroupOffsetsRequestTopic", ALSO_GONE, "topic_name")), 0),
        "ListGroups of types": (of(16, [], ["share", "consumer"]), 5),
        "DeleteGroups that are not empty": (of(42, [*LIVE]), 2),
        "StreamsGroupDescribe of live groups": (of(89, names, True), 0),
        "StreamsGroupHeartbeat with topics to make": (
            of(88, "gn", "m", 5, topology=part(88, "Topology", epoch=1, subtopologies=[tasks])), 0),
        "StreamsGroupHeartbeat that writes to a topic": (
            of(88, "gn", "m", 5, topology=part(88, "Topology", epoch=1, subtopologies=[sinks])), 0),
        "OffsetDelete of a live group": (
            of(47, "gc", each(47, "OffsetDeleteRequestTopic", ALSO_GONE,
                              partitions=[part(47, "OffsetDeleteRequestPartition", partition_index=0)])), 0),
    }  # fmt: skip


def of_transactions() -> dict[str, tuple[Any, int]]:
    produced = [part(0, "PartitionProduceData", index=0, records=_TRANSACTIONAL)]
    added = [
        part(24, "AddPartitionsToTxnTransaction", transactional_id=name, producer_id=UNKNOWN_PRODUCER, verify_only=True,
             topics=each(24, "AddPartitionsToTxnTopic", ALSO_GONE, partitions=[0]))
        for name in ("xa", "xb")
    ]  # fmt: skip
    commit = [part(28, "TxnOffsetCommitRequestPartition", partition_index=0, committed_offset=1)]
    offsets = each(28, "TxnOffsetCommitRequestTopic", ALSO_GONE, partitions=commit)
    return {
        "Produce in a transaction": (
            of(0, "xa", -1, 5000, each(0, "TopicProduceData", ALSO_GONE, partition_data=produced)), 11),
        "DescribeTransactions of an open one": (of(65, [OPEN, "gone"]), 0),
        "ListTransactions that are open": (of(66, ["Ongoing"]), 1),
        "AddPartitionsToTxn of a broker": (of(24, added), 4),
        "TxnOffsetCommit of a new client": (of(28, "xa", "gb", UNKNOWN_PRODUCER, 0, topics=offsets), 5),
        "EndTxn of a new client": (of(26, "xa", UNKNOWN_PRODUCER, 0, False), 5),
        "AddOffsetsToTxn of a new client": (of(25, "xb", UNKNOWN_PRODUCER, 0, "gb"), 4),
        "InitProducerId of an idempotent one": (of(22, None, 60_000), 5),
    }  # fmt: skip


def of_settings() -> dict[str, tuple[Any, int]]:
    kinds = ((8, "1"), (16, "m"), (32, "gc"), (4, ""), (2, "tb"))
    described = [part(32, "DescribeConfigsResource", resource_type=kind, resource_name=name) for kind, name in kinds]
    settings = {8: ("kafka", "INFO"), 16: ("interval.ms", "1000"), 32: ("share.auto.offset.reset", "latest"),
                4: ("log.cleaner.threads", "1"), 2: ("retention.ms", "1")}  # fmt: skip
    changed = [
        part(44, "AlterConfigsResource", resource_type=kind, resource_name=name,
             configs=[part(44, "AlterableConfig", name=settings[kind][0], value=settings[kind][1])])
        for kind, name in kinds
    ]  # fmt: skip
    return {
        "DescribeConfigs of every kind": (of(32, described), 4),
        "IncrementalAlterConfigs of every kind": (of(44, changed, True), 1),
        "ListConfigResources of kinds": (of(74, [2, 32]), 1),
    }
