"""Damage to the files of a partition, after a clean stop and after a kill: what is intact stays readable, what is lost
is named, and its offsets are not used again.
"""

import asyncio
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from groupkeeper.broker.log.long_reads import LongReads
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.storage.open_files import OpenFiles
from groupkeeper.protocol.errors import CorruptMessage, KafkaStorageError
from groupkeeper.protocol.record_batch import Record, iter_headers, read_records, write_batch

OpenLog = Callable[..., PartitionLog]
FIRST, SECOND, LAST = (f"t-0/{base:020d}.log" for base in (0, 9, 18))
ENDS = {True: "a clean stop", False: "a kill"}


def batch(first: int, count: int = 3, size: int = 20) -> bytes:
    return write_batch([Record(b"k", b"%04d" % (first + number) * size, timestamp=first) for number in range(count)])


def written(log: PartitionLog) -> PartitionLog:
    """Three segments of three batches of three records."""
    for number in range(9):
        if number in (3, 6):
            log.roll()
        log.append(batch(3 * number), 0)
    return log


@pytest.fixture(params=ENDS, ids=lambda one: ENDS[one])
def is_clean(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def reopened(open_log: OpenLog, tmp_path: Path, is_clean: bool) -> Callable[[], PartitionLog]:
    """Opens the log of `written` again, as after a clean stop or a kill."""
    log = written(open_log())
    log.sync(is_end=is_clean)
    keep = tmp_path / "keep"
    shutil.copytree(tmp_path / "t-0", keep)

    def open_again() -> PartitionLog:
        return open_log(recovery_point=log.recovery_point)

    return open_again


def restore(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "t-0")
    shutil.copytree(tmp_path / "keep", tmp_path / "t-0")


def change(path: Path, at: int, mask: int = 0x55) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= mask
    path.write_bytes(content)


def readable(log: PartitionLog, *, max_bytes: int = 1 << 20) -> list[int]:
    """The offsets that a reader gets who goes on behind each damaged one; values must belong to them."""
    found, offset = [], log.log_start_offset
    while offset < log.log_end_offset:
        try:
            answer = log.read(offset, max_bytes)
        except CorruptMessage:
            offset += 1
            continue
        some = [one for at, _ in iter_headers(answer) for one in read_records(answer, at) if one.offset >= offset]
        assert all(one.value == b"%04d" % one.offset * 20 for one in some)
        found += [one.offset for one in some]
        offset = found[-1] + 1 if some else log.log_end_offset
    return found


def without(first: int, count: int = 3, end: int = 27) -> list[int]:
    return [offset for offset in range(end) if not first <= offset < first + count]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", [FIRST, SECOND, LAST])
def test_a_changed_byte_costs_its_batch_only(
    reopened: Callable[[], PartitionLog], tmp_path: Path, is_clean: bool, name: str, number: int
) -> None:
    size = (tmp_path / name).stat().st_size
    start = next(
        at for at, header in iter_headers((tmp_path / name).read_bytes()) if header.base_offset % 9 == 3 * number
    )
    first = int(Path(name).stem) + 3 * number
    length = size // 3
    for at in (*range(12), *range(16, length, 5 if number == 1 else 29)):
        for mask in (0x01, 0x80):
            change(tmp_path / name, start + at, mask)
            log = reopened()
            assert log.failure is None
            assert readable(log) == without(first), (at, mask)
            assert readable(log, max_bytes=1) == without(first), (at, mask)
            is_torn = name == LAST and number == 2 and not is_clean and at >= 8
            is_low = name == LAST and number == 2 and not is_clean and at < 8 and log.log_end_offset == 24
            assert log.append(batch(log.log_end_offset), 0) == (24 if is_torn or is_low else 27), (at, mask)
            assert readable(log)[-3:] == list(range(log.log_end_offset - 3, log.log_end_offset))
            restore(tmp_path)


def test_it_is_named_once_it_is_known(
    reopened: Callable[[], PartitionLog], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    start = (tmp_path / SECOND).stat().st_size // 3
    change(tmp_path / SECOND, start + 80)
    log = reopened()
    with pytest.raises(CorruptMessage, match="offset 13 of t-0 is damaged"):
        log.read(13, 1000)
    assert f"{SECOND}: {start} bytes at position {start} are damaged (checksum" in caplog.text
    assert "3 offsets from 12 on cannot be read" in caplog.text


def test_damage_found_behind_the_records_that_are_read(reopened: Callable[[], PartitionLog], tmp_path: Path) -> None:
    """The search for the end of a read may be what finds out that the file is damaged."""
    length = (tmp_path / FIRST).stat().st_size // 3
    for offset, number in ((0, 0), (1, 0), (3, 1), (5, 1)):
        change(tmp_path / FIRST, number * length + 80)
        change(tmp_path / FIRST, 2 * length + 16)
        log = reopened()
        with pytest.raises(CorruptMessage, match=f"offset {offset} of t-0 is damaged"):
            log.read(offset, 1000, end_offset=8)
        assert readable(log) == [one for one in without(6) if one // 3 != number]
        restore(tmp_path)


def test_a_file_that_cannot_be_read_again_is_known_as_before(
    reopened: Callable[[], PartitionLog], tmp_path: Path, is_clean: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_clean:
        return  # then it was read when the log was opened
    length = (tmp_path / SECOND).stat().st_size // 3
    change(tmp_path / SECOND, length + 80)
    log = reopened()

    def scan_of_a_bad_sector(descriptor: int, *_: object) -> Iterator[object]:
        raise OSError(errno.EIO, "Input/output error")
        yield

    with monkeypatch.context() as patched:
        patched.setattr("groupkeeper.broker.log.segment.scan", scan_of_a_bad_sector)
        with pytest.raises(KafkaStorageError, match="Input/output error"):
            log.read(12, 1000)
    assert readable(log) == without(12)


def test_what_loads_a_log_passes_over_it(
    reopened: Callable[[], PartitionLog], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    size = (tmp_path / LAST).stat().st_size // 3
    for at in (0, 6, 8, 10, 16, 80):
        change(tmp_path / LAST, size + at)
        log = reopened()
        assert [one.offset for _, some in log.records() for one in some] == without(21), at
        assert "read without the damaged part of" in caplog.text
        assert asyncio.run(log.offset_for_timestamp(22, LongReads())) == (24, 24)
        restore(tmp_path)
        caplog.clear()


@pytest.mark.parametrize("garbage", [b"x" * 100, bytes(5000), bytes(range(256)) * 9], ids=["x", "zeros", "all bytes"])
@pytest.mark.parametrize("name", [FIRST, SECOND, LAST])
def test_garbage_behind_a_segment_is_cut_off(
    reopened: Callable[[], PartitionLog], tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, garbage: bytes
) -> None:
    size = (tmp_path / name).stat().st_size
    with (tmp_path / name).open("ab") as file:
        file.write(garbage)
    log = reopened()
    assert readable(log) == list(range(27))
    assert f"{name}: torn write at position {size}" in caplog.text
    assert f"cut off {len(garbage)} bytes" in caplog.text
    assert log.append(batch(log.log_end_offset), 0) == 27
    assert readable(reopened()) == list(range(30))


def test_garbage_in_the_middle(reopened: Callable[[], PartitionLog], tmp_path: Path) -> None:
    content = (tmp_path / SECOND).read_bytes()
    third = len(content) // 3
    for garbage in (b"\2" * 3000, bytes(7), b"x"):
        (tmp_path / SECOND).write_bytes(content[:third] + garbage + content[third:])
        log = reopened()
        assert readable(log) == list(range(27))
        assert log.append(batch(log.log_end_offset), 0) == 27
        restore(tmp_path)


@pytest.mark.parametrize("name", [FIRST, SECOND, LAST])
def test_lost_records_are_named_and_their_offsets_not_used_again(
    reopened: Callable[[], PartitionLog], tmp_path: Path, caplog: pytest.LogCaptureFixture, is_clean: bool, name: str
) -> None:
    first = int(Path(name).stem)
    is_unknown = name == LAST and not is_clean
    for damage in ("emptied", "removed", "half"):
        if damage == "removed":
            (tmp_path / name).unlink()
        else:
            os.truncate(tmp_path / name, 0 if damage == "emptied" else (tmp_path / name).stat().st_size // 2)
        log = reopened()
        left = without(first + 3, 6) if damage == "half" else without(first, 9)
        assert readable(log) == left, damage
        assert (
            is_unknown or "cannot be read" in caplog.text or "offsets from" in caplog.text or "begins at" in caplog.text
        ), damage
        assert log.append(batch(log.log_end_offset), 0) == (len(left) if is_unknown else 27), damage
        assert is_unknown or readable(reopened())[-3:] == [27, 28, 29], damage
        restore(tmp_path)
        caplog.clear()


def test_all_is_gone(open_log: OpenLog, files: OpenFiles, caplog: pytest.LogCaptureFixture) -> None:
    log = written(open_log())
    shutil.rmtree(log.directory)
    files.close_all()
    again = PartitionLog(log.directory, "t", bytes(range(16)), 0, log.config, files, 86_400_000, log.placement)
    again.recover((), known_end=27)
    assert "27 offsets from 0 on are missing" in caplog.text
    assert (again.log_start_offset, again.log_end_offset) == (27, 27)
    assert again.append(batch(again.log_end_offset), 0) == 27
    assert readable(open_log()) == [27, 28, 29]


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".checksums", ".snapshot", ".txnindex"])
def test_files_beside_a_segment_are_made_again(
    reopened: Callable[[], PartitionLog], tmp_path: Path, suffix: str
) -> None:
    for path in sorted((tmp_path / "t-0").glob("*" + suffix)) or [(tmp_path / SECOND).with_suffix(suffix)]:
        content = path.read_bytes() if path.exists() else b""
        flipped = content[:1] + bytes([content[1] ^ 8]) + content[2:] if content else b"x"
        for damaged in (flipped, content[: len(content) // 2], b"", content + b"x" * 34, content + bytes(4096), None):
            path.unlink(missing_ok=True)
            if damaged is not None:
                path.write_bytes(damaged)
            log = reopened()
            assert readable(log) == list(range(27)), (path.name, damaged)
            assert asyncio.run(log.offset_for_timestamp(13, LongReads())) == (15, 15), (path.name, damaged)
            assert log.append(batch(log.log_end_offset), 0) == 27
            restore(tmp_path)


@pytest.mark.parametrize("base", [10, 12, 19, 21, 27])
def test_a_copy_of_a_segment_is_set_aside(
    reopened: Callable[[], PartitionLog], tmp_path: Path, caplog: pytest.LogCaptureFixture, base: int
) -> None:
    for name in (SECOND, LAST):
        copy = tmp_path / f"t-0/{base:020d}.log"
        shutil.copy(tmp_path / name, copy)
        log = reopened()
        assert readable(log) == list(range(27)), name
        assert log.append(batch(27), 0) == 27
        assert [segment.base_offset for segment in log.segments] == [0, 9, 18]
        assert f"{copy} is a copy of {Path(name).name}" in caplog.text
        restore(tmp_path)


def test_a_start_after_a_clean_stop_reads_no_batch(open_log: OpenLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log = written(open_log())
    log.sync(is_end=True)

    def refuse(*arguments: object) -> Iterator[None]:
        raise AssertionError("a segment is read")

    monkeypatch.setattr("groupkeeper.broker.log.segment.scan", refuse)
    again = open_log(recovery_point=27)
    assert (again.failure, again.log_end_offset) == (None, 27)
    assert readable(again) == list(range(27))


def test_what_follows_a_batch_without_its_last_byte_is_not_taken_for_it(open_log: OpenLog, tmp_path: Path) -> None:
    """The last byte of a record without headers is 0, and so is the first one of a base offset."""
    log = open_log()
    for _ in range(3):
        log.append(write_batch([Record(b"k", b"v", timestamp=1)]), 0)
    end = log.log_end_offset
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-1])
    for offset in range(end, end + 3):  # a start, an append, and the next start
        log = open_log(recovery_point=end)
        assert log.append(write_batch([Record(b"k", b"v", timestamp=1)]), 0) == offset
    log = open_log(recovery_point=end)
    found = log.read(end, 1 << 20)
    assert [header.base_offset for _, header in iter_headers(found)] == [end, end + 1, end + 2]
