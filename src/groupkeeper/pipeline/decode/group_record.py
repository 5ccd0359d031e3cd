"""Records that are not offset commits, as the columns of tables.GROUP_RECORD in JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from groupkeeper.pipeline.decode.json_form import json_of
from groupkeeper.protocol import MalformedMessage
from groupkeeper.protocol.consumer_protocol import PROTOCOL_TYPE, decode_assignment, decode_subscribed_topics
from groupkeeper.protocol.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from groupkeeper.protocol.primitives import RootMessage
from groupkeeper.protocol.record_batch import EndTransaction
from groupkeeper.protocol.uuids import uuid_text

Row = dict[str, Any]

_MEMBER_STATES = {
    "ConsumerGroupCurrentMemberAssignment": {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"},
    "ShareGroupCurrentMemberAssignment": {0: "STABLE"},
    "StreamsGroupCurrentMemberAssignment": {1: "STABLE", 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS"},
}

_COPIED = (
    "epoch", "assignment_epoch", "assignment_timestamp", "current_state_timestamp", "protocol_type", "protocol",
    "leader", "generation", "member_epoch", "previous_member_epoch", "instance_id", "rack_id", "client_id",
    "client_host", "rebalance_timeout_ms", "server_assignor", "subscribed_topic_names", "subscribed_topic_regex",
)  # fmt: skip
"""Fields that columns copy; the column has the field's name, or that of _COLUMNS."""
_COLUMNS = {
    "epoch": "group_epoch",
    "assignment_timestamp": "state_timestamp_ms",
    "current_state_timestamp": "state_timestamp_ms",
    "subscribed_topic_names": "subscribed_topics",
    "subscribed_topic_regex": "subscribed_regex",
}


def group_id_of(key: RootMessage) -> str:
    """The group that a record is about."""
    return str(getattr(key, "group_id", None) or getattr(key, "group", ""))


def group_record_json(key: RootMessage, value: RootMessage | None, version: int | None) -> str:
    """The columns that a record has, as a JSON object. `value` and its `version` are None for a tombstone.

    This is text because most records are offset commits: for each of them, a struct of so many columns, even a null
    one, would cost more than the commit itself.
    """
    return _text(_group_record(key, value, version))


def _group_record(key: RootMessage, value: RootMessage | None, version: int | None) -> Row:
    name = type(key).__name__.removesuffix("Key")  # Kafka's name of the record
    row: Row = {
        "record_name": name,
        "group_type": _group_type(name),
        "member_id": getattr(key, "member_id", None),
        "subscribed_regex": getattr(key, "regular_expression", None),
        "key_json": json_of(key, 0),
    }
    if value is None or version is None:
        return row
    row["value_json"] = json_of(value, version)
    for field in _COPIED:
        if field in value.__slots__:
            row[_COLUMNS.get(field, field)] = getattr(value, field)
    if "epoch" in value.__slots__ and not name.endswith("GroupMetadata"):
        del row["group_epoch"]  # the epoch of a topology
    if name in _MEMBER_STATES:
        state = value.state  # type: ignore[attr-defined]
        row["member_state"] = _MEMBER_STATES[name].get(state, str(state))
    if isinstance(value, GroupMetadataValue):
        row["members"] = [_member(member, value.protocol_type) for member in value.members]
    row["assigned"] = _assigned(value, "assigned_partitions", "topic_partitions")
    row["pending_revocation"] = _assigned(value, "partitions_pending_revocation")
    return row


def marker_json(marker: EndTransaction) -> str:
    """The columns of a transaction's marker, as a JSON object."""
    kind = "COMMIT" if marker.is_commit else "ABORT"
    value = f'{{"type":"{kind}","coordinatorEpoch":{marker.coordinator_epoch}}}'
    return _text({"record_name": "EndTransaction", "value_json": value})


def rejected_json(key: bytes | None, value: bytes | None) -> str:
    """The columns of tables.log.REJECTED of a record that cannot be decoded, as a JSON object."""
    whole = (key or b"") + (value or b"")
    return _text({"raw_bytes": len(whole), "raw_sha256": hashlib.sha256(whole).hexdigest()})


def _text(row: Row) -> str:
    own = {name: value for name, value in row.items() if value is not None}
    return json.dumps(own, separators=(",", ":"), ensure_ascii=False)


def _group_type(name: str) -> str:
    for prefix, group_type in (("Consumer", "consumer"), ("Share", "share"), ("Streams", "streams")):
        if name.startswith(prefix):
            return group_type
    return "classic"


def _assigned(value: RootMessage, *fields: str) -> list[Row] | None:
    for field in fields:
        topics: Sequence[Any] | None = getattr(value, field, None)
        if topics is not None:
            return [{"topic_id": uuid_text(topic.topic_id), "partitions": list(topic.partitions)} for topic in topics]
    return None


def _member(member: MemberMetadata, protocol_type: str) -> Row:
    row: Row = {
        "member_id": member.member_id,
        "instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rebalance_timeout_ms": member.rebalance_timeout,
        "session_timeout_ms": member.session_timeout,
    }
    if protocol_type == PROTOCOL_TYPE:
        row["subscribed_topics"] = _subscribed(member.subscription)
        row["assigned"] = _classic_assigned(member.assignment)
    return row


def _subscribed(blob: bytes) -> list[str] | None:
    try:
        return decode_subscribed_topics(blob) if blob else []
    except MalformedMessage:  # members may send any bytes; these stay in value_json
        return None


def _classic_assigned(blob: bytes) -> list[Row] | None:
    try:
        assignment = decode_assignment(blob) if blob else None
    except MalformedMessage:
        return None
    if assignment is None:
        return []
    return [{"topic": each.topic, "partitions": list(each.partitions)} for each in assignment.assigned_partitions]
