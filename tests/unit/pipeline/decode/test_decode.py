"""Vectorised decoding says what the generated classes say, record for record."""

import base64
import json
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.pipeline.decode.record_sets import read_record_sets
from tests.unit.transactions import marker

from groupkeeper.pipeline.decode.arrow import Origin, decode, latest_of_keys, places_of
from groupkeeper.pipeline.decode.batches import RecordSet
from groupkeeper.pipeline.tables import DECODED
from groupkeeper.pipeline.tables.log import GROUP_RECORD, REJECTED
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.codec import MalformedMessage, encode
from groupkeeper.protocol.offsets_topic import Entry, Tombstone, UnknownRecord, decode_record
from groupkeeper.protocol.primitives import ZERO_UUID
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import write_batch

NAMES = ("", "g", "группа", "name-" * 60, "orders", "\U0001f600")


def rows(*records: Record) -> list[dict[str, Any]]:
    """What becomes of one batch with these records, in the order of their offsets."""
    data = write_batch(records)
    found, next_offsets = read_record_sets([RecordSet(data, 0, len(records))])
    assert next_offsets == [len(records)]
    return decoded(found)


def decoded(records: Any) -> list[dict[str, Any]]:
    batches = list(decode(records, places_of([Origin("c", 7)])))
    assert all(batch.schema.equals(DECODED.arrow) for batch in batches)
    for batch in batches:
        batch.validate(full=True)
    found = sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: row["log_offset"])
    return [row | {"group_record": row["group_record"] and columns_of(row["group_record"])} for row in found]


def columns_of(text: str) -> dict[str, Any]:
    """The columns that are in the JSON, with their types; those that it lacks are null."""
    record = json.loads(text)
    types = [(column.name, column.type) for column in (*GROUP_RECORD, *REJECTED)]
    assert set(record) <= {name for name, _ in types}
    (found,) = pa.array([record], pa.struct(types)).to_pylist()
    return found


def key_bytes(key: Any, record_type: int) -> bytes:
    return record_type.to_bytes(2, "big") + encode(key, 0)


def random_commits(rng: random.Random, count: int) -> Iterator[Record]:
    """Keys of types 0 and 1, values of every version with all that can be odd about them."""
    for _ in range(count):
        record_type = rng.choice((0, 1, 1, 1))
        version = 0 if record_type == 0 else rng.randrange(5)
        key = key_bytes(m.OffsetCommitKey(rng.choice(NAMES), rng.choice(NAMES), rng.randrange(-1, 2**31)), record_type)
        if rng.random() < 0.1:
            yield Record(key, None, (), rng.randrange(2**40))
            continue
        metadata = "m" * rng.choice((0, 0, 1, 125, 126, 127, 128, 5000))
        value = m.OffsetCommitValue(
            rng.randrange(-1, 2**63), metadata=metadata, commit_timestamp=rng.randrange(-1, 2**62)
        )
        if version >= 3:
            value.leader_epoch = rng.randrange(-1, 2**31)
        if version == 1:
            value.expire_timestamp = rng.randrange(-1, 2**60)
        if version == 4 and rng.random() < 0.5:
            value.topic_id = rng.randbytes(16)
        encoded = version.to_bytes(2, "big") + encode(value, version)
        if version == 4 and rng.random() < 0.2:
            encoded = with_unknown_tags(encoded, value.topic_id != ZERO_UUID)
        if rng.random() < 0.1:
            encoded += b"behind"
        if rng.random() < 0.1:
            encoded = encoded[: rng.randrange(len(encoded))]
        if rng.random() < 0.1:
            key = key[: rng.randrange(len(key))]
        if rng.random() < 0.05:
            encoded = rng.randrange(2**16).to_bytes(2, "big") + encoded[2:]
        if rng.random() < 0.05:
            at = rng.randrange(max(1, len(key)))
            key = key[:at] + b"\xff" + key[at + 1 :]
        yield Record(key, encoded, (), rng.randrange(2**40))


def with_unknown_tags(value: bytes, has_topic_id: bool) -> bytes:
    """The value with a tag behind those it has that no schema knows."""
    tags_at = len(value) - (19 if has_topic_id else 1)
    return value[:tags_at] + bytes([value[tags_at] + 1]) + value[tags_at + 1 :] + b"\x05\x03abc"


