"""Cleaning of logs: indexes on disk, retention, compaction, and what a kill at any moment leaves behind."""

import asyncio
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.transactions import in_transaction, marker

from groupkeeper.broker.log.cleanable import dirty_part, expired_count
from groupkeeper.broker.log.compaction import Compaction
from groupkeeper.broker.log.long_reads import LongReads
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.producer_snapshot import decode_producers, encode_producers
from groupkeeper.broker.log.producers import Producers
from groupkeeper.broker.log.segment import file_name
from groupkeeper.broker.log.segment_files import swap_steps
from groupkeeper.broker.log.segment_index import SegmentIndex
from groupkeeper.broker.storage.open_files import OpenFiles
from groupkeeper.protocol.errors import OutOfOrderSequenceNumber
from groupkeeper.protocol.record_batch import Record, iter_headers, write_batch

OpenLog = Callable[..., PartitionLog]
DAY_MS = 86_400_000


def records(log: PartitionLog) -> list[Record]:
    return [record for _, batch in log.records() for record in batch]


def latest(log: PartitionLog) -> dict[bytes | None, tuple[int, bytes | None]]:
    """Of each key the last record's offset and value; tombstones count as absent."""
    found = {record.key: (record.offset, record.value) for record in records(log)}
    return {key: one for key, one in found.items() if one[1] is not None}


def put(log: PartitionLog, *pairs: tuple[bytes, bytes | None], at: int = 1000, compression: str = "none") -> int:
    return log.append(write_batch([Record(k, v, timestamp=at) for k, v in pairs], compression=compression), at)


def transact(
    log: PartitionLog, producer_id: int, *pairs: tuple[bytes, bytes], commit: bool | None, at: int = 0
) -> None:
    """A transaction of one batch; `commit` None leaves it open."""
    log.append(in_transaction(producer_id, [Record(k, v, timestamp=at) for k, v in pairs]), at)
    if commit is not None:
        log.append(marker(producer_id, is_commit=commit, at_ms=at), at)


def compaction(log: PartitionLog, files: OpenFiles, now_ms: int, cleaned: int = 0, max_keys: int = 1000) -> Compaction:
    dirty = dirty_part(log, cleaned, now_ms)
    assert dirty is not None
    return Compaction(
        log,
        dirty.segments,
        dirty_offset=dirty.dirty_offset,
        end_offset=dirty.end_offset,
        now_ms=now_ms,
        max_keys=max_keys,
        files=files,
    )


def compact(log: PartitionLog, files: OpenFiles, now_ms: int = 0, cleaned: int = 0, max_keys: int = 1000) -> int:
    """One pass, as the cleaner does it; returns where it ended."""
    one = compaction(log, files, now_ms, cleaned, max_keys)
    for _ in one.survey_keys():
        pass
    for group in list(one.groups()):
        *_, done = one.write(group)
        assert done is not None
        log.replace(done.old, done.new)
    log.producers.aborted[:] = [x for x in log.producers.aborted if x not in one.survey.gone]
    return one.end_offset


@pytest.fixture
def log(open_log: OpenLog) -> PartitionLog:
    return open_log(cleanup_policy="compact", delete_retention_ms="1000", min_cleanable_dirty_ratio="0")


