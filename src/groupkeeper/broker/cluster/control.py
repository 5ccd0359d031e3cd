"""Control of a cluster's nodes over HTTP, on 127.0.0.1, for tests in other languages (docs/testing.md)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from http import HTTPStatus
from urllib.parse import unquote

from groupkeeper.broker.cluster.outages import Outages
from groupkeeper.protocol.errors import KafkaError

_HOST = "127.0.0.1"
_PATIENCE_S = 30.0
_LONGEST_HEAD = 1 << 14


_CHANGES_OF_NODES = {
    "stop": Outages.stop_node,
    "kill": Outages.kill_node,
    "start": Outages.start_node,
    "pause": Outages.pause_node,
    "cut-off": Outages.cut_off_node,
    "hide": Outages.hide_node,
    "resume": Outages.resume_node,
}


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"nodes and partitions are numbers, not {text!r}") from None


class ControlEndpoint:
    """Answers one request per connection, after the change has taken effect.

    Attributes:
        port: the listening port.
    """

    def __init__(self, cluster: Outages) -> None:
        self._cluster = cluster
        self._server: asyncio.Server | None = None

    async def open(self, port: int) -> None:
        """Starts to listen; port 0: any free port. Raises OSError."""
        try:
            self._server = await asyncio.start_server(self._serve, _HOST, port, limit=_LONGEST_HEAD)
        except OSError as error:
            why = f"cannot listen on {_HOST}:{port} for control: {error.strerror or error}"
            raise OSError(error.errno, why) from None

    async def close(self) -> None:
        """Stops listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                status, text = await self._answer(await reader.readuntil(b"\r\n\r\n"))
                body = (text + "\n").encode()
                head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
                writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # not a client of this endpoint, or gone
        finally:
            writer.close()

    async def _answer(self, head: bytes) -> tuple[HTTPStatus, str]:
        request, *headers = head.decode("latin-1").split("\r\n")
        try:
            if any(line.lower().startswith("origin:") for line in headers):
                raise _Refused(HTTPStatus.FORBIDDEN, "pages of a browser may not control the cluster")
            method, target, _ = request.split(" ")
            path = [unquote(part) for part in target.strip("/").split("/")]
            if method == "POST":
                await asyncio.shield(self._change(path))  # complete the change even if the client is gone
            elif (method, path) != ("GET", ["nodes"]):
                raise _Refused(HTTPStatus.NOT_FOUND, f"there is no {method} {target}")
        except _Refused as refused:
            return refused.status, json.dumps({"error": str(refused)})
        except (ValueError, KafkaError) as error:
            return HTTPStatus.BAD_REQUEST, json.dumps({"error": str(error)})
        except OSError as error:  # a port cannot be bound
            return HTTPStatus.CONFLICT, json.dumps({"error": error.strerror or str(error)})
        return HTTPStatus.OK, json.dumps(self._nodes())

    def _change(self, path: list[str]) -> Awaitable[None]:
        cluster = self._cluster
        match path:
            case ["nodes", node, what] if what in _CHANGES_OF_NODES:
                return _CHANGES_OF_NODES[what](cluster, _number(node))
            case ["nodes", node, "slow", delay_ms]:
                return cluster.slow_node(_number(node), _number(delay_ms))
            case ["topics", topic, partition, "leader", node]:
                return cluster.move_leader(topic, _number(partition), _number(node))
            case ["topics", topic, partition, "isr", nodes]:
                return cluster.set_in_sync(topic, _number(partition), [_number(node) for node in nodes.split(",")])
            case ["groups", group_id, "coordinator", node]:
                return cluster.move_coordinator(group_id, _number(node))
            case ["transactions", transactional_id, "coordinator", node]:
                return cluster.move_transaction_coordinator(transactional_id, _number(node))
        raise _Refused(HTTPStatus.NOT_FOUND, f"there is no POST /{'/'.join(path)}")

    def _nodes(self) -> list[dict[str, object]]:
        return [
            {"id": node, "address": front.address, "rack": front.rack, "state": self._cluster.state_of(node)}
            for node, front in self._cluster.fronts.items()
        ]
