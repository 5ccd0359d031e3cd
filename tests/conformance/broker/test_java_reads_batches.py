"""Apache Kafka's own reader on the record batches that Groupkeeper writes."""

import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tools.apache_kafka import cache_folder
from tools.protocol.corpus.pack import java

from groupkeeper.protocol.compression import CODECS
from groupkeeper.protocol.record_batch import (
    EndTransaction,
    Record,
    end_transaction_record,
    read_header,
    stamped,
    write_batch,
)

pytestmark = pytest.mark.conformance

TIME = 1_700_000_000_000


def some_records(count: int) -> list[Record]:
    return [
        Record(
            None if i % 4 == 3 else b"key%d" % i,
            None if i % 5 == 4 else b"value " * (i * i % 1000),
            [("größe", b"\x01"), ("null", None), ("", b"")] if i % 3 == 0 else (),
            TIME + i * 37 % 50 - 10,
        )
        for i in range(count)
    ]


@cache
def batches() -> dict[str, bytes]:
    found = {}
    for codec, count, append_time in product(CODECS, (1, 40, 300), (None, TIME + 5)):
        name = f"{codec} {count} {append_time}"
        records = some_records(count)
        found[name] = write_batch(records, base_offset=1000, compression=codec, log_append_time_ms=append_time)
    sent = write_batch(some_records(5), producer_id=4000, producer_epoch=2, base_sequence=9, is_transactional=True)
    found["transactional"] = stamped(sent, base_offset=70, partition_leader_epoch=6)
    found["stamped with a time"] = stamped(sent, base_offset=70, partition_leader_epoch=6, log_append_time_ms=TIME)
    for is_commit in (True, False):
        marker = end_transaction_record(EndTransaction(is_commit, 12), TIME)
        found[f"marker {is_commit}"] = write_batch(
            [marker], base_offset=8, producer_id=4000, producer_epoch=2, is_transactional=True, is_control=True
        )
    kept = [Record(b"k", b"v", offset=offset) for offset in (100, 103, 9000)]
    found["with gaps"] = write_batch(kept, base_offset=100, keeps_offsets=True)
    return found


@pytest.fixture(scope="module")
def described(apache_jars: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Apache's reader says of each batch."""
    file = tmp_path_factory.mktemp("batches") / "batches.hex"
    file.write_text("".join(batch.hex() + "\n" for batch in batches().values()))
    lines = java(Path(cache_folder()) / "jars", "BatchWriter", "read", str(file)).splitlines()
    return {name: json.loads(line) for name, line in zip(batches(), lines, strict=True)}


@pytest.mark.parametrize("name", batches())
def test_apaches_reader_finds_what_was_written(described: dict[str, Any], name: str) -> None:
    batch = batches()[name]
    header = read_header(batch)
    (node,) = described[name]
    assert node["size"] == len(batch)
    assert (node["magic"], node["compression"]) == (2, header.compression)
    assert (node["base_offset"], node["last_offset"]) == (header.base_offset, header.last_offset)
    assert node["log_append_time"] == header.has_log_append_time
    assert node["max_timestamp"] == header.max_timestamp
    assert (node["transactional"], node["control"]) == (header.is_transactional, header.is_control)
    assert (node["producer_id"], node["producer_epoch"]) == (header.producer_id, header.producer_epoch)
    assert (node["base_sequence"], node["leader_epoch"]) == (header.base_sequence, header.partition_leader_epoch)
    assert len(node["records"]) == header.record_count
    if name.startswith("marker"):
        assert node["records"][0][5:] == ["COMMIT" if name.endswith("True") else "ABORT", 12]
    if not name.startswith(CODECS):
        return
    for i, (record, theirs) in enumerate(zip(some_records(header.record_count), node["records"], strict=True)):
        timestamp = header.max_timestamp if header.has_log_append_time else record.timestamp
        parts = [None if part is None else part.hex() for part in (record.key, record.value)]
        headers = [[key, None if value is None else value.hex()] for key, value in record.headers]
        assert theirs == [1000 + i, timestamp, *parts, headers]
