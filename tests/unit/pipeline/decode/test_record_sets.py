"""Record sets as a Fetch gives them: what a reader sees of them, and which batch is named when they are corrupt."""

import random

import pyarrow as pa
import pytest
from google_crc32c import value as crc32c
from tests.unit.pipeline.decode.record_sets import read_record_sets
from tests.unit.transactions import control_batch, in_transaction, marker

from groupkeeper.pipeline.decode.batches import AbortedRange, CorruptBatch, RecordSet
from groupkeeper.pipeline.decode.records import Records
from groupkeeper.pipeline.relations import time_of
from groupkeeper.pipeline.tables.schema import LAST_MS
from groupkeeper.protocol.compression import CODECS
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import HEADER_SIZE, read_records, write_batch


def random_record(rng: random.Random, offset: int) -> Record:
    key = None if rng.random() < 0.1 else rng.randbytes(rng.choice((0, 1, 5, 40, 70, 9000)))
    value = None if rng.random() < 0.2 else rng.randbytes(rng.choice((0, 1, 30, 63, 64, 300)))
    headers = () if rng.random() < 0.8 else (("name", b"value"), ("empty", None))
    return Record(key, value, headers, 1_700_000_000_000 + rng.randrange(-(10**6), 10**6), offset)


def random_log(rng: random.Random, batches: int, sizes: tuple[int, ...], compressions: tuple[str, ...]) -> bytes:
    """Batches with gaps between and within them, as compaction leaves them."""
    out, offset = [], rng.randrange(100)
    for _ in range(batches):
        base = offset
        records = []
        for _ in range(rng.choice(sizes)):
            records.append(random_record(rng, offset))
            offset += rng.choice((1, 1, 1, 200))
        time = rng.choice((None, None, 5_000_000))
        out.append(write_batch(records, base_offset=base, compression=rng.choice(compressions), keeps_offsets=True,
                               log_append_time_ms=time))  # fmt: skip
        offset += rng.choice((0, 0, 7))
    return b"".join(out)


def plain(records: Records) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [
        (int(records.offset[row]), int(records.timestamp[row]), records.key(row), records.value(row))
        for row in range(len(records))
    ]


def one_by_one(data: bytes, start: int = 0, end: int = 2**62) -> list[tuple[int, int, bytes | None, bytes | None]]:
    found, pos = [], 0
    while pos + 12 <= len(data):
        size = 12 + int.from_bytes(data[pos + 8 : pos + 12], "big")
        if pos + size > len(data):
            break
        found += read_records(data, pos)
        pos += size
    return [(each.offset, each.timestamp, each.key, each.value) for each in found if start <= each.offset < end]


