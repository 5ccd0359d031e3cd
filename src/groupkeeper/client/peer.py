"""A broker as a client sees it: its address, the versions it supports, and a few connections."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from groupkeeper.client.addresses import Address
from groupkeeper.client.connection import Connection
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import (
    AuthenticationFailed,
    CallTimedOut,
    ClientClosed,
    ClientError,
    ConnectionFailed,
    SaslMissing,
    UnexpectedResponse,
    UnsupportedVersion,
    copy_of,
)
from groupkeeper.client.opener import DIAGNOSIS_S, open_connection
from groupkeeper.client.security.transport import Security
from groupkeeper.client.settings import Settings
from groupkeeper.client.topology import Node
from groupkeeper.client.versions import ask_versions, unsupported, version_of
from groupkeeper.protocol.messages.api_versions_request import ApiVersionsRequest
from groupkeeper.protocol.primitives import RootMessage

A = TypeVar("A", bound=RootMessage)
Request = RootMessage | Callable[[int], RootMessage]
"""A request, or a function that makes it for a version."""

log = logging.getLogger("groupkeeper.client")
log.addHandler(logging.NullHandler())  # no output by default: errors have the same texts


class Peer:
    """One broker. Connections are opened when they are needed and shared by concurrent requests.

    `failures` counts the failed attempts since the last response. `node` is the broker's node in the cluster; None
    for a bootstrap server whose broker is not known yet. `is_advertised`: the address comes from the cluster, not
    from the user.
    """

    def __init__(
        self, address: Address, settings: Settings, security: Security, *, is_advertised: bool = False
    ) -> None:
        self.address = address
        self.is_advertised = is_advertised
        self.failures = 0
        self.node: Node | None = None
        self._has_answered = False
        self._settings = settings
        self._security = security
        self._connections: list[Connection] = []
        self._opening: dict[asyncio.Task[Connection], int] = {}  # how many calls wait for each
        self._versions: dict[int, tuple[int, int]] | None = None
        self._closed_because: ClientError | None = None

    @property
    def is_open(self) -> bool:
        """Whether a connection is open."""
        return any(connection.is_open for connection in self._connections)

    async def open(self, deadline: Deadline) -> None:
        """Open a connection if there is none. Raises as `ask` does."""
        await self._connection(deadline)

    def _explained(self, failure: ConnectionFailed) -> ConnectionFailed:
        if not self.is_advertised or self.node is None or self._has_answered:
            return failure
        return type(failure)(f"{failure} (broker {self.node.id} advertises this address: see advertised.listeners)")

    def unsupported(self, answer_type: type[RootMessage], least: int) -> UnsupportedVersion:
        """The error for what requests of this broker lack: they have it from the version `least` on."""
        return unsupported(answer_type, self._versions or {}, least)

    async def ask(self, answer_type: type[A], request: Request, deadline: Deadline) -> A:
        """Send a request in the highest version that both sides support, and wait for the response.

        The wait ends with request.timeout.ms or the deadline, whichever comes first. Raises ConnectionFailed,
        CallTimedOut, UnexpectedResponse, UnsupportedVersion, and errors of `request(version)`.
        """
        try:
            connection = await self._connection(deadline)
        except UnexpectedResponse:
            self.failures += 1
            raise
        except ConnectionFailed as error:
            self.failures += 1
            raise self._explained(error) from error.__cause__
        version = version_of(answer_type, connection.versions)
        message = request if isinstance(request, RootMessage) else request(version)
        timeout_s = self._settings.request_timeout_ms / 1000
        left_s = deadline.left_s()
        try:
            response = await connection.ask(message, version, answer_type, min(timeout_s, left_s))
        except CallTimedOut as error:
            self.failures += 1
            if timeout_s < left_s:
                # The broker doesn't reply on this connection: requests queued behind would time out too.
                connection.abort(ConnectionFailed(str(error)))
            raise
        except (ConnectionFailed, UnexpectedResponse) as error:
            self.failures += 1
            if isinstance(error, ConnectionFailed) and not self._has_answered and self.failures == 2:
                await self._complain_of_missing_sasl(error)
            # The broker may have another release after a restart.
            self._versions = None
            raise
        self.failures = 0
        self._has_answered = True
        return response

    async def close(self, reason: ClientError | None = None) -> None:
        """Drop all connections and wait until their sockets are gone; calls fail with `reason`, or ClientClosed."""
        self._closed_because = reason or ClientClosed(f"{self.address}: the client was closed")
        opening = list(self._opening)
        for task in opening:
            task.cancel()
        for connection in self._connections:
            connection.abort(reason)
        await asyncio.gather(*opening, return_exceptions=True)
        for connection in self._connections:
            await connection.wait_closed()

    async def _connection(self, deadline: Deadline) -> Connection:
        """An idle connection; if all are busy, a new one, or the least busy one at the limit of connections."""
        while True:
            if self._closed_because is not None:
                raise copy_of(self._closed_because)
            self._connections = [connection for connection in self._connections if connection.is_open]
            self._renew_sessions()
            best = min(self._connections, key=lambda connection: len(connection.pending), default=None)
            if best is not None and (not best.pending or self._is_full()):
                return best
            if best is not None or not self._opening:
                return await self._wait_for(self._start_opening(), deadline)
            # The first connection asks for the versions; other callers wait for it, then choose again.
            await self._wait_for(next(iter(self._opening)), deadline)

    def _renew_sessions(self) -> None:
        """Take connections whose session expires soon out of use, and reauthenticate them (KIP-368)."""
        if all(connection.renew_at_s is None for connection in self._connections):
            return
        now_s = asyncio.get_running_loop().time()
        due = [each for each in self._connections if each.renew_at_s is not None and each.renew_at_s <= now_s]
        for connection in due:
            self._connections.remove(connection)
            self._start_opening(connection)

    def _start_opening(self, authenticated: Connection | None = None) -> asyncio.Task[Connection]:
        opening = asyncio.create_task(self._open() if authenticated is None else self._authenticated(authenticated))
        self._opening[opening] = 0
        opening.add_done_callback(self._opened)
        return opening

    def _opened(self, opening: asyncio.Task[Connection]) -> None:
        self._opening.pop(opening, None)
        if not opening.cancelled():
            failure = opening.exception()  # retrieved here, as the caller may be gone
            if isinstance(failure, AuthenticationFailed):
                log.warning("%s", failure)

    async def _wait_for(self, opening: asyncio.Task[Connection], deadline: Deadline) -> Connection:
        self._opening[opening] += 1
        try:
            async with asyncio.timeout(deadline.left_s()):
                return await asyncio.shield(opening)
        except TimeoutError:
            await self._leave(opening)
            reason = "not connected yet: it may be out of reach, or want TLS"
            cause = ConnectionFailed(f"{self.address}: {reason}")
            raise deadline.timed_out(cause) from cause
        except ClientError as failure:
            raise copy_of(failure) from failure.__cause__
        except asyncio.CancelledError:
            if opening.cancelled() and self._closed_because is not None:
                raise copy_of(self._closed_because) from None
            await self._leave(opening)
            raise

    async def _leave(self, opening: asyncio.Task[Connection]) -> None:
        """A waiter leaves. The last one cancels the opening, so that a cancelled call leaves no task behind."""
        if opening in self._opening:
            self._opening[opening] -= 1
            if not self._opening[opening]:
                opening.cancel()
                await asyncio.wait({opening})

    def _is_full(self) -> bool:
        return len(self._connections) + len(self._opening) >= self._settings.connections_per_broker

    async def _authenticated(self, connection: Connection) -> Connection:
        """Authenticate, and take the connection into use. Also for reauthentication: the broker replies to earlier
        requests first, so there is no need to wait for their responses.
        """
        try:
            await self._security.authenticate(connection, self._settings.socket_connection_setup_timeout_ms / 1000)
        except BaseException as error:
            await _drop(connection, error)
            raise
        self._connections.append(connection)
        return connection

    async def _complain_of_missing_sasl(self, error: ConnectionFailed) -> None:
        """Raises SaslMissing if the listener requires SASL: it closes the connection on any request but a SASL
        handshake.
        """
        if self._security.is_sasl:
            return
        from groupkeeper.client.offer import offered_mechanisms

        mechanisms = await offered_mechanisms(self.address, self._settings, self._security)
        if mechanisms:
            protocol = "SASL_PLAINTEXT" if self._security.tls() is None else "SASL_SSL"
            raise SaslMissing(
                f"{self.address} requires SASL: set security.protocol={protocol}, sasl.jaas.config, and "
                f"sasl.mechanism to one of {', '.join(mechanisms)}"
            ) from error

    async def _why_hung_up(self) -> ClientError:
        found = await self._security.diagnose(self.address, self.address.host, DIAGNOSIS_S)
        hint = self._security.hang_up_hint
        return found or ConnectionFailed(f"{self.address}: closed the connection on the first request: {hint}")

    async def _open(self) -> Connection:
        timeout_s = self._settings.socket_connection_setup_timeout_ms / 1000
        for highest in (ApiVersionsRequest.MAX_VERSION, 0):
            connection = await open_connection(self.address, self._settings, self._security, timeout_s)
            try:
                if self._versions is None:
                    self._versions = await ask_versions(connection, highest, timeout_s)
                connection.versions = self._versions
            except ConnectionFailed as error:
                # Old brokers close the connection when they don't support the version of ApiVersions.
                await _drop(connection, error)
                if highest == 0:
                    raise await self._why_hung_up() from error
                continue
            except CallTimedOut as error:
                await _drop(connection, error)
                hint = self._security.hang_up_hint
                raise ConnectionFailed(f"{self.address}: it accepts connections but does not answer: {hint}") from None
            except BaseException as error:
                await _drop(connection, error)
                raise
            return await self._authenticated(connection)
        raise AssertionError("the loop returns or raises")


async def _drop(connection: Connection, error: BaseException) -> None:
    connection.abort(error if isinstance(error, Exception) else None)
    await connection.wait_closed()
