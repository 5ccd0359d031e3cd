"""Records of consumer, share and streams groups as text. A task is `0_2`, partition 2 of subtopology 0; `s0_2` is a
standby.
"""

from collections.abc import Iterable
from typing import Any

from groupkeeper.coordinator.kernel.result import Record
from groupkeeper.protocol.offsets_topic import Tombstone

_NAMES = {
    "GroupMetadataKey": "epoch",
    "GroupTopologyKey": "topology",
    "GroupMemberMetadataKey": "member",
    "GroupPartitionMetadataKey": "partitions",
    "GroupStatePartitionMetadataKey": "partitions",
    "GroupTargetAssignmentMetadataKey": "target-epoch",
    "GroupTargetAssignmentMemberKey": "target",
    "GroupCurrentMemberAssignmentKey": "current",
    "GroupRegularExpressionKey": "pattern",
}
_CONSUMER_STATES = {0: "stable", 1: "unrevoked", 2: "unreleased"}
_STREAMS_STATES = {1: "stable", 2: "unrevoked", 3: "unreleased"}


def record_text(record: Record) -> str | None:
    """One line for one record; None for those of classic groups and of offsets."""
    kind, _, rest = type(record.key).__name__.partition("Group")
    if kind not in ("Consumer", "Share", "Streams"):
        return None
    prefix = "" if kind == "Consumer" else f"{kind.lower()}-"
    where = " ".join(str(getattr(record.key, slot)) for slot in record.key.__slots__)
    name = f"{prefix}{_NAMES['Group' + rest]} {where}"
    return f"- {name}" if isinstance(record, Tombstone) else f"+ {name}: {_value_text(record.value)}"


def _value_text(value: Any) -> str:
    match type(value).__name__:
        case "ConsumerGroupMetadataValue" | "ShareGroupMetadataValue":
            return str(value.epoch)
        case "StreamsGroupMetadataValue":
            configs = " ".join(f"{one.key}={one.value}" for one in value.last_assignment_configs or ())
            return f"{value.epoch} validated={value.validated_topology_epoch} {configs}"
        case "StreamsGroupTopologyValue":
            return f"{value.epoch} {' '.join(one.subtopology_id for one in value.subtopologies)}"
        case "ConsumerGroupRegularExpressionValue":
            return ",".join(value.topics) or "nothing"
        case "ShareGroupStatePartitionMetadataValue":
            deleting = ",".join(topic.topic_name for topic in value.deleting_topics) or "nothing"
            return (
                f"initializing {partitions_text(value.initializing_topics)} "
                f"initialized {partitions_text(value.initialized_topics)} deleting {deleting}"
            )
        case name if name.endswith("MemberMetadataValue"):
            return _member_text(value)
        case name if name.endswith("TargetAssignmentMetadataValue"):
            return str(value.assignment_epoch)
        case name if name.endswith("TargetAssignmentMemberValue"):
            is_streams = name.startswith("Streams")
            return tasks_text(value) if is_streams else partitions_text(value.topic_partitions)
    return _current_text(value)


def _member_text(value: Any) -> str:
    match type(value).__name__:
        case "StreamsGroupMemberMetadataValue":
            return f"{value.process_id} topology-epoch={value.topology_epoch}"
        case "ShareGroupMemberMetadataValue":
            return ",".join(value.subscribed_topic_names)
    text = ",".join(value.subscribed_topic_names) or "no topics"
    if value.subscribed_topic_regex:
        text += f" pattern={value.subscribed_topic_regex}"
    if value.instance_id is not None:
        text += f" instance={value.instance_id}"
    if value.server_assignor is not None:
        text += f" assignor={value.server_assignor}"
    return text if value.classic_member_metadata is None else f"{text} classic"


def _current_text(value: Any) -> str:
    epochs = f"{value.previous_member_epoch}->{value.member_epoch}"
    match type(value).__name__:
        case "StreamsGroupCurrentMemberAssignmentValue":
            gives_back = _tasks(value.active_tasks_pending_revocation, value.standby_tasks_pending_revocation)
            return f"{epochs} {_STREAMS_STATES[value.state]} {tasks_text(value)}; gives back {gives_back}"
        case "ShareGroupCurrentMemberAssignmentValue":
            return f"{epochs} {partitions_text(value.assigned_partitions)}"
        case "ConsumerGroupCurrentMemberAssignmentValue":
            text = f"{epochs} {_CONSUMER_STATES[value.state]} {partitions_text(value.assigned_partitions)}"
            revoked = partitions_text(value.partitions_pending_revocation)
            return text if revoked == "nothing" else f"{text} revokes {revoked}"
    raise AssertionError(value)


def topic_id(name: str) -> bytes:
    """Topics of scenarios have their names for ids."""
    return name.encode().ljust(16, b"\0")


def topic_name(topic_id: bytes) -> str:
    return topic_id.rstrip(b"\0").decode()


def partitions_text(topics: Iterable[Any]) -> str:
    """`t1/0,t1/1`, or `nothing`"""
    return ",".join(f"{topic_name(one.topic_id)}/{p}" for one in topics for p in one.partitions) or "nothing"


def tasks_text(assigned: Any) -> str:
    """Active and standby tasks of a message, `0_1,s1_0`, or `nothing`."""
    return _tasks(assigned.active_tasks, assigned.standby_tasks or ())


def _tasks(active: Iterable[Any], standby: Iterable[Any]) -> str:
    found = [f"{one.subtopology_id}_{index}" for one in active for index in one.partitions]
    found += [f"s{one.subtopology_id}_{index}" for one in standby for index in one.partitions]
    return ",".join(found) or "nothing"
