"""What decoded records are as rows; tests/fuzz compares them with what the generated classes say."""

import json
import random
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
from groupkeeper.protocol.codec import encode
from groupkeeper.protocol.primitives import ZERO_UUID
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import write_batch


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


@pytest.mark.parametrize(("record_type", "version"), [(0, 1), (1, 5), (1, -1)])
def test_a_version_that_no_schema_has_is_not_taken_for_another(record_type: int, version: int) -> None:
    value = version.to_bytes(2, "big", signed=True) + encode(m.OffsetCommitValue(5, 3, "m", 7), 4)
    (row,) = rows(Record(key_bytes(m.OffsetCommitKey("g", "t", 1), record_type), value, (), 1))
    assert (row["committed_offset"], row["raw_value"]) == (None, value)
    assert f"no version {version}" in row["problem"]


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
