"""Batches whose headers and records say different things, on Apache Kafka 4.4.0 and on our broker: the same error, or
the same log afterwards, with the same answers to ListOffsets.
"""

import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pytest
from google_crc32c import value as crc32c
from tests.differential.pair import Side, brokers, sides_of

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.compression import CODECS, compress
from groupkeeper.protocol.errors import InvalidRecord
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.record_batch import BatchHeader, CorruptRecord, iter_headers, read_records
from groupkeeper.protocol.zigzag import ZIGZAG

NOW_MS = int(time.time() * 1000)
DAY_MS = 86_400_000
LONG_AGO = NOW_MS - 30 * DAY_MS
SPECIAL = (-1, -2, -3)
USUAL: Mapping[str, str] = {}
COMPACTED = {"cleanup.policy": "compact"}
APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
BOUNDED = {"message.timestamp.before.max.ms": "3600000", "message.timestamp.after.max.ms": "3600000"}
APPENDED, TRANSACTIONAL, CONTROL, HORIZON, UNUSED = 0x08, 0x10, 0x20, 0x40, 0x80


class Lie(NamedTuple):
    """What is sent to a topic of its own: batches, one in each request."""

    settings: Mapping[str, str]
    batches: Sequence[bytes]
    version: int = 9


def record(
    time_delta: int = 0,
    offset_delta: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    *,
    attributes: int = 0,
    end: bytes = b"\0",
    size_lie: int = 0,
) -> bytes:
    body = bytes((attributes,)) + ZIGZAG[time_delta] + ZIGZAG[offset_delta]
    body += b"".join(b"\1" if part is None else ZIGZAG[len(part)] + part for part in (key, value)) + end
    return ZIGZAG[len(body) + size_lie] + body


THREE = (record(0, 0), record(5, 1), record(2, 2))


