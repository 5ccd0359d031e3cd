"""One client connection: splits bytes into request frames, and answers one request at a time, as Apache Kafka does."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from logging import ERROR
from math import inf
from time import perf_counter
from typing import Final, Protocol, cast

from groupkeeper.broker.network.closing import CloseConnection
from groupkeeper.broker.network.held_bytes import HeldBytes
from groupkeeper.broker.network.listeners import Listener
from groupkeeper.broker.network.rated_log import RatedLog
from groupkeeper.native import mypyc_attr
from groupkeeper.security.identity import Identity

Later = Callable[[], Awaitable[bytes | None]]
"""Gives the response to a request that has to wait for something."""

_QUEUED_BYTES_LIMIT: Final = 1 << 17
_FRAME_OVERHEAD: Final = 64
"""Memory for a queued frame besides its bytes, so that the limit also holds for empty frames."""
_UNSENT_LIMIT: Final = 64
_UNSENT_BYTES_LIMIT: Final = 1 << 20
_TURN_S: Final = 0.006
"""How long requests of one connection are served in a row, before others get a turn. Connections with more requests
share this time, so that a peer with a single request waits about equally long, however busy the others are.
"""
_SIZE_LENGTH: Final = 4
_END_GRACE_S = 1.0
_KEPT_SILENT_S = 10.0
_KEPT_S = 60.0
_LINGER_S = 30.0
"""How long the peer of a closing connection may take to read its last responses."""


class Admission(Protocol):
    """The authentication that a connection must pass before its requests are served."""

    def wants(self, frame: bytes) -> bool:
        """Whether a request belongs to the admission. Raises `CloseConnection`."""

    async def answer(self, frame: bytes) -> bytes | None:
        """The response to a request of the admission. Raises `CloseConnection`."""

    def end(self) -> None:
        """The connection was lost."""


class Serving(Protocol):
    """The server of connections."""

    connections: set[Connection]
    """The open ones."""
    crowd: set[Connection]
    """Connections with more requests whose turn is over."""
    is_closing: bool
    """Whether the server is closing and new connections must be closed."""
    receive_buffer: memoryview
    """Every connection's bytes are received into it before they are copied."""
    max_request_bytes: int
    """Larger requests close their connection."""
    unfinished: HeldBytes
    """Bytes of requests that are incomplete, or wait for an earlier one of their connection."""
    unsent: HeldBytes
    """Bytes of responses that peers have not read yet."""
    log: RatedLog
    """For lines about peers."""

    def answer(self, connection: Connection, frame: bytes) -> bytes | Later | None:
        """The response's frame; None without a response; or a function that returns the frame later. Raises
        `CloseConnection`.
        """

    def admit(self, connection: Connection, transport: asyncio.BaseTransport) -> None:
        """Sets the identity of the peer of a listener with security, or its authentication."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Connection(asyncio.BufferedProtocol):
    """Cuts the stream into frames and serves them one by one.

    While a request is served (for example a parked JoinGroup), later requests of the same connection wait, and reading
    stops when there are many of them. A peer that doesn't read its responses isn't served further either, so memory is
    bounded in both directions.
    """

    def __init__(self, server: Serving, listener: Listener, on_lost: Callable[[], None]) -> None:
        """`on_lost` is called once, when the connection is gone."""
        self.listener = listener.name
        self.security_protocol = listener.protocol
        self.client_host = "/"
        self.identity = Identity()
        self._is_tls = listener.protocol.endswith("SSL")
        self.admission: Admission | None = None
        self.max_request_bytes = server.max_request_bytes
        self._server = server
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._frames: deque[bytes] = deque()
        self._queued_bytes = 0
        self._reading_paused = False
        self._left = b""
        self._parts: list[bytes] = []
        self._missing = 0
        self._arrived = 0
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._waker: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._at_end = False
        self._muted_until = 0.0
        self._turn_end = 0.0
        self._began_at = self._active_at = self._loop.time()
        self._later: Later | None = None
        self._is_serving = False
        self._is_closed = False
        self._end_timer: asyncio.TimerHandle | None = None
        self._abort_timer: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------------ what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not of asyncio's classes, so their type cannot be checked.
        self._transport = cast("asyncio.Transport", transport)
        if self._server.is_closing:
            # It was accepted just before the server closed: nothing else would close it.
            self._transport.abort()
            return
        peer = transport.get_extra_info("peername")
        self.client_host = f"/{peer[0]}" if peer else "/"
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.security_protocol != "PLAINTEXT":
            self._server.admit(self, transport)
            if self._is_closed:  # refused: ignore bytes that came with the end of the handshake
                return
        self._task = self._loop.create_task(self._serve())
        self._server.connections.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        # All connections share one buffer: no other code runs between filling and emptying it.
        return self._server.receive_buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_closed:
            return
        self._active_at = self._loop.time()
        chunk = bytes(self._server.receive_buffer[:nbytes])
        waker = self._waker
        try:
            if waker is None or waker.done():
                self._cut(chunk)
                return
            # While the task waits for requests, they are served here, up to the first request that must wait for
            # something.
            if self._is_frame(chunk):
                must_wait = self._serve_frame(chunk[_SIZE_LENGTH:])
            else:
                self._cut(chunk)
                self._begin_turn()
                must_wait = self._serve_ready()
            if must_wait:
                waker.set_result(None)
        except Exception as error:
            self._fail(error)

    def eof_received(self) -> bool:
        # Complete requests are still served (for example a Produce with acks=0); then the connection is closed. The
        # response of a waiting request (Fetch, JoinGroup) has no reader now, so the request is dropped.
        self._at_end = True
        self._wake()
        self._end_timer = self._loop.call_later(_END_GRACE_S, self._give_up)
        return not self._is_tls  # over TLS the transport closes anyway

    def _give_up(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost()
        self._let_go()
        if self._abort_timer is not None:
            self._abort_timer.cancel()
        if self.admission is not None:
            self.admission.end()
        if self._is_tls and self._at_end and self._task is not None and not self._task.done():
            return  # requests received before the end are still served
        self._server.connections.discard(self)
        if self._end_timer is not None:
            self._end_timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()
        if self._transport is not None:
            self._server.unsent.hold(self, self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None
        self._server.unsent.release(self)

    # ------------------------------------------------------------------ frames

    def _is_frame(self, chunk: bytes) -> bool:
        """Whether the bytes are exactly one frame, as from a client that waits for each response."""
        size = len(chunk) - _SIZE_LENGTH
        return not self._missing and not self._left and int.from_bytes(chunk[:4]) == size <= self.max_request_bytes

    def _cut(self, chunk: bytes) -> None:
        if self._missing:
            if len(chunk) < self._missing:
                self._parts.append(chunk)
                self._missing -= len(chunk)
                self._arrived += len(chunk)
                self._server.unfinished.hold(self, self._arrived)
                return
            self._parts.append(chunk[: self._missing])
            self._queue(b"".join(self._parts))
            chunk = chunk[self._missing :]
            self._parts = []
            self._missing = 0
            if self._arrived:
                self._arrived = 0
                self._server.unfinished.release(self)
        elif self._left:
            chunk = self._left + chunk
            self._left = b""
        position = 0
        while len(chunk) - position >= _SIZE_LENGTH:
            start = position + _SIZE_LENGTH
            size = int.from_bytes(chunk[position:start], "big", signed=True)
            if not 0 <= size <= self.max_request_bytes:
                is_early = self.max_request_bytes < self._server.max_request_bytes
                name = "sasl.server.max.receive.size" if is_early else "socket.request.max.bytes"
                raise CloseConnection(f"a request of {size} bytes ({name} is {self.max_request_bytes})")
            if len(chunk) - start < size:
                self._parts = [chunk[start:]]
                self._missing = size - (len(chunk) - start)
                return
            position = start + size
            self._queue(chunk[start:position])
        self._left = chunk[position:]

    def _queue(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._queued_bytes += len(frame) + _FRAME_OVERHEAD
        if self._queued_bytes > _QUEUED_BYTES_LIMIT and not self._reading_paused and self._transport is not None:
            self._reading_paused = True
            self._transport.pause_reading()
            self._server.unfinished.hold(self, self._queued_bytes)

    def _next_frame(self) -> bytes:
        frame = self._frames.popleft()
        self._queued_bytes -= len(frame) + _FRAME_OVERHEAD
        if self._reading_paused and self._queued_bytes <= _QUEUED_BYTES_LIMIT // 2 and self._transport is not None:
            self._reading_paused = False
            self._transport.resume_reading()
            self._server.unfinished.release(self)
        return frame

    # ------------------------------------------------------------------ serving

    def _serve_ready(self) -> bool:
        """Serves requests until there are none (returns False) or the task must wait for something (returns True)."""
        while self._frames and not self._is_closed:
            if self._serve_frame(self._next_frame()):
                return True
        return False

    def _serve_frame(self, frame: bytes) -> bool:
        """Serves a request; returns whether the task must wait for something."""
        response = self._server.answer(self, frame)
        if callable(response):
            self._later = response
            return True
        if response is not None:
            self._send(response)
        return bool(self._muted_until or self._writable is not None or (self._frames and self._is_turn_over()))

    def _begin_turn(self) -> None:
        self._server.crowd.discard(self)
        self._turn_end = perf_counter() + _TURN_S / (1 + len(self._server.crowd))

    def _is_turn_over(self) -> bool:
        if perf_counter() < self._turn_end:
            return False
        self._server.crowd.add(self)
        return True

    async def _serve(self) -> None:
        transport = self._transport
        assert transport is not None
        try:
            while True:
                if self._later is not None and not self._is_closed:
                    await self._answer_later(self._later)
                if self._muted_until:
                    await self._rest()
                if self._writable is not None:
                    await self._writable
                elif self._frames and self._is_turn_over():
                    await asyncio.sleep(0)
                    self._begin_turn()
                if self._serve_ready():
                    continue
                if self._at_end:
                    self._flush()
                    return
                self._waker = self._loop.create_future()
                await self._waker
                self._waker = None
        except Exception as error:
            self._fail(error)
        finally:
            # Whatever ends the serving, a connection that is not served must not stay open.
            self._server.crowd.discard(self)
            self._task = None  # breaks a reference cycle between a cancelled task and this frame
            self._hang_up()
            if self._is_tls and self._at_end:
                self._server.connections.discard(self)

    async def _answer_later(self, later: Later) -> None:
        self._later = None
        self._is_serving = True
        response = await later()
        self._is_serving = False
        self._active_at = self._loop.time()
        if response is not None:
            self._send(response)

    def _fail(self, error: Exception) -> None:
        if isinstance(error, CloseConnection):
            self._close_because(error)
        else:
            text = "serving %s failed, its connection is closed"
            self._server.log.line(self.client_host, text, self.client_host, level=ERROR, error=error)
            self._hang_up()

    def mute(self, seconds: float) -> None:
        """Delays the following requests by this time; the current request is answered at once."""
        self._muted_until = self._loop.time() + seconds

    async def _rest(self) -> None:
        self._flush()
        until, self._muted_until = self._muted_until, 0.0
        await asyncio.sleep(until - self._loop.time())

    def _wake(self) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    def _send(self, response: bytes) -> None:
        if not self._frames and not self._out:
            self._write(response)
            return
        self._out.append(response)
        self._out_bytes += len(response)
        if not self._frames or len(self._out) > _UNSENT_LIMIT or self._out_bytes > _UNSENT_BYTES_LIMIT:
            self._flush()
        elif len(self._out) == 1:
            # Responses to pipelined requests are sent together, at the latest when the serving task pauses.
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._write(b"".join(self._out))
        self._out.clear()
        self._out_bytes = 0

    def _write(self, data: bytes) -> None:
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _close_because(self, reason: CloseConnection) -> None:
        self._report(reason)
        if reason.response is not None:
            self._out.append(reason.response)
        self._flush()
        self._hang_up()

    def _hang_up(self) -> None:
        """Closes after the pending responses are written, or when the peer doesn't read them."""
        self._is_closed = True
        if self._transport is not None and self._abort_timer is None:
            self._transport.close()
            self._abort_timer = self._loop.call_later(_LINGER_S, self._transport.abort)

    def close(self, reason: str) -> None:
        """Closes the connection after the pending responses are written."""
        self._close_because(CloseConnection(reason))

    def abort(self, reason: str) -> None:
        """Closes the connection at once, and drops unsent responses."""
        self._report(reason)
        self._hang_up()
        self._let_go()
        self._parts, self._left = [], b""
        self._frames.clear()
        if self._transport is not None:
            self._transport.abort()

    def _report(self, reason: object) -> None:
        self._server.log.line(self.client_host, "closing the connection from %s: %s", self.client_host, reason)

    def _let_go(self) -> None:
        self._server.unfinished.release(self)
        self._server.unsent.release(self)

    def idle_since(self) -> float:
        """When the last bytes came, by the event loop's time; infinity while a request waits for its response."""
        return inf if self._is_serving or self._is_closed else self._active_at

    def may_be_closed_at(self) -> float:
        """The time from which an idle connection may be closed for new ones: later if it has ever sent a request."""
        return self.idle_since() + (_KEPT_SILENT_S if self._active_at == self._began_at else _KEPT_S)

    def close_if_idle(self, since: float) -> None:
        """Closes the connection if it was idle since then (the loop's time), and no request waits for a response."""
        if self.idle_since() <= since and self._transport is not None:
            if self._transport.get_write_buffer_size():  # the peer does not read its responses
                self._transport.abort()
            else:
                self._hang_up()

    async def stop(self) -> None:
        """Closes at once, and waits for the connection's tasks."""
        if self._transport is not None:
            self._transport.abort()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
