"""What one connection may expect: order, bounds, and an end when it talks nonsense."""

import asyncio
import contextlib
import gc
import math
import socket
import struct
import sys
from importlib import import_module
from itertools import count
from pathlib import Path
from types import ModuleType

import pytest
from tests.broker.conftest import Connect, Start, Wire
from tests.broker.held import log_of
from tests.broker.test_cluster_apis import ALL_LEVELS

from groupkeeper.broker import Broker, apis
from groupkeeper.broker.api_table import _UNSTABLE, NOT_YET, TABLE, Api
from groupkeeper.broker.network.connection import Connection
from groupkeeper.broker.network.listeners import Listener
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import InvalidRequest, RebootstrapRequired, UnsupportedVersion
from groupkeeper.protocol.framing import encode_request, request_class
from groupkeeper.protocol.index import APIS
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.record_batch import Record, write_batch

API_VERSIONS = m.ApiVersionsRequest("test", "1.0")
WAITS = m.FetchRequest(
    max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic("t", partitions=[FetchPartition(0, partition_max_bytes=100)])]
)
"""For a first record of the topic t."""


class TestApiVersions:
    async def test_every_version_lists_what_is_served(self, wire: Wire) -> None:
        for version in range(6):
            request = API_VERSIONS if version >= 3 else m.ApiVersionsRequest()
            answer = await wire.call(request, version)
            ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
            # Produce is said to begin at 0, as Kafka 4 does for old librdkafka.
            assert ranges == {key: (api.lowest if key else 0, api.highest) for key, api in TABLE.items()}

    # GW-04
    async def test_an_unknown_version_is_answered_in_version_0(self, wire: Wire) -> None:
        frame = struct.pack(">hhih", 18, 99, 7, -1) + b"\x00"
        wire.writer.write(struct.pack(">i", len(frame)) + frame)
        correlation_id, answer = await wire.receive(m.ApiVersionsResponse, 0)
        assert (correlation_id, answer.error_code) == (7, UnsupportedVersion.code)
        assert [(api.api_key, api.min_version, api.max_version) for api in answer.api_keys] == [(18, 0, 5)]
        assert (await wire.call(API_VERSIONS, 3)).error_code == 0

    async def test_a_client_of_another_broker_is_to_begin_again(self, wire: Wire) -> None:
        cluster_id = (await wire.call(m.DescribeClusterRequest(), 2)).cluster_id
        for cluster, node, error_code in (
            (None, 7, 0),
            (cluster_id, 1, 0),
            (cluster_id, -1, RebootstrapRequired.code),
            ("another", 1, RebootstrapRequired.code),
        ):
            request = m.ApiVersionsRequest("test", "1", cluster, node)
            assert (await wire.call(request, 5)).error_code == error_code

    async def test_a_nameless_client_is_refused(self, wire: Wire) -> None:
        for name in ("", "a b", "-a"):
            answer = await wire.call(m.ApiVersionsRequest(name, "1"), 3)
            assert answer.error_code == InvalidRequest.code

    async def test_features(self, wire: Wire) -> None:
        answer = await wire.call(API_VERSIONS, 4)
        finalized = {one.name: one.max_version_level for one in answer.finalized_features}
        assert finalized == ALL_LEVELS
        supported = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
        assert supported == {name: (0, level) for name, level in finalized.items()} | {
            "metadata.version": (7, 33),
            "kraft.version": (0, 1),
        }
        assert answer.finalized_features_epoch >= 0
        # Version 3 cannot say that a range begins at 0.
        old = await wire.call(API_VERSIONS, 3)
        assert [one.name for one in old.supported_features] == ["metadata.version"]


