"""Settings of single groups, as clients change and see them, and as members feel them (GF-02)."""

from pathlib import Path
from typing import Any

import pytest
from tests.broker.conftest import Connect, Start, Wire

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker import Broker
from groupkeeper.broker.settings.group_overrides import GroupConfig
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import InvalidConfig, InvalidRequest, UnsupportedVersion
from groupkeeper.protocol.messages.alter_configs_request import AlterableConfig as PlainConfig
from groupkeeper.protocol.messages.alter_configs_request import AlterConfigsResource as PlainResource
from groupkeeper.protocol.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND = 0, 1, 2
HEARTBEAT = "consumer.heartbeat.interval.ms"
SESSION = "consumer.session.timeout.ms"


async def alter(
    wire: Wire, group_id: str, *changes: tuple[str, int, str | None], validate_only: bool = False
) -> tuple[int, str | None]:
    resource = AlterConfigsResource(GROUP, group_id, [AlterableConfig(*change) for change in changes])
    request = m.IncrementalAlterConfigsRequest([resource], validate_only)
    answer = await wire.call(request, 1)
    assert (answer.responses[0].resource_type, answer.responses[0].resource_name) == (GROUP, group_id)
    return answer.responses[0].error_code, answer.responses[0].error_message


async def describe(wire: Wire, group_id: str) -> dict[str, m.DescribeConfigsResourceResult]:
    answer = await wire.describe(GROUP, group_id)
    assert answer.error_code == 0
    return {config.name: config for config in answer.configs}


async def listed(wire: Wire, *types: int, version: int = 1) -> list[tuple[int, str]]:
    answer = await wire.call(m.ListConfigResourcesRequest(list(types)), version)
    assert answer.error_code == 0
    return [(one.resource_type, one.resource_name) for one in answer.config_resources]


def config_of(broker: Broker, group_id: str) -> Any:
    """Its class makes the attributes of settings as it is defined."""
    return broker.group_configs.of(group_id)


async def heartbeat(wire: Wire, epoch: int) -> m.ConsumerGroupHeartbeatResponse:
    request = m.ConsumerGroupHeartbeatRequest("g", "m", epoch, rebalance_timeout_ms=1000)
    if epoch == 0:
        request.subscribed_topic_names, request.topic_partitions = [], []
    answer = await wire.call(request, 1)
    assert answer.error_code == 0
    return answer


async def test_they_take_effect_on_the_next_heartbeat(start: Start, connect: Connect, tmp_path: Path) -> None:
    broker = await start(directory=tmp_path)
    wire = await connect(broker)
    broker.groups.ensure_topic()
    joined = await heartbeat(wire, 0)
    assert joined.heartbeat_interval_ms == 5000
    assert await alter(wire, "g", (HEARTBEAT, SET, "7000"), (SESSION, SET, "60000")) == (0, None)
    assert (await heartbeat(wire, joined.member_epoch)).heartbeat_interval_ms == 7000  # GF-02
    assert broker.groups.shard_of("g").coordinator.settings_of("g").group_consumer_session_timeout_ms == 60000
    assert config_of(broker, "g").consumer_session_timeout_ms == 60000
    assert config_of(broker, "other").consumer_session_timeout_ms == 45000
    await broker.stop()

    restarted = await start(directory=tmp_path)
    wire = await connect(restarted)
    assert (await heartbeat(wire, joined.member_epoch)).heartbeat_interval_ms == 7000
    assert await alter(wire, "g", (HEARTBEAT, DELETE, None)) == (0, None)
    assert (await heartbeat(wire, joined.member_epoch)).heartbeat_interval_ms == 5000
    assert restarted.group_configs.of("g").overrides == {SESSION: "60000"}


async def test_describing_tells_where_a_value_comes_from(start: Start, connect: Connect) -> None:
    broker = await start(properties={"group.consumer.heartbeat.interval.ms": 6000})
    wire = await connect(broker)
    await alter(wire, "g", (SESSION, SET, " 50000 "), ("share.isolation.level", SET, "read_committed"))
    configs = await describe(wire, "g")
    assert set(configs) == {setting.name for setting in GroupConfig.settings() if setting.is_listed}
    session = configs[SESSION]
    assert (session.value, session.config_source, session.config_type) == ("50000", 8, 3)
    found = [(one.name, one.value, one.source) for one in session.synonyms]
    assert found == [(SESSION, "50000", 8), (f"group.{SESSION}", "45000", 5)]
    told = [(one.name, one.value, one.source) for one in configs[HEARTBEAT].synonyms]
    assert told == [(f"group.{HEARTBEAT}", "6000", 4), (f"group.{HEARTBEAT}", "5000", 5)]
    seen = [(one.name, one.value, one.source) for one in configs["share.isolation.level"].synonyms]
    assert seen == [("share.isolation.level", "read_committed", 8), ("share.isolation.level", "read_uncommitted", 5)]
    assert configs["share.auto.offset.reset"].value == "latest"
    assert configs["streams.num.standby.replicas"].value == "0"


