"""A TCP server that speaks Kafka's protocol as a script says: old version ranges, errors, silence, hanging up."""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.unit.protocol.frames import decode_request

from groupkeeper.client.admin import Admin
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.codec import encode
from groupkeeper.protocol.framing import api_name, encode_response, response_class
from groupkeeper.protocol.index import APIS
from groupkeeper.protocol.primitives import RootMessage

KEY_BY_NAME = {name: key for key, (name, *_) in APIS.items()}


class HangUp(Exception):
    """Raised by a handler: the broker closes the connection instead of answering."""


class Silence(Exception):
    """Raised by a handler: the request gets no answer."""


class Seen(NamedTuple):
    """A request that came in."""

    api: str
    version: int
    message: RootMessage
    connection: int
    client_id: str | None


Handler = Callable[..., RootMessage | bytes | Awaitable[RootMessage]]
"""Called with (message, version): the answer, or raw bytes of a whole frame to send instead of one."""


class ScriptedBroker:
    """One broker. `ranges` narrows (lowest, highest) or removes (None) APIs by name; `handlers` answer by API name.

    `Metadata` and `FindCoordinator` have handlers of their own, for the brokers of `peers` (this one alone by
    default), `topics` (name → leader of each partition) and `coordinator_by_group` (default: this broker).
    `api_versions`: "new" answers an unknown version of ApiVersions with error 35 and the range, "old" without the
    range (before 2.4), "hangs up" closes the connection. `answer_token` answers the frames without header that
    follow a SaslHandshake of version 0, and says whether it was the last one.
    """

    def __init__(
        self,
        node_id: int = 0,
        *,
        ranges: Mapping[str, tuple[int, int] | None] | None = None,
        handlers: Mapping[str, Handler] | None = None,
        api_versions: str = "new",
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
        answer_token: Callable[[bytes], Awaitable[tuple[bytes, bool]]] | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = 0
        self.ranges: dict[str, tuple[int, int]] = {name: (low, high) for name, low, high, _ in APIS.values()}
        for name, versions in (ranges or {}).items():
            if versions is None:
                del self.ranges[name]
            else:
                self.ranges[name] = versions
        self.handlers: dict[str, Handler] = {
            "ApiVersions": self._answer_api_versions,
            "Metadata": self._answer_metadata,
            "FindCoordinator": self._answer_find_coordinator,
            "SaslHandshake": lambda *_: m.SaslHandshakeResponse(34),  # a listener without SASL
            **(handlers or {}),
        }
        self.peers: list[ScriptedBroker] = [self]
        self.topics: dict[str, list[int]] = {}
        self.coordinator_by_group: dict[str, int] = {}
        self.seen: list[Seen] = []
        self.connections = 0
        self._news = asyncio.Event()
        self._api_versions = api_versions
        self._tls = tls
        self._answer_token = answer_token
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def bootstrap_servers(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def count(self, api: str) -> int:
        return sum(1 for each in self.seen if each.api == api)

    async def until(self, api: str, count: int = 1) -> None:
        """Wait until that many requests of an API have come in."""
        async with asyncio.timeout(40):
            while self.count(api) < count:
                self._news.clear()
                await self._news.wait()

    async def until_no_connection(self) -> None:
        """Wait until every connection has been closed by the other side."""
        async with asyncio.timeout(40):
            while self._writers:
                self._news.clear()
                await self._news.wait()

    def asked(self, api: str) -> list[tuple[int, RootMessage]]:
        """(version, message) of every request of an API."""
        return [(each.version, each.message) for each in self.seen if each.api == api]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, on the former port when there was one."""
        self._server = await asyncio.start_server(self._accept, self.host, self.port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and close every connection."""
        if self._server is not None:
            self._server.close()
            self.hang_up()
            await asyncio.gather(*self._tasks)
            await self._server.wait_closed()
            self._server = None

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.connections += 1
        connection = self.connections
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                if size > 100 * 1024 * 1024:
                    raise HangUp  # as Kafka does, when it is told TLS
                await self._answer(connection, await reader.readexactly(size), writer)
                if self._answer_token and (self.seen[-1].api, self.seen[-1].version) == ("SaslHandshake", 0):
                    await self._exchange_tokens(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, HangUp):
            pass
        finally:
            self._writers.discard(writer)
            self._news.set()
            writer.close()

    async def _exchange_tokens(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._answer_token is not None
        is_last = False
        while not is_last:
            size = int.from_bytes(await reader.readexactly(4), "big")
            answer, is_last = await self._answer_token(await reader.readexactly(size))
            writer.write(raw_frame(answer))

    async def _answer(self, connection: int, frame: bytes, writer: asyncio.StreamWriter) -> None:
        key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        correlation_id = int.from_bytes(frame[4:8], "big")
        name = api_name(key)
        low, high = self.ranges.get(name, (0, -1))
        if not low <= version <= high:
            if name != "ApiVersions":
                raise HangUp
            self._note(Seen(name, version, m.ApiVersionsResponse(), connection, None))
            writer.write(encode_response(correlation_id, self._refuse_api_versions(), 0))
            return
        header, message = decode_request(frame)
        self._note(Seen(name, version, message, connection, header.client_id))
        try:
            answer = self.handlers[name](message, version)
            if isinstance(answer, Awaitable):
                answer = await answer
        except Silence:
            return
        if isinstance(answer, bytes):
            writer.write(answer)
        else:
            assert type(answer) is response_class(key)
            writer.write(encode_response(correlation_id, answer, version))

    def _note(self, seen: Seen) -> None:
        self.seen.append(seen)
        self._news.set()

    def _advertised(self) -> list[m.ApiVersion]:
        return [m.ApiVersion(KEY_BY_NAME[name], low, high) for name, (low, high) in self.ranges.items()]

    def _refuse_api_versions(self) -> m.ApiVersionsResponse:
        if self._api_versions == "hangs up":
            raise HangUp
        low, high = self.ranges["ApiVersions"]
        return m.ApiVersionsResponse(35, [m.ApiVersion(18, low, high)] if self._api_versions == "new" else [])

    def _answer_api_versions(self, message: RootMessage, version: int) -> m.ApiVersionsResponse:
        return m.ApiVersionsResponse(0, self._advertised())

    def _answer_metadata(self, message: m.MetadataRequest, version: int) -> m.MetadataResponse:
        wanted = None if message.topics is None else [topic.name or "" for topic in message.topics]
        if wanted is None or (version == 0 and not wanted):
            wanted = list(self.topics)
        return m.MetadataResponse(
            brokers=[m.MetadataResponseBroker(peer.node_id, peer.host, peer.port) for peer in self.peers],
            cluster_id="scripted" if version >= 2 else None,
            controller_id=self.peers[0].node_id if version >= 1 else -1,
            topics=[self._topic(name) for name in wanted],
        )

    def _topic(self, name: str) -> m.MetadataResponseTopic:
        if name not in self.topics:
            return m.MetadataResponseTopic(3, name)
        partitions = [
            m.MetadataResponsePartition(5 if leader < 0 else 0, index, leader, replica_nodes=[1], isr_nodes=[1])
            for index, leader in enumerate(self.topics[name])
        ]
        return m.MetadataResponseTopic(0, name, partitions=partitions)

    def _answer_find_coordinator(self, message: m.FindCoordinatorRequest, version: int) -> m.FindCoordinatorResponse:
        def find(group_id: str) -> m.Coordinator:
            node_id = self.coordinator_by_group.get(group_id, self.node_id)
            peer = next(peer for peer in self.peers if peer.node_id == node_id)
            return m.Coordinator(group_id, node_id, peer.host, peer.port, 0, None)

        if version >= 4:
            return m.FindCoordinatorResponse(coordinators=[find(key) for key in message.coordinator_keys])
        found = find(message.key)
        return m.FindCoordinatorResponse(node_id=found.node_id, host=found.host, port=found.port)


def cluster_of(*brokers: ScriptedBroker) -> None:
    """Make started brokers know each other."""
    for broker in brokers:
        broker.peers = list(brokers)
        broker.topics = brokers[0].topics
        broker.coordinator_by_group = brokers[0].coordinator_by_group


def newest(message: RootMessage) -> tuple[int, RootMessage]:
    """The message as `ScriptedBroker.asked` has it when it came in the newest version."""
    return message.MAX_VERSION, message


def in_turn(*answers: RootMessage | type[BaseException] | Handler) -> Handler:
    """A handler that gives one answer after the other, and the last one for ever."""
    calls: dict[str, int] = defaultdict(int)

    def handle(message: RootMessage, version: int) -> RootMessage | bytes | Awaitable[RootMessage]:
        answer = answers[min(calls["made"], len(answers) - 1)]
        calls["made"] += 1
        if isinstance(answer, type):
            raise answer
        if isinstance(answer, RootMessage):
            return answer
        return answer(message, version)

    return handle


def describing(
    answer: type[RootMessage], missing: Callable[[str, int], Any], *groups: Any, asked: str = "group_ids"
) -> Handler:
    """Answers a description of groups with these, and with what `missing` makes of the id and the version for others;
    `asked` is the request's field with the ids.
    """
    by_id = {group.group_id: group for group in groups}

    def handle(message: RootMessage, version: int) -> RootMessage:
        found = [by_id.get(key) or missing(key, version) for key in getattr(message, asked)]
        return answer(groups=found)  # type: ignore[call-arg]

    return handle


def raw_frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def raw_answer(correlation_id: int, message: RootMessage, version: int) -> bytes:
    """A frame with a response header of version 0, whatever the API."""
    return raw_frame(correlation_id.to_bytes(4, "big") + encode(message, version))


def fast_admin(bootstrap_servers: str, **settings: str) -> Admin:
    """An Admin that gives up after 5 s and retries quickly. Property names have underscores for dots."""
    properties = {
        "default.api.timeout.ms": "5000",
        "request.timeout.ms": "2000",
        "retry.backoff.ms": "5",
        "retry.backoff.max.ms": "20",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    return Admin(bootstrap_servers, properties=properties)


@asynccontextmanager
async def admin_of(*brokers: ScriptedBroker, **settings: str) -> AsyncIterator[Admin]:
    """An Admin of `fast_admin`, connected to the first of brokers that it starts, and that then know each other."""
    async with AsyncExitStack() as running:
        for broker in brokers:
            await running.enter_async_context(broker)
        cluster_of(*brokers)
        yield await running.enter_async_context(fast_admin(brokers[0].bootstrap_servers, **settings))


@asynccontextmanager
async def scripted(
    handlers: Mapping[str, Handler] | None = None, *, ranges: Mapping[str, tuple[int, int] | None] | None = None
) -> AsyncIterator[tuple[ScriptedBroker, Admin]]:
    """A broker, and an Admin of `fast_admin` that is connected to it."""
    broker = ScriptedBroker(handlers=handlers, ranges=ranges)
    async with admin_of(broker) as admin:
        yield broker, admin
