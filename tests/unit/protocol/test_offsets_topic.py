"""The records of `__consumer_offsets` as bytes."""

from struct import pack

import pytest

from groupkeeper.protocol.codec import MalformedMessage, encode
from groupkeeper.protocol.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from groupkeeper.protocol.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from groupkeeper.protocol.messages.group_metadata_key import GroupMetadataKey
from groupkeeper.protocol.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey
from groupkeeper.protocol.messages.offset_commit_value import OffsetCommitValue
from groupkeeper.protocol.offsets_topic import (
    Entry,
    Tombstone,
    UnknownRecord,
    UnknownValueVersion,
    decode_record,
    encode_record,
)

KEY = OffsetCommitKey("g", "t", 3)
TOPIC_ID = bytes(range(16))


def test_written_versions() -> None:  # GR-01
    commit = OffsetCommitValue(42, 5, "note", 1000, topic_id=TOPIC_ID)
    key, value = encode_record(Entry(KEY, commit))
    assert key == b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x03"
    assert value is not None
    assert value[:2] == b"\x00\x04"
    assert decode_record(key, value) == Entry(KEY, commit)

    expiring = OffsetCommitValue(42, 5, "note", 1000, 2000, TOPIC_ID)
    key, value = encode_record(Entry(KEY, expiring))
    assert value is not None
    assert value[:2] == b"\x00\x01"
    assert decode_record(key, value) == Entry(KEY, OffsetCommitValue(42, -1, "note", 1000, 2000))

    group = GroupMetadataValue("consumer", 7, "range", "m", 5, [MemberMetadata("m", None, "c", "/h", 1, 2, b"s", b"a")])
    _, value = encode_record(Entry(GroupMetadataKey("g"), group))
    assert value is not None
    assert value[:2] == b"\x00\x03"
    _, value = encode_record(Entry(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(1)))
    assert value is not None
    assert value[:2] == b"\x00\x00"


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_commit_is_read(version: int) -> None:  # GR-02
    commit = OffsetCommitValue(42, 9, "é", 1000, 2000 if version == 1 else -1, TOPIC_ID)
    decoded = decode_record(encode_record(Tombstone(KEY))[0], pack(">h", version) + encode(commit, version))
    assert isinstance(decoded, Entry)
    assert isinstance(decoded.value, OffsetCommitValue)
    assert (decoded.value.offset, decoded.value.metadata) == (42, "é")
    assert decoded.value.leader_epoch == (9 if version >= 3 else -1)
    assert decoded.value.expire_timestamp == (2000 if version == 1 else -1)


def test_the_legacy_key_is_read_as_a_commit() -> None:  # GR-02
    key = b"\x00\x00\x00\x01g\x00\x01t\x00\x00\x00\x03"
    value = b"\x00\x00" + pack(">q", 42) + b"\x00\x01m" + pack(">q", 1000)
    assert decode_record(key, value) == Entry(KEY, OffsetCommitValue(42, metadata="m", commit_timestamp=1000))
    assert decode_record(key, None) == Tombstone(KEY)


def test_tombstones() -> None:
    key, value = encode_record(Tombstone(KEY))
    assert value is None
    assert decode_record(key, None) == Tombstone(KEY)


def test_unknown_types_are_kept_and_unknown_versions_refused() -> None:  # GR-08
    assert decode_record(b"\x00\x63abc", b"value") == UnknownRecord(b"\x00\x63abc", b"value", 99)
    assert decode_record(b"\x03\xe7", None) == UnknownRecord(b"\x03\xe7", None, 999)
    with pytest.raises(UnknownValueVersion):
        decode_record(encode_record(Tombstone(KEY))[0], b"\x00\x05")
    for key, value in ((b"", None), (b"\x00\x01\x00", None), (encode_record(Tombstone(KEY))[0], b"\x00")):
        with pytest.raises(MalformedMessage):
            decode_record(key, value)