class TestCompaction:
    @pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
    def test_a_batch_that_loses_records_keeps_its_range(
        self, log: PartitionLog, files: OpenFiles, open_log: OpenLog, compression: str
    ) -> None:
        put(log, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"d", b"1"), compression=compression)
        put(log, (b"a", b"2"), (b"d", b"2"))
        log.roll()
        compact(log, files)
        header = next(header for _, header in iter_headers(log.read(0, 1000)))
        assert (header.base_offset, header.last_offset, header.record_count) == (0, 3, 2)
        assert header.compression == compression
        found = [(r.offset, r.key, r.value, r.timestamp) for r in records(log)][:2]
        assert found == [(1, b"b", b"1", 1000), (2, b"c", b"1", 1000)]
        assert [r.offset for r in records(open_log(cleanup_policy="compact"))] == [1, 2, 4, 5]

    def test_tombstones_go_after_their_time(self, log: PartitionLog, files: OpenFiles) -> None:
        put(log, (b"a", b"1"), (b"b", b"1"))
        put(log, (b"a", None), (b"b", b"2"))
        log.roll()
        end_offset = compact(log, files, now_ms=5000)
        assert [(r.offset, r.value, r.timestamp) for r in records(log)] == [(2, None, 1000), (3, b"2", 1000)]
        assert next(log.records())[0].delete_horizon_ms == 6000
        for now_ms, left in ((5999, [2, 3, 4]), (6000, [3, 4])):
            put(log, (b"c%d" % now_ms, b""))
            log.roll()
            end_offset = compact(log, files, now_ms, end_offset)
            assert [r.offset for r in records(log)][: len(left)] == left

    def test_records_that_wait_for_a_transaction_are_left(self, log: PartitionLog, files: OpenFiles) -> None:
        put(log, (b"a", b"1"))
        put(log, (b"a", b"2"))
        transact(log, 7, (b"a", b"3"), commit=None)
        put(log, (b"a", b"4"))
        log.roll()
        assert compact(log, files) == 2
        assert [r.value for r in records(log)] == [b"2", b"3", b"4"]
        assert log.producers.first_open_offset == 2

    def test_aborted_records_go_and_never_count_as_the_last(
        self, log: PartitionLog, files: OpenFiles, open_log: OpenLog
    ) -> None:
        put(log, (b"a", b"kept"))
        transact(log, 7, (b"a", b"aborted"), commit=False)
        transact(log, 8, (b"b", b"committed"), commit=True)
        log.roll()
        cleaned = compact(log, files, now_ms=0)
        assert [r.value for r in records(log) if r.key in (b"a", b"b")] == [b"kept", b"committed"]
        # The pass met them, so the marker stays; the next one doesn't, the one after it lets the marker go.
        assert [one.first_offset for one in log.producers.aborted] == [1]
        for now_ms, horizon_ms in ((0, None), (500, 1500), (1499, 1500)):
            if now_ms:
                put(log, (b"c", b""))
                log.roll()
                cleaned = compact(log, files, now_ms, cleaned)
                assert log.producers.aborted == []
            kinds = [(h.base_offset, h.is_control, h.delete_horizon_ms) for h, _ in log.records()]
            assert kinds[:4] == [(0, False, None), (2, True, horizon_ms), (3, False, None), (4, True, None)]
        put(log, (b"c", b""))
        log.roll()
        compact(log, files, 1500, cleaned)
        # The marker's epoch is still known of the producer, so an empty batch stays in its place.
        assert [(h.base_offset, h.record_count) for h, _ in log.records()][:3] == [(0, 1), (2, 0), (3, 1)]
        again = open_log(cleanup_policy="compact")
        assert again.producers.first_open_offset is None
        assert again.producers.aborted == []

    def test_the_last_sequence_number_of_a_producer_stays(
        self, log: PartitionLog, files: OpenFiles, open_log: OpenLog
    ) -> None:
        for sequence in range(3):
            value = b"%d" % sequence
            batch = write_batch([Record(b"a", value)], producer_id=7, producer_epoch=0, base_sequence=sequence)
            log.append(batch, 0)
        put(log, (b"a", b"other"))
        log.roll()
        compact(log, files)
        assert [(h.base_offset, h.record_count) for h, _ in log.records()] == [(2, 0), (3, 1)]
        again = open_log(cleanup_policy="compact")
        assert again.append(batch, 0) == 2
        late = write_batch([Record(b"a", b"")], producer_id=7, producer_epoch=0, base_sequence=9)
        with pytest.raises(OutOfOrderSequenceNumber):
            again.append(late, 0)

    def test_more_keys_than_fit_are_left_to_the_next_pass(self, log: PartitionLog, files: OpenFiles) -> None:
        for number in range(20):
            put(log, (b"k%d" % (number % 10), b"%d" % number))
        log.roll()
        before = latest(log)
        cleaned = compact(log, files, max_keys=3)
        assert cleaned == 3
        while cleaned < 20:
            cleaned = compact(log, files, cleaned=cleaned, max_keys=3)
        assert latest(log) == before
        assert len(records(log)) < 20

    def test_random_logs(self, open_log: OpenLog, files: OpenFiles, tmp_path: Path) -> None:
        # GR-06
        for seed in range(40):
            shutil.rmtree(tmp_path / "t-0", ignore_errors=True)
            chance = random.Random(seed)
            log = open_log(cleanup_policy="compact", delete_retention_ms=str(chance.choice([0, 50, DAY_MS])))
            cleaned = now_ms = 0
            expected: dict[bytes, bytes] = {}
            for _ in range(60):
                now_ms += 10
                pairs = [(b"k%d" % chance.randrange(12), b"%d" % now_ms) for _ in range(chance.randrange(1, 5))]
                match chance.randrange(6):
                    case 0:
                        put(log, (pairs[0][0], None), at=now_ms)
                        expected.pop(pairs[0][0], None)
                    case 1:
                        commit = chance.random() < 0.5
                        transact(log, chance.randrange(3), *pairs, commit=commit, at=now_ms)
                        expected |= dict(pairs) if commit else {}
                    case 2:
                        log.roll()
                        if dirty_part(log, cleaned, now_ms):
                            cleaned = compact(log, files, now_ms, cleaned, chance.choice([2, 1000]))
                    case _:
                        put(log, *pairs, at=now_ms, compression=chance.choice(["none", "lz4"]))
                        expected |= dict(pairs)
                assert committed(log) == expected, seed
            assert committed(open_log(cleanup_policy="compact")) == expected, seed