def expected(record: Record) -> dict[str, Any] | None:
    """Fields of a commit by the generated classes; None for what they refuse."""
    try:
        found = decode_record(record.key or b"", record.value)
    except MalformedMessage:
        return None
    if isinstance(found, UnknownRecord) or not isinstance(found.key, m.OffsetCommitKey):
        return None
    row: dict[str, Any] = {
        "group_id": found.key.group,
        "topic": found.key.topic,
        "partition": found.key.partition,
        "is_tombstone": isinstance(found, Tombstone),
    }
    value = found.value if isinstance(found, Entry) else None
    if not isinstance(value, m.OffsetCommitValue):
        return row
    topic_id = base64.urlsafe_b64encode(value.topic_id).rstrip(b"=").decode()
    return row | {
        "committed_offset": value.offset,
        "leader_epoch": None if value.leader_epoch < 0 else value.leader_epoch,
        "metadata": value.metadata,
        "commit_timestamp_ms": value.commit_timestamp,
        "expire_timestamp_ms": None if value.expire_timestamp == -1 else value.expire_timestamp,
        "topic_id": None if value.topic_id == ZERO_UUID else topic_id,
    }


@pytest.mark.parametrize("seed", range(4))
def test_commits_as_the_generated_classes_read_them(seed: int) -> None:
    rng = random.Random(seed)
    records = list(random_commits(rng, 1500))
    found = rows(*records)
    assert len(found) == len(records)
    refused = 0
    for record, row in zip(records, found, strict=True):
        wanted = expected(record)
        if wanted is None:
            refused += 1
            assert row["problem"] is not None or row["group_record"] is not None
            assert row["problem"] is None or (row["raw_key"], row["raw_value"]) == (record.key, record.value)
        else:
            assert row["problem"] is None
            assert {name: row[name] for name in wanted} == wanted
        assert (row["log_timestamp_ms"], row["cluster"], row["log_partition"]) == (record.timestamp, "c", 7)
    assert 30 < refused < 600


@pytest.mark.parametrize(("record_type", "version"), [(0, 1), (1, 5), (1, -1)])
def test_a_version_that_no_schema_has_is_not_taken_for_another(record_type: int, version: int) -> None:
    value = version.to_bytes(2, "big", signed=True) + encode(m.OffsetCommitValue(5, 3, "m", 7), 4)
    (row,) = rows(Record(key_bytes(m.OffsetCommitKey("g", "t", 1), record_type), value, (), 1))
    assert (row["committed_offset"], row["raw_value"]) == (None, value)
    assert f"no version {version}" in row["problem"]


def test_broken_bytes_never_break_the_others() -> None:
    rng = random.Random(99)
    records = [Record(rng.randbytes(rng.randrange(60)), rng.randbytes(rng.randrange(60)), (), 1) for _ in range(3000)]
    records += [Record(b"\x00\x01" + rng.randbytes(rng.randrange(30)), rng.randbytes(30), (), 1) for _ in range(3000)]
    good = Record(key_bytes(m.OffsetCommitKey("g", "t", 1), 1), b"\x00\x00" + encode(m.OffsetCommitValue(5), 0), (), 1)
    found = rows(*records, good)
    assert len(found) == 6001
    assert found[-1]["committed_offset"] == 5
    for record, row in zip(records, found[:-1], strict=True):
        is_known = row["group_record"] is not None and row["group_record"]["record_name"] is not None
        assert (row["problem"] is None) == (expected(record) is not None or is_known)


def test_group_metadata_in_every_version() -> None:
    member = m.MemberMetadata("m-1", None, "cl", "/1.2.3.4", 5, 6, b"\x00\x01", b"")
    key = key_bytes(m.GroupMetadataKey("g"), 2)
    for version in range(m.GroupMetadataValue.MAX_VERSION + 1):
        value = m.GroupMetadataValue("consumer", 4, "range", "m-1", 77 if version >= 2 else -1, [member])
        if version == 0:
            member.rebalance_timeout = -1
        else:
            member.rebalance_timeout = 5
        (row,) = rows(Record(key, version.to_bytes(2, "big") + encode(value, version), (), 1))
        record = row["group_record"]
        assert (record["record_name"], record["group_type"], row["group_id"]) == ("GroupMetadata", "classic", "g")
        assert (record["generation"], record["protocol"], row["value_version"]) == (4, "range", version)
        assert record["members"][0]["client_host"] == "/1.2.3.4"
        assert ("groupInstanceId" in record["value_json"]) == (version >= 3)
        assert ("currentStateTimestamp" in record["value_json"]) == (version >= 2)
        assert ("rebalanceTimeout" in record["value_json"]) == (version >= 1)


