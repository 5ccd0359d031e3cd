"""The records of `__consumer_offsets`: key and value bytes ⇄ typed records.

A key is an INT16 type and the struct of that type, a value an INT16 version and the struct in that version; a null
value is a tombstone. The versions of Apache Kafka 4.4.0 are written; all versions of the schemas are read. Bytes after
a struct are ignored, as in Apache Kafka.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from struct import error as struct_error
from typing import ClassVar, Final, NamedTuple, TypeAlias

from groupkeeper.protocol.codec import MalformedMessage, decode_int16, decode_prefix, decode_value, encode_behind
from groupkeeper.protocol.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from groupkeeper.protocol.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from groupkeeper.protocol.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from groupkeeper.protocol.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from groupkeeper.protocol.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from groupkeeper.protocol.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from groupkeeper.protocol.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from groupkeeper.protocol.messages.consumer_group_partition_metadata_value import ConsumerGroupPartitionMetadataValue
from groupkeeper.protocol.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from groupkeeper.protocol.messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from groupkeeper.protocol.messages.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from groupkeeper.protocol.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from groupkeeper.protocol.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from groupkeeper.protocol.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from groupkeeper.protocol.messages.group_metadata_key import GroupMetadataKey
from groupkeeper.protocol.messages.group_metadata_value import GroupMetadataValue
from groupkeeper.protocol.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from groupkeeper.protocol.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey
from groupkeeper.protocol.messages.offset_commit_value import OffsetCommitValue
from groupkeeper.protocol.messages.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from groupkeeper.protocol.messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
)
from groupkeeper.protocol.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from groupkeeper.protocol.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from groupkeeper.protocol.messages.share_group_metadata_key import ShareGroupMetadataKey
from groupkeeper.protocol.messages.share_group_metadata_value import ShareGroupMetadataValue
from groupkeeper.protocol.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from groupkeeper.protocol.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
)
from groupkeeper.protocol.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from groupkeeper.protocol.messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
)
from groupkeeper.protocol.messages.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from groupkeeper.protocol.messages.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)
from groupkeeper.protocol.primitives import ZERO_UUID, Message, RootMessage, read_text, varint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.protocol.streams_records import StreamsKey, StreamsValue

_Key = (
    OffsetCommitKey
    | GroupMetadataKey
    | ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ShareGroupMemberMetadataKey
    | ShareGroupMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupStatePartitionMetadataKey
    | ConsumerGroupRegularExpressionKey
)

_Value = (
    OffsetCommitValue
    | GroupMetadataValue
    | ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ShareGroupMemberMetadataValue
    | ShareGroupMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMemberValue
    | ShareGroupCurrentMemberAssignmentValue
    | ShareGroupStatePartitionMetadataValue
    | ConsumerGroupRegularExpressionValue
)

# Strings, because the classes of streams groups are imported with their first record.
Key: TypeAlias = "_Key | StreamsKey"
"""Every key that can be decoded."""
Value: TypeAlias = "_Value | StreamsValue"
"""Every value that can be decoded."""


class Entry(Message):
    """A record that sets `key` to `value`."""

    __slots__: ClassVar[tuple[str, ...]] = ("key", "value")
    __match_args__: ClassVar[tuple[str, ...]] = ("key", "value")

    def __init__(self, key: Key, value: Value) -> None:
        self.key = key
        self.value = value


class Tombstone(Message):
    """A record that removes `key`."""

    __slots__: ClassVar[tuple[str, ...]] = ("key",)
    __match_args__: ClassVar[tuple[str, ...]] = ("key",)

    def __init__(self, key: Key) -> None:
        self.key = key


class UnknownRecord(NamedTuple):
    """A record of a type that this build does not know, kept as it is; it is skipped on load.

    `value_bytes` is None for a tombstone.
    """

    key_bytes: bytes
    value_bytes: bytes | None
    key_type: int


_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_OFFSET_VERSION: Final = 4
_OFFSET_START: Final = Struct(">hqi")
_OFFSET_KEY: Final = _INT16.pack(OffsetCommitKey.RECORD_TYPE)
_OFFSET_VALUE: Final = _INT16.pack(_OFFSET_VERSION)
_TOPIC_ID_TAG: Final = b"\x01\x00\x10"
"""One tagged field: number 0, of 16 bytes."""
_LEGACY_OFFSET_COMMIT: Final = 0
_STREAMS_TYPES = frozenset((17, 19, 20, 21, 22, 23))
_PAIRS: tuple[tuple[type[_Key], type[_Value]], ...] = (
    (OffsetCommitKey, OffsetCommitValue),
    (GroupMetadataKey, GroupMetadataValue),
    (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    (ShareGroupMetadataKey, ShareGroupMetadataValue),
    (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
    (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
    (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
    (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
)
_CLASSES: dict[int, tuple[type[Key], type[Value]]] = {pair[0].RECORD_TYPE: pair for pair in _PAIRS}
_WRITTEN_VERSIONS: dict[type[RootMessage], int] = {GroupMetadataValue: 3, OffsetCommitValue: _OFFSET_VERSION}
_VERSION_WITH_EXPIRATION: Final = 1


def decode_record(key: bytes, value: bytes | None) -> Entry | Tombstone | UnknownRecord:
    """The record with these bytes; type 0, the oldest form of offset commits, is returned as type 1.

    Raises MalformedMessage for bytes that no schema describes; loading their partition must fail.
    """
    if value is not None and key.startswith(_OFFSET_KEY):
        commit = _decode_offset_commit(key, value)
        if commit is not None:
            return commit
    record_type = decode_int16(key, "key")
    if record_type == _LEGACY_OFFSET_COMMIT:
        return _decode_legacy_offset_commit(key, value)
    classes = _classes_of(record_type)
    if classes is None:
        return UnknownRecord(key, value, record_type)
    key_class, value_class = classes
    decoded_key, _ = decode_prefix(key_class, key, 0, 2)
    if value is None:
        return Tombstone(decoded_key)
    return Entry(decoded_key, decode_value(value_class, value))


def encode_record(record: Entry | Tombstone) -> tuple[bytes, bytes | None]:
    """Key and value bytes of `record`; the value of a tombstone is None.

    An offset commit with an expire timestamp is written in the only version that has this field, which has no leader
    epoch and no topic id, so these are lost. Raises UnsupportedField for values that do not fit.
    """
    if type(record) is Entry:
        commit, committed = record.key, record.value
        if type(committed) is OffsetCommitValue and type(commit) is OffsetCommitKey:
            encoded = _encode_offset_commit(commit, committed)
            if encoded is not None:
                return encoded
    key = encode_behind(record.key.RECORD_TYPE, record.key, 0)
    if isinstance(record, Tombstone):
        return key, None
    version = _WRITTEN_VERSIONS.get(type(record.value), 0)
    if isinstance(record.value, OffsetCommitValue) and record.value.expire_timestamp != -1:
        version = _VERSION_WITH_EXPIRATION
    return key, encode_behind(version, record.value, version)


def _encode_offset_commit(key: OffsetCommitKey, value: OffsetCommitValue) -> tuple[bytes, bytes] | None:
    """Fast path with the bytes of the generated code, as this runs for every commit; None: use the generated code."""
    if value.expire_timestamp != -1 or len(value.topic_id) != len(ZERO_UUID):
        return None
    try:
        key_bytes = _encode_offset_key(key.group, key.topic, key.partition)
        metadata = value.metadata.encode()
        start = _OFFSET_START.pack(_OFFSET_VERSION, value.offset, value.leader_epoch)
        time = _INT64.pack(value.commit_timestamp)
    except (struct_error, AttributeError, TypeError, UnicodeEncodeError):
        return None
    tags = b"\x00" if value.topic_id == ZERO_UUID else _TOPIC_ID_TAG + value.topic_id
    return key_bytes, b"".join((start, varint(len(metadata) + 1), metadata, time, tags))


@lru_cache(maxsize=1024)  # consumers commit the same partitions again and again
def _encode_offset_key(group: str, topic: str, partition: int) -> bytes:
    names = group.encode(), topic.encode()
    lengths = [_INT16.pack(len(name)) for name in names]
    return b"".join((_OFFSET_KEY, lengths[0], names[0], lengths[1], names[1], _INT32.pack(partition)))


def _decode_offset_commit(key: bytes, value: bytes) -> Entry | None:
    """Fast path for commits in Kafka's current form, as a start reads millions; None: use the generated code."""
    names = _names_in(key[2 : max(len(key) - 4, 2)])  # compiled code treats a negative end differently
    if names is None or not value.startswith(_OFFSET_VALUE):
        return None
    try:
        decoded, end = OffsetCommitValue.read(value, 2, _OFFSET_VERSION)
        (partition,) = _INT32.unpack_from(key, len(key) - 4)
    except (IndexError, struct_error, UnicodeDecodeError, MalformedMessage):
        return None
    return Entry(OffsetCommitKey(names[0], names[1], partition), decoded) if end <= len(value) else None


