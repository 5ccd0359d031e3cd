"""Changes of placements that cannot be written: what has changed then, and what is tried again."""

import asyncio
from collections.abc import Mapping

import pytest
from tests.broker.conftest import Start
from tests.broker.nodes import Nodes, code_of, produce
from tests.broker.test_in_sync import placed

from groupkeeper.broker.cluster import outages
from groupkeeper.broker.placement.placement import Placement
from groupkeeper.broker.placement.placements import Key
from groupkeeper.protocol.errors import KafkaStorageError


async def test_a_change_that_cannot_be_written_has_no_effect(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = []
    for topic in ("t", "u"):
        await nodes.create(topic, [1, 2])
        logs.append(nodes.broker.topics.get(topic).partitions[0])  # type: ignore[union-attr]
    lagging, shrunk = logs

    def fail(changed: object) -> None:
        raise KafkaStorageError

    monkeypatch.setattr(nodes.broker, "_may_follow", lambda node, leader: False)
    monkeypatch.setattr(nodes.broker.topics.placements, "change", fail)
    with pytest.raises(KafkaStorageError):
        nodes.broker._apply({lagging: lagging.placement, shrunk: shrunk.placement.with_isr([1])})
    assert [log.placement.held_high_watermark for log in logs] == [None, None]
    assert [list(log.placement.isr) for log in logs] == [[1, 2], [1, 2]]


class Unwritable:
    """Changes of placements cannot be written, except for the first ones."""

    def __init__(self, nodes: Nodes, monkeypatch: pytest.MonkeyPatch, written: int = 0) -> None:
        self.left = written
        self._write = nodes.broker.topics.placements.change
        self._monkeypatch, self._placements = monkeypatch, nodes.broker.topics.placements
        monkeypatch.setattr(self._placements, "change", self._change)

    def _change(self, changed: Mapping[Key, Placement]) -> None:
        if not self.left:
            raise KafkaStorageError
        self.left -= 1
        self._write(changed)

    def end(self) -> None:
        self._monkeypatch.setattr(self._placements, "change", self._write)


async def test_replicas_lack_what_they_lacked_when_their_return_cannot_be_written(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in ("t", "u"):
        await nodes.create(topic, [1, 3])
    await nodes.broker.pause_node(3)
    await nodes.broker.set_in_sync("u", 0, [1])
    assert code_of(await produce(await nodes(1), "t", b"a", acks=1)) == 0
    Unwritable(nodes, monkeypatch)
    with pytest.raises(KafkaStorageError):
        await nodes.broker.resume_node(3)
    at = nodes.broker.topics.get("t").partitions[0].placement  # type: ignore[union-attr]
    assert (dict(at.ends), at.held_high_watermark) == ({3: 0}, 0)


@pytest.mark.parametrize("way", ["stop", "kill", "pause", "cut_off"])
async def test_a_node_whose_return_cannot_be_written_returns_with_the_next_try(
    start: Start, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    nodes = Nodes(await start(brokers=3, properties={"broker.session.timeout.ms": 50}))
    await nodes.create("t", [3, 1])
    await nodes.create("u", [3])
    await getattr(nodes.broker, f"{way}_node")(3)
    async with asyncio.timeout(20):
        while (await placed(nodes))[0] != 1:
            pass
    state = nodes.broker.state_of(3)
    come_back = nodes.broker.start_node if way in ("stop", "kill") else nodes.broker.resume_node
    unwritable = Unwritable(nodes, monkeypatch)
    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            await come_back(3)
        assert (nodes.broker.state_of(3), nodes.broker.topics.placements.running) == (state, {1, 2})
        assert [(await placed(nodes, topic))[0] for topic in ("t", "u")] == [1, -1]
        if state == "down":
            with pytest.raises(ConnectionError):
                await nodes.connect(3)
    unwritable.end()
    await come_back(3)
    assert [await placed(nodes, topic) for topic in ("t", "u")] == [(1, 1, [1, 3], [], []), (3, 2, [3], [], [])]
    assert (await nodes.partition("u")).leader_id == 3
    assert code_of(await produce(await nodes(3), "u", b"a")) == 0


async def test_an_outage_goes_on_when_a_stop_cannot_be_written(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    await nodes.create("t", [1, 3])
    await nodes.broker.pause_node(3)
    unwritable = Unwritable(nodes, monkeypatch)
    with pytest.raises(KafkaStorageError):
        await nodes.broker.stop_node(3)
    assert nodes.broker.state_of(3) == "paused"
    unwritable.end()
    await nodes.broker.stop_node(3)
    assert (await placed(nodes))[2] == [1]


async def test_a_slow_node_has_not_caught_up_when_that_cannot_be_written(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await nodes.create("t", [1, 3])
    await nodes.broker.slow_node(3, 60_000)
    await nodes.broker.set_in_sync("t", 0, [1])
    Unwritable(nodes, monkeypatch)
    outage = nodes.broker._outages[3]
    since_s = outage.since_s
    with pytest.raises(KafkaStorageError):
        nodes.broker._catch_up(3, outage)
    assert (outage.lags, outage.since_s) == (True, since_s)


async def test_a_reassignment_is_written_once_with_its_end(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    await nodes.create("t", [1])
    Unwritable(nodes, monkeypatch, written=1)
    await nodes.broker.reassign({nodes.broker.topics.get("t").partitions[0]: [2]})  # type: ignore[union-attr]
    assert await placed(nodes) == (2, 1, [2], [], [])


async def test_replicas_that_follow_a_new_leader_are_written_with_it(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await nodes.create("t", [1, 2, 3])
    for node in (1, 2, 3):
        await nodes.broker.kill_node(node)
    await nodes.broker.start_node(1)
    assert (await placed(nodes))[0] == -1
    Unwritable(nodes, monkeypatch, written=1)
    await nodes.broker.start_node(3)
    assert await placed(nodes) == (3, 4, [1, 3], [], [])


async def test_a_silent_node_that_could_not_leave_leaves_with_the_next_try(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outages, "RETRY_S", 0.01)
    nodes = Nodes(await start(brokers=3, properties={"broker.session.timeout.ms": 50}))
    await nodes.create("t", [2, 3])
    placements = nodes.broker.topics.placements
    write = placements.change
    failed: list[Mapping[Key, Placement]] = []

    def change(changed: Mapping[Key, Placement]) -> None:
        if not failed:
            failed.append(changed)
            raise KafkaStorageError
        write(changed)

    monkeypatch.setattr(placements, "change", change)
    await nodes.broker.pause_node(2)
    async with asyncio.timeout(20):
        while (await placed(nodes))[0] != 3:
            pass
    assert failed
    assert placements.running == {1, 3}
