"""Nodes that are stopped and leaders that are moved over HTTP."""

import asyncio
import json
import socket
import urllib.request
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.error import HTTPError

import pytest
from tests.broker.conftest import Wire

from groupkeeper.broker import Broker


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def ask(port: int, path: str, *, method: str = "POST", **headers: str) -> tuple[int, Any]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)["error"]


async def test_nodes_stop_and_leaders_move_over_http(start: Callable[..., Awaitable[Broker]]) -> None:
    port = free_port()
    broker = await start(brokers=3, racks=["a", "b", "c"], properties={"groupkeeper.control.port": port})
    broker.topics.create("t", 1, None, 3)
    placement = broker.topics.partition("t", 0).placement  # type: ignore[union-attr]

    async def control(path: str, **given: str) -> tuple[int, Any]:
        return await asyncio.to_thread(ask, port, path, **given)

    status, nodes = await control("/nodes", method="GET")
    assert status == 200
    found = [(one["id"], one["rack"], one["state"]) for one in nodes]
    assert found == [(1, "a", "running"), (2, "b", "running"), (3, "c", "running")]
    assert ",".join(one["address"] for one in nodes) == broker.bootstrap_servers
    assert (await control("/topics/t/0/leader/2"))[0] == 200
    assert (await control("/topics/t/0/isr/1,2"))[0] == 200
    assert (placement.leader, list(placement.isr)) == (2, [1, 2])
    status, nodes = await control("/nodes/2/kill")
    assert [one["state"] for one in nodes] == ["running", "down", "running"]
    assert placement.leader == 1
    with pytest.raises(ConnectionError):
        await Wire.open(nodes[1]["address"])
    host, own = nodes[1]["address"].rsplit(":", 1)
    with pytest.raises(OSError, match="in use"):
        socket.create_server((host, int(own)))  # reuses addresses
    assert (await control("/nodes/2/start"))[0] == 200
    assert await control("/nodes/2/start") == (400, "node 2 runs already")
    assert await control("/nodes/x/start") == (400, "nodes and partitions are numbers, not 'x'")
    assert await control("/topics/u/0/leader/1") == (400, "there is no partition u-0")
    for way, state in [("pause", "paused"), ("cut-off", "cut off"), ("hide", "hidden"), ("slow/5", "slow")]:
        status, nodes = await control(f"/nodes/2/{way}")
        assert (status, nodes[1]["state"]) == (200, state)
        assert await control("/nodes/2/pause") == (400, f"node 2 is {state} already")
        assert (await control("/nodes/2/resume"))[1][1]["state"] == "running"
    assert await control("/nodes/2/resume") == (400, "node 2 is neither paused, cut off, hidden nor slow")
    assert await control("/nodes/2/push") == (404, "there is no POST /nodes/2/push")
    assert (await control("/nodes/3/stop", Origin="http://elsewhere"))[0] == 403
    assert broker.topics.placements.running == {1, 2, 3}


async def test_a_node_whose_port_was_taken_says_so_over_http(start: Callable[..., Awaitable[Broker]]) -> None:
    port = free_port()
    broker = await start(brokers=3, properties={"groupkeeper.control.port": port})
    with socket.socket() as other:
        front = broker.fronts[2]
        await front.go_down()
        address = front.address
        await front.close()
        other.bind(("127.0.0.1", int(address.rsplit(":", 1)[1])))
        status, message = await asyncio.to_thread(ask, port, "/nodes/2/kill")
    assert (status, message) == (409, f"cannot listen on {address}: Address already in use")