def committed(log: PartitionLog) -> dict[bytes, bytes]:
    """What a reader of committed records makes of the log."""
    found: dict[bytes, bytes] = {}
    waiting: dict[int, list[Record]] = {}
    for header, batch in log.records():
        if header.is_control:
            for marker in batch:
                done = waiting.pop(header.producer_id, [])
                if marker.key is not None and marker.key[3] == 1:
                    found |= {r.key: r.value for r in done if r.key is not None and r.value is not None}
        elif header.is_transactional:
            waiting.setdefault(header.producer_id, []).extend(batch)
        else:
            for record in batch:
                assert record.key is not None
                found.pop(record.key, None)
                if record.value is not None:
                    found[record.key] = record.value
    return found


class TestSwap:
    """A kill at any moment of the swap leaves a log that is either as before or compacted, never less."""

    @pytest.fixture
    def prepared(self, log: PartitionLog, files: OpenFiles) -> PartitionLog:
        for number in range(30):
            put(log, (b"k%d" % (number % 4), b"v%d" % number))
            if number % 10 == 9:
                log.roll()
        put(log, (b"k1", b"active"))
        one = compaction(log, files, 0)
        list(one.survey_keys())
        (group,) = one.groups()
        *_, done = one.write(group)
        assert done is not None
        done.new.save()
        assert [segment.base_offset for segment in done.old] == [0, 10, 20]
        return log

    def test_at_every_step(self, prepared: PartitionLog, open_log: OpenLog, tmp_path: Path) -> None:
        # GR-06, E2E-05
        before = latest(prepared)
        home, copy = tmp_path / "t-0", tmp_path / "copy"
        shutil.copytree(home, copy)
        steps = list(swap_steps(str(home), 0, [0, 10, 20]))
        for kill_after in range(len(steps) + 1):
            shutil.rmtree(home)
            shutil.copytree(copy, home)
            for source, target in steps[:kill_after]:
                if os.path.exists(source):
                    os.rename(source, target)
            for _ in range(2):  # the start after the repair finds nothing to repair
                again = open_log(cleanup_policy="compact")
                assert again.failure is None
                assert latest(again) == before, kill_after
                assert (again.log_start_offset, again.log_end_offset) == (0, 31)
                left = {path.name.split(".", 1)[1] for path in home.iterdir() if path.name[0].isdigit()}
                assert left <= {"log", "index", "timeindex", "checksums", "snapshot"}, kill_after
            assert put(again, (b"k9", b"new")) == 31

    def test_while_the_new_segment_is_written(self, prepared: PartitionLog, open_log: OpenLog, tmp_path: Path) -> None:
        before = latest(prepared)
        cleaned = tmp_path / "t-0" / file_name(0, ".log.cleaned")
        content = cleaned.read_bytes()
        for length in (0, 1, 61, len(content) - 1):
            cleaned.write_bytes(content[:length])
            again = open_log(cleanup_policy="compact")
            assert latest(again) == before
            assert not cleaned.exists()

    def test_while_the_repair_works(self, prepared: PartitionLog, open_log: OpenLog, tmp_path: Path) -> None:
        before = latest(prepared)
        home = tmp_path / "t-0"
        for suffix in (".log", ".index", ".timeindex"):
            os.rename(home / file_name(0, suffix + ".cleaned"), home / file_name(0, suffix + ".swap"))
        for name in (file_name(0), file_name(0, ".index"), file_name(10)):
            (home / name).unlink()
        assert latest(open_log(cleanup_policy="compact")) == before