@pytest.mark.parametrize("compressions", [("none",), CODECS])
@pytest.mark.parametrize(("batches", "sizes"), [(700, (1, 2, 9)), (20, (200, 1)), (1, (1,)), (300, (1, 60))])
def test_records_as_they_are_read_one_by_one(
    batches: int, sizes: tuple[int, ...], compressions: tuple[str, ...]
) -> None:
    rng = random.Random(batches)
    logs = [random_log(rng, batches, sizes, compressions) for _ in range(2)]
    cut = logs[1][: len(logs[1]) - 5]
    found, next_offsets = read_record_sets([RecordSet(logs[0], 0, 2**62), RecordSet(cut, 0, 2**62)])
    wanted = [one_by_one(logs[0]), one_by_one(cut)]
    assert plain(found) == wanted[0] + wanted[1]
    assert found.set_index.tolist() == [0] * len(wanted[0]) + [1] * len(wanted[1])
    assert (next_offsets[1] is None) == (not wanted[1])
    middle = wanted[0][len(wanted[0]) // 2][0]
    some, _ = read_record_sets([RecordSet(logs[0], middle, middle + 100)])
    assert plain(some) == one_by_one(logs[0], middle, middle + 100)


def emptied(batch: bytes) -> bytes:
    """What compaction leaves of the last batch of a producer."""
    header = bytearray(batch[:HEADER_SIZE])
    header[8:12], header[57:61] = (HEADER_SIZE - 12).to_bytes(4, "big"), bytes(4)
    header[17:21] = crc32c(bytes(header[21:])).to_bytes(4, "big")
    return bytes(header)


def test_what_is_behind_the_last_batch_and_empty_batches() -> None:
    batch = write_batch([Record(b"k", b"v"), Record(b"l", b"w")], base_offset=5)
    empty = emptied(write_batch([Record(b"k", b"v")], base_offset=10))
    assert read_record_sets([RecordSet(b"", 0, 9), RecordSet(batch[:40], 0, 9)])[1] == [None, None]
    found, next_offsets = read_record_sets([RecordSet(batch + empty, 0, 2**62)])
    assert found.offset.tolist() == [5, 6]
    assert next_offsets == [11]


def test_old_message_sets() -> None:
    import struct
    import zlib

    def message(offset: int, magic: int, key: bytes, value: bytes) -> bytes:
        body = struct.pack(">bb", magic, 0) + (struct.pack(">q", 123_456) if magic else b"")
        body += struct.pack(">i", len(key)) + key + struct.pack(">i", len(value)) + value
        body = struct.pack(">I", zlib.crc32(body)) + body
        return struct.pack(">qi", offset, len(body)) + body

    data = message(3, 0, b"k", b"v0") + message(4, 1, b"k", b"v1") + write_batch([Record(b"k", b"v2")], base_offset=5)
    found, next_offsets = read_record_sets([RecordSet(data, 0, 99)])
    assert [row[0] for row in plain(found)] == [3, 4, 5]
    assert [row[3] for row in plain(found)] == [b"v0", b"v1", b"v2"]
    assert found.timestamp.tolist() == [-1, 123_456, -1]
    assert next_offsets == [6]


def test_aborted_transactions_are_not_seen() -> None:
    log = [
        in_transaction(1, [Record(b"k", b"aborted")]),
        in_transaction(2, [Record(b"k", b"committed")], 1),
        write_batch([Record(b"k", b"outside")], base_offset=2),
        marker(1, is_commit=False, base_offset=3),
        in_transaction(1, [Record(b"k", b"committed later")], 4),
        marker(2, is_commit=True, base_offset=5),
        marker(1, is_commit=True, base_offset=6),
        in_transaction(2, [Record(b"k", b"aborted, marker not fetched yet")], 7),
    ]
    aborted = [AbortedRange(2, 7), AbortedRange(1, 0)]
    found, _ = read_record_sets([RecordSet(b"".join(log), 0, 99, aborted)])
    seen = [value for _, _, _, value in plain(found.where(~found.is_control))]
    assert seen == [b"committed", b"outside", b"committed later"]
    assert found.producer_id.tolist() == [2, -1, 1, 1, 2, 1]
    everything, _ = read_record_sets([RecordSet(b"".join(log), 0, 99)])
    assert len(everything) == 8


def test_markers_that_are_empty_end_nothing_and_malformed_ones_are_named() -> None:
    log = [in_transaction(1, [Record(b"k", b"aborted")]), b"", in_transaction(1, [Record(b"k", b"aborted, too")], 2)]
    aborted = [AbortedRange(1, 0)]
    log[1] = emptied(marker(1, is_commit=False, base_offset=1))
    assert not len(read_record_sets([RecordSet(b"".join(log), 0, 99, aborted)])[0])
    log[1] = control_batch(1, Record(b"", b""), 1)
    with pytest.raises(CorruptBatch, match="control record") as caught:
        read_record_sets([RecordSet(b"", 0, 99), RecordSet(b"".join(log), 0, 99, aborted)])
    assert (caught.value.index, caught.value.offset) == (1, 1)


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_a_corrupt_batch_is_named(compression: str) -> None:
    rng = random.Random(1)
    good = write_batch([random_record(rng, 0) for _ in range(3)], compression=compression)
    bad = bytearray(write_batch([random_record(rng, 0) for _ in range(3)], base_offset=3, compression=compression))
    bad[-1] ^= 0xFF
    with pytest.raises(CorruptBatch, match="checksum") as caught:
        read_record_sets([RecordSet(good, 0, 99), RecordSet(good + bytes(bad), 0, 99)])
    assert (caught.value.index, caught.value.offset) == (1, 3)


def test_every_broken_byte_is_found_or_harmless() -> None:
    """Without the checksum, structure alone must end in CorruptBatch or in records: nothing else, and no hang."""
    rng = random.Random(3)
    data = random_log(rng, 3, (3,), ("none", "lz4"))
    refused = 0
    for _ in range(2000):
        broken = bytearray(data)
        for _ in range(rng.choice((1, 1, 3))):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        try:
            read_record_sets([RecordSet(bytes(broken), 0, 2**62)], verify=False)
        except CorruptBatch:
            refused += 1
    assert refused > 100


def test_times_that_cannot_be_meant_are_null() -> None:
    found = time_of(pa.array([-(2**62), -2, -1, 0, 1_700_000_000_001, LAST_MS, LAST_MS + 1, 2**63 - 1]))
    shown = [each and each.isoformat() for each in found.to_pylist()]
    assert shown == [
        None, None, None, "1970-01-01T00:00:00+00:00", "2023-11-14T22:13:20.001000+00:00",
        "9999-12-31T23:59:59.999000+00:00", None, None,
    ]  # fmt: skip
