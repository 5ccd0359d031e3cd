"""`groupkeeper broker` as a process: what it prints, how it ends, what it refuses, and what survives `kill -9`."""

import asyncio
import os
import resource
import signal
import socket

import pytest
from confluent_kafka.admin import AdminClient
from tests.broker.started import Begin, Started

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.record_batch import Record, iter_headers, write_batch


async def answers(address: str) -> m.MetadataResponse:
    from tests.broker.conftest import Wire

    wire = await Wire.open(address)
    answer = await wire.call(m.MetadataRequest(None), 12)
    await wire.close()
    return answer


async def test_a_free_port_and_a_clean_end(begin: Begin) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        started = begin("--port", "0", "--data", "d")
        assert (await answers(started.address)).brokers[0].port == int(started.address.rsplit(":", 1)[1])
        assert started.end(number) == 0
        assert started.errors == ""


async def test_the_file_and_what_overrides_it(begin: Begin) -> None:
    (begin.directory / "server.properties").write_text(
        "listeners=EXTERNAL\\://localhost\\:0\n"
        "listener.security.protocol.map=EXTERNAL\\:PLAINTEXT\n"
        "inter.broker.listener.name=EXTERNAL\nnode.id=0\nlog.dirs=in-file\n"
        "advertised.listeners=EXTERNAL\\://localhost\\:0\n"
        "unstable.api.versions.enable=true\nfeature.group.version=0\nconformance.spare.port=5\nnum.partitons=3\n"
    )
    started = begin("--config", "server.properties")
    assert (started.node_ids, started.address.split(":")[0]) == ([0], "localhost")
    assert (await answers(started.address)).brokers[0].node_id == 0
    assert "WARNING unknown setting num.partitons" in started.errors
    assert started.errors.count("\n") == 1
    assert (begin.directory / "in-file/meta.properties").exists()
    second = begin("--config", "server.properties", "--port", "0", "--data", "other", "--property", "node.id=7")
    assert (second.node_ids, second.address.split(":")[0]) == ([7], "localhost")
    assert {one.host for one in (await answers(second.address)).brokers} == {"localhost"}
    assert (begin.directory / "other/meta.properties").exists()


async def test_three_nodes(begin: Begin) -> None:
    started = begin("--brokers", "3", "--racks", "a,b,c", "--port", "0", "--data", "d")
    for address in started.address.split(","):
        nodes = (await answers(address)).brokers
        assert [(one.node_id, one.rack) for one in nodes] == [(1, "a"), (2, "b"), (3, "c")]
        assert [f"{one.host}:{one.port}" for one in nodes] == started.address.split(",")
    assert started.node_ids == [1, 2, 3]
    assert started.end(signal.SIGTERM) == 0
    assert "the cluster has nodes [1, 2, 3]: give --brokers 3" in begin.fail("--port", "0", "--data", "d")
    assert "'0' is not a number of brokers" in begin.fail("--brokers", "0", status=2)
    assert "2 racks for 3 brokers" in begin.fail("--brokers", "3", "--racks", "a,b", "--data", "e", status=2)


class TestRefusals:
    def test_a_port_in_use(self, begin: Begin) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            assert begin.fail("--port", str(port), "--data", "d") == (
                f"cannot listen on 127.0.0.1:{port}: Address already in use"
            )
        assert not (begin.directory / "d").exists()

    def test_a_port_in_use_of_an_ipv6_address(self, begin: Begin) -> None:
        try:
            taken = socket.create_server(("::1", 0), family=socket.AF_INET6)
        except OSError:
            pytest.skip("this machine has no IPv6")
        with taken:
            port = taken.getsockname()[1]
            said = begin.fail("--data", "d", "--property", f"listeners=PLAINTEXT://[::1]:{port}")
        assert said == f"cannot listen on [::1]:{port}: Address already in use"

    def test_every_address_is_told_of(self, begin: Begin) -> None:
        started = begin("--data", "d", "--property", "listeners=PLAINTEXT://0.0.0.0:0")
        assert "listener PLAINTEXT is on every address" in started.errors
        named = begin(
            *("--data", "e", "--property", "listeners=PLAINTEXT://0.0.0.0:0"),
            *("--property", "advertised.listeners=PLAINTEXT://127.0.0.1:0"),
        )
        assert named.errors == ""

    def test_a_directory_in_use(self, begin: Begin) -> None:
        begin("--port", "0", "--data", "d")
        assert begin.fail("--port", "0", "--data", "d") == "data directory d is in use by another broker"

    def test_a_directory_that_cannot_be_made(self, begin: Begin) -> None:
        (begin.directory / "file").write_text("")
        assert begin.fail("--port", "0", "--data", "file/d") == "cannot use the data directory file/d: Not a directory"