def test_the_table_serves_what_there_is() -> None:
    # GW-05
    folder = Path(apis.__file__).parent
    assert {api.module for api in TABLE.values()} == {one.stem for one in folder.glob("[a-z]*.py")}
    for key, api in TABLE.items():
        name, _, highest, _ = APIS[key]
        assert key not in NOT_YET or api.lowest <= NOT_YET[key] < highest, f"{name} is in NOT_YET without need"
        assert highest + (key in _UNSTABLE) == request_class(key).MAX_VERSION, name
        module = import_module(f"{apis.__name__}.{api.module}")
        assert not {"KEY", "KEYS", "VERSIONS"} & vars(module).keys(), name


async def test_an_api_in_the_table_is_offered_everywhere(
    start: Start, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = m.GetTelemetrySubscriptionsRequest.API_KEY
    assert key not in TABLE
    module = ModuleType(f"{apis.__name__}.made_up")
    module.reply = lambda broker, call, request: m.GetTelemetrySubscriptionsResponse(subscription_id=7)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(TABLE, key, Api(key, "made_up"))
    broker = await start()
    wire = await connect(broker)
    offered = {one.api_key: one for one in (await wire.call(API_VERSIONS, 4)).api_keys}
    assert (offered[key].min_version, offered[key].max_version) == (0, 0)
    request = m.GetTelemetrySubscriptionsRequest()
    assert (await wire.call(request, 0)).subscription_id == 7
    with broker.faults.error("GetTelemetrySubscriptions", UnsupportedVersion):
        assert (await wire.call(request, 0)).error_code == UnsupportedVersion.code


async def test_pipelined_requests_are_answered_in_order(wire: Wire) -> None:
    sent = [wire.send(m.MetadataRequest([]), version=12) for _ in range(500)]
    received = [(await wire.receive(m.MetadataResponse, 12))[0] for _ in range(500)]
    assert received == sent


async def test_clients_with_many_requests_share_a_turn(
    broker: Broker, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = [await connect(broker) for _ in range(60)]
    other = await connect(broker)
    for one in crowd:
        one.writer.write(encode_request(1, "c", m.MetadataRequest([]), 12) * 2000)
    clock = count().__next__  # it is asked once for each request
    monkeypatch.setattr(f"{Connection.__module__}.perf_counter", lambda: clock() / 10_000)
    waits = []
    for _ in range(5):
        began = clock()
        await other.call(API_VERSIONS, 4)
        waits.append(clock() - began)
    assert sorted(waits)[2] < 600


@pytest.mark.skipif(not hasattr(gc, "set_debug"), reason="PyPy counts no references: all that is not used is garbage")
async def test_a_closed_connection_with_a_waiting_request_is_no_garbage(broker: Broker, connect: Connect) -> None:
    broker.topics.create("t", 1)
    wire = await connect(broker)
    wire.send(WAITS, 12)
    async with asyncio.timeout(20):
        while not any(one.idle_since() == math.inf for one in broker.server.connections):  # noqa: ASYNC110
            await asyncio.sleep(0)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        wire.writer.transport.abort()
        async with asyncio.timeout(20):
            while broker.server.connections:  # noqa: ASYNC110
                await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        gc.collect()
        assert [one for one in gc.garbage if isinstance(one, Connection)] == []
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def test_a_waiting_request_holds_up_its_own_connection_only(broker: Broker, connect: Connect) -> None:
    one, two = await connect(broker), await connect(broker)
    broker.topics.create("t", 1)
    one.send(WAITS, 12)
    one.send(m.MetadataRequest([]), 12)
    await two.call(m.MetadataRequest([]), 12)
    await two.produce("t", write_batch([Record(None, b"v")]))
    assert (await one.receive(m.FetchResponse, 12))[0] == 1
    assert (await one.receive(m.MetadataResponse, 12))[0] == 2


async def test_a_request_may_arrive_byte_by_byte(wire: Wire) -> None:
    class Captured:
        sent = b""

        def write(self, frame: bytes) -> None:
            self.sent += frame

    writer, wire.writer = wire.writer, Captured()  # type: ignore[assignment]
    wire.send(m.MetadataRequest([]), 12)
    wire.send(m.MetadataRequest([]), 12)
    frames = wire.writer.sent  # type: ignore[attr-defined]
    wire.writer = writer
    for at in range(len(frames)):
        writer.write(frames[at : at + 1])
        await writer.drain()
        await asyncio.sleep(0)
    assert (await wire.receive(m.MetadataResponse, 12))[0] == 1
    assert (await wire.receive(m.MetadataResponse, 12))[0] == 2


async def test_a_large_request(start: Start, connect: Connect) -> None:
    broker = await start(properties={"message.max.bytes": "20000000"})
    broker.topics.create("t", 1)
    wire = await connect(broker)
    batch = write_batch([Record(None, bytes(10_000_000))])
    assert (await wire.produce("t", batch)).error_code == 0
    assert len((await wire.fetch("t", 0, max_bytes=1)).records or b"") == len(batch)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (struct.pack(">hhih", 9999, 0, 1, -1), "unknown API key 9999"),
        (struct.pack(">hhih", 3, 99, 1, -1) + b"\x00", "Metadata version 99 is not supported"),
        (struct.pack(">hhih", 0, 2, 1, -1), "Produce version 2 is not supported"),
        (struct.pack(">hhih", 3, 1, 1, -1) + b"\x7f\xff\xff\xff", "malformed Metadata request"),
        (b"\x00", "has no header"),
        (b"", "has no header"),
    ],
)
async def test_nonsense_closes_the_connection_with_one_line(
    broker: Broker, connect: Connect, caplog: pytest.LogCaptureFixture, frame: bytes, reason: str
) -> None:
    wire, other = await connect(broker), await connect(broker)
    wire.writer.write(struct.pack(">i", len(frame)) + frame)
    assert await wire.is_closed()
    lines = [record.getMessage() for record in caplog.records if record.name == "groupkeeper.broker"]
    assert len(lines) == 1
    assert reason in lines[0]
    await other.call(m.MetadataRequest([]), 12)


