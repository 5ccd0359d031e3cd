"""Cleaning while the broker runs: groups are the same before and after, and after a restart."""

import asyncio
import os
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest
from tests.broker.conftest import Connect, Start, Wire
from tests.broker.held import log_of, topic_of
from tests.patience import becomes

from groupkeeper.broker.log import cleaner
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.record_batch import Record, iter_headers, read_records, write_batch

QUICK = {
    "offsets.topic.num.partitions": "2",
    "log.cleaner.backoff.ms": "10",
    "log.retention.check.interval.ms": "10",
    "log.initial.task.delay.ms": "0",
    "log.segment.delete.delay.ms": "0",
    "groupkeeper.internal.topics.roll.bytes": "1000",
    "offsets.topic.segment.bytes": "1048576",
}


async def commit(wire: Wire, group: str, partition: int, offset: int) -> None:
    assert await wire.commit(group, offset, partition=partition, metadata=f"at {offset}") == 0


async def answers(wire: Wire, groups: list[str]) -> list[list[str]]:
    """What clients see of groups; groups and partitions come in no particular order, as in Apache Kafka."""
    wanted = [m.OffsetFetchRequestGroup(group, topics=None) for group in groups]
    listed = await wire.call(m.ListGroupsRequest(), 5)
    described = await wire.call(m.DescribeGroupsRequest(groups), 5)
    fetched = await wire.call(m.OffsetFetchRequest(groups=wanted), 9)
    offsets = [
        f"{group.group_id} {topic.name} {partition}"
        for group in fetched.groups
        for topic in group.topics
        for partition in topic.partitions
    ]
    return [sorted(map(repr, listed.groups)), sorted(map(repr, described.groups)), sorted(offsets)]


@pytest.mark.parametrize("is_killed", [False, True])
async def test_groups_are_the_same_after_compaction_and_restart(
    start: Start, connect: Connect, tmp_path: Path, is_killed: bool
) -> None:
    # GR-06, E2E-05
    directory = tmp_path / "logs"
    broker = await start(directory=directory, properties=QUICK | {"log.cleaner.enable": "false"})
    wire = await connect(broker)
    broker.groups.ensure_topic()
    await wire.create("t", 4)
    groups = [f"g{number}" for number in range(6)]
    for offset in range(60):
        for group in groups:
            await commit(wire, group, offset % 4, offset)
    gone = m.OffsetDeleteRequest("g1", [m.OffsetDeleteRequestTopic("t", [m.OffsetDeleteRequestPartition(2)])])
    assert (await wire.call(gone, 0)).error_code == 0
    before = await answers(wire, groups)
    logs = broker.topics.get("__consumer_offsets").partitions  # type: ignore[union-attr]
    sizes = [log.size for log in logs]
    assert await broker.cleaner.compact(broker.now_ms()) == 2
    assert all(log.size < size / 3 for log, size in zip(logs, sizes, strict=True))
    assert await answers(wire, groups) == before
    await commit(wire, "g0", 0, 1000)
    after = await answers(wire, groups)
    wire.writer.close()
    await broker.stop()
    if is_killed:
        (directory / "recovery-point-offset-checkpoint").unlink()
    again = await start(directory=directory, properties=QUICK)
    assert await answers(await connect(again), groups) == after
    again_logs = again.topics.get("__consumer_offsets").partitions  # type: ignore[union-attr]
    assert [log.log_end_offset for log in again_logs] == [log.log_end_offset for log in logs]


async def test_commits_go_on_while_the_cleaner_works(start: Start, connect: Connect, tmp_path: Path) -> None:
    # GR-06, GR-12
    broker = await start(directory=tmp_path / "logs", properties=QUICK)
    wire = await connect(broker)
    broker.groups.ensure_topic()
    await wire.create("t", 4)
    for offset in range(1500):
        await commit(wire, "g", offset % 4, offset)
    topic = topic_of(broker, "__consumer_offsets")
    assert (topic.config.overrides["cleanup.policy"], topic.config.overrides["segment.bytes"]) == ("compact", "1048576")
    log = broker.groups.shard_of("g").log
    await becomes(lambda: log.size < 10_000)
    before = await answers(wire, ["g"])
    wire.writer.close()
    await broker.stop()
    again = await start(directory=tmp_path / "logs", properties=QUICK)
    assert await answers(await connect(again), ["g"]) == before


