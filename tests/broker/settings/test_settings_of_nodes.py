"""Settings of one node of several: given at the start, or changed by clients."""

from pathlib import Path

import pytest
from tests.broker.conftest import Start, Wire
from tests.broker.held import log_of
from tests.broker.nodes import Nodes

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker import Broker
from groupkeeper.protocol.errors import InvalidRequest

BROKER, TOPIC, GROUP = 4, 2, 32
RETENTION = "log.retention.ms"


async def described(wire: Wire, kind: int, resource: str, setting: str) -> tuple[str | None, int]:
    """Its value and source."""
    (found,) = (await wire.describe(kind, resource, setting)).configs
    return found.value, found.config_source


async def test_a_setting_of_one_node_holds_for_what_it_leads(start: Start) -> None:
    broker = await start(brokers=3, properties={RETENTION: 7, f"2:{RETENTION}": 9, "2:fetch.max.bytes": 2000})
    nodes = Nodes(broker)
    await nodes.create("t", [1, 2])
    log = log_of(broker, "t")
    for node, text, source in ((1, "7", 4), (2, "9", 4), (3, "7", 4)):
        wire = await nodes(node)
        assert await described(wire, BROKER, str(node), RETENTION) == (text, source)
        assert await described(wire, TOPIC, "t", "retention.ms") == (text, source)
    assert broker.fronts[2].server.fetch_room == 2000 < broker.fronts[1].server.fetch_room
    assert log.config.retention_ms == 7
    await broker.move_leader("t", 0, 2)
    assert log.config.retention_ms == 9
    await nodes.create("u", [2], retention_ms="5")
    assert log_of(broker, "u").config.retention_ms == 5


async def test_a_change_of_one_node_changes_no_other(start: Start, tmp_path: Path) -> None:
    broker = await start(directory=tmp_path, brokers=3)
    for name in ("group.consumer.assignment.interval.ms", RETENTION):
        assert await (await Nodes(broker)(2)).alter(BROKER, "2", name, "900") == (0, None)
    assert (await (await Nodes(broker)(3)).alter(BROKER, "3", RETENTION, "x"))[0] == InvalidRequest.code
    await broker.stop()
    broker = await start(directory=tmp_path, brokers=3)
    nodes = Nodes(broker)
    await nodes.create("__consumer_offsets", [1], [2])
    await nodes.create("t", [1], [2])
    first, second = broker.groups.shards
    assert first.coordinator.settings_of("g").group_consumer_assignment_interval_ms == 1000
    assert second.coordinator.settings_of("g").group_consumer_assignment_interval_ms == 900
    assert [log.config.retention_ms for log in broker.topics.logs() if log.topic == "t"] == [604800000, 900]
    assert await described(await nodes(2), BROKER, "2", RETENTION) == ("900", 2)
    assert (await described(await nodes(1), BROKER, "1", RETENTION))[1] == 5
    assert await (await nodes(2)).alter(BROKER, "", RETENTION, "8") == (0, None)
    assert [log.config.retention_ms for log in broker.topics.logs() if log.topic == "t"] == [8, 900]


async def test_groups_with_settings_of_their_own_have_those_of_the_node_too(start: Start) -> None:
    interval, lock = "group.consumer.assignment.interval.ms", "group.share.record.lock.duration.ms"
    broker = await start(brokers=2, properties={f"2:{interval}": 900, f"2:{lock}": 20_000})
    nodes = Nodes(broker)
    await nodes.create("__consumer_offsets", [1], [2])
    broker.group_configs.configure("g", {"consumer.heartbeat.interval.ms": "6000"})
    first, second = [shard.coordinator for shard in broker.groups.shards]
    own, other = "consumer.assignment.interval.ms", "share.record.lock.duration.ms"

    async def told(node: int, name: str) -> str | None:
        return (await described(await nodes(node), GROUP, "g", name))[0]

    assert [each.settings_of("g").group_consumer_assignment_interval_ms for each in (first, second)] == [1000, 900]
    assert [await told(node, own) for node in (1, 2)] == ["1000", "900"]
    assert await (await nodes(2)).alter(BROKER, "2", interval, "800") == (0, None)
    assert [each.settings_of("g").group_consumer_assignment_interval_ms for each in (first, second)] == [1000, 800]
    assert [await told(node, own) for node in (1, 2)] == ["1000", "800"]
    assert [await told(node, other) for node in (1, 2)] == ["30000", "20000"]
    broker.group_configs.configure("g", {other: "25000"})
    assert [await told(node, other) for node in (1, 2)] == ["25000", "25000"]


@pytest.mark.parametrize(
    ("name", "brokers", "why"),
    [
        (f"4:{RETENTION}", 3, "there is no node 4: the nodes are 1, 2, 3"),
        (f"1:{RETENTION}", 1, "there is no node 1: this broker is the only one"),
        ("2:log.dirs", 3, "all nodes have it in common: give log.dirs"),
        ("2:auto.create.topics.enable", 3, "all nodes have it in common: give auto.create.topics.enable"),
        ("2:allow.everyone.if.no.acl.found", 3, "all nodes have it in common"),
        ("2:log.segment.bytes", 3, "Invalid value"),
    ],
)
def test_what_no_node_takes(name: str, brokers: int, why: str) -> None:
    with pytest.raises(InvalidSetting, match=why):
        Broker(brokers=brokers, properties={name: "x"})