async def test_bytes_behind_a_request_are_ignored(wire: Wire) -> None:
    # As Kafka does: librdkafka leaves three bytes behind its Metadata requests for all topics.
    frame = struct.pack(">hhih", 3, 1, 7, -1) + struct.pack(">i", 0) + b"abc"
    wire.writer.write(struct.pack(">i", len(frame)) + frame)
    assert (await wire.receive(m.MetadataResponse, 1))[0] == 7


@pytest.mark.parametrize("size", [-1, 104857601, 2**31 - 1, 0x47455420])
async def test_a_size_out_of_bounds_closes_the_connection(wire: Wire, size: int) -> None:
    wire.writer.write(struct.pack(">i", size))
    assert await wire.is_closed()


async def test_the_bound_of_a_request_is_a_setting(start: Start, connect: Connect) -> None:
    broker = await start(properties={"socket.request.max.bytes": "100"})
    wire = await connect(broker)
    wire.writer.write(struct.pack(">i", 101))
    assert await wire.is_closed()


async def test_an_announced_size_costs_nothing(broker: Broker, connect: Connect) -> None:
    tracemalloc = pytest.importorskip("tracemalloc", reason="PyPy has none")
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    wires = [await connect(broker) for _ in range(50)]
    for wire in wires:
        wire.writer.write(struct.pack(">i", 100_000_000) + b"x")
    await (await connect(broker)).call(m.MetadataRequest([]), 12)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 50_000_000


async def test_what_was_sent_before_the_end_is_served(broker: Broker, connect: Connect) -> None:
    broker.topics.create("t", 1)
    wire = await connect(broker)
    data = [m.TopicProduceData("t", partition_data=[m.PartitionProduceData(0, write_batch([Record(None, b"v")]))])]
    for _ in range(20):
        wire.send(m.ProduceRequest(None, 0, 1000, data), 9)
    wire.send(m.MetadataRequest([]), 12)
    wire.writer.write_eof()
    assert (await wire.receive(m.MetadataResponse, 12))[0] == 21
    assert await wire.is_closed()
    assert log_of(broker, "t").log_end_offset == 20


