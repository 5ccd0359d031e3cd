"""The server of a node: listening sockets, and the processing of request frames."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from logging import ERROR, getLogger
from time import perf_counter

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.api_table import TABLE, Api
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.long_reads import LongReads
from groupkeeper.broker.network.acceptor import Acceptor
from groupkeeper.broker.network.closing import CloseConnection
from groupkeeper.broker.network.connection import Connection
from groupkeeper.broker.network.connection_limits import ConnectionLimits
from groupkeeper.broker.network.held_bytes import HeldBytes
from groupkeeper.broker.network.long_requests import LEAST_LONG, in_parts, is_long, room_of
from groupkeeper.broker.network.rated_log import RatedLog
from groupkeeper.native import mypyc_attr
from groupkeeper.protocol.codec import MalformedMessage, UnsupportedMessageVersion, decode_prefix
from groupkeeper.protocol.errors import KafkaError, UnknownServerError, UnsupportedVersion
from groupkeeper.protocol.framing import API_VERSIONS, api_name, decode_request_header, encode_response, response_class
from groupkeeper.protocol.primitives import LargeRequest, Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Final

    from groupkeeper.broker.api_table import Reply
    from groupkeeper.broker.base import BrokerBase
    from groupkeeper.broker.network.connection import Later
    from groupkeeper.broker.network.listeners import Listener
    from groupkeeper.broker.network.timed import Timed
    from groupkeeper.protocol.messages.request_header import RequestHeader
    from groupkeeper.protocol.primitives import RootMessage

    Respond = Callable[[Api, Call, Connection], Awaitable[RootMessage | None]]

_log = getLogger("groupkeeper.broker")

_RECEIVE_BUFFER = 1 << 18
_PRODUCE: Final = 0
_FETCH: Final = 1
_LONG_ANSWER = 3000
_THREADS = 4


@mypyc_attr(allow_interpreted_subclasses=True)
class Server:
    """Accepts connections and answers their requests for one node. `Serving` describes its attributes; `config`: the
    settings of the node.
    """

    def __init__(self, broker: BrokerBase, respond: Respond, node_id: int) -> None:
        """`respond` handles a request to this node."""
        self.connections: set[Connection] = set()
        self.crowd: set[Connection] = set()
        self.is_closing = False
        self.receive_buffer = memoryview(bytearray(_RECEIVE_BUFFER))
        self.config = config = broker.config.of(node_id)
        self.max_request_bytes = config.socket_request_max_bytes
        most_unfinished = config.queued_max_request_bytes
        self.unfinished = HeldBytes(
            most_unfinished if most_unfinished > 0 else 10 * config.socket_request_max_bytes,
            "its requests have not arrived as a whole, and all such requests exceed queued.max.request.bytes",
        )
        self.unsent = HeldBytes(
            config.groupkeeper_unsent_max_bytes,
            "it does not read its responses, and all of these exceed groupkeeper.unsent.max.bytes",
        )
        self.log = RatedLog()
        self._broker = broker
        self._node_id = node_id
        self._carry_out = respond
        self._bound: list[tuple[Listener, socket.socket]] = []
        self._idle_sweep: asyncio.TimerHandle | None = None
        self._acceptors: list[Acceptor] = []
        self._long_reads = LongReads(_THREADS)
        self._store_check: asyncio.TimerHandle | None = None

    def bind(self, listener: Listener) -> int:
        """Binds a listener's addresses and returns its port (the real port if port 0 was requested).

        No client can connect before `listen`. Raises OSError.
        """
        sockets = _bind(listener.host, listener.port)
        self._bound += [(listener, one) for one in sockets]
        port: int = sockets[0].getsockname()[1]
        return port

    async def listen(self) -> None:
        """Accepts connections on all bound addresses. Raises OSError, `InvalidSetting`."""
        config = self.config
        limits = ConnectionLimits(self._broker, self)
        for listener, _ in self._bound:
            limits.check(listener.name)
        timeout_s = config.groupkeeper_authentication_timeout_ms / 1000
        for listener, one in self._bound:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.listen(config.socket_listen_backlog_size)
            protocol = partial(Connection, self, listener)
            has_tls = listener.protocol.endswith("SSL")
            context = partial(self._broker.security.tls, listener.name) if has_tls else None
            self._acceptors.append(Acceptor(listener.name, one, protocol, limits, context, timeout_s, self.log))
        if any(listener.protocol.endswith("SSL") for listener, _ in self._bound):
            self._check_stores(config.groupkeeper_tls_check_interval_ms / 1000)
        if config.connections_max_idle_ms >= 0:
            self._sweep_idle(config.connections_max_idle_ms / 1000)

    def _check_stores(self, interval_s: float) -> None:
        self._store_check = asyncio.get_running_loop().call_later(interval_s, self._check_stores, interval_s)
        security = self._broker.security
        if security.has_new_stores():
            try:
                security.take_settings()
            except InvalidSetting as error:
                _log.warning("a key store has changed, but cannot be used: %s", error)
            else:
                _log.info("a key store has changed, new connections use it")

    async def close(self) -> None:
        """Stops listening and closes every connection."""
        self.is_closing = True
        if self._store_check is not None:
            self._store_check.cancel()
        if self._idle_sweep is not None:
            self._idle_sweep.cancel()
        for connection in tuple(self.connections):
            await connection.stop()
        for acceptor in self._acceptors:  # last: nothing can be written to a transport abandoned here
            await acceptor.close()
        self._acceptors.clear()
        for _, one in self._bound:
            one.close()
        self._bound.clear()
        self._long_reads.close()
        self.log.sum_up()

    def _sweep_idle(self, max_idle_s: float) -> None:
        loop = asyncio.get_running_loop()
        since = loop.time() - max_idle_s
        for connection in tuple(self.connections):
            connection.close_if_idle(since)
        self._idle_sweep = loop.call_later(max(max_idle_s / 10, 0.01), self._sweep_idle, max_idle_s)

    def close_idle(self) -> None:
        """Closes an idle connection to make room for another one."""
        first = min(self.connections, key=Connection.may_be_closed_at, default=None)
        now = asyncio.get_running_loop().time()
        if first is not None and first.may_be_closed_at() <= now:
            first.close_if_idle(now)

    @property
    def fetch_room(self) -> int:
        """The most bytes of records in the next response: fewer while peers have many unread ones."""
        return min(self.config.fetch_max_bytes, max(self.unsent.most - self.unsent.total, 0) // 2)

    def admit(self, connection: Connection, transport: asyncio.BaseTransport) -> None:
        """Sets the identity of the peer of a listener with security, or its authentication."""
        if connection.security_protocol == "SSL":
            self._take_certificate(connection, transport)
        else:
            from groupkeeper.broker.network.authentication import Authentication

            connection.admission = Authentication(connection, self._broker, self._serve_before_login, self.refuse)

    def _take_certificate(self, connection: Connection, transport: asyncio.BaseTransport) -> None:
        certificate = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        try:
            connection.identity = self._broker.security.identity_of(connection.listener, certificate)
        except ValueError as error:
            self._audit(connection, None, str(error))
            connection.close(str(error))
        else:
            self._audit(connection, connection.identity.principal)

    def _audit(self, connection: Connection, principal: str | None, reason: str | None = None) -> None:
        audit = self._broker.audit
        if audit is not None:
            audit.login(connection.listener, connection.client_host, "SSL", principal, reason)

    def answer(self, connection: Connection, frame: bytes) -> bytes | Later | None:
        """The response's frame; None without a response; or a function that returns the frame later. Raises
        `CloseConnection`.
        """
        admission = connection.admission
        if admission is not None and admission.wants(frame):
            return partial(admission.answer, frame)
        return self._serve(connection, frame)

    def refuse(self, connection: Connection, frame: bytes, error: KafkaError) -> bytes | None:
        """The error response to a request; None if the request can't be answered."""
        header, position = decode_request_header(frame)
        api = self._api_of(header)
        if api is None:
            return None
        message, _ = decode_prefix(api.request, frame, header.request_api_version, position)
        refusal = _refusal(api, self._call(connection, header, message), error)
        return encode_response(header.correlation_id, refusal, header.request_api_version)

    async def _serve_before_login(self, connection: Connection, frame: bytes) -> bytes | None:
        response = self._serve(connection, frame, is_counted=False)
        return await response() if callable(response) else response

    def _serve(self, connection: Connection, frame: bytes, *, is_counted: bool = True) -> bytes | Later | None:
        """As `answer`, for an authenticated client. `is_counted` False: quotas don't apply, as the client is not
        authenticated yet.
        """
        try:
            header, position = decode_request_header(frame)
        except (MalformedMessage, UnsupportedMessageVersion) as error:
            raise CloseConnection(str(error)) from None
        api = self._api_of(header)
        if api is None:
            return self._answer_unsupported(header)
        size = len(frame) if is_counted else None
        if len(frame) > LEAST_LONG and is_long(api.key, len(frame)):
            frame = LargeRequest(frame)
            frame.room = room_of(api.key, len(frame))
            if api.key != _PRODUCE:  # most bytes of Produce are records, not elements
                return partial(self._serve_long, api, header, frame, position, connection, size)
        call = self._call(connection, header, _read(api, header, frame, position))
        if api.name_all is not None and (named := api.name_all(self._broker, call, call.message)) is not None:
            call.message = named
            return partial(self._respond, api, call, connection, size, is_long=True)
        if api.reply is None or self._broker.answers_may_wait:
            return partial(self._respond, api, call, connection, size)
        return self._reply(api, api.reply, call, connection, size)

    async def _serve_long(
        self, api: Api, header: RequestHeader, frame: bytes, position: int, connection: Connection, size: int | None
    ) -> bytes | None:
        """Processes a long request in parts. `size` as in `_respond`."""
        message = await self._long_reads.run(_read, api, header, frame, position)
        return await self._respond(api, self._call(connection, header, message), connection, size, is_long=True)

    def _api_of(self, header: RequestHeader) -> Api | None:
        """The API of a request, with its module; None if the API is not served, or not in this version."""
        api = TABLE.get(header.request_api_key)
        version = header.request_api_version
        if api is None or version < api.lowest:
            return None
        if version > api.highest and version > api.highest_of(self._broker.config):
            return None
        if not api.is_loaded:
            api.load()
        return api

    def _call(self, connection: Connection, header: RequestHeader, message: RootMessage) -> Call:
        return Call(
            header.request_api_key,
            header.request_api_version,
            header.correlation_id,
            header.client_id,
            message,
            connection.client_host,
            connection.listener,
            connection.identity,
            connection.security_protocol,
            self._broker.now_ms(),
            self._node_id,
        )

    def _reply(self, api: Api, reply: Reply, call: Call, connection: Connection, size: int | None) -> bytes:
        """The response to a request that never waits. `size` as in `_respond`."""
        is_timed = size is not None and self._broker.quotas.is_used
        began = perf_counter() if is_timed else 0.0
        try:
            response = reply(self._broker, call, call.message)
            encoded = encode_response(call.correlation_id, response, call.api_version)
        except Exception as error:
            response, encoded = self._failure(api, call, error)
        if not is_timed or size is None:
            return encoded
        return self._throttled(call, connection, size, response, encoded, perf_counter() - began)

    async def _respond(
        self, api: Api, call: Call, connection: Connection, size: int | None, *, is_long: bool = False
    ) -> bytes | None:
        """`size` of the request, in bytes; None: quotas don't count it."""
        carry_out = self._in_parts if is_long and not self._broker.answers_may_wait else self._carry_out
        work = carry_out(api, call, connection)
        timed: Timed[RootMessage | None] | None = None
        if size is not None and self._broker.quotas.is_used:
            from groupkeeper.broker.network.timed import Timed

            work = timed = Timed(work)
        try:
            response = await work
            if response is None:
                encoded = b""
            elif is_long or (call.api_key > _FETCH and _is_long(response)):
                write = self._long_reads.run
                encoded = await write(encode_response, call.correlation_id, response, call.api_version)
            else:
                encoded = encode_response(call.correlation_id, response, call.api_version)
        except Exception as error:
            if is_long and isinstance(error, KafkaError):
                response, encoded = await self._long_reads.run(self._failure, api, call, error)
            else:
                response, encoded = self._failure(api, call, error)
        if timed is not None and size is not None:
            encoded = self._throttled(call, connection, size, response, encoded, timed.seconds)
        return encoded or None

    def _in_parts(self, api: Api, call: Call, connection: Connection) -> Awaitable[RootMessage | None]:
        return in_parts(call, lambda part: self._carry_out(api, part, connection))

    def _throttled(
        self,
        call: Call,
        connection: Connection,
        size: int,
        response: RootMessage | None,
        encoded: bytes,
        seconds: float,
    ) -> bytes:
        """Counts a request that took this many seconds, and sets how long its client must wait."""
        own_ms = getattr(response, "throttle_time_ms", 0)
        throttle_ms = max(self._broker.quotas.throttle_ms(call, size, len(encoded), seconds), own_ms)
        if throttle_ms:
            connection.mute(throttle_ms / 1000)
        if throttle_ms == own_ms or response is None or "throttle_time_ms" not in response.__slots__:
            return encoded
        response.throttle_time_ms = throttle_ms  # type: ignore[attr-defined]
        return encode_response(call.correlation_id, response, call.api_version)

    def _failure(self, api: Api, call: Call, error: Exception) -> tuple[RootMessage, bytes]:
        """The response to a request that raised an error, and its frame."""
        if isinstance(error, CloseConnection):
            raise error
        if not isinstance(error, KafkaError):
            name = api_name(api.key)
            values = name, call.api_version, call.client_host
            self.log.line(call.client_host, "%s version %d from %s failed", *values, level=ERROR, error=error)
            error = UnknownServerError()
        response = _refusal(api, call, error)
        return response, encode_response(call.correlation_id, response, call.api_version)

    def _answer_unsupported(self, header: RequestHeader) -> bytes:
        key, version = header.request_api_key, header.request_api_version
        if key != API_VERSIONS:
            raise CloseConnection(f"{api_name(key)} version {version} is not supported")
        # Any client can read version 0, whatever version it requested (KIP-511).
        from groupkeeper.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse

        api = TABLE[API_VERSIONS]
        response = ApiVersionsResponse(UnsupportedVersion.code, [ApiVersion(API_VERSIONS, api.lowest, api.highest)])
        return encode_response(header.correlation_id, response, 0)


