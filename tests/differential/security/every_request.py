"""A request to each API that asks for rights, and what of its answer shows them."""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from tests.broker.test_cluster_apis import part

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.framing import request_class
from groupkeeper.protocol.primitives import Message
from groupkeeper.protocol.record_batch import Record, write_batch

TOPICS, GROUPS, TRANSACTIONS = ("ta", "tb"), ("ga", "gb"), ("xa", "xb")
ALSO_GONE = (*TOPICS, "gone")
UNKNOWN_PRODUCER = 9_999_999
EVERYTHING = (1, None, 1, None, None, 1, 1)
TOLD = frozenset(
    "error_code name user topic topic_name group_id key resource_name transactional_id topic_authorized_operations "
    "cluster_authorized_operations authorized_operations partition_index".split()
)
BATCH = write_batch([Record(b"k", b"v", timestamp=1)])


def of(key: int, /, *values: Any, **fields: Any) -> Any:
    """A request of an API."""
    return request_class(key)(*values, **fields)


def each(key: int, kind: str, names: Iterable[str | bytes], /, field: str = "name", **more: Any) -> list[Any]:
    """A struct inside a request for each name."""
    return [part(key, kind, **{field: name}, **more) for name in names]


def battery(topic_ids: Mapping[str, Any] | None = None) -> dict[str, tuple[Any, int]]:
    """Requests that leave things as they are, by their names, with versions. Share groups name topics by their ids."""
    found = {**of_cluster(), **of_settings(), **of_topics(), **of_records(), **of_controller(), **of_share_state()}
    for group in GROUPS:
        found |= {f"{name} {group}": asked for name, asked in {**of_group(group), **of_other_groups(group)}.items()}
    for name in TRANSACTIONS:
        found |= {f"{kind} {name}": asked for kind, asked in of_transaction(name).items()}
    for group, topic in product(GROUPS, topic_ids or ()):
        change_request_of = of_shared(group, (topic_ids or {})[topic])
        found |= {f"{name} {group} {topic}": asked for name, asked in change_request_of.items()}
    return found


def of_cluster() -> dict[str, tuple[Any, int]]:
    marked = each(27, "WritableTxnMarkerTopic", ["gone"], partition_indexes=[0])
    entity = [part(49, "EntityData", entity_type="user", entity_name="gone")]
    quota = part(49, "EntryData", entity=entity, ops=[part(49, "OpData", key="producer_byte_rate", value=1.0)])
    return {
        "DescribeCluster": (of(60, include_cluster_authorized_operations=True), 1),
        "DescribeGroups": (of(15, [*GROUPS, "gone"], True), 5),
        "ConsumerGroupDescribe": (of(69, [*GROUPS, "gone"], True), 1),
        "ShareGroupDescribe": (of(77, [*GROUPS, "gone"], True), 1),
        "StreamsGroupDescribe": (of(89, [*GROUPS, "gone"], True), 0),
        "ListGroups": (of(16), 4),
        "ListTransactions": (of(66), 1),
        "DescribeTransactions": (of(65, [*TRANSACTIONS]), 0),
        "InitProducerId": (of(22, None, 1000), 4),
        "DeleteGroups": (of(42, ["gone", "g-gone"]), 2),
        # Kafka does not answer one without names of a client that may not.
        "DescribeUserScramCredentials": (of(50, each(50, "UserName", ["gone"])), 0),
        "AlterUserScramCredentials": (of(51, each(51, "ScramCredentialDeletion", ["gone"], mechanism=1), []), 0),
        "DescribeClientQuotas": (of(48, [], False), 1),
        "AlterClientQuotas": (of(49, [quota], True), 1),
        "DescribeAcls": (m.DescribeAclsRequest(*EVERYTHING), 3),
        "CreateAcls": (m.CreateAclsRequest([m.AclCreation(1, "t", 3, "User:a", "*", 2, 3)]), 3),
        "DeleteAcls": (m.DeleteAclsRequest([m.DeleteAclsFilter(2, "none", 3, None, None, 1, 1)]), 3),
        "DescribeLogDirs": (of(35, None), 4),
        "ListPartitionReassignments": (of(46, 5000, None), 0),
        "ElectLeaders": (of(43, 0, each(43, "TopicPartitions", ["ta"], "topic", partitions=[0]), 5000), 2),
        "UpdateFeatures": (of(57, 5000, [], True), 1),
        "WriteTxnMarkers": (of(27, [part(27, "WritableTxnMarker", producer_id=1, topics=marked)]), 1),
        "FindCoordinator of transactions": (of(10, key_type=1, coordinator_keys=[*TRANSACTIONS]), 4),
        "FindCoordinator of groups": (of(10, key_type=0, coordinator_keys=[*GROUPS]), 4),
    }


