"""Connections that send whole requests and look for answers without waiting longer than told."""

import select
import socket
from typing import Any

from groupkeeper.protocol.framing import decode_response, encode_request, response_class
from groupkeeper.protocol.primitives import RootMessage

CLIENT_ID = "client"


class Connection:
    """One request at a time, as brokers serve them."""

    def __init__(self, bootstrap_servers: str, from_host: str = "127.0.0.1") -> None:
        host, _, port = bootstrap_servers.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30, source_address=(from_host, 0))
        self._received = b""
        self._asked: tuple[RootMessage, int] | None = None

    def send(self, request: RootMessage, version: int) -> None:
        assert self._asked is None
        self._asked = (request, version)
        self._socket.sendall(encode_request(1, CLIENT_ID, request, version))

    def receive(self, seconds: float) -> RootMessage | None:
        """The answer, or None when it does not begin to come within that time. Raises EOFError at the stream's end."""
        assert self._asked is not None
        if not select.select([self._socket], [], [], seconds)[0]:
            return None
        size = int.from_bytes(self._read(4), "big")
        frame = self._read(size)
        request, version = self._asked
        self._asked = None
        return decode_response(response_class(request.API_KEY), frame, version)[1]

    def _read(self, count: int) -> bytes:
        while len(self._received) < count:
            chunk = self._socket.recv(65536)
            if not chunk:
                raise EOFError("the broker closed the connection")
            self._received += chunk
        taken, self._received = self._received[:count], self._received[count:]
        return taken

    def close(self) -> None:
        self._socket.close()


class Pool:
    """Connections to one broker; a parked call keeps its own."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._idle: list[Connection] = []
        self._all: list[Connection] = []

    def take(self) -> Connection:
        if self._idle:
            return self._idle.pop()
        connection = Connection(self.bootstrap_servers)
        self._all.append(connection)
        return connection

    def give_back(self, connection: Connection) -> None:
        self._idle.append(connection)

    def ask(self, request: RootMessage, version: int, seconds: float = 30) -> Any:
        """The answer, which it waits for."""
        connection = self.take()
        connection.send(request, version)
        answer = connection.receive(seconds)
        assert answer is not None, f"no answer to {request}"
        self.give_back(connection)
        return answer

    def close(self) -> None:
        for connection in self._all:
            connection.close()