def test_streams_markers_unknown_types_and_versions() -> None:
    value = b"\x00\x00" + encode(m.StreamsGroupMetadataValue(3), 0)
    streams = Record(key_bytes(m.StreamsGroupMetadataKey("s"), 17), value)
    unknown = Record(b"\x03\xe7abc", b"value", (), 1)
    future = Record(key_bytes(m.GroupMetadataKey("g"), 2), b"\x00\x63abc", (), 1)
    nameless = Record(None, b"v", (), 1)
    found = rows(streams, unknown, future, nameless)
    assert found[0]["group_record"]["group_epoch"] == 3
    assert found[0]["group_record"]["group_type"] == "streams"
    assert (found[1]["record_type"], found[1]["raw_value"]) == (999, b"value")
    assert found[1]["problem"] == "unknown record type 999"
    assert found[2]["value_version"] == 99
    assert "no version 99" in found[2]["problem"]
    assert found[3]["problem"] == "the record has no key"
    (row,) = decoded(read_record_sets([RecordSet(marker(4, is_commit=False, epoch=3), 0, 1)])[0])
    assert row["group_record"]["value_json"] == '{"type":"ABORT","coordinatorEpoch":3}'
    assert row["producer_id"] == 4


def test_what_the_columns_of_newer_groups_are_taken_from() -> None:
    """A topology's epoch is not the group's; a tagged field is printed when it is not the default, as Kafka does."""
    key = key_bytes(m.StreamsGroupTopologyKey("s"), m.StreamsGroupTopologyValue.RECORD_TYPE)
    (topology,) = rows(Record(key, b"\x00\x00" + encode(m.StreamsGroupTopologyValue(epoch=4), 0), (), 1))
    assert topology["group_record"]["group_epoch"] is None
    assert json.loads(topology["group_record"]["value_json"])["epoch"] == 4
    key = key_bytes(m.ConsumerGroupMetadataKey("g"), m.ConsumerGroupMetadataValue.RECORD_TYPE)
    for metadata_hash, shown in ((0, {"epoch": 7}), (9, {"epoch": 7, "metadataHash": 9})):
        value = encode(m.ConsumerGroupMetadataValue(7, metadata_hash), 0)
        (group,) = rows(Record(key, b"\x00\x00" + value, (), 1))
        assert group["group_record"]["group_epoch"] == 7
        assert json.loads(group["group_record"]["value_json"]) == shown


def test_a_topic_id_of_zeros_is_none() -> None:
    key = key_bytes(m.OffsetCommitKey("g", "t", 1), 1)
    with_id = encode(m.OffsetCommitValue(5, topic_id=b"\x01" * 16), 4)
    for octets, shown in ((b"\x01" * 16, "AQEBAQEBAQEBAQEBAQEBAQ"), (ZERO_UUID, None)):
        (row,) = rows(Record(key, b"\x00\x04" + with_id.replace(b"\x01" * 16, octets), (), 1))
        assert (row["committed_offset"], row["topic_id"]) == (5, shown)


def test_latest_of_keys_is_the_last_record_of_each() -> None:
    rng = random.Random(5)
    records = [
        Record(
            key_bytes(m.OffsetCommitKey(f"g{rng.randrange(9)}", "t", rng.randrange(3)), 1),
            None if rng.random() < 0.2 else b"\x00\x00" + encode(m.OffsetCommitValue(number), 0),
            (), 1,
        )
        for number in range(500)
    ]  # fmt: skip
    found, _ = read_record_sets([RecordSet(write_batch(records), 0, 500)])
    last = {record.key: number for number, record in enumerate(records)}
    assert [row["log_offset"] for row in decoded(latest_of_keys(found))] == sorted(last.values())
    log = write_batch(records[:1]) + marker(4, is_commit=True, base_offset=1)
    found, _ = read_record_sets([RecordSet(log, 0, 2)])
    assert (found.offset.tolist(), latest_of_keys(found).offset.tolist()) == ([0, 1], [0])
    none, _ = read_record_sets([RecordSet(log, 1, 2)])
    assert len(latest_of_keys(none)) == 0
