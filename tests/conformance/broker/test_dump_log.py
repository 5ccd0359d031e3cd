"""Apache's kafka-dump-log reads every file that the broker writes, before and after cleaning."""

import asyncio
from pathlib import Path

import pytest
from tools.apache_kafka import run_tool

from groupkeeper.broker import Broker
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.offsets_topic import Entry, encode_record
from groupkeeper.protocol.record_batch import EndTransaction, Record, end_transaction_record, write_batch

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("apache_jars"), pytest.mark.timeout(180)]

COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "delete.retention.ms": "0"}


def dump(log: PartitionLog, *args: str) -> str:
    """What the tool says of all files of a partition."""
    names = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    files = sorted(str(path) for path in Path(log.directory).iterdir() if path.suffix in names)
    done = run_tool("dump-log", "--files", ",".join(files), *args)
    assert done.returncode == 0, done.stderr
    for complaint in ("Mismatches", "could not be found", "out of order", "Exception", "isvalid: false", "corrupt"):
        assert complaint not in done.stdout + done.stderr, done.stdout + done.stderr
    return done.stdout


def fill(log: PartitionLog) -> None:
    """Three segments with every kind of batch."""
    for number in range(300):
        at = 1_700_000_000_000 + number
        records = [Record(b"k%d" % (number % 9), b"x" * 100, timestamp=at), Record(b"u%d" % (number % 5), None, (), at)]
        compression = ("none", "gzip", "snappy", "lz4", "zstd")[number % 5]
        log.append(
            write_batch(records, compression=compression, producer_id=5, producer_epoch=0, base_sequence=2 * number), at
        )
        if number % 20 == 0:
            batch = write_batch([records[0]], producer_id=7, producer_epoch=1, is_transactional=True)
            log.append(batch, at)
            marker = end_transaction_record(EndTransaction(number % 40 == 0, 0), at)
            done = write_batch([marker], producer_id=7, producer_epoch=1, is_transactional=True, is_control=True)
            log.append(done, at)
        if number % 100 == 99:
            log.roll()


async def test_every_file(tmp_path: Path) -> None:
    async with Broker(directory=tmp_path, properties={"log.cleaner.backoff.ms": "3600000"}) as broker:
        log = broker.topics.create("t", 1, COMPACTED).partitions[0]
        fill(log)
        whole = dump(log, "--deep-iteration", "--print-data-log")
        assert whole.count("endTxnMarker: COMMIT") == 8
        assert whole.count("endTxnMarker: ABORT") == 7
        assert "timestamp: 1700000000299 offset:" in whole
        assert "producerId: 5" in whole
        now_ms = broker.now_ms()
        for passed in range(3):
            assert await broker.cleaner.compact(now_ms + passed) == 1
            log.append(write_batch([Record(b"more", b"", (), now_ms)]), now_ms)
            log.roll()
            cleaned = dump(log, "--deep-iteration", "--print-data-log")
        assert cleaned.count("endTxnMarker: COMMIT") < 8
        assert "key: k8" in cleaned
        assert log.segments[0].size < 5000


async def test_the_offsets_topic(tmp_path: Path) -> None:
    properties = {"log.cleaner.backoff.ms": "3600000", "offsets.topic.num.partitions": "1"}
    async with Broker(directory=tmp_path, properties=properties) as broker:
        broker.groups.ensure_topic()
        log = broker.groups.shard_of("g").log
        for number in range(1000):
            entry = Entry(m.OffsetCommitKey("g", "t", number % 10), m.OffsetCommitValue(number, commit_timestamp=1))
            log.append(write_batch([Record(*encode_record(entry), (), 1)]), 1)
        log.roll()
        assert await broker.cleaner.compact(broker.now_ms()) == 1
        shown = await asyncio.to_thread(dump, log, "--offsets-decoder")
    assert shown.count('"group":"g"') == 10
    assert all(f'"offset":{number}' in shown for number in range(990, 1000))