async def test_a_peer_that_does_not_read_is_not_served_without_end(broker: Broker, connect: Connect) -> None:
    for index in range(300):
        broker.topics.create(f"a-topic-with-quite-a-long-name-{index}", 1)
    slow, other = await connect(broker), await connect(broker)
    requests = 500  # of about 25 KB each
    for _ in range(requests):
        slow.send(m.MetadataRequest(None), 12)
    for _ in range(50):
        await other.call(m.MetadataRequest([]), 12)
    (connection,) = [one for one in broker.server.connections if one._frames]
    assert connection._writable is not None
    for expected in range(requests):
        assert (await slow.receive(m.MetadataResponse, 12))[0] == expected + 1


async def test_empty_frames_behind_a_waiting_request_are_bounded(broker: Broker, connect: Connect) -> None:
    broker.topics.create("t", 1)
    wire, other = await connect(broker), await connect(broker)
    wire.send(WAITS, 12)
    wire.writer.write(bytes(1_000_000))
    for _ in range(200):
        await other.call(m.MetadataRequest([]), 12)
    (connection,) = [one for one in broker.server.connections if one._frames]
    assert connection._reading_paused
    assert len(connection._frames) < 200_000


async def test_answers_that_nobody_reads_are_bounded(broker: Broker, connect: Connect) -> None:
    log = broker.topics.create("t", 1).partitions[0]
    log.append(write_batch([Record(None, bytes(900_000))]), 0)
    slow, other = await connect(broker), await connect(broker)
    partition = FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 20)
    for _ in range(60):
        slow.send(m.FetchRequest(max_wait_ms=0, topics=[FetchTopic("t", partitions=[partition])]), 12)
    for _ in range(50):
        await other.call(m.MetadataRequest([]), 12)
    (connection,) = [one for one in broker.server.connections if one._frames]
    assert connection._transport is not None
    assert connection._transport.get_write_buffer_size() + connection._out_bytes < 8_000_000
    for _ in range(60):
        await slow.receive(m.FetchResponse, 12)


async def test_a_flood_of_requests_lets_others_have_their_turn(broker: Broker, connect: Connect) -> None:
    flooding, other = await connect(broker), await connect(broker)
    request = m.MetadataRequest([m.MetadataRequestTopic(name=f"none-{each}") for each in range(200)], False)
    for _ in range(1_000):
        flooding.send(request, 12)
    other.send(m.MetadataRequest([]), 12)

    async def all_of_it() -> None:
        for _ in range(1_000):
            await flooding.receive(m.MetadataResponse, 12)

    flood = asyncio.create_task(all_of_it())
    await other.receive(m.MetadataResponse, 12)
    assert not flood.done()
    await flood


async def test_a_connection_that_comes_while_the_broker_stops_is_dropped(start: Start) -> None:
    broker = await start()
    server = broker.server
    await broker.stop()
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    lost: list[int] = []
    listener = Listener("PLAINTEXT", "127.0.0.1", 0)
    await loop.connect_accepted_socket(lambda: Connection(server, listener, lambda: lost.append(1)), theirs)
    ours.setblocking(False)
    with ours:
        assert await asyncio.wait_for(loop.sock_recv(ours, 1), 30) == b""
    assert not server.connections
    assert lost == [1]


@pytest.mark.parametrize("before", range(2))
@pytest.mark.parametrize("after", range(3))
async def test_a_connection_that_is_being_accepted_while_the_broker_stops_is_dropped(
    start: Start, caplog: pytest.LogCaptureFixture, before: int, after: int
) -> None:
    broker, loop = await start(), asyncio.get_running_loop()
    host, port = broker.bootstrap_servers.rsplit(":", 1)
    for _ in range(before):
        await asyncio.sleep(0)
    with socket.create_connection((host, int(port))) as client:
        client.setblocking(False)
        for _ in range(after):
            await asyncio.sleep(0)
        await broker.server.close()
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(loop.sock_recv(client, 1), 30) == b""
    assert not caplog.records