async def test_internal_settings_are_described_once_they_are_given(start: Start, connect: Connect) -> None:
    broker = await start(properties={"group.streams.acceptable.recovery.lag": 5})
    wire = await connect(broker)
    given = {"share.assignor.offload.enable": "false", "streams.num.warmup.replicas": "0"}
    assert await alter(wire, "g", *((name, SET, value) for name, value in given.items())) == (0, None)
    configs = await describe(wire, "g")
    assert {name: configs[name].value for name in given} == given
    found = [(one.value, one.source) for one in configs["streams.acceptable.recovery.lag"].synonyms]
    assert found == [("5", 4), ("10000", 5)]
    assert "streams.task.offset.interval.ms" not in configs
    assert given.keys() & (await describe(wire, "another")).keys() == set()


OFFSET_RESET_REFUSAL = (
    "Invalid value by_duration:P for configuration share.auto.offset.reset: Invalid value `by_duration:P` for "
    "configuration share.auto.offset.reset. The value must be either 'earliest', 'latest' or of the format "
    "'by_duration:<PnDTnHnMn.nS>'."
)
ISOLATION_REFUSAL = (
    "Invalid value READ_COMMITTED for configuration share.isolation.level: String must be one of: "
    "read_committed, read_uncommitted"
)
FLAG_REFUSAL = (
    "Invalid value yes for configuration share.renew.acknowledge.enable: Expected value to be either true or false"
)


# The texts are those of Apache Kafka 4.3.1.
@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ((SESSION, SET, "44999"), 40, "{} must be in the range 45000 to 60000 inclusive."),
        ((SESSION, SET, "60001"), 40, "{} must be in the range 45000 to 60000 inclusive."),
        ((SESSION, SET, "0"), 40, "Invalid value 0 for configuration {}: Value must be at least 1"),
        ((SESSION, SET, "a"), 40, "Invalid value a for configuration {}: Not a number of type INT"),
        ((SESSION, SET, None), 42, "Null value not supported for : {}"),
        ((SESSION, APPEND, "1"), 40, "Can't APPEND to key {} because its type is not LIST."),
        (("nope", SET, "1"), 40, "Unknown group config name: {}"),
        (("nope", DELETE, None), 0, None),
        (("share.delivery.count.limit", SET, "11"), 40, "{} must be in the range 2 to 10 inclusive."),
        (("share.assignment.interval.ms", SET, "15001"), 40, "{} must be in the range 0 to 15000 inclusive."),
        (("streams.num.standby.replicas", SET, "3"), 40, "{} must be less than or equal to 2"),
        (("streams.num.warmup.replicas", SET, "21"), 40, "{} must be less than or equal to 20"),
        (("streams.task.offset.interval.ms", SET, "14999"), 40, "{} must be greater than or equal to 15000"),
        (("share.auto.offset.reset", SET, "by_duration:P"), 40, OFFSET_RESET_REFUSAL),
        (("share.isolation.level", SET, "READ_COMMITTED"), 40, ISOLATION_REFUSAL),
        (("share.renew.acknowledge.enable", SET, "yes"), 40, FLAG_REFUSAL),
    ],
)
async def test_what_is_refused(
    broker: Broker, connect: Connect, change: tuple[str, int, str | None], code: int, message: str | None
) -> None:
    wire = await connect(broker)
    told = None if message is None else message.format(change[0])
    assert await alter(wire, "g", change) == (code, told)  # GF-02
    assert broker.group_configs.names() == []


async def test_the_session_outlasts_the_heartbeat(start: Start, connect: Connect) -> None:
    properties = {"group.consumer.min.session.timeout.ms": 6000, "group.consumer.max.heartbeat.interval.ms": 9000}
    broker = await start(properties=properties)
    wire = await connect(broker)
    refusal = f"{SESSION} must be greater than {HEARTBEAT}"
    assert await alter(wire, "g", (SESSION, SET, "9000"), (HEARTBEAT, SET, "9000")) == (InvalidConfig.code, refusal)
    assert await alter(wire, "g", (SESSION, SET, "9001"), (HEARTBEAT, SET, "9000")) == (0, None)


async def test_nothing_changes_by_validating_or_for_no_group(broker: Broker, connect: Connect) -> None:
    wire = await connect(broker)
    assert await alter(wire, "g", (SESSION, SET, "50000"), validate_only=True) == (0, None)
    found = await alter(wire, "", (SESSION, SET, "50000"))
    assert found == (InvalidRequest.code, "Default group resources are not allowed.")
    told = await alter(wire, "g", (SESSION, SET, "50000"), (SESSION, SET, "51000"))
    assert told == (InvalidRequest.code, "Error due to duplicate config keys")
    assert broker.group_configs.names() == []


