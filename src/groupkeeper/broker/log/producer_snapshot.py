"""The state of a log's producers on disk, so that a start needn't read the whole log (Apache Kafka's formats).

`<offset>.snapshot` holds the producers as they were at an offset, `<base offset>.txnindex` the aborted transactions
whose markers lie in a segment.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from struct import error as struct_error

from google_crc32c import value as crc32c

from groupkeeper.broker.log.producers import Aborted, Producer, Producers
from groupkeeper.java_numbers import INT_MAX
from groupkeeper.protocol.record_batch import BatchHeader

_SNAPSHOT_VERSION = 1
_START = Struct(">hI")
_COUNT = Struct(">i")
_PRODUCER = Struct(">qhiqiqiq")
_ABORTED = Struct(">hqqqq")
_TRANSACTIONAL = 0x10


def encode_producers(producers: Producers) -> bytes:
    """The content of a `.snapshot` file: the last batch of each producer."""
    entries = [_encode(producer_id, producer) for producer_id, producer in producers.items()]
    covered = _COUNT.pack(len(entries)) + b"".join(entries)
    return _START.pack(_SNAPSHOT_VERSION, crc32c(covered)) + covered


def _encode(producer_id: int, producer: Producer) -> bytes:
    last_sequence, last_offset, delta = -1, -1, 0
    if producer.written:
        last = producer.written[-1]
        last_sequence = last.last_sequence
        delta = (last.last_sequence - last.first_sequence) & INT_MAX
        last_offset = last.base_offset + delta
    start = -1 if producer.transaction_start is None else producer.transaction_start
    epoch, coordinator_epoch = producer.epoch, producer.coordinator_epoch
    return _PRODUCER.pack(
        producer_id, epoch, last_sequence, last_offset, delta, producer.seen_ms, coordinator_epoch, start
    )


def decode_producers(content: bytes, producers: Producers) -> None:
    """Restores producers from the content of a `.snapshot` file. Raises ValueError when it is damaged."""
    try:
        version, checksum = _START.unpack_from(content)
        (count,) = _COUNT.unpack_from(content, _START.size)
    except struct_error as error:
        raise ValueError(str(error)) from None
    covered = content[_START.size :]
    if version != _SNAPSHOT_VERSION or crc32c(covered) != checksum:
        raise ValueError("no snapshot of producers")
    if len(covered) != _COUNT.size + count * _PRODUCER.size:
        raise ValueError(f"{len(covered)} bytes for {count} producers")
    entries = list(_PRODUCER.iter_unpack(covered[_COUNT.size :]))
    # Open transactions are kept in order of their start offsets, producers in the order they were last seen.
    for producer_id, epoch, _, _, _, seen_ms, _, start in sorted(entries, key=lambda entry: entry[7]):
        if start >= 0:
            header = _header(producer_id, epoch, start, attributes=_TRANSACTIONAL)
            producers.remember(header, seen_ms)
    for producer_id, epoch, last_sequence, last_offset, delta, seen_ms, _, start in sorted(entries, key=lambda e: e[5]):
        first = -1 if last_sequence < 0 else (last_sequence - delta) & INT_MAX
        attributes = _TRANSACTIONAL if start >= 0 else 0
        header = _header(producer_id, epoch, last_offset - delta, delta, first, seen_ms, attributes)
        producers.remember(header, seen_ms)
    coordinator_epochs = {entry[0]: entry[6] for entry in entries}
    for producer_id, producer in producers.items():
        producer.coordinator_epoch = coordinator_epochs.get(producer_id, -1)


def _header(
    producer_id: int,
    epoch: int,
    base_offset: int,
    delta: int = 0,
    sequence: int = -1,
    timestamp: int = -1,
    attributes: int = 0,
) -> BatchHeader:
    return BatchHeader(
        base_offset, 49, 0, 2, 0, attributes, delta, timestamp, timestamp, producer_id, epoch, sequence, delta + 1
    )


def encode_aborted(aborted: Iterable[Aborted]) -> bytes:
    """The content of a `.txnindex` file."""
    return b"".join(_ABORTED.pack(0, *one) for one in aborted)


def decode_aborted(content: bytes) -> list[Aborted]:
    """The aborted transactions in a `.txnindex` file. Raises ValueError."""
    if len(content) % _ABORTED.size:
        raise ValueError("an entry is incomplete")
    return [Aborted(*entry[1:]) for entry in _ABORTED.iter_unpack(content)]
