"""What the records of a batch say, beside the same records decoded one by one."""

import random
from collections.abc import Sequence

import pytest

from groupkeeper.broker.log.record_walk import Walked, is_refused_early, read_deltas, walk
from groupkeeper.protocol.compression import ContentTooLarge, CorruptRecord
from groupkeeper.protocol.record_batch import HEADER_SIZE, Record, read_header, read_records, write_batch

T0 = 1_700_000_000_000


def walked(body: bytes, count: int, *, must_be_consecutive: bool = False) -> Walked:
    return walk(body, 0, count, must_be_consecutive, len(body))


def body_of(records: Sequence[Record]) -> bytes:
    return write_batch(records)[HEADER_SIZE:]


def drawn(chance: random.Random) -> list[Record]:
    """Runs of records of one shape, and others between them."""
    records: list[Record] = []
    while len(records) < chance.choice([1, 2, 9, 70, 300]):
        size, key = chance.choice([0, 1, 63, 64, 70, 5000]), chance.choice([None, b"", b"k", b"k" * 200])
        headers = chance.choice([(), (), (), [("h", b"v")], [("", None), ("a", b"")]])
        spread = chance.choice([0, 1, 60, 10_000_000])
        for _ in range(chance.choice([1, 3, 40, 200])):
            value = chance.choice([bytes(size), bytes(size), None]) if spread == 1 else chance.randbytes(size)
            records.append(Record(key, value, headers, T0 + chance.randint(-spread, spread)))
    return records


@pytest.mark.parametrize("seed", range(60))
def test_the_same_as_the_records(seed: int) -> None:
    records = drawn(random.Random(seed))
    body = body_of(records)
    times = [record.timestamp - records[0].timestamp for record in records]
    has_keyless = any(record.key is None for record in records)
    assert walked(body, len(records)) == Walked(max(times), min(times), has_keyless, True)
    places = [
        (time, place, record.key is not None) for place, (time, record) in enumerate(zip(times, records, strict=True))
    ]
    assert list(read_deltas(body, 0, len(records))) == places


@pytest.mark.parametrize("seed", range(40))
def test_damaged_records_are_refused_as_they_are_when_decoded(seed: int) -> None:
    chance = random.Random(seed)
    records = drawn(chance)[:80]
    whole = write_batch(records)
    for _ in range(50):
        made = bytearray(whole)
        for _ in range(chance.choice([1, 1, 2])):
            made[chance.randrange(HEADER_SIZE, len(made))] = chance.choice(
                [0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)]
            )
        try:
            found = read_records(bytes(made), verify=False)
        except CorruptRecord as error:
            if "utf-8" in str(error):  # the names of headers are not looked at
                continue
            with pytest.raises(CorruptRecord):
                walked(bytes(made[HEADER_SIZE:]), len(records))
            continue
        times = [record.timestamp - records[0].timestamp for record in found]
        is_consecutive = [record.offset for record in found] == list(range(len(found)))
        try:
            said = walked(bytes(made[HEADER_SIZE:]), len(records))
        except CorruptRecord as error:
            if "varint" not in str(error):  # longer ones than Apache Kafka reads
                raise
        else:
            assert said == Walked(max(times), min(times), any(record.key is None for record in found), is_consecutive)


def test_one_of_many_alike_is_seen() -> None:
    records = [Record(b"key", b"v" * 100, timestamp=T0 + place // 30) for place in range(5000)]
    body = bytearray(body_of(records))
    at = len(body_of(records[:4000]))
    assert body[at + 3] == 4000 // 30 * 2 % 128 | 0x80
    for place, byte in ((2, 7), (0, 0)):
        made = body[:]
        made[at + place] = byte
        if place == 2:  # attributes of a record have no meaning
            assert walked(bytes(made), 5000) == Walked(166, 0, False, True)
        else:
            with pytest.raises(CorruptRecord):
                walked(bytes(made), 5000)


def test_more_records_than_two_bytes_count() -> None:
    records = [Record(b"", None, timestamp=T0 + place // 9000) for place in range(40_000)]
    body = body_of(records)
    assert walked(body, len(records)) == Walked(4, 0, False, True)
    at = len(body_of(records[:30_000]))
    made = bytearray(body)
    made[at + 3] ^= 2  # the lowest byte of an offset delta
    assert walked(bytes(made), len(records)) == Walked(4, 0, False, False)


def test_many_records_of_one_offset_are_not_all_read() -> None:
    body = bytes((12, 0, 0, 0, 0, 1, 0)) * 1_000_000
    assert not walked(body, 1_000_000, must_be_consecutive=True).is_consecutive
    assert is_refused_early(body[:100_001], 1_000_000)
    assert not is_refused_early(body_of([Record(b"", b"")] * 20_000)[:50_000], 20_000)


def test_record_headers_are_bounded_by_the_batch() -> None:
    headers = [("", b"")] * 100_000
    body = body_of([Record(b"k", b"v", headers)])
    assert walk(body, 0, 1, True, len(body)).largest == 0
    with pytest.raises(ContentTooLarge, match="record headers are too many"):
        walk(body, 0, 1, True, 500)


def test_the_count_is_compared_with_the_bytes() -> None:
    body = body_of([Record(b"k", b"v")] * 3)
    for count in (1, 2, 4, 2**31 - 1):
        with pytest.raises(CorruptRecord):
            walked(body, count)
    assert read_header(write_batch([Record(b"k", b"v")] * 3)).record_count == 3