def of_settings() -> dict[str, tuple[Any, int]]:
    described = [
        part(32, "DescribeConfigsResource", resource_type=kind, resource_name=name)
        for kind, name in ((2, "ta"), (2, "gone"), (4, "1"), (32, "ga"))
    ]
    changed = [
        part(
            44,
            "AlterConfigsResource",
            resource_type=kind,
            resource_name=name,
            configs=each(44, "AlterableConfig", [setting], config_operation=0, value=value),
        )
        for kind, name, setting, value in (
            (2, "ta", "retention.ms", "1"),
            (4, "1", "log.cleaner.threads", "1"),
            (32, "ga", "consumer.heartbeat.interval.ms", "5000"),
        )
    ]
    replaced = [
        part(33, "AlterConfigsResource", resource_type=kind, resource_name=name, configs=[])
        for kind, name in ((2, "ta"), (2, "gone"), (4, "1"), (32, "ga"))
    ]
    return {
        "AlterConfigs": (of(33, replaced, True), 2),
        "DescribeConfigs": (of(32, described), 4),
        "IncrementalAlterConfigs": (of(44, changed, True), 1),
        "ListConfigResources": (of(74, []), 1),
    }


def of_controller() -> dict[str, tuple[Any, int]]:
    moved = [part(45, "ReassignablePartition", partition_index=7, replicas=[1])]
    return {
        "AlterPartitionReassignments": (
            of(45, 5000, topics=each(45, "ReassignableTopic", ALSO_GONE, partitions=moved)),
            0,
        ),
        "DescribeQuorum": (
            of(55, each(55, "TopicData", ["ta"], "topic_name", partitions=[part(55, "PartitionData")])),
            1,
        ),
        "UnregisterBroker": (of(64, 999), 0),
    }


def of_share_state() -> dict[str, tuple[Any, int]]:
    """What group coordinators and leaders ask share coordinators."""
    return {
        f"share state {key}": (
            of(key, "gone", each(key, kind, [bytes(15) + b"M"], "topic_id", partitions=[part(key, "PartitionData")])),
            0,
        )
        for key, kind in (
            (83, "InitializeStateData"),
            (84, "ReadStateData"),
            (85, "WriteStateData"),
            (86, "DeleteStateData"),
            (87, "ReadStateSummaryData"),
        )
    }


def of_shared(group: str, topic_id: Any) -> dict[str, tuple[Any, int]]:
    fetched = each(78, "FetchTopic", [topic_id], "topic_id", partitions=[part(78, "FetchPartition", partition_index=0)])
    batch = part(79, "AcknowledgementBatch", first_offset=0, last_offset=0, acknowledge_types=[1])
    done = [part(79, "AcknowledgePartition", partition_index=0, acknowledgement_batches=[batch])]
    topics = each(79, "AcknowledgeTopic", [topic_id], "topic_id", partitions=done)
    return {
        "ShareFetch": (of(78, group, "m", 7, 0, 0, 1000, topics=fetched), 1),
        "ShareAcknowledge": (of(79, group, "m", 7, topics=topics), 1),
    }


def of_topics() -> dict[str, tuple[Any, int]]:
    named = each(3, "MetadataRequestTopic", ALSO_GONE)
    new = each(19, "CreatableTopic", ["t-new", "other-new", "ta"], num_partitions=1, replication_factor=1)
    return {
        "Metadata": (of(3, named, False, True, True), 9),
        "Metadata of all": (of(3, None, False, True, True), 9),
        "DescribeTopicPartitions": (of(75, each(75, "TopicRequest", ALSO_GONE)), 0),
        "CreateTopics": (of(19, new, 5000, True), 7),
        "DeleteTopics": (of(20, topic_names=["gone", "t-gone"], timeout_ms=5000), 5),
        "CreatePartitions": (of(37, each(37, "CreatePartitionsTopic", ALSO_GONE, count=3), 5000, True), 3),
    }


def of_records() -> dict[str, tuple[Any, int]]:
    removed = [part(21, "DeleteRecordsPartition", partition_index=0, offset=0)]
    produced = [part(0, "PartitionProduceData", index=0, records=BATCH)]
    fetched = [part(1, "FetchPartition", partition_max_bytes=100)]
    asked = [part(2, "ListOffsetsPartition", timestamp=-1)]
    epochs = [part(23, "OffsetForLeaderPartition", partition=0, leader_epoch=0)]
    return {
        "DeleteRecords": (of(21, each(21, "DeleteRecordsTopic", TOPICS, partitions=removed), 5000), 2),
        "Produce": (of(0, None, -1, 5000, each(0, "TopicProduceData", TOPICS, partition_data=produced)), 9),
        "Fetch": (of(1, max_wait_ms=0, topics=each(1, "FetchTopic", ALSO_GONE, "topic", partitions=fetched)), 11),
        "ListOffsets": (of(2, topics=each(2, "ListOffsetsTopic", ALSO_GONE, partitions=asked)), 7),
        "OffsetForLeaderEpoch": (
            of(23, topics=each(23, "OffsetForLeaderTopic", TOPICS, "topic", partitions=epochs)),
            4,
        ),
        "DescribeProducers": (of(61, each(61, "TopicRequest", TOPICS, partition_indexes=[0])), 0),
    }