def batch(records: Sequence[bytes] = THREE, codec: str = "none", packed: bytes | None = None, /, **said: int) -> bytes:
    """A batch whose header says the truth about `records` where `said` does not say otherwise."""
    body = compress(codec, b"".join(records)) if packed is None else packed
    count = len(records)
    header = {"attributes": CODECS.index(codec), "last_offset_delta": count - 1, "base_timestamp": NOW_MS}
    header |= {"max_timestamp": NOW_MS + 5, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
    header |= {"record_count": count}
    outer = {"base_offset": 0, "epoch": 0, "magic": 2, "size_lie": 0, "crc_lie": 0, "flags": 0}
    assert not said.keys() - header.keys() - outer.keys()
    header |= {name: value for name, value in said.items() if name in header}
    outer |= {name: value for name, value in said.items() if name in outer}
    header["attributes"] |= outer["flags"]
    checked = struct.pack(">hiqqqhii", *header.values()) + body
    return (
        struct.pack(">qii", outer["base_offset"], 9 + len(checked) + outer["size_lie"], outer["epoch"])
        + struct.pack(">bI", outer["magic"], crc32c(checked) ^ outer["crc_lie"])
        + checked
    )


def old_messages(magic: int) -> bytes:
    """A message set of a format before Kafka 0.11."""
    import zlib

    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", NOW_MS) if magic else b"")
    body += struct.pack(">i1si1s", 1, b"k", 1, b"v")
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


def in_each_codec(records: Sequence[bytes] = THREE, settings: Mapping[str, str] = USUAL, **said: int) -> dict[str, Lie]:
    return {codec: Lie(settings, [batch(records, codec, None, **said)]) for codec in CODECS}


def spread(name: str, by_codec: Mapping[str, Lie]) -> dict[str, Lie]:
    return {f"{name}-{codec}": lie for codec, lie in by_codec.items()}


KEYLESS = (record(0, 0), record(5, 1, None), record(2, 2), record(1, 3, None))
LIES: dict[str, Lie] = {
    **spread("truth", in_each_codec()),
    **spread("max-too-small", in_each_codec(max_timestamp=LONG_AGO)),
    **spread("max-too-large", in_each_codec(max_timestamp=NOW_MS + DAY_MS)),
    **spread("max-none", in_each_codec(max_timestamp=-1)),
    **spread("max-of-two-equal", in_each_codec((record(5, 0), record(5, 1), record(0, 2)), max_timestamp=0)),
    **spread("max-first", in_each_codec((record(0, 0), record(-5, 1)), max_timestamp=-7)),
    **spread("no-times", in_each_codec((record(0, 0), record(0, 1)), base_timestamp=-1, max_timestamp=NOW_MS)),
    **spread("below-none", in_each_codec((record(0, 0), record(-9, 1)), base_timestamp=-5, max_timestamp=NOW_MS)),
    **spread("one-without-time", in_each_codec((record(0, 0), record(-NOW_MS - 1, 1)), max_timestamp=0)),
    **spread("far-future", in_each_codec((record(0, 0), record(2 * DAY_MS, 1)), max_timestamp=NOW_MS)),
    **spread("header-future", in_each_codec(max_timestamp=NOW_MS + 900 * DAY_MS)),
    **spread("too-old", in_each_codec((record(0, 0), record(-2 * DAY_MS, 1)), BOUNDED, max_timestamp=NOW_MS)),
    **spread("too-new", in_each_codec((record(0, 0), record(2 * DAY_MS, 1)), BOUNDED, max_timestamp=NOW_MS)),
    **spread("header-old", in_each_codec(THREE, BOUNDED, max_timestamp=LONG_AGO)),
    **spread("bounded-none", in_each_codec((record(0, 0),), BOUNDED, base_timestamp=-1, max_timestamp=-1)),
    **spread("append-time", in_each_codec(THREE, APPEND_TIME, max_timestamp=LONG_AGO)),
    **spread("append-time-bounds", in_each_codec((record(9 * DAY_MS, 0),), {**APPEND_TIME, **BOUNDED})),
    **spread("append-time-flag", in_each_codec(THREE, APPEND_TIME, flags=APPENDED)),
    **spread("flag-of-append-time", in_each_codec(flags=APPENDED, max_timestamp=NOW_MS - 9)),
    **spread("flag-of-append-time-none", in_each_codec(flags=APPENDED, max_timestamp=-1)),
    **spread("flag-horizon", in_each_codec(flags=HORIZON)),
    **spread("flag-horizon-max", in_each_codec(flags=HORIZON, max_timestamp=1)),
    **spread("flag-unused", in_each_codec(flags=UNUSED)),
    **spread("flag-unused-max", in_each_codec(flags=UNUSED, max_timestamp=1)),
    **spread("flag-control", in_each_codec(flags=CONTROL)),
    **spread("flag-transactional", in_each_codec(flags=TRANSACTIONAL)),
    **spread("keyless", in_each_codec(KEYLESS, COMPACTED)),
    **spread("keyless-and-future", in_each_codec((record(2 * DAY_MS, 0, None), record(2 * DAY_MS, 1)), COMPACTED)),
    **spread("keyless-usual", in_each_codec(KEYLESS)),
    **spread("same-offsets", in_each_codec((record(0, 0), record(5, 0), record(2, 0)))),
    **spread("gap-in-offsets", in_each_codec((record(0, 0), record(5, 2), record(2, 3)))),
    **spread("falling-offsets", in_each_codec((record(0, 2), record(5, 1), record(2, 0)))),
    **spread("negative-offsets", in_each_codec((record(0, -1), record(5, 0), record(2, 1)))),
    **spread("same-offsets-keyless", in_each_codec((record(0, 0, None), record(5, 0)), COMPACTED)),
    **spread("last-delta-large", in_each_codec(last_offset_delta=9)),
    **spread("last-delta-small", in_each_codec(last_offset_delta=1)),
    **spread("last-delta-negative", in_each_codec(last_offset_delta=-1)),
    **spread("count-large", in_each_codec(record_count=4)),
    **spread("count-small", in_each_codec(record_count=2)),
    **spread("count-and-delta-large", in_each_codec(record_count=4, last_offset_delta=3)),
    **spread("count-and-delta-small", in_each_codec(record_count=2, last_offset_delta=1)),
    **spread("count-zero", in_each_codec(record_count=0)),
    **spread("count-and-delta-zero", in_each_codec(record_count=0, last_offset_delta=-1)),
    **spread("count-negative", in_each_codec(record_count=-1)),
    **spread("count-and-delta-negative", in_each_codec(record_count=-3, last_offset_delta=-4)),
    **spread("count-enormous", in_each_codec(record_count=2**31 - 1, last_offset_delta=2**31 - 2)),
    **spread("no-records", in_each_codec((), record_count=1, last_offset_delta=0)),
    **spread("base-offset", in_each_codec(base_offset=7)),
    **spread("leader-epoch", in_each_codec(epoch=9)),
    **spread("sequence", in_each_codec(producer_id=77, producer_epoch=0)),
    **spread("sequence-0", in_each_codec(producer_id=77, producer_epoch=0, base_sequence=0)),
    **spread("sequence-without-producer", in_each_codec(base_sequence=4)),
    **spread("epoch-negative", in_each_codec(producer_id=77, producer_epoch=-1, base_sequence=0)),
    **spread("checksum", in_each_codec(crc_lie=1)),
    **spread("length-large", in_each_codec(size_lie=1)),
    **spread("length-small", in_each_codec(size_lie=-1)),
    **spread("magic-3", in_each_codec(magic=3)),
    **spread("magic-1", in_each_codec(magic=1)),
    **spread("record-attributes", in_each_codec((record(attributes=255), record(1, 1)))),
    **spread("record-without-end", in_each_codec((record(0, 0)[:-1],), max_timestamp=0)),
    **spread("record-headers", in_each_codec((record(end=ZIGZAG[2] + b"\2h\2v\2i\1"), record(5, 1)))),
    **spread("header-count-large", in_each_codec((record(end=ZIGZAG[3] + b"\2h\2v"),))),
    **spread("header-count-negative", in_each_codec((record(end=ZIGZAG[-1]),))),
    **spread("header-without-name", in_each_codec((record(end=ZIGZAG[1] + b"\1\2v"),))),
    **spread("value-too-long", in_each_codec((ZIGZAG[7] + b"\0\0\0\2k\x40v",))),
    **spread("key-too-long", in_each_codec((ZIGZAG[7] + b"\0\0\0\x40k\2v",))),
    **spread("key-size-minus-9", in_each_codec((record(key=None).replace(b"\1\2v", b"\x11\2v"),), COMPACTED)),
    **spread("empty-key", in_each_codec((record(key=b"", value=None),), COMPACTED)),
    **spread("behind-the-last-record", in_each_codec((*THREE, b"\0"), record_count=3, last_offset_delta=2)),
    **spread("behind-one-record", in_each_codec((*THREE, record(9, 3)), record_count=3, last_offset_delta=2)),
    **spread("offset-of-six-bytes", in_each_codec((b"\x18\0\0\x80\x80\x80\x80\x80\0\1\2v\0",))),
    **spread("time-of-ten-bytes", in_each_codec((record(-NOW_MS - 2**62, 0), record(-NOW_MS, 1)))),
    **spread("many", in_each_codec([record(place % 50, place, b"k" * (place % 7)) for place in range(300)])),
    **spread("many-alike", in_each_codec([record(-place // 20, place, value=b"v" * 70) for place in range(9000)])),
    **spread(
        "one-of-many-keyless", in_each_codec([record(0, at, None if at == 70 else b"") for at in range(99)], COMPACTED)
    ),
    **spread("one-of-many-out-of-order", in_each_codec([record(1, at if at != 70 else 7) for at in range(99)])),
    **spread("last-of-many-is-late", in_each_codec([record(at // 98, at) for at in range(99)], max_timestamp=7)),
    "gzip-members": Lie(
        USUAL, [batch(THREE, "gzip", compress("gzip", THREE[0]) + compress("gzip", THREE[1] + THREE[2]))]
    ),
    "gzip-empty-members": Lie(
        USUAL, [batch(THREE, "gzip", compress("gzip", b"".join(THREE)) + compress("gzip", b"") * 9)]
    ),
    "zstd-frames": Lie(
        USUAL, [batch(THREE, "zstd", compress("zstd", THREE[0]) + compress("zstd", THREE[1] + THREE[2]))]
    ),
    "large-value": Lie(USUAL, [batch([record(value=bytes(4_000_000))], "zstd", max_timestamp=1)]),
    "large-value-keyless": Lie(COMPACTED, [batch([record(0, 0, None, bytes(4_000_000))], "zstd", max_timestamp=1)]),
    "many-same-offsets": Lie(USUAL, [batch([record()] * 40_000, "zstd")]),
    "codec-5": Lie(USUAL, [batch(flags=5)]),
    "codec-7": Lie(USUAL, [batch(flags=7)]),
    "codec-lies": Lie(USUAL, [batch(flags=1)]),
    "zstd-in-version-3": Lie(USUAL, [batch(THREE, "zstd")], 3),
    "zstd-in-version-7": Lie(USUAL, [batch(THREE, "zstd", max_timestamp=1)], 7),
    "magic-0-message": Lie(USUAL, [old_messages(0)]),
    "magic-1-message": Lie(USUAL, [old_messages(1)]),
    "magic-1-in-version-3": Lie(USUAL, [old_messages(1)], 3),
    "two-batches": Lie(USUAL, [batch() + batch()]),
    "three-requests": Lie(USUAL, [batch(max_timestamp=1), batch(THREE, "gzip", max_timestamp=LONG_AGO), batch()]),
    "nothing": Lie(USUAL, [b""]),
    "rest-behind": Lie(USUAL, [batch() + b"rest"]),
}


UNREADABLE = spread("record-size", in_each_codec((record(size_lie=3),))) | spread(
    "record-size-negative", in_each_codec((ZIGZAG[-3] + record()[1:],))
)
"""Apache Kafka takes these into the log where they are compressed, and no client can read them: our broker refuses."""


Outcome = tuple[list[object], list[tuple[object, object]], object]
"""The answers of Produce, the batches of the log afterwards, and the answers of ListOffsets."""


class Log(Side):
    """A side with a topic of one partition for each lie."""

    def outcome(self, number: int, lie: Lie) -> Outcome:
        return [self._produce(number, one, lie.version) for one in lie.batches], self._log(number), self._times(number)

    def _produce(self, number: int, records: bytes, version: int) -> object:
        data = [m.TopicProduceData(self.name(number), partition_data=[m.PartitionProduceData(0, records)])]
        try:
            answer = self.pool.ask(m.ProduceRequest(None, -1, 30_000, data), version)
        except (EOFError, ConnectionResetError):
            return "closed"
        part = answer.responses[0].partition_responses[0]
        return (
            part.error_code,
            part.base_offset,
            part.log_append_time_ms > 0,
            [one.batch_index for one in part.record_errors],
        )

    def _log(self, number: int) -> list[tuple[object, object]]:
        topics = [FetchTopic(self.name(number), bytes(16), [FetchPartition(0, -1, 0, partition_max_bytes=1 << 20)])]
        answer = self.pool.ask(m.FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), 12)
        records = answer.responses[0].partitions[0].records or b""
        return [(_shown(header), _records(records, at)) for at, header in iter_headers(records)]

    def _times(self, number: int) -> object:
        asked = (*SPECIAL, 0, 1, LONG_AGO, NOW_MS - 10, NOW_MS, NOW_MS + 3, NOW_MS + 5, NOW_MS + 6, NOW_MS + DAY_MS)
        return [self._offset_at(number, at) for at in asked]

    def _offset_at(self, number: int, at: int) -> object:
        topics = [m.ListOffsetsTopic(self.name(number), [m.ListOffsetsPartition(0, -1, at)])]
        answer = self.pool.ask(m.ListOffsetsRequest(-1, 0, topics), 7)
        part = answer.topics[0].partitions[0]
        return at - NOW_MS, part.error_code, _said(part.timestamp), part.offset


def _said(timestamp: int) -> object:
    """A time that a broker gave by its own clock is after the test's beginning, and differs."""
    return "its own" if NOW_MS + 5 < timestamp < NOW_MS + 3_600_000 else timestamp - NOW_MS


def _shown(header: BatchHeader) -> object:
    times = [_said(timestamp) for timestamp in (header.base_timestamp, header.max_timestamp)]
    crc = None if "its own" in times else header.crc
    return header._replace(crc=0, base_timestamp=0, max_timestamp=0), times, crc


def _records(records: bytes, at: int) -> object:
    try:
        found = read_records(records, at)
    except CorruptRecord:
        return "unreadable"
    return [(one.offset, _said(one.timestamp), one.key, one.value, one.headers) for one in found]


@pytest.fixture(scope="module")
def logs() -> Iterator[tuple[Log, Log]]:
    with brokers({}) as servers, sides_of(Log, servers) as sides:
        for side in sides:
            side.begin("lies", dict(enumerate((1, lie.settings) for lie in (*LIES.values(), *UNREADABLE.values()))))
        yield sides


@pytest.mark.conformance
@pytest.mark.timeout(180)
def test_a_lying_batch_has_the_same_outcome(logs: tuple[Log, Log]) -> None:
    wrong = []
    for number, (name, lie) in enumerate(LIES.items()):
        mine, theirs = (log.outcome(number, lie) for log in logs)
        if mine != theirs:
            wrong.append(f"{name}\n    ours   {mine}\n    apache {theirs}")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(LIES)}", *wrong])


@pytest.mark.conformance
@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", UNREADABLE)
def test_what_no_client_could_read_is_refused(name: str, logs: tuple[Log, Log]) -> None:
    number = len(LIES) + list(UNREADABLE).index(name)
    mine, theirs = (log.outcome(number, UNREADABLE[name]) for log in logs)
    refused: tuple[object, object] = [(InvalidRecord.code, -1, False, [])], []
    assert mine[:2] == refused
    if theirs[:2] != refused:
        assert [records for _, records in theirs[1]] == ["unreadable"]
