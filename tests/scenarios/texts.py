"""Answers and records as text, and the small values of commands as messages."""

import re
from collections.abc import Sequence
from typing import Any

from tests.scenarios import group_answers, group_records
from tests.scenarios.unread import Reading

from groupkeeper.coordinator.kernel.result import Record
from groupkeeper.coordinator.kernel.timers import (
    ClassicRejoin,
    ClassicResync,
    ConsumerSession,
    MemberSession,
    OffsetExpiration,
    Revocation,
    TimerKey,
)
from groupkeeper.protocol import MalformedMessage
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from groupkeeper.protocol.errors import error_for
from groupkeeper.protocol.messages import consumer_protocol_assignment as assignment_module
from groupkeeper.protocol.messages import join_group_request, offset_commit_request
from groupkeeper.protocol.offsets_topic import Tombstone
from groupkeeper.protocol.primitives import ZERO_UUID, Message

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
CONSUMER = "consumer"


# --- reading


def read_duration(text: str) -> int:
    """`500ms`, `6s`, `10m`, `2h`, `7d` as milliseconds."""
    match = re.fullmatch(r"(\d+)(ms|s|m|h|d)", text)
    if match is None:
        raise ValueError(f"no duration: {text!r}")
    return int(match[1]) * _UNITS_MS[match[2]]


def read_partition(text: str) -> tuple[str, int]:
    """`t1/0`"""
    topic, _, partition = text.rpartition("/")
    return topic, int(partition)


def read_partitions(texts: Sequence[str]) -> dict[str, list[int]]:
    """`t1/0 t1/1 t2/0` by topic; a bare `t1` is a topic without partitions."""
    partitions: dict[str, list[int]] = {}
    for text in texts:
        if "/" in text:
            topic, partition = read_partition(text)
            partitions.setdefault(topic, []).append(partition)
        else:
            partitions.setdefault(text, [])
    return partitions


def read_metadata(protocol_type: str, text: str) -> bytes:
    """What a member says for a protocol: subscribed topics for consumers, `!text` for bytes that mean nothing."""
    if text.startswith("!"):
        return text[1:].encode()
    if protocol_type != CONSUMER:
        return text.encode()
    return encode_subscription(ConsumerProtocolSubscription(topics=[topic for topic in text.split(",") if topic]))


def read_assignment(protocol_type: str, text: str) -> bytes:
    if protocol_type != CONSUMER:
        return text.encode()
    topics = [
        assignment_module.TopicPartition(topic, partitions)
        for topic, partitions in read_partitions(text.split(",")).items()
    ]
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=topics))


def read_protocols(protocol_type: str, text: str) -> list[join_group_request.JoinGroupRequestProtocol]:
    """`range:t1,t2;name:topics`"""
    return [
        join_group_request.JoinGroupRequestProtocol(name, read_metadata(protocol_type, said))
        for name, _, said in (one.partition(":") for one in text.split(";") if one)
    ]


def read_commit(word: str) -> tuple[str, offset_commit_request.OffsetCommitRequestPartition]:
    """`t1/0=5@epoch:text`"""
    match = re.fullmatch(
        r"(?P<topic>[^/]*)/(?P<partition>\d+)=(?P<offset>-?\d+)(@(?P<epoch>\d+))?(:(?P<text>.*))?", word
    )
    if match is None:
        raise ValueError(f"no offset: {word!r}")
    metadata = match["text"]
    if metadata is not None and (repeated := re.fullmatch(r"(.)\*(\d+)", metadata)):
        metadata = repeated[1] * int(repeated[2])
    partition = offset_commit_request.OffsetCommitRequestPartition(
        int(match["partition"]), int(match["offset"]), int(match["epoch"] or -1), metadata
    )
    return match["topic"], partition


def read_setting(name: str, text: str) -> Any:
    """The value of a setting of the coordinator: times are durations."""
    if name.endswith("_ms"):
        return read_duration(text)
    if name.endswith("assignors"):
        return tuple(text.split(","))
    return int(text) if text.isdecimal() else text


# --- writing


def duration_text(ms: int) -> str:
    if ms and ms % _UNITS_MS["d"] == 0:
        return f"{ms // _UNITS_MS['d']}d"
    return f"{ms // 1000}s" if ms % 1000 == 0 else f"{ms}ms"


def error_text(code: int) -> str:
    return "ok" if code == 0 else error_for(code).name


def metadata_text(blob: bytes) -> str:
    """Subscribed topics; other bytes as they are."""
    if not blob:
        return "nothing"
    try:
        return ",".join(decode_subscription(blob).topics) or "no topics"
    except MalformedMessage:
        return "!" + blob.decode(errors="backslashreplace")