@lru_cache(maxsize=256)
def _names_in(buf: bytes) -> tuple[str, str] | None:
    """Group and topic in the bytes of a commit's key; None when they don't fill the bytes."""
    try:
        group, position = read_text(buf, 0)
        topic, end = read_text(buf, position)
    except (struct_error, UnicodeDecodeError, MalformedMessage):
        return None
    return (group, topic) if end == len(buf) else None


def _decode_legacy_offset_commit(key: bytes, value: bytes | None) -> Entry | Tombstone:
    legacy_key, _ = decode_prefix(LegacyOffsetCommitKey, key, 0, 2)
    commit_key = OffsetCommitKey(legacy_key.group, legacy_key.topic, legacy_key.partition)
    if value is None:
        return Tombstone(commit_key)
    legacy = decode_value(LegacyOffsetCommitValue, value)
    return Entry(
        commit_key, OffsetCommitValue(legacy.offset, metadata=legacy.metadata, commit_timestamp=legacy.commit_timestamp)
    )


def _classes_of(record_type: int) -> tuple[type[Key], type[Value]] | None:
    if record_type not in _STREAMS_TYPES:
        return _CLASSES.get(record_type)
    from groupkeeper.protocol.streams_records import STREAMS_CLASSES

    return STREAMS_CLASSES[record_type]
