"""Accepts the connections of one listening socket, as many and as fast as the limits allow.

asyncio's servers accept connections without limits, and keep the certificate that they had at the start. Here a
connection waits for the limits before any work is done for it, and gets the newest certificate.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from logging import ERROR, INFO, getLogger

from groupkeeper.broker.network.connection_limits import ConnectionLimits, ConnectionRefused
from groupkeeper.broker.network.rated_log import RatedLog
from groupkeeper.broker.storage.open_files import OUT_OF_DESCRIPTORS

Context = Callable[[], ssl.SSLContext]

_log = getLogger("groupkeeper.broker")

_GOODBYE_S = 1.0
"""How long a closing TLS connection waits for the peer's close_notify. Java's client may read the broker's together
with a response, and ignore it: it then notices the end only after this time. Apache Kafka does not wait.
"""
_PAUSE_S = 1.0
"""Pause after a failure to accept, for example with too many open files."""


class Acceptor:
    """Accepts the connections of one listening socket."""

    def __init__(
        self,
        listener: str,
        one: socket.socket,
        protocol: Callable[[Callable[[], None]], asyncio.BaseProtocol],
        limits: ConnectionLimits,
        context: Context | None,
        handshake_timeout_s: float,
        log: RatedLog,
    ) -> None:
        """Accepts connections from now on. `protocol` gets a function to call when the connection is lost; `context` is
        called for every connection, None without TLS.
        """
        self._listener = listener
        self._socket = one
        self._protocol = protocol
        self._limits = limits
        self._context = context
        self._handshake_timeout_s = handshake_timeout_s if context is not None else None
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._begun: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._accepting = self._loop.create_task(self._accept())

    async def _accept(self) -> None:
        while not self._is_closing:
            try:
                accepted, address = await self._loop.sock_accept(self._socket)
            except OSError as error:
                if error.errno in OUT_OF_DESCRIPTORS and self._limits.files.close_oldest():
                    continue
                self._log.line("every address", "cannot accept a connection: %s", error.strerror or error)
                await asyncio.sleep(_PAUSE_S)
                continue
            try:
                await self._limits.wait_for_room(self._listener, accepted.fileno())
                self._limits.take(self._listener, address[0])
            except ConnectionRefused as refused:
                self._log.line(address[0], "a connection from %s is closed: %s", address[0], refused, level=INFO)
                next_step = self._refuse(accepted, refused.delay_s)
            except Exception as error:
                # Accepting must continue after any error of this connection or of the limits.
                text = "a connection from %s is closed, as it cannot be counted"
                self._log.line(address[0], text, address[0], level=ERROR, error=error)
                next_step = self._refuse(accepted, 0.0)
            except BaseException:
                accepted.close()
                raise
            else:
                next_step = self._begin(accepted, partial(self._limits.release, self._listener, address[0]))
            task = self._loop.create_task(next_step)
            self._begun.add(task)
            task.add_done_callback(self._begun.discard)

    async def _refuse(self, accepted: socket.socket, delay_s: float) -> None:
        with accepted:
            await asyncio.sleep(delay_s)

    async def _begin(self, accepted: socket.socket, release: Callable[[], None]) -> None:
        has_begun = False
        try:
            context = None if self._context is None else self._context()
            await self._loop.connect_accepted_socket(
                partial(self._protocol, release),
                accepted,
                ssl=context,
                ssl_handshake_timeout=self._handshake_timeout_s,
                ssl_shutdown_timeout=None if context is None else _GOODBYE_S,
            )
            has_begun = True
        except OSError as error:
            _log.debug("a connection was lost while it began: %s", error)
        finally:
            if not has_begun:
                accepted.close()
                release()

    async def close(self) -> None:
        """Stops accepting; running handshakes end, too."""
        self._is_closing = True
        with suppress(NotImplementedError):  # asyncio's event loop on Windows
            self._loop.remove_reader(self._socket)
        await asyncio.sleep(0)  # an accepted connection without a protocol would never be closed
        self._accepting.cancel()
        await asyncio.wait([self._accepting])  # all accepted connections have begun by then, so they close
        for task in self._begun:
            task.cancel()
        if self._begun:
            await asyncio.wait(self._begun)
