"""The log of one partition: offsets, reading, timestamps, idempotent producers, recovery."""

import asyncio
import logging
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from google_crc32c import value as crc32c

from groupkeeper.broker.log.long_reads import LongReads
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.segment_files import topic_id_of
from groupkeeper.broker.storage.open_files import OpenFiles
from groupkeeper.protocol import errors
from groupkeeper.protocol.record_batch import Record, iter_headers, read_records, write_batch

OpenLog = Callable[..., PartitionLog]
LOG_FILE = "t-0/00000000000000000000.log"


def batch(count: int = 1, *, timestamp: int = 1000, size: int = 10, sequence: int = -1, epoch: int = 0) -> bytes:
    records = [Record(b"k", b"%d" % index * size, timestamp=timestamp + index) for index in range(count)]
    if sequence < 0:
        return write_batch(records)
    return write_batch(records, producer_id=7, producer_epoch=epoch, base_sequence=sequence)


def unreadable(*, timestamp: int) -> bytes:
    """A batch with a correct checksum whose compressed records are none."""
    made = bytearray(write_batch([Record(b"k", b"v", timestamp=timestamp)], compression="gzip"))
    made[61:] = bytes(len(made) - 61)
    made[17:21] = crc32c(bytes(made[21:])).to_bytes(4, "big")
    return bytes(made)


def offsets(log: PartitionLog, start: int = 0, max_bytes: int = 1 << 20) -> list[int]:
    found = log.read(start, max_bytes)
    return [record.offset for at, _ in iter_headers(found) for record in read_records(found, at)]


def test_offsets_are_assigned_in_order(open_log: OpenLog) -> None:
    log = open_log()
    assert [log.append(batch(count), 0) for count in (3, 1, 2)] == [0, 3, 4]
    assert (log.log_start_offset, log.high_watermark, log.last_stable_offset, log.log_end_offset) == (0, 6, 6, 6)
    assert offsets(log) == [0, 1, 2, 3, 4, 5]


def test_apaches_layout_on_disk(open_log: OpenLog, tmp_path: Path) -> None:
    log = open_log()
    assert not (tmp_path / "t-0").exists()  # nothing before the first append
    log.append(batch(), 0)
    found = sorted(path.name for path in (tmp_path / "t-0").iterdir())
    assert found == ["00000000000000000000.log", "partition.metadata"]
    assert (tmp_path / "t-0/partition.metadata").read_text() == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n"
    assert topic_id_of(str(tmp_path / "t-0")) == bytes(range(16))


class TestReading:
    def test_at_the_end_is_nothing(self, open_log: OpenLog) -> None:
        log = open_log()
        assert log.read(0, 100) == b""
        log.append(batch(), 0)
        assert log.read(1, 100) == b""

    def test_records_for_loading(self, open_log: OpenLog) -> None:
        log = open_log()
        log.append(batch(2), 0)
        log.append(batch(1), 0)
        assert [[record.offset for record in records] for _, records in log.records()] == [[0, 1], [2]]


class TestTimestamps:
    def test_a_batch_that_cannot_be_read(self, open_log: OpenLog) -> None:
        log = open_log()
        log.append(batch(timestamp=10), 0)
        log.append(unreadable(timestamp=20), 0)
        assert asyncio.run(log.offset_for_timestamp(10, LongReads())) == (10, 0)
        with pytest.raises(errors.CorruptMessage):
            asyncio.run(log.offset_for_timestamp(15, LongReads()))
        with pytest.raises(errors.CorruptMessage):
            asyncio.run(log.max_timestamp(LongReads()))

    def test_the_largest_of_an_empty_log(self, open_log: OpenLog) -> None:
        assert asyncio.run(open_log().max_timestamp(LongReads())) is None

    def test_log_append_time(self, open_log: OpenLog) -> None:
        log = open_log(message_timestamp_type="LogAppendTime")
        log.append(batch(2, timestamp=5), 99)
        assert [record.timestamp for record in read_records(log.read(0, 1000))] == [99, 99]
        assert asyncio.run(log.offset_for_timestamp(90, LongReads())) == (99, 0)
        assert asyncio.run(open_log(message_timestamp_type="LogAppendTime").max_timestamp(LongReads())) == (99, 0)

    def test_not_before_the_log_start(self, open_log: OpenLog) -> None:
        log = open_log()
        for stamp in (10, 20, 30):
            log.append(batch(timestamp=stamp), 0)
        log.advance_start(1)
        assert asyncio.run(log.offset_for_timestamp(0, LongReads())) == (20, 1)
        log.advance_start(0)
        assert log.log_start_offset == 1


