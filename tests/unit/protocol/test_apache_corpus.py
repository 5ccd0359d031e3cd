"""Byte for byte what Apache Kafka's Java serialisers write: messages, errors, header versions, record batches (GW-01,
GW-02).
"""

import json

import pytest
from tests.unit.protocol import corpus

from groupkeeper.protocol import consumer_protocol, errors
from groupkeeper.protocol.codec import decode, encode
from groupkeeper.protocol.framing import api_name, request_header_version, response_header_version
from groupkeeper.protocol.index import APIS
from groupkeeper.protocol.offsets_topic import Entry, Tombstone, decode_record, encode_record
from groupkeeper.protocol.record_batch import (
    check_crc,
    iter_headers,
    read_end_transaction,
    read_header,
    read_records,
    write_batch,
)

MESSAGES = corpus.schemas()


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name: str) -> None:  # GW-02, GR-02
    message, cls = MESSAGES[name], corpus.classes()[name]
    seen: dict[int, set[int]] = {}
    for _, version_text, instance, encoded, *node in (line for line in corpus.lines("message") if line[0] == name):
        version, body = int(version_text), bytes.fromhex(encoded)
        value = decode(cls, body, version)
        assert encode(value, version) == body, f"version {version}, instance {instance}"
        if node and node[0]:
            assert corpus.differences(value, json.loads(node[0]), message, message.root) == []
        seen.setdefault(version, set()).add(int(instance))
    assert sorted(seen) == list(range(cls.MIN_VERSION, cls.MAX_VERSION + 1)), "the jars have other versions"
    assert all(instances >= {1, 2, 3, 4} for instances in seen.values())


def test_nothing_is_missing() -> None:
    assert {line[0] for line in corpus.lines("message")} == set(MESSAGES)


def test_header_versions() -> None:  # GW-01
    known = {
        int(key): (name, int(first), request, response) for key, name, first, request, response in corpus.lines("api")
    }
    assert {key for key, api in known.items() if api[2]} == set(APIS)
    for key in APIS:
        name, first, request, response = known[key]
        assert api_name(key) == name
        for version in range(first, first + len(request)):
            assert request_header_version(key, version) == int(request[version - first])
            assert response_header_version(key, version) == int(response[version - first])


def test_errors() -> None:  # GW-07
    theirs = {int(code): rest for code, *rest in corpus.lines("error") if int(code)}
    assert set(theirs) == set(errors.BY_CODE)
    for code, (name, retriable, java_class, text) in theirs.items():
        mine = errors.BY_CODE[code]
        found = [mine.name, str(mine.retriable).lower(), mine.java_class, mine.text]
        assert found == [name, retriable, java_class, text]


def test_records_of_the_offsets_topic() -> None:  # GR-01, GR-02
    keys: dict[str, bytes] = {}
    for name, _, _, blob in corpus.lines("blob"):
        if name.endswith("Key"):
            keys.setdefault(name.removesuffix("Key"), bytes.fromhex(blob))
    ours = set()
    for name, version, _, blob in corpus.lines("blob"):
        kind = name.removesuffix("Key").removesuffix("Value")
        if not kind.startswith(("ConsumerGroup", "ShareGroup", "OffsetCommit", "GroupMetadata")):
            continue
        ours.add(kind)
        if name.endswith("Key"):
            tombstone = decode_record(bytes.fromhex(blob), None)
            assert isinstance(tombstone, Tombstone)
            assert encode_record(tombstone) == (bytes.fromhex(blob), None)
        else:
            entry = decode_record(keys[kind], bytes.fromhex(blob))
            assert isinstance(entry, Entry)
            if int(version) == {"OffsetCommit": 4, "GroupMetadata": 3}.get(kind, 0):
                assert encode_record(entry) == (keys[kind], bytes.fromhex(blob))
    assert len(ours) == 15


def test_blobs_of_the_consumer_protocol() -> None:  # GC-30
    for name, version, _, blob in corpus.lines("blob"):
        if name == "ConsumerProtocolSubscription":
            subscription = consumer_protocol.decode_subscription(bytes.fromhex(blob))
            assert consumer_protocol.encode_subscription(subscription, int(version)).hex() == blob
            assert consumer_protocol.decode_subscribed_topics(bytes.fromhex(blob)) == list(subscription.topics)
        elif name == "ConsumerProtocolAssignment":
            assignment = consumer_protocol.decode_assignment(bytes.fromhex(blob))
            assert consumer_protocol.encode_assignment(assignment, int(version)).hex() == blob


@pytest.mark.parametrize(
    ("name", "encoded", "expected"), corpus.lines("batch"), ids=[n for n, *_ in corpus.lines("batch")]
)
def test_record_batches(name: str, encoded: str, expected: str) -> None:
    buf = bytes.fromhex(encoded)
    batches = json.loads(expected)
    found = list(iter_headers(buf))
    assert len(found) == len(batches)
    for (pos, header), node in zip(found, batches, strict=True):
        check_crc(buf, pos, header)
        assert (header.magic, header.compression, header.size_in_bytes) == (
            node["magic"],
            node["compression"],
            node["size"],
        )
        assert (header.last_offset, header.max_timestamp) == (node["last_offset"], node["max_timestamp"])
        assert header.has_log_append_time == node["log_append_time"]
        assert (header.is_transactional, header.is_control) == (node["transactional"], node["control"])
        if header.magic == 2:
            assert header.base_offset == node["base_offset"]
            producer = (header.producer_id, header.producer_epoch, header.base_sequence, header.partition_leader_epoch)
            assert producer == tuple(
                node[key] for key in ("producer_id", "producer_epoch", "base_sequence", "leader_epoch")
            )
        records = read_records(buf, pos)
        assert len(records) == len(node["records"])
        for record, (offset, timestamp, key, value, headers, *marker) in zip(records, node["records"], strict=True):
            assert (record.offset, record.timestamp) == (offset, timestamp)
            assert [None if part is None else part.hex() for part in (record.key, record.value)] == [key, value]
            assert [[k, None if v is None else v.hex()] for k, v in record.headers] == headers
            if marker:
                end = read_end_transaction(record)
                assert end is not None
                assert ["COMMIT" if end.is_commit else "ABORT", end.coordinator_epoch] == marker


# Those that one call can write; in log append time the producers' timestamps are lost for readers.
UNCOMPRESSED = [
    line
    for line in corpus.lines("batch")
    if '"magic":2,"compression":"none","log_append_time":false' in line[2]
    and line[0] not in ("several", "gaps", "compacted-to-nothing")
]


@pytest.mark.parametrize(
    ("name", "encoded"), [line[:2] for line in UNCOMPRESSED], ids=[line[0] for line in UNCOMPRESSED]
)
def test_written_batches_are_the_same_bytes(name: str, encoded: str) -> None:
    batch = bytes.fromhex(encoded)
    header = read_header(batch)
    written = write_batch(
        read_records(batch),
        base_offset=header.base_offset,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        partition_leader_epoch=header.partition_leader_epoch,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
    )
    assert written.hex() == encoded
