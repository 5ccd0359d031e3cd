"""Most open connections, and how fast they may come: of the broker, of a listener, of an address."""

import asyncio
import time
from typing import Any

import pytest
from tests.broker.conftest import Connect, Start, Wire
from tests.broker.test_cluster_apis import part
from tests.patience import becomes

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker import Broker
from groupkeeper.broker.network.connection_limits import ConnectionLimits
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.list_groups_request import ListGroupsRequest


async def is_served(wire: Wire, seconds: float = 20) -> bool:
    try:
        answer: Any = await asyncio.wait_for(wire.call(ListGroupsRequest(), 4), seconds)
    except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
        return False
    return bool(answer.error_code == 0)


@pytest.mark.parametrize("name", ["max.connections", "listener.name.plaintext.max.connections"])
async def test_more_wait_for_room(start: Start, connect: Connect, name: str) -> None:
    broker = await start(properties={name: "2"})
    first, second, third = [await connect(broker) for _ in range(3)]
    assert await is_served(first)
    assert await is_served(second)
    third.send(ListGroupsRequest(), 4)
    await asyncio.sleep(0.2)
    assert len(broker.server.connections) == 2
    first.writer.close()
    await asyncio.wait_for(third.reader.readexactly(4), 20)


async def test_the_limit_is_raised(start: Start, connect: Connect) -> None:
    broker = await start(properties={"max.connections": "1"})
    first, second = await connect(broker), await connect(broker)
    assert await is_served(first)
    second.send(ListGroupsRequest(), 4)
    assert await first.alter(4, "", "max.connections", "5") == (0, None)
    await asyncio.wait_for(second.reader.readexactly(4), 20)


async def test_more_from_an_address_are_closed(start: Start, connect: Connect) -> None:
    broker = await start(properties={"max.connections.per.ip": "2"})
    wires = [await connect(broker) for _ in range(3)]
    assert [await is_served(wire) for wire in wires] == [True, True, False]
    wires[0].writer.close()
    await becomes(lambda: len(broker.server.connections) == 1)
    assert await is_served(await connect(broker))
    changed = await wires[1].alter(4, "", "max.connections.per.ip.overrides", "10.0.0.1:1,127.0.0.1:3")
    assert changed == (0, None)
    assert await is_served(await connect(broker))
    assert not await is_served(await connect(broker))


async def test_new_connections_wait(start: Start, connect: Connect) -> None:
    broker = await start(properties={"max.connection.creation.rate": "2", "quota.window.num": "2"})
    began = time.monotonic()
    for _ in range(6):
        assert await is_served(await connect(broker))
    assert time.monotonic() - began >= 0.8


async def test_an_address_that_opens_too_many_is_closed_after_a_while(start: Start, connect: Connect) -> None:
    broker = await start(properties={"quota.window.num": "2", "quota.window.size.seconds": "2"})
    wire = await connect(broker)
    names = [part(49, "EntityData", entity_type="ip", entity_name="127.0.0.1")]
    entry = part(49, "EntryData", entity=names, ops=[part(49, "OpData", key="connection_creation_rate", value=1)])
    assert not (await wire.call(m.AlterClientQuotasRequest([entry]), 1)).entries[0].error_code
    began = time.monotonic()
    *served, refused = [await connect(broker) for _ in range(3)]
    assert [await is_served(one) for one in served] == [True, True]
    assert await asyncio.wait_for(refused.reader.read(1), 20) == b""
    assert time.monotonic() - began >= 0.9


@pytest.mark.parametrize("text", ["127.0.0.1", "127.0.0.1:x", ":5"])
async def test_overrides_that_are_none(text: str) -> None:
    properties = {"listeners": "PLAINTEXT://127.0.0.1:0", "max.connections.per.ip.overrides": text}
    with pytest.raises(InvalidSetting, match=r"max\.connections\.per\.ip\.overrides: "):
        await Broker(properties=properties).start()


async def test_a_connection_that_cannot_be_counted_does_not_keep_others_out(
    start: Start, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await start()
    with monkeypatch.context() as broken:
        broken.setattr(ConnectionLimits, "take", lambda *_: 1 // 0)
        assert not await is_served(await connect(broker))
    assert await is_served(await connect(broker))


async def test_the_limit_of_a_listener_that_is_none() -> None:
    with pytest.raises(InvalidSetting, match=r"listener\.name\.plaintext\.max\.connections"):
        await Broker(port=0, properties={"listener.name.plaintext.max.connections": "abc"}).start()


async def test_no_new_connections_at_all_is_a_limit_that_waits(start: Start, connect: Connect) -> None:
    broker = await start(properties={"max.connection.creation.rate": "0", "quota.window.num": "2"})
    assert await is_served(await connect(broker))  # after the longest wait, as in Kafka