async def test_what_was_acknowledged_survives_kill_9(begin: Begin) -> None:
    from tests.broker.conftest import Wire

    expected = 0
    batch = write_batch([Record(b"k", b"v" * 500, timestamp=index) for index in range(10)])
    topic_id = b""
    for life in range(4):
        started = begin("--port", "0", "--data", "d")
        wire = await Wire.open(started.address)
        if not topic_id:
            topic_id = await wire.create("t")
        for _ in range(50):
            assert (await wire.produce("t", batch)).base_offset == expected
            expected += 10
        assert (await wire.list_offset("t", -1)).offset == expected
        assert (await answers(started.address)).topics[0].topic_id == topic_id
        found = (await wire.fetch("t", 0, max_bytes=1 << 24)).records or b""
        assert sum(header.record_count for _, header in iter_headers(found)) == expected
        assert started.end(signal.SIGKILL) == -signal.SIGKILL, life
        await wire.close()


def test_a_second_signal_forces_the_end(begin: Begin) -> None:
    started = begin("--port", "0", "--data", "d")
    os.kill(started.process.pid, signal.SIGTERM)
    os.kill(started.process.pid, signal.SIGTERM)
    # The first signal may have done its work before the second one comes, up to taking the handlers away.
    assert started.process.wait(60) in (0, 130, -signal.SIGTERM)


def test_a_throwaway_authority_and_a_user(begin: Begin) -> None:
    started = begin("--port", "0", "--data", "d", "--tls", "--add-user", "alice=alice-secret")
    assert started.process.stdout is not None
    printed = dict(started.process.stdout.readline().strip().split("=", 1) for _ in range(5))
    login = printed.pop("sasl.jaas.config")
    assert login.endswith('ScramLoginModule required username="USER" password="PASSWORD";')
    assert printed == {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(begin.directory / "d/tls/ca.pem"),
        "sasl.mechanism": "SCRAM-SHA-512",
    }
    client = AdminClient(
        {
            "bootstrap.servers": started.address,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": printed["ssl.truststore.location"],
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password": "alice-secret",
        }
    )
    assert list(client.list_topics(timeout=20).brokers) == [1]
    assert started.end(signal.SIGTERM) == 0


def test_a_user_without_a_password(begin: Begin) -> None:
    for given in ("alice:hunter2", "=hunter2", "alice="):
        said = begin.fail("--port", "0", "--data", "d", "--add-user", given, status=2)
        assert said == f"--add-user {'alice' if given == 'alice=' else '…'}: expected NAME=PASSWORD"


@pytest.mark.parametrize("is_new", [True, False])
def test_a_start_without_room_names_the_file(begin: Begin, is_new: bool) -> None:
    arguments = ("--port", "0", "--data", "d")
    if not is_new:
        assert begin(*arguments).end(signal.SIGKILL) == -signal.SIGKILL
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, hard))  # no file may be larger
    try:
        message = begin.fail(*arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert message == f"d/{'meta.properties' if is_new else 'features.journal'}: File too large"
    assert begin(*arguments).end(signal.SIGTERM) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_an_end_amid_writes_and_rolls_loses_nothing(begin: Begin, number: int) -> None:
    from tests.broker.conftest import Wire

    arguments = ("--port", "0", "--data", "d", "--property", "log.segment.bytes=1048576")
    batch = write_batch([Record(None, bytes(300_000), timestamp=1)])  # every third one rolls
    acknowledged: list[int] = []

    async def write(wire: Wire, started: Started, enough: int) -> None:
        while True:
            acknowledged.append((await wire.produce("t", batch)).base_offset)
            if len(acknowledged) == enough:
                started.process.send_signal(number)

    for _ in range(2):
        started = begin(*arguments)
        wires = [await Wire.open(started.address) for _ in range(3)]
        if not acknowledged:
            await wires[0].create("t")
        writers = [write(wire, started, len(acknowledged) + 20) for wire in wires]
        for ended in await asyncio.gather(*writers, return_exceptions=True):
            assert isinstance(ended, asyncio.IncompleteReadError | ConnectionError), ended
        assert started.process.wait(40) == (0 if number == signal.SIGTERM else -number)
        lines = started.errors.splitlines()  # a write that the kill before ended is told at the start
        assert [line for line in lines if number == signal.SIGTERM or "torn write" not in line] == []
        for wire in wires:
            wire.writer.close()
    assert len(acknowledged) == len(set(acknowledged))
    again = await Wire.open(begin(*arguments).address)
    offset, found = 0, set()
    while records := (await again.fetch("t", offset, max_bytes=1 << 24)).records:
        found |= {header.base_offset for _, header in iter_headers(records)}
        offset = max(found) + 1
    assert found >= set(acknowledged)
    again.writer.close()