def test_a_connection_that_begins_while_the_broker_stops_ends_quietly(caplog: pytest.LogCaptureFixture) -> None:
    uvloop = pytest.importorskip("uvloop")  # whose transports refuse to write once such a connection is given up

    async def stop_meanwhile() -> None:
        broker = Broker()
        await broker.start()
        host, port = broker.bootstrap_servers.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as client:
            client.sendall(encode_request(1, "test", m.MetadataRequest([]), 12))
            while not broker.server.connections:  # noqa: ASYNC110 no event tells of it
                await asyncio.sleep(0)
            await broker.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(stop_meanwhile())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_stopped_broker_leaves_nothing_behind(connect: Connect) -> None:
    before = asyncio.all_tasks()
    broker = Broker()
    await broker.start()
    probe, *wires = [await connect(broker) for _ in range(6)]
    broker.topics.create("t", 1)
    log = log_of(broker, "t")
    for wire in wires:
        wire.send(WAITS, 12)
        await wire.writer.drain()
    while len(log.waiters) < 5:
        await probe.call(m.MetadataRequest([]), 12)
    await broker.stop()
    await broker.stop()
    for wire in wires:
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await wire.receive(m.FetchResponse, 12)
    assert not broker.server.connections
    gc.collect()
    assert {task for task in asyncio.all_tasks() if not task.done()} <= before | {asyncio.current_task()}


async def test_several_brokers_in_one_process(start: Start, connect: Connect) -> None:
    brokers = [await start() for _ in range(5)]
    assert len({broker.bootstrap_servers for broker in brokers}) == 5
    assert len({broker.cluster_id for broker in brokers}) == 5
    for number, broker in enumerate(brokers):
        wire = await connect(broker)
        answer = await wire.call(m.MetadataRequest([m.MetadataRequestTopic(name=f"t{number}")]), 12)
        assert answer.cluster_id == broker.cluster_id
    assert [list(broker.topics.names()) for broker in brokers] == [[f"t{number}"] for number in range(5)]


async def test_silent_connections_are_closed(start: Start, connect: Connect) -> None:
    broker = await start(properties={"connections.max.idle.ms": "300"})
    silent, talking, waiting = [await connect(broker) for _ in range(3)]
    await talking.create("t")
    # A request that waits for something is no silence.
    parts = [FetchPartition(0, fetch_offset=0, partition_max_bytes=1000)]
    waiting.send(m.FetchRequest(max_wait_ms=900, min_bytes=1, topics=[FetchTopic("t", partitions=parts)]), 12)
    closing = asyncio.ensure_future(silent.is_closed())
    while not closing.done():
        assert (await talking.call(m.MetadataRequest([]), 12)).brokers
    assert await closing
    assert (await waiting.receive(m.FetchResponse, 12))[1].error_code == 0
    assert await waiting.is_closed()


async def test_a_peer_that_does_not_read_is_silent(start: Start) -> None:
    broker = await start(properties={"connections.max.idle.ms": "300"})
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(reader, ("127.0.0.1", broker.advertised.port))
    asked = encode_request(1, "c", m.ApiVersionsRequest("a", "1"), 3) * 1000
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(20):
            while not broker.server.connections:  # noqa: ASYNC110
                await asyncio.sleep(0)
            while broker.server.connections:
                with contextlib.suppress(BlockingIOError):
                    reader.send(asked)
                await asyncio.sleep(0.05)
    assert not broker.server.connections
    reader.close()


async def test_connections_may_be_silent_for_ever(start: Start, connect: Connect) -> None:
    broker = await start(properties={"connections.max.idle.ms": "-1"})
    wire = await connect(broker)
    assert (await wire.call(m.MetadataRequest([]), 12)).brokers
