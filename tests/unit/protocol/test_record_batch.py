"""Record batches of format 2: writing, reading, places, checksums, markers."""

from typing import Any

import pytest

from groupkeeper.protocol.record_batch import (
    HEADER_SIZE,
    CorruptRecord,
    EndTransaction,
    Record,
    check_crc,
    end_transaction_record,
    iter_headers,
    read_end_transaction,
    read_header,
    read_records,
    stamped,
    write_batch,
    write_pairs,
)

RECORDS = [
    Record(b"key", b"value", [("trace", b"1"), ("null", None), ("täg", b"")], 1_700_000_000_000),
    Record(None, b"x" * 300, (), 1_700_000_000_250),
    Record(b"", None, (), 1_699_999_999_000),
]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_with_offsets_and_timestamps(compression: str) -> None:
    batch = write_batch(RECORDS, base_offset=40, compression=compression, producer_id=7, producer_epoch=1)
    header = read_header(batch)
    assert (header.compression, header.size_in_bytes, header.record_count) == (compression, len(batch), 3)
    assert (header.base_offset, header.last_offset, header.next_offset) == (40, 42, 43)
    assert header.max_timestamp == 1_700_000_000_250
    expected = [Record(r.key, r.value, r.headers, r.timestamp, 40 + i) for i, r in enumerate(RECORDS)]
    assert read_records(batch) == expected


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("in_transaction", [False, True])
def test_pairs_of_one_moment_make_the_same_batch(compression: str, in_transaction: bool) -> None:
    pairs: list[tuple[bytes, bytes | None]] = [(b"key", b"v" * 70), (b"k" * 9000, None), *[(b"", b"")] * 200]
    fields: dict[str, Any] = {"base_offset": 1 << 40, "partition_leader_epoch": 5, "compression": compression}
    if in_transaction:
        fields |= {"is_transactional": True, "producer_id": 7, "producer_epoch": 3}
    records = [Record(*pair, (), 1_700_000_000_000) for pair in pairs]
    assert write_pairs(pairs, 1_700_000_000_000, **fields) == write_batch(records, **fields)


def test_log_append_time_replaces_every_timestamp() -> None:
    batch = write_batch(RECORDS, log_append_time_ms=99)
    assert read_header(batch).has_log_append_time
    assert [record.timestamp for record in read_records(batch)] == [99, 99, 99]


def test_compaction_keeps_offsets() -> None:
    kept = [Record(b"a", b"1", offset=12), Record(b"b", b"2", offset=17)]
    batch = write_batch(kept, base_offset=10, keeps_offsets=True)
    assert [record.offset for record in read_records(batch)] == [12, 17]
    assert read_header(batch).next_offset == 18


def test_the_leader_stamps_place_and_time() -> None:
    sent = write_batch(RECORDS, compression="lz4", producer_id=3, producer_epoch=0, base_sequence=5)
    stored = stamped(sent, base_offset=1000, partition_leader_epoch=4)
    header = read_header(stored)
    check_crc(stored, 0, header)
    assert (header.base_offset, header.partition_leader_epoch, header.base_sequence) == (1000, 4, 5)
    timed = stamped(sent, base_offset=1000, partition_leader_epoch=4, log_append_time_ms=77)
    assert {record.timestamp for record in read_records(timed)} == {77}


def test_iteration_ends_at_an_incomplete_batch() -> None:
    first, second = write_batch(RECORDS), write_batch(RECORDS[:1], base_offset=3)
    whole = first + second
    assert [(pos, header.base_offset) for pos, header in iter_headers(whole)] == [(0, 0), (len(first), 3)]
    for cut in range(len(first), len(whole)):
        assert [pos for pos, _ in iter_headers(whole[:cut])] == [0]
    assert list(iter_headers(b"")) == []


def test_every_changed_byte_behind_the_checksum_is_noticed() -> None:
    batch = write_batch(RECORDS)
    for position in range(17, len(batch)):
        changed = bytearray(batch)
        changed[position] ^= 0x10
        with pytest.raises(CorruptRecord):
            read_records(bytes(changed))


def test_lies_about_sizes_are_refused() -> None:
    batch = bytearray(write_batch(RECORDS))
    for position, value in ((8, b"\x7f\xff\xff\xff"), (8, b"\xff\xff\xff\xff"), (57, b"\x7f\xff\xff\xff")):
        changed = bytearray(batch)
        changed[position : position + 4] = value
        with pytest.raises(CorruptRecord):
            read_records(bytes(changed), verify=False)
    for end in range(HEADER_SIZE):
        with pytest.raises(CorruptRecord):
            read_records(bytes(batch[:end]))


def test_a_batch_has_records() -> None:
    with pytest.raises(ValueError, match="at least one"):
        write_batch([])
    with pytest.raises(ValueError, match="at least one"):
        write_pairs([], 5, base_offset=0, partition_leader_epoch=0)
    with pytest.raises(ValueError, match="brotli"):
        write_batch(RECORDS, compression="brotli")


@pytest.mark.parametrize("is_commit", [True, False])
def test_markers(is_commit: bool) -> None:  # GR-07
    marker = EndTransaction(is_commit, 6)
    records = [end_transaction_record(marker, 5)]
    batch = write_batch(records, producer_id=1, producer_epoch=0, is_transactional=True, is_control=True)
    header = read_header(batch)
    assert header.is_control
    assert header.is_transactional
    assert read_end_transaction(read_records(batch)[0]) == marker
    assert read_end_transaction(Record(b"\x00\x00\x00\x02", b"")) is None
    with pytest.raises(CorruptRecord):
        read_end_transaction(Record(b"\x00", b""))
