"""A broker over real sockets, and connections that speak raw protocol messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pytest
from tests.broker.started import Begin

from groupkeeper.broker import Broker
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.framing import decode_response, encode_request, response_class
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.messages.fetch_response import PartitionData
from groupkeeper.protocol.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource
from groupkeeper.protocol.primitives import RootMessage

if TYPE_CHECKING:
    from tests.broker.nodes import Nodes

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

    async def call(self, message: RootMessage, version: int, client_id: str = "test") -> Any:
        """The response of the message's API."""
        sent = self.send(message, version, client_id)
        received, answer = await self.receive(response_class(message.API_KEY), version)
        assert received == sent
        return answer

    async def create(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Creates a topic and returns its id."""
        settings = [m.CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
        topic = m.CreatableTopic(name, partitions, 1, configs=settings)
        answer = await self.call(m.CreateTopicsRequest([topic]), 7)
        assert answer.topics[0].error_code == 0
        return answer.topics[0].topic_id

    async def produce(
        self, topic: str, records: bytes | None, *, partition: int = 0, version: int = 9, client_id: str = "test"
    ) -> m.PartitionProduceResponse:
        parts = [m.PartitionProduceData(partition, records)]
        request = m.ProduceRequest(None, -1, 1000, [m.TopicProduceData(topic, partition_data=parts)])
        answer = await self.call(request, version, client_id)
        return answer.responses[0].partition_responses[0]

    async def fetch(
        self,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        version: int = 12,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        leader_epoch: int = -1,
    ) -> PartitionData:
        wanted = FetchPartition(partition, leader_epoch, offset, partition_max_bytes=max_bytes)
        topics = [FetchTopic(topic, partitions=[wanted])]
        request = m.FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=topics)
        answer = await self.call(request, version)
        assert answer.error_code == 0
        return answer.responses[0].partitions[0]

    async def list_offset(
        self, topic: str, timestamp: int, *, partition: int = 0, version: int = 11, leader_epoch: int = -1
    ) -> m.ListOffsetsPartitionResponse:
        parts = [m.ListOffsetsPartition(partition, leader_epoch, timestamp)]
        answer = await self.call(m.ListOffsetsRequest(-1, 0, [m.ListOffsetsTopic(topic, parts)]), version)
        return answer.topics[0].partitions[0]

    async def alter(
        self, kind: int, name: str, setting: str, value: str | None, operation: int = 0
    ) -> tuple[int, str | None]:
        """Changes a setting of a resource; kinds: 2 a topic, 4 a broker, 32 a group. The error's code and message."""
        resource = AlterConfigsResource(kind, name, [AlterableConfig(setting, operation, value)])
        (told,) = (await self.call(m.IncrementalAlterConfigsRequest([resource]), 1)).responses
        return told.error_code, told.error_message

    async def describe(self, kind: int, name: str, *settings: str) -> m.DescribeConfigsResult:
        """The settings of a resource, without names all of them."""
        resource = m.DescribeConfigsResource(kind, name, list(settings) or None)
        return (await self.call(m.DescribeConfigsRequest([resource], True), 4)).results[0]

    async def find(self, key: str, key_type: int = 0) -> int:
        """Looks for the coordinator of a group, or of a transactional id with type 1; the error's code."""
        request = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        return (await self.call(request, 6)).coordinators[0].error_code

    async def commit(
        self, group: str, offset: int, *, topic: str = "t", partition: int = 0, metadata: str | None = ""
    ) -> int:
        """Commits an offset; the error's code."""
        part = m.OffsetCommitRequestPartition(partition, offset, committed_metadata=metadata)
        topics = [m.OffsetCommitRequestTopic(topic, partitions=[part])]
        return (await self.call(m.OffsetCommitRequest(group, topics=topics), 9)).topics[0].partitions[0].error_code

    async def committed(self, group: str) -> tuple[int, dict[tuple[str, int], int]]:
        """The error's code, and all offsets of a group."""
        request = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(group, topics=None)])
        (told,) = (await self.call(request, 9)).groups
        found = {
            (topic.name, one.partition_index): one.committed_offset for topic in told.topics for one in topic.partitions
        }
        return told.error_code, found

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


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    """A cluster of three nodes."""
    from tests.broker.nodes import PROPERTIES, Nodes

    async with Broker(directory=tmp_path / "data", properties=PROPERTIES, brokers=3) as broker:
        yield Nodes(broker)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts brokers as processes, and kills them at the end of the test."""
    starter = Begin(tmp_path)
    yield starter
    for one in starter.running:
        one.process.kill()
        one.process.wait(60)
        one.process.stdout.close()  # type: ignore[union-attr]