async def test_alter_configs_replaces_all(broker: Broker, connect: Connect) -> None:
    wire = await connect(broker)
    await alter(wire, "g", (SESSION, SET, "50000"), (HEARTBEAT, SET, "6000"))
    request = m.AlterConfigsRequest([PlainResource(GROUP, "g", [PlainConfig(HEARTBEAT, "7000")])])
    assert (await wire.call(request, 2)).responses[0].error_code == 0
    assert broker.group_configs.of("g").overrides == {HEARTBEAT: "7000"}
    bad = m.AlterConfigsRequest([PlainResource(GROUP, "g", [PlainConfig(HEARTBEAT, "1")])])
    assert (await wire.call(bad, 2)).responses[0].error_code == InvalidConfig.code
    assert broker.group_configs.of("g").overrides == {HEARTBEAT: "7000"}


async def test_listing_whose_settings_there_are(broker: Broker, connect: Connect) -> None:
    wire = await connect(broker)
    await wire.create("topic")
    await alter(wire, "b", (SESSION, SET, "50000"))
    await alter(wire, "a", (SESSION, SET, "50000"))
    await alter(wire, "gone", (SESSION, SET, "50000"))
    await alter(wire, "gone", (SESSION, DELETE, None))
    assert await listed(wire, GROUP) == [(GROUP, "a"), (GROUP, "b")]
    assert await listed(wire) == [
        (GROUP, "a"), (GROUP, "b"), (LOGGER, "1"), (BROKER, "1"), (TOPIC, "topic"),
    ]  # fmt: skip
    assert await listed(wire, LOGGER, CLIENT_METRICS) == [(LOGGER, "1")]
    assert await listed(wire, version=0) == []
    answer = await wire.call(m.ListConfigResourcesRequest([99]), 1)
    assert answer.error_code == UnsupportedVersion.code


async def test_bounds_that_were_narrowed_narrow_what_was_given(start: Start, connect: Connect, tmp_path: Path) -> None:
    broker = await start(directory=tmp_path)
    wire = await connect(broker)
    await alter(wire, "g", (SESSION, SET, "60000"), ("streams.num.standby.replicas", SET, "2"))
    await alter(
        wire, "g", ("streams.num.warmup.replicas", SET, "20"), ("streams.task.offset.interval.ms", SET, "20000")
    )
    await alter(wire, "h", (SESSION, SET, "46000"), (HEARTBEAT, SET, "14000"))
    await broker.stop()

    narrowed = {
        "group.consumer.max.session.timeout.ms": 50000,
        "group.streams.max.standby.replicas": 1,
        "group.streams.max.warmup.replicas": 5,
        "group.streams.min.task.offset.interval.ms": 30000,
        "group.consumer.min.session.timeout.ms": 1000,
        "group.consumer.session.timeout.ms": 9000,
        "group.consumer.max.heartbeat.interval.ms": 8000,
    }
    broker = await start(directory=tmp_path, properties=narrowed)
    config = config_of(broker, "g")
    assert (config.consumer_session_timeout_ms, config.streams_num_standby_replicas) == (50000, 1)
    assert (config.streams_num_warmup_replicas, config.streams_task_offset_interval_ms) == (5, 30000)
    assert config_of(broker, "h").consumer_heartbeat_interval_ms == 8000
    assert (await describe(await connect(broker), "g"))[SESSION].value == "60000"
    await broker.stop()

    crossed = {
        "group.consumer.min.session.timeout.ms": 1000,
        "group.consumer.max.session.timeout.ms": 9500,
        "group.consumer.session.timeout.ms": 9000,
    }
    config = config_of(await start(directory=tmp_path, properties=crossed), "h")
    assert (config.consumer_session_timeout_ms, config.consumer_heartbeat_interval_ms) == (9000, 5000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{\n", "line 1 is damaged"),
        ('{"group": "g", "configs": {"nope": "1"}}\n', "line 1: Unknown group config name: nope"),
        ('{"group": "g", "configs": {"consumer.session.timeout.ms": "x"}}\n', "line 1: Invalid value x"),
    ],
)
async def test_a_damaged_registry_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "groups.journal").write_text(text)
    with pytest.raises(InvalidSetting, match=f"groups.journal: {message}"):
        await Broker(directory=tmp_path).start()


async def test_a_resource_of_an_unknown_type_refuses_them_all(start: Start, connect: Connect) -> None:
    """As Apache Kafka 4.3.1."""
    wire = await connect(await start())
    resources = [m.DescribeConfigsResource(GROUP, "g"), m.DescribeConfigsResource(77, "x")]
    answer = await wire.call(m.DescribeConfigsRequest(resources), 4)
    found = [(one.error_code, one.resource_name, list(one.configs)) for one in answer.results]
    assert found == [(InvalidRequest.code, "g", []), (InvalidRequest.code, "x", [])]
