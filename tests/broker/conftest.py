"""A broker over real sockets, and connections that speak raw protocol messages."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Self, TypeVar, cast

import pytest

from groupkeeper.broker import Broker
from groupkeeper.protocol.framing import decode_response, encode_request, response_class
from groupkeeper.protocol.primitives import RootMessage

R = TypeVar("R", bound=RootMessage)


class Wire:
    """One connection. `call` sends a request and waits for its answer; `send` and `receive` are its halves."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._last_id = 0

    @classmethod
    async def open(cls, bootstrap_servers: str) -> Self:
        host, port = bootstrap_servers.rsplit(":", 1)
        return cls(*await asyncio.open_connection(host, int(port)))

    def send(self, message: RootMessage, version: int, client_id: str | None = "test") -> int:
        self._last_id += 1
        self.writer.write(encode_request(self._last_id, client_id, message, version))
        return self._last_id

    async def receive(self, kind: type[R], version: int) -> tuple[int, R]:
        """Raises asyncio.IncompleteReadError when the broker closes the connection."""
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return decode_response(kind, await self.reader.readexactly(size), version)

    async def call(self, message: RootMessage, version: int, kind: type[R] | None = None, client_id: str = "test") -> R:
        sent = self.send(message, version, client_id)
        received, answer = await self.receive(kind or cast("type[R]", response_class(message.API_KEY)), version)
        assert received == sent
        return answer

    async def is_closed(self) -> bool:
        """Waits until the broker closes the connection; whether it does so without another word."""
        return await self.reader.read() == b""

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


Connect = Callable[..., Awaitable[Wire]]
Start = Callable[..., Awaitable[Broker]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts brokers (arguments as of `Broker`) and stops them at the end of the test."""
    running: list[Broker] = []

    async def start_one(**arguments: object) -> Broker:
        broker = Broker(**arguments)  # type: ignore[arg-type]
        await broker.start()
        running.append(broker)
        return broker

    yield start_one
    for broker in running:
        await broker.stop()


@pytest.fixture
async def broker(start: Start) -> Broker:
    return await start()


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    opened: list[Wire] = []

    async def connect_one(broker: Broker) -> Wire:
        wire = await Wire.open(broker.bootstrap_servers)
        opened.append(wire)
        return wire

    yield connect_one
    for wire in opened:
        wire.writer.close()


@pytest.fixture
async def wire(broker: Broker, connect: Connect) -> Wire:
    """A connection to `broker`."""
    return await connect(broker)