class TestProducers:
    def test_an_unknown_producer_may_begin_anywhere(self, open_log: OpenLog) -> None:
        assert open_log().append(batch(sequence=41), 0) == 0

    def test_idle_ones_are_forgotten(self, open_log: OpenLog) -> None:
        log = open_log()
        log.append(batch(sequence=0), 0)
        other = write_batch([Record(None, b"")], producer_id=8, producer_epoch=0, base_sequence=0)
        log.append(other, 86_400_001)
        assert len(log.producers) == 1
        assert log.append(batch(sequence=5), 86_400_002) == 2

    def test_an_open_transaction_keeps_its_producer_only(self, open_log: OpenLog) -> None:
        log = open_log()
        records = [Record(None, b"")]
        opened = write_batch(records, producer_id=8, producer_epoch=0, base_sequence=0, is_transactional=True)
        log.append(opened, 0)
        log.append(batch(sequence=0), 0)
        log.producers.expire(86_400_000)
        assert [producer_id for producer_id, _ in log.producers.items()] == [8]
        log.producers.expiration_ms = 10
        log.append(batch(sequence=7), 90_000_000)
        log.producers.expire(90_000_009)
        assert len(log.producers) == 2
        log.producers.expire(90_000_010)
        assert len(log.producers) == 1


class TestRecovery:
    def test_a_write_torn_at_any_byte_is_cut_off(
        self, open_log: OpenLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        log = open_log()
        log.append(batch(3), 0)
        whole = log.size
        log.append(batch(2, size=30), 0)
        content = (tmp_path / LOG_FILE).read_bytes()
        for length in range(whole + 1, len(content)):
            (tmp_path / LOG_FILE).write_bytes(content[:length])
            caplog.clear()
            again = open_log()
            assert again.failure is None
            assert again.log_end_offset == 3
            assert f"torn write at position {whole}" in caplog.text
            assert (tmp_path / LOG_FILE).stat().st_size == whole
            assert again.append(batch(), 0) == 3
            assert offsets(again) == [0, 1, 2, 3]

    def test_a_log_that_ends_before_its_start_begins_there(self, open_log: OpenLog, files: OpenFiles) -> None:
        """Records were deleted, which was noted; then the power failed, and took those behind them."""
        log = open_log()
        log.append(batch(3), 0)
        again = PartitionLog(log.directory, "t", bytes(range(16)), 0, log.config, files, 86_400_000, log.placement)
        again.log_start_offset = 10
        again.recover(["00000000000000000000.log"])
        assert (again.log_start_offset, again.log_end_offset) == (10, 10)
        assert again.append(batch(2), 0) == 10
        assert offsets(again, 10) == [10, 11]
        assert open_log().log_end_offset == 12

    def test_other_files_are_left_alone(self, open_log: OpenLog, tmp_path: Path) -> None:
        open_log().append(batch(), 0)
        (tmp_path / "t-0/leader-epoch-checkpoint").write_text("0\n0\n")
        for name in ("note.log", "7.log", "٠" * 20 + ".log"):
            (tmp_path / "t-0" / name).write_text("no log")
        (tmp_path / "t-0/00000000000000000005").mkdir()
        assert open_log().log_end_offset == 1


def test_a_file_that_somebody_shortened_ends_a_read(open_log: OpenLog, tmp_path: Path) -> None:
    log = open_log()
    log.append(batch(), 0)
    log.append(batch(), 0)
    (tmp_path / LOG_FILE).write_bytes(b"")
    assert log.read(1, 1 << 20) == b""


def test_a_full_disk_leaves_the_log_as_it_was(
    open_log: OpenLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log()
    log.append(batch(), 0)
    size = (tmp_path / LOG_FILE).stat().st_size
    (tmp_path / LOG_FILE).chmod(0o600)
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
    try:
        for _ in range(2):
            with pytest.raises(errors.KafkaStorageError):
                log.append(batch(size=1000), 0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    assert (tmp_path / LOG_FILE).stat().st_size == size
    assert log.append(batch(), 0) == 1
    assert offsets(log) == [0, 1]
    assert caplog.text.count("cannot write t-0") == 1, "each of a producer's attempts would be too much"
    assert "t-0 is writable again" in caplog.text


def test_a_torn_batch_that_cannot_be_cut_off_closes_the_partition(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log()
    log.append(batch(), 0)

    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.writev", fail, raising=False)
        patch.setattr("os.write", fail)  # PyPy has no writev
        patch.setattr("os.ftruncate", fail)
        with pytest.raises(errors.KafkaStorageError, match="No space left"):
            log.append(batch(), 0)
    with pytest.raises(errors.KafkaStorageError):
        log.append(batch(), 0)
    assert offsets(open_log()) == [0]


def test_a_file_that_cannot_be_read_is_a_storage_error(open_log: OpenLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log()
    log.append(batch(), 0)

    def fail(*_: object) -> bytes:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("os.pread", fail)
    with pytest.raises(errors.KafkaStorageError, match=r"cannot read .*Too many open files"):
        log.read(0, 1 << 20)


def test_many_partitions_share_few_files(open_log: OpenLog, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    log = open_log()
    others = []
    for index in range(10):
        directory = str(tmp_path / f"t-{index + 1}")
        other = PartitionLog(directory, "t", bytes(16), index + 1, log.config, log._files, 86_400_000, log.placement)
        other.append(batch(index + 1), 0)
        others.append(other)
    assert len(log._files) <= 4
    assert [len(offsets(other)) for other in others] == list(range(1, 11))


def test_segments_end_at_different_ages_with_jitter(open_log: OpenLog, tmp_path: Path) -> None:
    def ages(**settings: str) -> list[int]:
        """How old each of ten segments became, in ms."""
        log = open_log(segment_ms="1000", **settings)
        bases: list[int] = []
        now = 0
        while len(bases) < 10:
            before = len(log.segments)
            log.append(write_batch([Record(None, b"v", timestamp=now)]), now)
            if len(log.segments) > before:
                bases.append(now)
            now += 10
        log.close()
        shutil.rmtree(tmp_path / "t-0")
        return [later - earlier for earlier, later in pairwise(bases)]

    assert set(ages()) == {1010}
    found = ages(segment_jitter_ms="500")
    assert len(set(found)) > 3
    assert all(500 <= age <= 1010 for age in found)


def test_the_recovery_point_moves_only_once_segments_are_on_the_disk(open_log: OpenLog) -> None:
    """A power failure may take what is not: the next start must read it again."""
    log = open_log(segment_bytes="1048576")
    while len(log.segments) < 2:
        log.append(batch(size=100_000), 0)
    sealed, *_ = log.segments
    aside = Path(sealed.path).rename(Path(sealed.path).with_suffix(".aside"))
    with pytest.raises(FileNotFoundError):
        log.sync()  # no longer possible for this segment
    assert log.recovery_point == 0
    aside.rename(sealed.path)
    log.sync()
    assert log.recovery_point == log.segments[-1].base_offset > 0


@pytest.mark.parametrize("end", [0, 7, 10, 11, 24])
@pytest.mark.parametrize("is_synced", [False, True])
def test_the_end_of_a_log_is_cut_off(open_log: OpenLog, end: int, is_synced: bool) -> None:
    log = open_log(segment_bytes="1048576")
    for number in range(24):
        log.append(batch(size=100_000, sequence=number), 0)
    assert len(log.segments) == 3
    assert log.segments[1].base_offset == 10
    if is_synced:
        log.sync()
    log.truncate(end)
    assert (log.log_end_offset, len(log.segments)) == (end, 1 + (end >= 10) + (end >= 20))
    assert log.recovery_point <= end
    assert [number for first in range(end) for number in offsets(log, first, 1)] == list(range(end))
    if end:
        with pytest.raises(errors.OutOfOrderSequenceNumber):
            log.append(batch(sequence=end + 1), 0)
    assert log.append(batch(sequence=end), 0) == end
    assert open_log(log.recovery_point, segment_bytes="1048576").log_end_offset == end + 1
