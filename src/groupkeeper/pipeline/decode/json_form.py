"""Messages as JSON, with the names and in the form in which Apache Kafka's tools print records."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from groupkeeper.protocol.primitives import Message
from groupkeeper.protocol.uuids import uuid_text

_VERSIONS: Mapping[tuple[str, str], range] = {
    ("OffsetCommitValue", "leader_epoch"): range(3, 5),
    ("OffsetCommitValue", "expire_timestamp"): range(1, 2),
    ("OffsetCommitValue", "topic_id"): range(4, 5),
    ("GroupMetadataValue", "current_state_timestamp"): range(2, 5),
    ("MemberMetadata", "group_instance_id"): range(3, 5),
    ("MemberMetadata", "rebalance_timeout"): range(1, 5),
}
"""The versions that have a field; other fields are in all versions."""

_TAGGED = {
    ("ConsumerGroupMemberMetadataValue", "classic_member_metadata"),
    ("ConsumerGroupMetadataValue", "metadata_hash"),
    ("ConsumerGroupTargetAssignmentMetadataValue", "assignment_timestamp"),
    ("OffsetCommitValue", "topic_id"),
    ("ShareGroupTargetAssignmentMetadataValue", "assignment_timestamp"),
    ("StreamsGroupMetadataValue", "failed_description_topology_epoch"),
    ("StreamsGroupMetadataValue", "last_assignment_configs"),
    ("StreamsGroupMetadataValue", "stored_description_topology_epoch"),
    ("StreamsGroupMetadataValue", "validated_topology_epoch"),
    ("StreamsGroupTargetAssignmentMetadataValue", "assignment_timestamp"),
    ("TaskIds", "assignment_epochs"),
    ("TopicPartitions", "assignment_epochs"),
}
"""Fields, by class and name, that are left out when they have their default."""


def json_of(message: Message, version: int) -> str:
    """The message in that version, on one line."""
    return json.dumps(_struct(message, version), separators=(",", ":"), ensure_ascii=False)


def _struct(message: Message, version: int) -> dict[str, object]:
    owner = type(message).__name__
    default = type(message)()
    found: dict[str, object] = {}
    for name in message.__slots__:
        versions = _VERSIONS.get((owner, name))
        if versions is not None and version not in versions:
            continue
        value = getattr(message, name)
        if (owner, name) in _TAGGED and _is_default(value, getattr(default, name)):
            continue
        found[_camel(name)] = _value(name, value, version)
    return found


def _is_default(value: object, default: object) -> bool:
    if isinstance(value, list | tuple) and isinstance(default, list | tuple):
        return list(value) == list(default)
    return value == default


def _value(name: str, value: object, version: int) -> object:
    if isinstance(value, Message):
        return _struct(value, version)
    if isinstance(value, list | tuple):
        return [_value(name, each, version) for each in value]
    if isinstance(value, bytes):
        if name.endswith("_id"):
            return uuid_text(value)
        return base64.b64encode(value).decode()
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
