"""The network side of a node: its listeners on ports of its own, and their server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from groupkeeper.broker.api_table import Api
from groupkeeper.broker.base import BrokerBase
from groupkeeper.broker.call import Call
from groupkeeper.broker.network.connection import Connection
from groupkeeper.broker.network.listeners import Endpoint, Listener, advertised_of, host_and_port
from groupkeeper.broker.network.server import Server
from groupkeeper.broker.settings.config import Config
from groupkeeper.protocol.primitives import RootMessage


class Front:
    """A node's listeners. Binds the ports first, so that a port in use leaves nothing behind.

    Attributes:
        node_id: the node's id. rack: None for none. server: the server of its listeners.
    """

    def __init__(
        self,
        broker: BrokerBase,
        respond: Callable[[Api, Call, Connection], Awaitable[RootMessage | None]],
        node_id: int,
        rack: str | None,
        shift: int,
    ) -> None:
        """`shift` is added to configured ports, so that each node has its own."""
        self.node_id = node_id
        self.rack = rack
        self.server = Server(broker, respond, node_id)
        self._broker = broker
        self._respond = respond
        self._shift = shift
        self._bound: dict[str, Listener] = {}
        self._endpoints: dict[str, Endpoint] = {}

    @property
    def config(self) -> Config:
        """The settings of this node."""
        return self._broker.config.of(self.node_id)

    def bind(self, listeners: Sequence[Listener]) -> None:
        """Binds the ports. Raises OSError."""
        for listener in listeners:
            port = listener.port + self._shift if listener.port else 0
            self._bound[listener.name] = listener._replace(port=self._bind(listener._replace(port=port)))

    def _bind(self, listener: Listener) -> int:
        try:
            return self.server.bind(listener)
        except OSError as error:
            where = host_and_port(listener.host or "*", listener.port)
            raise OSError(error.errno, f"cannot listen on {where}: {error.strerror or error}") from None

    async def listen(self) -> None:
        """Lets clients connect. Raises OSError, `InvalidSetting`."""
        await self.server.listen()
        node = Endpoint(self.node_id, "", 0, self.rack)
        self._endpoints = advertised_of(self._broker.config, self._bound, node, self._shift)

    def endpoint(self, listener: str) -> Endpoint:
        """The advertised address of a listener."""
        return self._endpoints.get(listener) or next(iter(self._endpoints.values()))

    @property
    def address(self) -> str:
        """`host:port` of the first listener."""
        first = next(iter(self._endpoints.values()))
        return host_and_port(first.host, first.port)

    async def close(self) -> None:
        """Closes every connection, and the listeners."""
        await self.server.close()

    async def go_down(self) -> None:
        """Closes every connection, but keeps the ports, so that clients are refused there until `listen`."""
        await self.server.close()
        self.server = Server(self._broker, self._respond, self.node_id)
        for listener in self._bound.values():
            self._bind(listener)
