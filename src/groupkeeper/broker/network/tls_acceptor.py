"""Accepts the connections of one socket with TLS. asyncio's servers keep the certificate that they began with; here
each connection gets the newest.
"""

from __future__ import annotations

import asyncio
from logging import getLogger

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable

_log = getLogger("groupkeeper.broker")

_PAUSE_S = 1.0
"""After a failure to accept (too many open files, say)."""


class TlsAcceptor:
    """Of one listening socket."""

    def __init__(
        self,
        one: socket.socket,
        protocol: Callable[[], asyncio.BaseProtocol],
        context: Callable[[], ssl.SSLContext],
        handshake_timeout_s: float,
    ) -> None:
        """Accepts from now on. `context` is asked for every connection."""
        self._socket = one
        self._protocol = protocol
        self._context = context
        self._handshake_timeout_s = handshake_timeout_s
        self._loop = asyncio.get_running_loop()
        self._handshakes: set[asyncio.Task[None]] = set()
        self._accepting = self._loop.create_task(self._accept())

    async def _accept(self) -> None:
        while True:
            try:
                accepted, _ = await self._loop.sock_accept(self._socket)
            except OSError as error:
                _log.warning("cannot accept a connection: %s", error)
                await asyncio.sleep(_PAUSE_S)
                continue
            handshake = self._loop.create_task(self._shake_hands(accepted))
            self._handshakes.add(handshake)
            handshake.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._protocol, accepted, ssl=self._context(), ssl_handshake_timeout=self._handshake_timeout_s
            )
        except OSError as error:
            accepted.close()
            _log.debug("a TLS handshake failed: %s", error)

    async def close(self) -> None:
        """Accepts no more; handshakes that are under way end, too."""
        tasks = (self._accepting, *self._handshakes)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