def assignment_text(blob: bytes) -> str:
    """Assigned partitions; other bytes as they are."""
    if not blob:
        return "nothing"
    try:
        assigned = decode_assignment(blob).assigned_partitions
    except MalformedMessage:
        return blob.decode(errors="backslashreplace")
    return ",".join(f"{one.topic}/{partition}" for one in assigned for partition in one.partitions) or "no partitions"


def timer_text(timer: TimerKey) -> str:
    match timer:
        case MemberSession(group_id, member_id):
            return f"session {group_id} {member_id}"
        case OffsetExpiration():
            return "expiration"
        case ConsumerSession() | Revocation() | ClassicRejoin() | ClassicResync():
            return f"{type(timer).__name__} {timer.group_id} {timer.member_id}"
        case _:
            return f"{type(timer).__name__} {timer.group_id}"


def record_text(record: Record, start_ms: int) -> str:
    """One line for one record; times are relative to the scenario's start."""
    key = record.key
    sign = "-" if isinstance(record, Tombstone) else "+"
    if (text := group_records.record_text(record)) is not None:
        return text
    if isinstance(key, m.OffsetCommitKey):
        name = f"offset {key.group or repr('')} {key.topic}/{key.partition}"
    elif isinstance(key, m.GroupMetadataKey):
        name = f"group {key.group}"
    else:
        name = repr(key)
    if isinstance(record, Tombstone):
        return f"{sign} {name}"
    value = record.value
    if isinstance(value, m.OffsetCommitValue):
        return f"{sign} {name} = {_offset_value_text(value, start_ms)}"
    if isinstance(value, m.GroupMetadataValue):
        return f"{sign} {name}: {_group_value_text(value, start_ms)}"
    return f"{sign} {name}: {value!r}"


def _offset_value_text(value: m.OffsetCommitValue, start_ms: int) -> str:
    parts = [str(value.offset)]
    if value.leader_epoch != -1:
        parts.append(f"epoch={value.leader_epoch}")
    if value.metadata:
        parts.append(f"metadata={_shortened(value.metadata)}")
    parts.append(f"at={duration_text(value.commit_timestamp - start_ms)}")
    if value.expire_timestamp != -1:
        parts.append(f"expires={duration_text(value.expire_timestamp - start_ms)}")
    if value.topic_id != ZERO_UUID:
        parts.append(f"topic-id={int.from_bytes(value.topic_id, 'big')}")
    return " ".join(parts)


def _shortened(text: str) -> str:
    return text if len(text) <= 20 else f"{text[0]}*{len(text)}"


def _group_value_text(value: m.GroupMetadataValue, start_ms: int) -> str:
    since_ms = value.current_state_timestamp
    since = "unknown" if since_ms == -1 else duration_text(since_ms - start_ms)
    head = f"{protocol_text(value.protocol_type, value.protocol)} generation={value.generation}"
    head += f" leader={_or_dash(value.leader)} since={since}"
    members = [
        f"{_member_name(member.member_id, member.group_instance_id)} {metadata_text(member.subscription)}"
        f" -> {assignment_text(member.assignment)}"
        for member in value.members
    ]
    return f"{head} | {'; '.join(members) or 'no members'}"


def protocol_text(protocol_type: str | None, protocol_name: str | None) -> str:
    return f"{_or_dash(protocol_type)}/{_or_dash(protocol_name)}"


def _or_dash(text: str | None) -> str:
    return text or "-"


def _member_name(member_id: str, instance_id: str | None) -> str:
    return member_id if instance_id is None else f"{member_id}({instance_id})"


def answer_lines(who: str, message: Message) -> list[str]:
    """What a client is told; the first word is the request's. Fields without a place of their own stand at the end."""
    response = Reading(message)
    lines = _answer_lines(who, response)
    last = "".join(lines[-1:]) + response.rest()
    return [*lines[:-1], last] if last else []


def _answer_lines(who: str, response: Reading) -> list[str]:
    match response.message:
        case m.JoinGroupResponse():
            return [f"join {who}: {_join_text(response)}"]
        case m.SyncGroupResponse():
            return [f"sync {who}: {_sync_text(response)}"]
        case m.LeaveGroupResponse():
            entries = [
                f"{_member_name(one.member_id, one.group_instance_id)} {error_text(one.error_code)}{one.rest()}"
                for one in response.members
            ]
            return [
                f"leave {who}: " + (", ".join(entries) if response.error_code == 0 else error_text(response.error_code))
            ]
        case m.OffsetCommitResponse():
            return [f"commit {who}: {_partition_errors(response.topics)}"]
        case m.TxnOffsetCommitResponse():
            return [f"txn-commit {who}: {_partition_errors(response.topics)}"]
        case m.OffsetDeleteResponse():
            failure = error_text(response.error_code)
            return [
                f"delete-offsets {who}: {_partition_errors(response.topics) if response.error_code == 0 else failure}"
            ]
        case m.OffsetFetchResponse():
            return [_fetch_text(group, is_sorted=who == "all") for group in response.groups]
        case m.DescribeGroupsResponse():
            return [line for group in response.groups for line in _describe_lines(group)]
        case m.ListGroupsResponse():
            return _list_lines(response)
        case _:
            return group_answers.answer_lines(who, response, error_text) or [_other_text(who, response)]