def of_group(group: str) -> dict[str, tuple[Any, int]]:
    commit = [part(8, "OffsetCommitRequestPartition", partition_index=0, committed_offset=1)]
    fetch = each(9, "OffsetFetchRequestTopics", ALSO_GONE, partition_indexes=[0])
    delete = [part(47, "OffsetDeleteRequestPartition", partition_index=0)]
    protocols = each(11, "JoinGroupRequestProtocol", ["range"], metadata=b"")
    joining = of(11, group, 10_000, 10_000, "absent", protocol_type="consumer", protocols=protocols)
    return {
        "OffsetCommit": (of(8, group, topics=each(8, "OffsetCommitRequestTopic", ALSO_GONE, partitions=commit)), 8),
        "OffsetFetch": (of(9, groups=each(9, "OffsetFetchRequestGroup", [group], "group_id", topics=fetch)), 8),
        "OffsetFetch of all": (of(9, groups=each(9, "OffsetFetchRequestGroup", [group], "group_id", topics=None)), 8),
        "OffsetDelete": (of(47, group, each(47, "OffsetDeleteRequestTopic", ["gone"], partitions=delete)), 0),
        "JoinGroup": (joining, 9),
        "SyncGroup": (of(14, group, 1, "m", protocol_type="c", protocol_name="p"), 5),
        "Heartbeat": (of(12, group, 1, "m"), 4),
        "LeaveGroup": (of(13, group, members=each(13, "MemberIdentity", ["m"], "member_id")), 5),
    }


def of_other_groups(group: str) -> dict[str, tuple[Any, int]]:
    offsets = each(90, "DescribeShareGroupOffsetsRequestTopic", TOPICS, "topic_name", partitions=[0])
    described = each(90, "DescribeShareGroupOffsetsRequestGroup", [group], "group_id", topics=offsets)
    deleted = each(92, "DeleteShareGroupOffsetsRequestTopic", TOPICS, "topic_name")
    start = [part(91, "AlterShareGroupOffsetsRequestPartition", partition_index=0, start_offset=0)]
    altered = each(91, "AlterShareGroupOffsetsRequestTopic", ["gone"], "topic_name", partitions=start)
    tasks = part(88, "Subtopology", subtopology_id="0", source_topics=[*ALSO_GONE])
    heartbeats = {
        f"ConsumerGroupHeartbeat to {topic}": (
            of(68, group, "m", 5, subscribed_topic_names=[topic], topic_partitions=None), 0)
        for topic in ALSO_GONE
    } | {
        f"ShareGroupHeartbeat to {topic}": (of(76, group, "m", 5, None, [topic]), 1) for topic in ALSO_GONE
    }  # fmt: skip
    return heartbeats | {
        "ConsumerGroupHeartbeat": (of(68, group, "m", 5, subscribed_topic_names=None, topic_partitions=None), 0),
        "ConsumerGroupHeartbeat to a pattern": (
            of(68, group, "m", 5, subscribed_topic_names=None, subscribed_topic_regex="t.*", topic_partitions=None), 1),
        "StreamsGroupHeartbeat with a topology": (
            of(88, group, "m", 0, topology=part(88, "Topology", epoch=1, subtopologies=[tasks])), 0),
        "AlterShareGroupOffsets": (of(91, group, altered), 0),
        "ShareGroupHeartbeat": (of(76, group, "m", 5), 1),
        "StreamsGroupHeartbeat": (of(88, group, "m", 5), 0),
        "DescribeShareGroupOffsets": (of(90, described), 0),
        "DeleteShareGroupOffsets": (of(92, group, deleted), 0),
    }  # fmt: skip


def of_transaction(name: str) -> dict[str, tuple[Any, int]]:
    added = {
        "v3_and_below_transactional_id": name,
        "v3_and_below_producer_id": UNKNOWN_PRODUCER,
        "v3_and_below_topics": each(24, "AddPartitionsToTxnTopic", ALSO_GONE, partitions=[0]),
    }
    commit = [part(28, "TxnOffsetCommitRequestPartition", partition_index=0, committed_offset=1)]
    offsets = each(28, "TxnOffsetCommitRequestTopic", TOPICS, partitions=commit)
    return {
        "InitProducerId": (of(22, name, 60_000), 4),
        "AddPartitionsToTxn": (of(24, **added), 3),
        "AddOffsetsToTxn": (of(25, name, UNKNOWN_PRODUCER, 0, "ga"), 3),
        "EndTxn": (of(26, name, UNKNOWN_PRODUCER, 0, True), 3),
        "TxnOffsetCommit": (of(28, name, "ga", UNKNOWN_PRODUCER, 0, topics=offsets), 3),
    }


def shape(value: object) -> Any:
    """Errors, rights and what they are about; the order within a list doesn't count."""
    if isinstance(value, list | tuple):
        return sorted((shape(one) for one in value), key=repr)
    if isinstance(value, Message):
        parts = {name: getattr(value, name) for name in value.__slots__}
        return {
            name: shape(part)
            for name, part in parts.items()
            if name in TOLD
            or name.endswith("_error_code")
            or (name != "configs" and isinstance(part, list | tuple | Message))
        }
    return value
