"""The records of `__consumer_offsets` as bytes."""

from struct import pack

import pytest

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.codec import MalformedMessage, UnsupportedField, encode
from groupkeeper.protocol.offsets_topic import Entry, Tombstone, UnknownRecord, decode_record, encode_record

KEY = m.OffsetCommitKey("g", "t", 3)
TOPIC_ID = bytes(range(16))


def test_written_versions() -> None:  # GR-01
    commit = m.OffsetCommitValue(42, 5, "note", 1000, topic_id=TOPIC_ID)
    key, value = encode_record(Entry(KEY, commit))
    assert key == b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x03"
    assert value is not None
    assert value[:2] == b"\x00\x04"
    assert decode_record(key, value) == Entry(KEY, commit)

    expiring = m.OffsetCommitValue(42, 5, "note", 1000, 2000, TOPIC_ID)
    key, value = encode_record(Entry(KEY, expiring))
    assert value is not None
    assert value[:2] == b"\x00\x01"
    assert decode_record(key, value) == Entry(KEY, m.OffsetCommitValue(42, -1, "note", 1000, 2000))

    members = [m.MemberMetadata("m", None, "c", "/h", 1, 2, b"s", b"a")]
    group = m.GroupMetadataValue("consumer", 7, "range", "m", 5, members)
    _, value = encode_record(Entry(m.GroupMetadataKey("g"), group))
    assert value is not None
    assert value[:2] == b"\x00\x03"
    _, value = encode_record(Entry(m.ConsumerGroupMetadataKey("g"), m.ConsumerGroupMetadataValue(1)))
    assert value is not None
    assert value[:2] == b"\x00\x00"


_TEXTS = ("", "g", "grüppe-" * 3, "x" * 126, "x" * 127, "é" * 64, "𝄞" * 8000)


@pytest.mark.parametrize("text", _TEXTS)
@pytest.mark.parametrize("topic_id", [bytes(16), TOPIC_ID])
def test_the_short_way_writes_and_reads_what_the_schemas_say(text: str, topic_id: bytes) -> None:  # GR-01, GR-02
    key = m.OffsetCommitKey(text, text[::-1], 2**31 - 1)
    for value in (
        m.OffsetCommitValue(2**63 - 1, -1, text, -1, topic_id=topic_id),
        m.OffsetCommitValue(-1, 2**31 - 1, "", 2**63 - 1, topic_id=topic_id),
    ):
        written = encode_record(Entry(key, value))
        assert written == (b"\x00\x01" + encode(key, 0), b"\x00\x04" + encode(value, 4))
        assert decode_record(*written) == Entry(key, value)
        # Bytes behind a struct are no part of it, be it of the key or of the value.
        assert decode_record(written[0] + b"....", written[1] + b".") == Entry(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (m.OffsetCommitKey("g" * 40_000, "t", 0), m.OffsetCommitValue()),
        (m.OffsetCommitKey("g", "t" * 40_000, 0), m.OffsetCommitValue()),
        (m.OffsetCommitKey("g", "t", 2**31), m.OffsetCommitValue()),
        (m.OffsetCommitKey("g", "t", 0), m.OffsetCommitValue(2**63)),
        (m.OffsetCommitKey("g", "t", 0), m.OffsetCommitValue(0, 2**31)),
        (m.OffsetCommitKey("g", "t", 0), m.OffsetCommitValue(0, commit_timestamp=2**63)),
        (m.OffsetCommitKey("g\ud800", "t", 0), m.OffsetCommitValue()),
    ],
)
def test_a_commit_that_no_record_can_hold_is_refused(key: m.OffsetCommitKey, value: m.OffsetCommitValue) -> None:
    with pytest.raises(UnsupportedField):
        encode_record(Entry(key, value))


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_commit_that_ends_too_early_is_malformed(cut: int) -> None:
    record = Entry(m.OffsetCommitKey("group", "topic", 3), m.OffsetCommitValue(1, 2, "note", 3, -1, TOPIC_ID))
    key, value = encode_record(record)
    assert value is not None
    with pytest.raises(MalformedMessage):
        decode_record(key, value[:-cut])
    if cut < len(key):
        with pytest.raises(MalformedMessage):
            decode_record(key[:-cut], value)


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_commit_is_read(version: int) -> None:  # GR-02
    commit = m.OffsetCommitValue(42, 9, "é", 1000, 2000 if version == 1 else -1, TOPIC_ID)
    decoded = decode_record(encode_record(Tombstone(KEY))[0], pack(">h", version) + encode(commit, version))
    assert isinstance(decoded, Entry)
    assert isinstance(decoded.value, m.OffsetCommitValue)
    assert (decoded.value.offset, decoded.value.metadata) == (42, "é")
    assert decoded.value.leader_epoch == (9 if version >= 3 else -1)
    assert decoded.value.expire_timestamp == (2000 if version == 1 else -1)


def test_the_legacy_key_is_read_as_a_commit() -> None:  # GR-02
    key = b"\x00\x00\x00\x01g\x00\x01t\x00\x00\x00\x03"
    value = b"\x00\x00" + pack(">q", 42) + b"\x00\x01m" + pack(">q", 1000)
    assert decode_record(key, value) == Entry(KEY, m.OffsetCommitValue(42, metadata="m", commit_timestamp=1000))
    assert decode_record(key, None) == Tombstone(KEY)


def test_unknown_types_are_kept_and_unknown_versions_refused() -> None:  # GR-08
    assert decode_record(b"\x00\x63abc", b"value") == UnknownRecord(b"\x00\x63abc", b"value", 99)
    assert decode_record(b"\x03\xe7", None) == UnknownRecord(b"\x03\xe7", None, 999)
    with pytest.raises(MalformedMessage, match="has no version"):
        decode_record(encode_record(Tombstone(KEY))[0], b"\x00\x05")
    for key, value in ((b"", None), (b"\x00\x01\x00", None), (encode_record(Tombstone(KEY))[0], b"\x00")):
        with pytest.raises(MalformedMessage):
            decode_record(key, value)