def _join_text(response: Any) -> str:
    if response.error_code:
        me = f" member={response.member_id}" if response.member_id else ""
        assert response.protocol_name is None
        return error_text(response.error_code) + me
    parts = [
        f"generation={response.generation_id} {protocol_text(response.protocol_type, response.protocol_name)}",
        f"leader={response.leader} member={response.member_id}",
    ]
    if response.skip_assignment:
        parts.append("skip-assignment")
    if response.members:
        members = [
            f"{_member_name(member.member_id, member.group_instance_id)} {metadata_text(member.metadata)}"
            for member in response.members
        ]
        parts.append(f"members: {'; '.join(members)}")
    return " ".join(parts)


def _sync_text(response: Any) -> str:
    if response.error_code:
        return error_text(response.error_code)
    protocol = protocol_text(response.protocol_type, response.protocol_name)
    return f"{protocol} {assignment_text(response.assignment)}"


def _partition_errors(topics: Sequence[Any]) -> str:
    texts = [
        f"{topic.name}/{partition.partition_index} {error_text(partition.error_code)}{partition.rest()}"
        for topic in topics
        for partition in topic.partitions
    ]
    return ", ".join(texts) or "nothing"


def _fetch_text(group: Any, *, is_sorted: bool) -> str:
    """The order of an answer to a null list means nothing, of others it does (K88-13)."""
    assert len({topic.name for topic in group.topics}) == len(group.topics), "a topic twice"
    texts = [_fetched_text(topic.name, one) for topic in group.topics for one in topic.partitions]
    texts = sorted(texts) if is_sorted else texts
    outcome = error_text(group.error_code) if group.error_code else " ".join(texts) or "nothing"
    return f"fetch {group.group_id or repr('')}: {outcome}"


def _fetched_text(topic: str, partition: Any) -> str:
    name = f"{topic}/{partition.partition_index}"
    if partition.error_code:
        assert partition.committed_offset == -1, "an error with an offset"
        return f"{name}:{error_text(partition.error_code)}"
    if (partition.committed_offset, partition.committed_leader_epoch, partition.metadata) == (-1, -1, ""):
        return f"{name}=none{partition.rest()}"
    epoch = "" if partition.committed_leader_epoch == -1 else f"@{partition.committed_leader_epoch}"
    assert partition.metadata is not None, "metadata is never null (K88-06)"
    metadata = f":{_shortened(partition.metadata)}" if partition.metadata else ""
    return f"{name}={partition.committed_offset}{epoch}{metadata}{partition.rest()}"


def _describe_lines(group: Any) -> list[str]:
    head = f"describe {group.group_id}: {group.group_state or 'no state'}"
    if group.protocol_type or group.protocol_data:
        head += f" {protocol_text(group.protocol_type, group.protocol_data)}"
    if group.error_code or group.error_message:
        head += f" {error_text(group.error_code)} {group.error_message or 'no message'}"
    members = [
        f"  {_member_name(member.member_id, member.group_instance_id)} client={member.client_id}"
        f" host={member.client_host} {metadata_text(member.member_metadata)}"
        f" -> {assignment_text(member.member_assignment)}{member.rest()}"
        for member in group.members
    ]
    return [head + group.rest(), *members]


def _list_lines(response: Any) -> list[str]:
    if response.error_code:
        return [f"list: {error_text(response.error_code)}"]
    texts = [
        f"list: {group.group_id or repr('')} {group.group_state} {group.group_type} {_or_dash(group.protocol_type)}"
        f"{group.rest()}"
        for group in sorted(response.groups, key=lambda group: group.group_id)
    ]
    return texts or ["list: nothing"]


def _other_text(who: str, response: Any) -> str:
    name = type(response.message).__name__.removesuffix("Response")
    if name == "Heartbeat":
        return f"heartbeat {who}: {error_text(response.error_code)}"
    if name == "DeleteGroups":
        return "delete-group " + ", ".join(
            f"{one.group_id} {error_text(one.error_code)}{one.rest()}" for one in response.results
        )
    return f"{name} {who}:"
