"""Message sets of Kafka before 0.11, compressed or not, as another client writes and reads them."""

import random
import zlib

import pytest
from kafka.record import MemoryRecords
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from tests.unit.pipeline.decode.record_sets import read_record_sets

from groupkeeper.pipeline.decode.batches import RecordSet

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3}
Row = tuple[int, int, int, bytes | None, bytes | None]


def message_sets(rng: random.Random, magic: int, codec: int, count: int) -> bytes:
    """Several of them, with offsets as a broker gives them: a wrapper has the offset of its last message."""
    out, offset = bytearray(), 5
    for _ in range(count):
        builder = LegacyRecordBatchBuilder(magic, codec, 10**6)
        size = rng.choice((1, 2, 30))
        for number in range(size):
            key = None if rng.random() < 0.2 else rng.randbytes(rng.randrange(9))
            value = None if rng.random() < 0.2 else rng.randbytes(rng.randrange(90))
            # Within a wrapper of format 0 offsets are absolute, of format 1 they are relative.
            place = number if codec and magic else offset + number
            builder.append(place, timestamp=1_400_000_000_000 + rng.randrange(10**6), key=key, value=value)
        built = bytearray(builder.build())
        if codec:
            built[:8] = (offset + size - 1).to_bytes(8, "big")
            if magic and rng.random() < 0.5:  # times are the broker's, that of the wrapper
                built[17] |= 8
                built[12:16] = zlib.crc32(built[16:]).to_bytes(4, "big")
        out += built
        offset += size + rng.choice((0, 3))
    return bytes(out)


def theirs(sets: bytes) -> list[Row]:
    found: list[Row] = []
    memory = MemoryRecords(sets)
    while (batch := memory.next_batch()) is not None:
        found += [
            (r.offset, -1 if r.timestamp is None else r.timestamp, r.timestamp_type or 0, r.key, r.value) for r in batch
        ]
    return found


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
def test_old_message_sets_as_kafka_python_reads_them(magic: int, codec: str) -> None:
    rng = random.Random(magic)
    if magic == 0 and codec == "lz4":
        pytest.skip("format 0 has a framing of its own for lz4, which kafka-python needs another package for")
    sets = message_sets(rng, magic, CODECS[codec], 25)
    wanted = theirs(sets)
    assert len(wanted) > 50
    records, (behind,) = read_record_sets([RecordSet(sets, 0, 2**62)])
    found = [
        (
            int(records.offset[row]),
            int(records.timestamp[row]),
            int(records.has_log_append_time[row]),
            records.key(row),
            records.value(row),
        )
        for row in range(len(records))
    ]
    assert found == wanted
    assert behind == wanted[-1][0] + 1
    middle = wanted[len(wanted) // 2][0]
    some, _ = read_record_sets([RecordSet(sets, middle, middle + 9)])
    assert some.offset.tolist() == [row[0] for row in wanted if middle <= row[0] < middle + 9]
