"""One connection to a broker: frames out, frames in, responses matched to requests by correlation id."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar, cast

from groupkeeper.client import errors
from groupkeeper.client.addresses import Address
from groupkeeper.java_numbers import INT_MAX
from groupkeeper.protocol.codec import MalformedMessage, UnsupportedField
from groupkeeper.protocol.framing import decode_response, encode_request
from groupkeeper.protocol.primitives import RootMessage

A = TypeVar("A", bound=RootMessage)

_BUFFER_BYTES = 128 * 1024

Explain = Callable[[Address, OSError], errors.ClientError | None]
"""Explains a failed connection by the security in use; None: security is not the cause."""


class Connection(asyncio.BufferedProtocol):
    """A connection, open or closed. Requests may be sent without waiting for the responses of earlier ones."""

    def __init__(self, address: Address, client_id: str, max_answer_bytes: int, explain: Explain) -> None:
        self.address = address
        self.renew_at_s: float | None = None  # when to reauthenticate (KIP-368), in the loop's time; None: never
        self.pending: dict[int, asyncio.Future[bytes]] = {}
        self.versions: dict[int, tuple[int, int]] = {}  # lowest and highest version by API key; set after ApiVersions
        self._client_id = client_id
        self._max_answer_bytes = max_answer_bytes
        self._explain = explain
        self._token: asyncio.Future[bytes] | None = None
        self._transport: asyncio.Transport | None = None
        self._failure: Exception | None = None
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._correlation_id = 0
        self._buffer = bytearray(_BUFFER_BYTES)
        self._chunks: list[bytes] = []
        self._outgoing: list[bytes] = []
        self._received_bytes = 0
        self._needed_bytes = 4

    @property
    def is_open(self) -> bool:
        return self._transport is not None and self._failure is None

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's class is no subclass

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        received = bytes(memoryview(self._buffer)[:nbytes])
        # Join the chunks of a large response once, when all have arrived: memory grows with received bytes, not with
        # the size field.
        if self._chunks:
            self._chunks.append(received)
            self._received_bytes += nbytes
            if self._received_bytes < self._needed_bytes:
                return
            received = b"".join(self._chunks)
            self._chunks = []
        self._split(received)

    def _split(self, received: bytes) -> None:
        end = len(received)
        pos = 0
        self._needed_bytes = 4
        while end - pos >= 4:
            size = int.from_bytes(received[pos : pos + 4], "big")
            least = 4 if self._token is None else 0  # a token may be empty, a response has a correlation id
            if not least <= size <= self._max_answer_bytes:
                self._fail(_bad_size(self.address, received[pos : pos + 8], size, self._max_answer_bytes))
                return
            if end - pos - 4 < size:
                self._needed_bytes = 4 + size
                break
            self._deliver(received[pos + 4 : pos + 4 + size])
            pos += 4 + size
        if pos < end and self._failure is None:
            self._chunks = [received[pos:] if pos else received]
            self._received_bytes = end - pos

    def connection_lost(self, exc: Exception | None) -> None:
        explained = self._explain(self.address, exc) if isinstance(exc, OSError) else None
        reason = "closed the connection" if exc is None else f"lost: {exc}"
        self._fail(explained or errors.ConnectionFailed(f"{self.address}: {reason}"))
        if not self._closed.done():
            self._closed.set_result(None)

    # Called by the owner.

    async def ask(self, request: RootMessage, version: int, answer_type: type[A], timeout_s: float) -> A:
        """Send a request and wait for its response.

        Raises ConnectionFailed, CallTimedOut, UnexpectedResponse, Unrepresentable. After a cancellation or a timeout
        the late response is dropped when it comes.
        """
        frame = await self.exchange(request, version, timeout_s)
        try:
            return decode_response(answer_type, frame, version)[1]
        except MalformedMessage as error:
            failure = errors.UnexpectedResponse(f"{self.address}: malformed reply: {error}")
            self._fail(failure)
            raise failure from error

    async def exchange(self, request: RootMessage, version: int, timeout_s: float) -> bytes:
        """As `ask`, but returns the undecoded frame: response header and body."""
        response = self._send(request, version)
        # Not asyncio.timeout, which costs as much as writing the request.
        expiry = asyncio.get_running_loop().call_later(timeout_s, self._expire, response, timeout_s)
        try:
            return await response
        finally:
            expiry.cancel()

    def _expire(self, response: asyncio.Future[bytes], timeout_s: float) -> None:
        if not response.done():
            response.set_exception(errors.CallTimedOut(f"{self.address}: no reply within {timeout_s * 1000:.0f} ms"))

    async def exchange_token(self, token: bytes, timeout_s: float) -> bytes:
        """Send a frame without header and wait for another: SASL before Kafka 1.0. No request may be in flight."""
        if self._failure is not None:
            raise errors.ConnectionFailed(f"{self.address}: the connection is closed") from self._failure
        assert self._transport is not None
        assert not self.pending
        self._token = asyncio.get_running_loop().create_future()
        self._transport.write(len(token).to_bytes(4, "big") + token)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._token
        except TimeoutError:
            raise errors.CallTimedOut(f"{self.address}: no reply within {timeout_s * 1000:.0f} ms") from None
        finally:
            self._token = None

    def abort(self, reason: Exception | None = None) -> None:
        """Drop the connection at once; requests that wait for responses fail with `reason`."""
        self._fail(reason or errors.ClientClosed(f"{self.address}: the client was closed"))

    async def wait_closed(self) -> None:
        """Wait until the socket is gone, after `abort`."""
        if self._transport is not None:
            await asyncio.shield(self._closed)

    def _send(self, request: RootMessage, version: int) -> asyncio.Future[bytes]:
        if self._failure is not None:
            raise errors.ConnectionFailed(f"{self.address}: the connection is closed") from self._failure
        assert self._transport is not None
        correlation_id = self._correlation_id
        try:
            frame = encode_request(correlation_id, self._client_id, request, version)
        except UnsupportedField as error:
            raise errors.Unrepresentable(f"the request cannot be represented: {error}") from error
        self._correlation_id = 0 if correlation_id == INT_MAX else correlation_id + 1
        response: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.pending[correlation_id] = response
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append(frame)
        return response

    def _flush(self) -> None:
        """Write the requests of one round of the event loop at once."""
        frames, self._outgoing = self._outgoing, []
        if self._transport is not None and self._failure is None:
            self._transport.write(frames[0] if len(frames) == 1 else b"".join(frames))

    def _deliver(self, frame: bytes) -> None:
        if self._token is not None:
            if not self._token.done():
                self._token.set_result(frame)
            return
        response = self.pending.pop(int.from_bytes(frame[:4], "big", signed=True), None)
        if response is None:
            self._fail(errors.UnexpectedResponse(f"{self.address}: a reply to a request that was not sent"))
        elif not response.done():
            response.set_result(frame)

    def _fail(self, failure: Exception) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        self._chunks = []
        if self._transport is not None:
            self._transport.abort()
        for response in (*self.pending.values(), self._token):
            if response is not None and not response.done():
                response.set_exception(errors.copy_of(failure))
        self.pending.clear()


def _bad_size(address: Address, start: bytes, size: int, limit: int) -> errors.UnexpectedResponse:
    if start[:2] in (b"\x15\x03", b"\x16\x03"):
        from groupkeeper.client.tls_failures import only_tls

        return only_tls(address)
    if start[:4] == b"HTTP":
        return errors.UnexpectedResponse(f"{address}: it is an HTTP server, not a Kafka broker")
    if size > limit:
        return errors.ResponseTooLarge(f"{address}: a reply of {size} bytes is over the limit of {limit}")
    return errors.UnexpectedResponse(f"{address}: it is not a Kafka broker: a reply of {size} bytes is too short")