def _read(api: Api, header: RequestHeader, frame: bytes, position: int) -> RootMessage:
    try:
        # Extra bytes may follow, as with Kafka: librdkafka sends three after a Metadata request for all topics.
        return decode_prefix(api.request, frame, header.request_api_version, position)[0]
    except MalformedMessage as error:
        raise CloseConnection(f"malformed {api_name(api.key)} request: {error}") from None


def _is_long(response: RootMessage) -> bool:
    left = _LONG_ANSWER
    structs: list[Message] = [response]
    while structs:
        struct = structs.pop()
        for field in type(struct).__slots__:
            value = getattr(struct, field)
            if type(value) is list and value:
                left -= len(value)
                if left < 0:
                    return True
                if isinstance(value[0], Message):
                    structs += value
    return False


def _refusal(api: Api, call: Call, error: KafkaError) -> RootMessage:
    if api.refuse is not None:
        return api.refuse(call, call.message, error)
    response = response_class(api.key)()
    if "error_code" not in response.__slots__:
        raise CloseConnection(f"{api_name(api.key)} version {call.api_version} failed: {error.name}")
    response.error_code = error.code  # type: ignore[attr-defined]
    if "error_message" in response.__slots__ and error.message != error.text:
        response.error_message = error.message  # type: ignore[attr-defined]
    return response


def _bind(host: str, port: int) -> list[socket.socket]:
    """Sockets for every address of a host, all with the same port."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    opened: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            if opened and port == 0:
                address = (address[0], opened[0].getsockname()[1], *address[2:])
            one = _open(family, kind, protocol)
            if one is None:
                continue
            opened.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                one.bind(address)
            except OSError:
                # The name has an IPv6 address, but no interface has: the other addresses suffice.
                if family != socket.AF_INET6 or len(found) == 1:
                    raise
                opened.remove(one)
                one.close()
                continue
            # Until this socket listens, another one that reuses addresses could listen on the port.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
            one.setblocking(False)
    except BaseException:
        for one in opened:
            one.close()
        raise
    return opened


def _open(family: int, kind: int, protocol: int) -> socket.socket | None:
    try:
        return socket.socket(family, kind, protocol)
    except OSError:
        if family == socket.AF_INET6:
            return None
        raise