class TestIndexes:
    def test_a_clean_start_reads_the_last_segment_only(
        self, open_log: OpenLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        log = open_log()
        for number in range(300):
            batch = write_batch(
                [Record(b"k", b"x" * 100, timestamp=number)], producer_id=7, producer_epoch=0, base_sequence=number
            )
            log.append(batch, number)
            if number in (100, 200):
                transact(log, 9, (b"a", b""), commit=False, at=number)
                log.roll()
        transact(log, 11, (b"a", b""), commit=None)
        first = tmp_path / "t-0" / file_name(0)
        content = bytearray(first.read_bytes())
        content[200] ^= 1  # a start that reads it would find this
        first.write_bytes(content)
        again = open_log(log.segments[-1].base_offset)
        assert again.failure is None
        assert again.log_end_offset == log.log_end_offset
        assert again.producers.aborted == log.producers.aborted
        assert again.producers.first_open_offset == log.producers.first_open_offset
        assert again.append(batch, 0) == 303
        for timestamp in (0, 50, 101, 150, 299):
            assert asyncio.run(again.offset_for_timestamp(timestamp, LongReads())) is not None or timestamp == 0
        for recovery_point in (200, 0):
            assert open_log(recovery_point=recovery_point).log_end_offset == again.log_end_offset
            assert f"{first}: 171 bytes at position 171 are damaged" in caplog.text
            caplog.clear()

    def test_missing_or_bad_ones_are_made_again(self, open_log: OpenLog, tmp_path: Path) -> None:
        log = open_log()
        for number in range(200):
            put(log, (b"k", b"x" * 100), at=number)
            if number % 50 == 49:
                log.roll()
        good = {path.name: path.read_bytes() for path in (tmp_path / "t-0").glob("*index")}
        assert len(good) == 8
        for name in good:
            path = tmp_path / "t-0" / name
            for bad in (None, b"", good[name][:-3], b"\xff" * len(good[name]), good[name] + good[name]):
                path.unlink() if bad is None else path.write_bytes(bad)
                again = open_log(log.segments[-1].base_offset)
                assert [r.offset for r in records(again)] == list(range(200))
                assert asyncio.run(again.offset_for_timestamp(77, LongReads())) == (77, 77)
                open_log()
                assert path.read_bytes() == good[name], (name, bad)

    def test_files_hold_what_memory_holds(self, log: PartitionLog) -> None:
        for number in range(100):
            put(log, (b"k", b"x" * 500), at=1000 + number // 10)
        index = log.segments[0].index
        places, times = index.encode()
        again = SegmentIndex.decode(0, 4096, places, times)
        assert again.encode() == (places, times)
        assert len(places) == 8 * (len(places) // 8) > 0
        for offset in range(100):
            assert log.segments[0].position_of(offset) >= again.position_before(offset)
        assert (again.max_timestamp, again.max_timestamp_offset) == (1009, 90)

    @pytest.mark.parametrize(("interval", "entries"), [("0", 9), ("200", 4)])
    def test_how_much_of_the_log_is_between_two_entries(self, open_log: OpenLog, interval: str, entries: int) -> None:
        log = open_log(index_interval_bytes=interval)
        for _ in range(10):
            put(log, (b"k", b"x" * 50))
        assert len(log.segments[0].index.encode()[0]) == 8 * entries

    def test_snapshots_of_producers(self) -> None:
        producers, again = Producers("t-0", DAY_MS), Producers("t-0", DAY_MS)
        content = encode_producers(producers)
        decode_producers(content, again)
        assert len(again) == 0
        for damaged in (b"", content[:-1], content[:-1] + b"\x01", content + b"\0"):
            with pytest.raises(ValueError):
                decode_producers(damaged, again)


class TestRollAndRetention:
    def test_a_segment_is_closed_by_age(self, open_log: OpenLog) -> None:
        log = open_log(segment_ms="1000")
        for at in (0, 500, 1000, 1001, 2001, 2002):
            put(log, (b"k", b""), at=at)
        assert [segment.base_offset for segment in log.segments] == [0, 3, 5]

    def test_by_time(self, open_log: OpenLog) -> None:
        log = open_log(retention_ms="1000")
        for at in (0, 100, 5000):
            put(log, (b"k", b""), at=at)
            log.roll()
        assert [expired_count(log, now) for now in (900, 1000, 1001, 1101, 6000, 6001)] == [0, 0, 1, 2, 2, 3]

    def test_what_replicas_in_sync_may_lack_stays(self, open_log: OpenLog) -> None:
        log = open_log(retention_ms="0", retention_bytes="0")
        for _ in range(3):
            put(log, (b"k", b""), (b"k", b""))
            log.roll()
        put(log, (b"k", b""))
        counts = []
        for log.placement.held_high_watermark in (0, 1, 2, 4, 6, 7, None):
            counts.append(expired_count(log, 10**15))
        assert counts == [0, 0, 1, 2, 3, 4, 4]

    def test_nothing_goes_without_limits_or_from_compacted_logs(self, open_log: OpenLog) -> None:
        log = open_log(retention_ms="-1")
        put(log, (b"k", b""), at=0)
        log.roll()
        assert expired_count(log, 10**15) == 0

    def test_the_start_survives(self, open_log: OpenLog) -> None:
        log = open_log()
        for _ in range(3):
            put(log, (b"k", b""))
            log.roll()
        log.advance_start(2)
        assert (log.log_start_offset, [segment.base_offset for segment in log.segments]) == (2, [2, 3])
        again = open_log()
        assert (again.log_start_offset, again.log_end_offset) == (2, 3)


def test_dirty_part(open_log: OpenLog) -> None:
    log = open_log(cleanup_policy="compact", min_compaction_lag_ms="1000")
    assert dirty_part(log, 0, 0) is None
    for at in (0, 100, 5000):
        put(log, (b"k", b""), at=at)
        log.roll()
    assert dirty_part(log, 0, 500) is None
    dirty = dirty_part(log, 0, 2000)
    assert dirty is not None
    assert (dirty.dirty_offset, dirty.end_offset, dirty.ratio, dirty.is_due) == (0, 2, 1.0, False)
    half = dirty_part(log, 1, 2000)
    assert half is not None
    assert (half.dirty_offset, half.end_offset, half.ratio) == (1, 2, 0.5)
    assert dirty_part(log, 2, 2000) is None
    unknown = dirty_part(log, 99, 2000)  # the offset is of another log
    assert unknown is not None
    assert unknown.dirty_offset == 0


def every(steps: Iterator[object]) -> int:
    return sum(1 for _ in steps)


def test_turns_are_short(log: PartitionLog, files: OpenFiles) -> None:
    for number in range(400):
        put(log, (b"%d" % number, b""))
    log.roll()
    one = compaction(log, files, 0)
    assert every(one.survey_keys()) >= 400 // 16
    (group,) = one.groups()
    assert every(one.write(group)) >= 400 // 16