async def test_a_slow_disk_keeps_nobody_waiting(
    start: Start, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the cleaner and DeleteRecords bring something to the disk, the loop goes on."""
    broker = await start(properties=QUICK | {"log.cleaner.enable": "false"})
    wire = await connect(broker)
    broker.groups.ensure_topic()
    await wire.create("t", 1)
    for offset in range(60):
        await commit(wire, "g", 0, offset)
    await wire.produce("t", write_batch([Record(b"k", b"v")]))
    turns, went_on = 0, list[bool]()

    def fsync(descriptor: int) -> None:
        before, deadline = turns, monotonic() + 5
        while turns == before and monotonic() < deadline:
            sleep(0.01)
        went_on.append(turns > before)

    monkeypatch.setattr(os, "fsync", fsync)
    gone = m.DeleteRecordsRequest([m.DeleteRecordsTopic("t", [m.DeleteRecordsPartition(0, 1)])])
    busy = [
        asyncio.ensure_future(each)
        for each in (broker.cleaner.compact(broker.now_ms()), broker.cleaner.sync(), wire.call(gone, 2))
    ]
    while not all(each.done() for each in busy):
        await asyncio.sleep(0.005)
        turns += 1
    assert len(went_on) > 5
    assert all(went_on)
    assert [type(each.exception()) for each in busy] == [type(None)] * 3


async def test_retention(start: Start, connect: Connect, tmp_path: Path) -> None:
    broker = await start(directory=tmp_path / "logs", properties=QUICK)
    wire = await connect(broker)
    await wire.create("t", 1, retention_ms="1000", segment_ms="100")
    now_ms = broker.now_ms()
    for age_ms in (5000, 4000, 3000, 0):
        sent = await wire.produce("t", write_batch([Record(b"k", b"%d" % age_ms, timestamp=now_ms - age_ms)]))
        assert sent.error_code == 0
    log: Any = broker.topics.partition("t", 0)
    await becomes(lambda: log.log_start_offset >= 3)
    assert (await wire.fetch("t", 0)).error_code == 1
    directory = tmp_path / "logs" / "t-0"
    await becomes(lambda: not any(path.suffix == ".deleted" for path in directory.iterdir()))
    await becomes(lambda: log.log_start_offset == 4)  # the last record grows old, too
    wire.writer.close()
    await broker.stop()
    again = await start(directory=tmp_path / "logs", properties=QUICK)
    log = log_of(again, "t")
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)


async def test_files_stay_for_the_delay_of_their_topic(start: Start, connect: Connect, tmp_path: Path) -> None:
    broker = await start(directory=tmp_path, properties=QUICK)
    wire = await connect(broker)
    for name, delay_ms in (("t", "3600000"), ("u", "0")):
        await wire.create(name, 1, retention_ms="1", segment_ms="1", file_delete_delay_ms=delay_ms)
        for age_ms in (5000, 4000):
            await wire.produce(name, write_batch([Record(b"k", b"", timestamp=broker.now_ms() - age_ms)]))
        log = log_of(broker, name)
        await becomes(lambda log=log: log.log_start_offset == 2)  # type: ignore[misc]
    await becomes(lambda: not list((tmp_path / "u-0").glob("*.deleted")))
    assert list((tmp_path / "t-0").glob("*.deleted"))


async def test_as_many_keys_as_memory_has_room_for(start: Start, connect: Connect) -> None:
    broker = await start(properties={"log.cleaner.enable": "false", "log.cleaner.dedupe.buffer.size": "440"})
    wire = await connect(broker)
    await wire.create("t", cleanup_policy="compact", internal_segment_bytes="1")
    for key in b"aabbccd":
        await wire.produce("t", write_batch([Record(bytes([key]), b"")]))
    await broker.cleaner.compact(broker.now_ms())
    left = [record.key or b"" for _, batch in log_of(broker, "t").records() for record in batch]
    assert b"".join(left) == b"abbccd"


async def test_idle_producers_are_forgotten(start: Start, connect: Connect) -> None:
    broker = await start(properties={"producer.id.expiration.check.interval.ms": "10"})
    wire = await connect(broker)
    for name in ("t", "u"):
        await wire.create(name)
        batch = write_batch([Record(b"", b"")], producer_id=7, producer_epoch=0, base_sequence=0)
        await wire.produce(name, batch)
        if name == "t":
            assert len(log_of(broker, "t").producers) == 1
            assert await wire.alter(4, "", "producer.id.expiration.ms", "1") == (0, None)
        await becomes(lambda name=name: not len(log_of(broker, name).producers), within_s=10)  # type: ignore[misc]


async def test_a_compacted_topic_of_a_user(start: Start, connect: Connect, tmp_path: Path) -> None:
    broker = await start(directory=tmp_path / "logs", properties=QUICK)
    wire = await connect(broker)
    await wire.create("t", 1, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.1")
    for number in range(50):
        records = [Record(b"k%d" % (number % 5), b"%d" % number, timestamp=number * 50)]
        assert (await wire.produce("t", write_batch(records))).error_code == 0
    log = log_of(broker, "t")
    await becomes(lambda: sum(1 for _ in log.records()) < 10)
    seen: list[Record] = []
    while not seen or seen[-1].offset < 49:  # an answer has the records of one segment
        found = (await wire.fetch("t", seen[-1].offset + 1 if seen else 0)).records
        assert found
        seen += [record for at, _ in iter_headers(found) for record in read_records(found, at)]
    latest = {record.key: (record.offset, record.value) for record in seen}
    assert latest == {b"k%d" % (number % 5): (number, b"%d" % number) for number in range(45, 50)}


async def test_a_topic_made_again_is_not_taken_for_compacted(start: Start, connect: Connect) -> None:
    broker = await start(properties=QUICK)
    wire = await connect(broker)
    for _ in range(2):
        # At the default ratio of a half, a pass in the midst of producing can leave one clean and one dirty record.
        await wire.create("t", 1, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01")
        for number in range(20):
            record = Record(b"same", b"%d" % number, timestamp=number * 200)
            assert (await wire.produce("t", write_batch([record]))).error_code == 0
        log = log_of(broker, "t")
        await becomes(lambda log=log: sum(1 for _ in log.records()) == 2)  # type: ignore[misc]
        broker.topics.delete("t")


@pytest.mark.parametrize(("others_need_it", "share"), [(False, 1), (True, 8)])
async def test_a_broker_compacts_beside_its_work(
    start: Start, monkeypatch: pytest.MonkeyPatch, others_need_it: bool, share: int
) -> None:
    used = {"cleaner": 0.0, "others": 0.0, "nobody": 0.0}
    turns = 0

    def clock() -> float:
        used["cleaner"] += 0.00005  # the cleaner asks once for each of its steps
        return sum(used.values())

    async def sleep(seconds: float) -> None:
        nonlocal turns
        if seconds > 1:
            await asyncio.sleep(seconds)  # until the cleaner's next round
        turns += 1
        used["others" if others_need_it else "nobody"] += seconds

    broker = await start(properties={"log.cleaner.backoff.ms": "3600000"})
    broker.groups.ensure_topic()
    log = broker.groups.shard_of("g").log
    for number in range(5000):
        log.append(write_batch([Record(b"k%d" % (number % 7), b"", timestamp=1)]), 1)
    log.roll()
    monkeypatch.setattr(cleaner, "perf_counter", clock)
    monkeypatch.setattr(cleaner, "thread_time", lambda: used["cleaner"] + used["others"])
    monkeypatch.setattr(cleaner, "asyncio", SimpleNamespace(sleep=sleep, to_thread=asyncio.to_thread))
    assert await broker.cleaner.compact(broker.now_ms()) == 1
    assert turns > 20 * share
    assert (used["others"] + used["nobody"]) / used["cleaner"] == pytest.approx(share, rel=0.1)


async def test_the_cleaner_goes_on_after_an_unexpected_error(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await start(properties=QUICK | {"log.flush.offset.checkpoint.interval.ms": "10"})

    async def broken() -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(broker.cleaner, "sync", broken)
        await becomes(lambda: broker.metrics.value("DeadThreadCount") == 1)
    assert "the log cleaner has failed; it tries again in 0.02 s" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    await becomes(lambda: broker.metrics.value("DeadThreadCount") == 0)


async def test_an_unexpected_error_of_one_log_does_not_keep_the_others_from_being_cleaned(
    start: Start, connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await start(properties={"log.cleaner.backoff.ms": "3600000", "log.initial.task.delay.ms": "3600000"})
    wire = await connect(broker)
    for name in ("bad", "good"):
        await wire.create(name, 1, cleanup_policy="compact,delete", segment_ms="100", retention_bytes="100")
        for number in range(20):
            batch = write_batch([Record(b"same", b"%d" % number, timestamp=number * 200)])
            assert (await wire.produce(name, batch)).error_code == 0

    def is_being_read(log: PartitionLog) -> bool:
        if log.topic == "bad":
            raise ZeroDivisionError
        return False

    monkeypatch.setattr(broker.cleaner, "_is_being_read", is_being_read)
    assert await broker.cleaner.compact(broker.now_ms()) == 1
    assert broker.metrics.value("uncleanable-partitions-count") == 1
    assert "bad-0 0..20>: cannot be compacted, skipping it until the next start: ZeroDivisionError" in caplog.text
    assert await broker.cleaner.delete_old(broker.now_ms()) > 0
    assert "bad-0 0..20>: cannot remove old segments" in caplog.text
    broker.topics.delete("bad")
    assert broker.metrics.value("uncleanable-partitions-count") == 0
