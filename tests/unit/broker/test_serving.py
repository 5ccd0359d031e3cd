"""A connection serves what never waits in the call that brings the bytes, and everything in order."""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from groupkeeper.broker import Broker
from groupkeeper.broker.network.connection import Connection
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.framing import encode_request
from groupkeeper.protocol.primitives import RootMessage

pytestmark = pytest.mark.skipif(
    sys.implementation.name == "pypy", reason="its first commits take longer than a turn, until they are compiled"
)


class Socket(asyncio.Transport):
    """Keeps the correlation ids of the replies that are written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.replied: list[int] = []
        self.closed = asyncio.Event()
        self._changed = asyncio.Event()

    def write(self, data: Any) -> None:
        while data:
            self.replied.append(int.from_bytes(data[4:8], "big"))
            data = data[4 + int.from_bytes(data[:4], "big") :]
        self._changed.set()

    async def has(self, replies: int) -> None:
        """Waits until so many replies are written."""
        while len(self.replied) < replies:
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), 30)

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def close(self) -> None:
        self.closed.set()

    abort = close


class Wire:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.socket = Socket()
        self.connection = Connection(broker.server, broker._listeners[0], lambda: None)
        self.connection.connection_made(self.socket)

    def feed(self, *data: bytes) -> None:
        """The bytes arrive together."""
        whole = b"".join(data)
        self.connection.get_buffer(-1)[: len(whole)] = whole
        self.connection.buffer_updated(len(whole))


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    async with Broker() as broker:
        broker.topics.create("t", 1, {})
        broker.groups.ensure_topic()
        wire = Wire(broker)
        await asyncio.sleep(0)  # its task begins to wait for requests
        yield wire
        await wire.connection.stop()


def commit(number: int) -> bytes:
    topics = [m.OffsetCommitRequestTopic("t", partitions=[m.OffsetCommitRequestPartition(0, number)])]
    return encode_request(number, "c", m.OffsetCommitRequest("g", topics=topics), 8)


def waits(number: int) -> bytes:
    """A request that the task serves."""
    return encode_request(number, "c", m.FindCoordinatorRequest("g"), 3)


def offset(broker: Broker) -> int:
    found = broker.groups.shard_of("g").coordinator.state.offsets.find("g", "t", 0)
    assert found is not None
    return found.committed_offset


async def test_a_commit_is_answered_in_the_call_that_brings_it(wire: Wire) -> None:
    wire.feed(commit(1))
    assert wire.socket.replied == [1]
    at_once = []
    for number in range(2, 32, 3):  # on a busy machine a turn may end between two of them, not each time
        beat = encode_request(number + 2, "c", m.HeartbeatRequest("g", 1, "m"), 4)
        wire.feed(commit(number), commit(number + 1), beat)
        at_once.append(wire.socket.replied[-1] == number + 2)
        await wire.socket.has(number + 2)
    assert any(at_once)
    assert wire.socket.replied == [*range(1, 32)]
    assert offset(wire.broker) == 30


async def test_a_request_in_pieces(wire: Wire) -> None:
    frame = commit(7)
    for end in range(1, len(frame)):
        wire.feed(frame[end - 1 : end])
        assert wire.socket.replied == []
    wire.feed(frame[-1:] + frame[:9])
    wire.feed(frame[9:])
    assert wire.socket.replied == [7, 7]


async def test_commits_behind_a_request_that_waits_keep_their_order(wire: Wire) -> None:
    wire.feed(commit(1), waits(2), commit(3))
    wire.feed(commit(4))
    assert offset(wire.broker) == 1
    await wire.socket.has(4)
    assert wire.socket.replied == [1, 2, 3, 4]
    wire.feed(commit(5))
    await wire.socket.has(5)
    assert offset(wire.broker) == 5


async def test_others_have_their_turn_after_many_commits(wire: Wire) -> None:
    wire.feed(*map(commit, range(1, 801)))  # which take longer than a turn
    assert len(wire.socket.replied) < 800
    await wire.socket.has(800)
    assert wire.socket.replied == list(range(1, 801))


async def test_nothing_is_served_after_a_request_that_closes_the_connection(wire: Wire) -> None:
    broken = b"\x00\x00\x00\x09" + commit(2)[4:13]
    wire.feed(commit(1), broken, commit(3))
    await asyncio.wait_for(wire.socket.closed.wait(), 30)
    await asyncio.sleep(0)
    assert (wire.socket.replied, offset(wire.broker)) == ([1], 1)


@pytest.mark.parametrize("request_class", [m.SaslHandshakeRequest, m.SaslAuthenticateRequest])
async def test_refused_requests_are_not_kept(wire: Wire, request_class: type[RootMessage]) -> None:
    # An error that all requests share would keep the frames of each that it refused.
    for number in range(1, 11):
        wire.feed(encode_request(number, "c", request_class(), 1))
        await wire.socket.has(number)
    gc.collect()
    assert sum(isinstance(one, request_class) for one in gc.get_objects()) <= 1


async def test_a_client_that_does_not_read_is_not_served(wire: Wire) -> None:
    wire.connection.pause_writing()
    wire.feed(commit(1), commit(2))
    await asyncio.sleep(0)
    assert offset(wire.broker) == 1
    wire.connection.resume_writing()
    await wire.socket.has(2)
    assert offset(wire.broker) == 2


async def test_a_throttled_client_is_not_served_before_its_time(wire: Wire) -> None:
    began = asyncio.get_running_loop().time()
    wire.connection.mute(0.5)
    wire.feed(commit(1), commit(2))
    assert offset(wire.broker) == 1
    await wire.socket.has(2)
    assert asyncio.get_running_loop().time() - began > 0.49
