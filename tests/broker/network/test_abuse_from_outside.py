"""Whoever abuses a broker harms nobody else: what a process of its own is needed to show."""

import asyncio
import os
import random
import resource
import signal
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.broker.conftest import Wire
from tests.broker.started import Begin, Started

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.framing import encode_request
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.record_batch import Record, iter_headers, write_batch

CONNECTIONS = 2000
KILOBYTES_PER_CONNECTION = 20
MEGABYTE = 1 << 20
DISK = 6 * MEGABYTE
STORAGE_ERROR, NOT_COORDINATOR = 56, 16


def resident_kb(started: Started) -> int:
    status = Path(f"/proc/{started.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


@contextmanager
def many_files() -> Iterator[int]:
    """How many connections a broker has descriptors for here, beside those for its files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = CONNECTIONS if hard == resource.RLIM_INFINITY else min(CONNECTIONS, hard * 5 // 8)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 200) if count == CONNECTIONS else hard, hard))
    try:
        yield count
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.timeout(240)  # the only limit of time, on PyPy and on a busy machine
async def test_two_thousand_connections_of_all_kinds(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPY_GC_NURSERY", "4MB")  # otherwise PyPy takes the more, the larger the processor's cache is
    with many_files() as count, ExitStack() as opened:
        backlog = f"socket.listen.backlog.size={count}"  # no connection is tried again after a second
        started = begin("--port", "0", "--data", "data", "--property", backlog)
        host, port = started.address.rsplit(":", 1)
        good = await Wire.open(started.address)
        await good.create("t")
        batch = write_batch([Record(None, bytes(1000), timestamp=1)])
        before = resident_kb(started)
        chance = random.Random(1)
        topics = [FetchTopic("t", partitions=[FetchPartition(0)])]
        fetch = m.FetchRequest(max_wait_ms=600_000, min_bytes=1 << 20, topics=topics)
        says: list[Callable[[], bytes]] = [
            lambda: b"",  # silent: half open for all that the broker knows
            lambda: struct.pack(">i", 90 << 20) + chance.randbytes(100),  # announces much, and sends little of it
            lambda: b"\xff" + chance.randbytes(400),  # nonsense: a size below 0
            lambda: encode_request(1, "test", fetch, 12),  # waits for more
            lambda: struct.pack(">ihhih", 10, 3, 99, 1, -1),  # a version that nobody has
        ]
        wires = []
        for number in range(count):
            # Not by asyncio: that takes the time, not the broker.
            wires.append(opened.enter_context(socket.create_connection((host, int(port)))))
            wires[-1].sendall(says[number % len(says)]())
            if number % 50 == 0:
                assert (await good.produce("t", batch)).error_code == 0
        for wire in (*wires[2::5], *wires[4::5]):
            with suppress(ConnectionResetError):
                assert wire.recv(1) == b""
        for wire in wires[::5]:
            wire.sendall(encode_request(1, "test", m.MetadataRequest([]), 12))
        for wire in wires[::5]:
            assert len(wire.recv(4, socket.MSG_WAITALL)) == 4
        assert (await good.list_offset("t", -1)).offset == -(-count // 50)
        assert resident_kb(started) - before < count * KILOBYTES_PER_CONNECTION
        opened.close()
        assert (await good.produce("t", batch)).error_code == 0
        good.writer.close()
    assert started.end(signal.SIGTERM) == 0
    assert "Traceback" not in started.errors


@pytest.mark.parametrize("descriptors", [64, 128])
async def test_more_connections_than_descriptors(begin: Begin, descriptors: int) -> None:
    started = begin("--port", "0", "--data", "data", descriptors=descriptors)
    good = await Wire.open(started.address)
    await good.create("t", partitions=60)
    batch = write_batch([Record(None, b"v", timestamp=1)])
    wires = []
    while "new connections wait" not in started.errors:
        with suppress(TimeoutError):
            wires.append(await asyncio.wait_for(Wire.open(started.address), 1))
    # What is connected is served, also where it needs files and modules that nothing has opened yet.
    for partition in range(60):
        assert (await good.produce("t", batch, partition=partition)).error_code == 0
    while (await commit(good, 1)) == NOT_COORDINATOR:  # until the offsets topic is there
        await good.call(m.FindCoordinatorRequest(coordinator_keys=["g"]), 6)
    for wire in wires:
        wire.writer.transport.abort()
    late = await Wire.open(started.address)
    assert (await asyncio.wait_for(late.produce("t", batch), 20)).base_offset == 1
    assert started.end(signal.SIGTERM) == 0
    assert "Traceback" not in started.errors
    assert started.errors.count("new connections wait") == 1


def test_the_soft_limit_of_descriptors_is_raised(begin: Begin) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        started = begin("--port", "0", "--data", "data")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert resource.prlimit(started.process.pid, resource.RLIMIT_NOFILE) == (hard, hard)


@contextmanager
def small_disk(directory: Path, *, mounts: bool) -> Iterator[bool]:
    """A file system of 6 MB at the directory where that is wanted and allowed; whether it is one."""
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(directory)]
    try:
        is_mounted = (
            mounts and os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
        )
    except FileNotFoundError:
        is_mounted = False
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(directory)], check=True)


def enlarge(disk: Path) -> None:
    subprocess.run(["mount", "-o", f"remount,size={4 * DISK}", str(disk)], check=True)


async def commit(wire: Wire, offset: int) -> int:
    return await wire.commit("g", offset, metadata="m" * 4000)


async def values(wire: Wire, count: int) -> list[int]:
    """The numbers of the batches that can be read."""
    found: list[int] = []
    while len(found) < count:
        records = (await wire.fetch("t", len(found), max_bytes=1 << 24)).records
        if not records:
            break
        found += [header.base_offset for _, header in iter_headers(records)]
    return found


@pytest.mark.parametrize("mounts", [True, False])
async def test_a_full_disk(begin: Begin, tmp_path: Path, mounts: bool) -> None:
    batch = write_batch([Record(None, random.Random(2).randbytes(30_000), timestamp=1)])
    disk = tmp_path / "disk"
    with small_disk(disk, mounts=mounts) as is_mounted:
        if mounts and not is_mounted:
            pytest.skip("no file system may be mounted here")
        arguments = ("--port", "0", "--data", str(disk), "--property", "offsets.topic.num.partitions=1")
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        if not is_mounted:
            # No file may grow beyond this then.
            resource.setrlimit(resource.RLIMIT_FSIZE, (DISK, limit[1]))
        try:
            started = begin(*arguments)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        wire = await Wire.open(started.address)
        await wire.create("t")
        while await wire.find("g"):
            pass
        assert await commit(wire, 1) == 0
        acknowledged = 0
        while (answer := await wire.produce("t", batch)).error_code == 0:
            assert answer.base_offset == acknowledged
            acknowledged += 1
            assert acknowledged < 2 * DISK // len(batch)
        assert answer.error_code == STORAGE_ERROR
        assert acknowledged > 50
        last = 1
        while is_mounted and (code := await commit(wire, last + 1)) == 0:
            last += 1
            assert last < DISK // 4000
        assert not is_mounted or code == NOT_COORDINATOR
        # Everything else is served; a topic that cannot be written down is refused.
        other = await Wire.open(started.address)
        assert await values(other, acknowledged) == list(range(acknowledged))
        assert await other.committed("g") == (0, {("t", 0): last})
        created = await other.call(m.CreateTopicsRequest([m.CreatableTopic("u" * 200, 1, 1)]), 7)
        assert created.topics[0].error_code in (0, STORAGE_ERROR)
        # With room again it goes on where it was, without a restart.
        if is_mounted:
            enlarge(disk)
            assert (await other.produce("t", batch)).base_offset == acknowledged
            acknowledged += 1
            assert await commit(other, last + 1) == 0
            last += 1
        started.end(signal.SIGKILL)
        again = begin(*arguments)
        wire = await Wire.open(again.address)
        assert await values(wire, acknowledged) == list(range(acknowledged))
        while (found := await wire.committed("g"))[0] == 14:
            pass
        assert found == (0, {("t", 0): last})
        assert (await wire.produce("t", batch)).base_offset == acknowledged
        assert again.end(signal.SIGTERM) == 0
        assert "Traceback" not in started.errors + again.errors
        # The disk is said to be full once, not with every request.
        assert started.errors.count(": cannot append") < 10, started.errors
