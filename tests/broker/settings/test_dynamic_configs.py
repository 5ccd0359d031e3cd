"""Settings of the broker that clients change while it runs (KIP-226)."""

from pathlib import Path
from typing import Any

from tests.broker.conftest import Connect, Start, Wire
from tests.broker.held import topic_of

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import InvalidConfig, InvalidRequest, UnknownServerError

TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND = range(3)
ALL = ""


async def describe(wire: Wire, kind: int, name: str, *settings: str) -> list[m.DescribeConfigsResourceResult]:
    answer = await wire.describe(kind, name, *settings)
    assert answer.error_code == 0
    return list(answer.configs)


async def sources(wire: Wire, kind: int, name: str, setting: str) -> list[tuple[str, str | None, int]]:
    (config,) = await describe(wire, kind, name, setting)
    assert (config.value, config.config_source) == (config.synonyms[0].value, config.synonyms[0].source)
    return [(one.name, one.value, one.source) for one in config.synonyms]


async def test_a_brokers_own_setting_wins_over_that_of_all(start: Start, connect: Connect) -> None:
    broker = await start(properties={"log.retention.ms": "9"})
    wire = await connect(broker)
    node = str(broker.config.node_id)
    await wire.create("t")
    default = ("log.retention.hours", "168", 5)
    static = ("log.retention.ms", "9", 4)
    assert await wire.alter(BROKER, ALL, "log.retention.ms", "200000") == (0, None)
    for_all = ("log.retention.ms", "200000", 3)
    assert await sources(wire, BROKER, node, "log.retention.ms") == [for_all, static, default]
    assert await wire.alter(BROKER, node, "log.retention.ms", "100000") == (0, None)
    own = ("log.retention.ms", "100000", 2)
    assert await sources(wire, BROKER, node, "log.retention.ms") == [own, for_all, static, default]
    assert await sources(wire, TOPIC, "t", "retention.ms") == [own, for_all, static, default]
    topic = topic_of(broker, "t")
    assert topic.partitions[0].config.retention_ms == 100000
    assert [(one.name, one.value) for one in await describe(wire, BROKER, ALL)] == [
        ("log.retention.ms", "200000"), ("min.insync.replicas", "1"),
    ]  # fmt: skip
    assert await wire.alter(BROKER, node, "log.retention.ms", None, DELETE) == (0, None)
    assert await wire.alter(BROKER, ALL, "log.retention.ms", None, DELETE) == (0, None)
    assert await sources(wire, BROKER, node, "log.retention.ms") == [static, default]
    assert topic.partitions[0].config.retention_ms == 9


async def test_changes_are_there_after_a_restart(start: Start, connect: Connect, tmp_path: Path) -> None:
    broker = await start(directory=tmp_path)
    wire, node = await connect(broker), str(broker.config.node_id)
    await wire.alter(BROKER, node, "group.consumer.assignment.interval.ms", "5")
    await wire.alter(BROKER, ALL, "group.consumer.assignment.interval.ms", "7")
    await wire.alter(BROKER, ALL, "nobody.knows", "this")
    await broker.stop()
    broker = await start(directory=tmp_path)
    wire = await connect(broker)
    assert await sources(wire, GROUP, "g", "consumer.assignment.interval.ms") == [
        ("group.consumer.assignment.interval.ms", "5", 2),
        ("group.consumer.assignment.interval.ms", "7", 3),
        ("group.consumer.assignment.interval.ms", "1000", 5),
    ]
    assert broker.groups.settings.group_consumer_assignment_interval_ms == 5
    config: Any = broker.group_configs.of("g")
    assert config.consumer_assignment_interval_ms == 5
    assert [one.name for one in await describe(wire, BROKER, ALL)] == [
        "group.consumer.assignment.interval.ms", "nobody.knows", "min.insync.replicas",
    ]  # fmt: skip
    assert (tmp_path / "broker.journal").read_text().count("\n") == 3


async def test_settings_of_others_are_told_as_by_kafka(start: Start, connect: Connect) -> None:
    """Seen on Apache Kafka 4.3.1: quotas of replication by value, and of what nobody knows only that it was given."""
    broker = await start()
    wire, node = await connect(broker), str(broker.config.node_id)
    throttle = "leader.replication.throttled.rate"
    for name, setting, value in ((node, throttle, "123"), (ALL, throttle, "9"), (node, "nobody.knows", "x")):
        assert await wire.alter(BROKER, name, setting, value) == (0, None)
    assert await sources(wire, BROKER, node, throttle) == [(throttle, "123", 2), (throttle, "9", 3)]
    assert await sources(wire, BROKER, ALL, throttle) == [(throttle, "9", 3)]
    (known, unknown) = await describe(wire, BROKER, node, throttle, "nobody.knows")
    assert (known.config_type, known.is_sensitive, known.read_only) == (5, False, False)
    assert (unknown.config_type, unknown.is_sensitive, unknown.read_only, unknown.value) == (0, True, True, None)
    assert await wire.alter(BROKER, node, throttle, None, DELETE) == (0, None)
    assert await sources(wire, BROKER, node, throttle) == [(throttle, "9", 3)]


async def test_coordinators_take_them_at_once(start: Start, connect: Connect) -> None:
    broker = await start()
    wire = await connect(broker)
    broker.groups.ensure_topic()
    await wire.alter(BROKER, ALL, "group.consumer.assignment.interval.ms", "7")
    assert broker.groups.shards[0].coordinator.settings_of("g").group_consumer_assignment_interval_ms == 7


async def test_what_is_refused(start: Start, connect: Connect) -> None:
    """The words are those of Apache Kafka 4.3.1."""
    broker = await start()
    wire, node = await connect(broker), str(broker.config.node_id)
    await wire.create("t")
    refused, bad = InvalidRequest.code, InvalidConfig.code
    interval = "group.consumer.assignment.interval.ms"
    for_one = "Cannot update these configs at default cluster level, broker id must be specified"
    too_long = f"{interval} must be less than or equal to group.consumer.max.assignment.interval.ms"
    retention = "log.retention.ms"
    no_number = f"Invalid value abc for configuration {retention}: Not a number of type LONG"
    for asked, told in (
        ((node, "num.partitions", "3"), (refused, "Cannot update these configs dynamically: [num.partitions]")),
        ((ALL, "listeners", "PLAINTEXT://:1"), (refused, f"{for_one}: [listeners]")),
        ((node, retention, "abc"), (refused, no_number)),
        (("99", retention, "1000"), (refused, f"Unexpected broker id, expected {node}, but received 99")),
        (("x", retention, "1000"), (refused, "Node id must be an integer, but it is: x")),
        ((node, retention, None), (refused, f"Null value not supported for : {retention}")),
        ((node, retention, "1", 7), (refused, "Unknown operations type 7")),
        ((node, retention, "1", APPEND), (bad, f"Config value append is not allowed for config key: {retention}")),
        ((node, interval, "5000000"), (refused, too_long)),
    ):
        assert await wire.alter(BROKER, *asked) == told, asked
    assert await wire.alter(TOPIC, "t", "retention.ms", "1", 9) == (UnknownServerError.code, None)
    assert {name: given for name, given in broker.config.changed.items() if given} == {
        ALL: {"min.insync.replicas": "1"}
    }
    assert await wire.alter(BROKER, node, "log.cleanup.policy", "compact", APPEND) == (0, None)
    assert broker.config.log_cleanup_policy == ("delete", "compact")


async def test_what_does_not_change_while_a_broker_runs(start: Start, connect: Connect) -> None:
    """The words are those of Apache Kafka 4.3.1."""
    broker = await start()
    wire, node = await connect(broker), str(broker.config.node_id)
    refused, bad = InvalidRequest.code, InvalidConfig.code
    fixed = "Cannot update these configs dynamically"
    by_listener = "These security configs can be dynamically updated only per-listener using the listener prefix"
    of_a_node = "Cannot update these configs at default cluster level, broker id must be specified"
    key_store, own_key_store = "ssl.keystore.location", "listener.name.plaintext.ssl.keystore.location"
    no_number = "Invalid value many for configuration num.io.threads: Not a number of type INT"
    not_altered = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    not_removed = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    for asked, told in (
        ((node, "auto.create.topics.enable", "false"), (refused, f"{fixed}: [auto.create.topics.enable]")),
        ((ALL, "num.replica.alter.log.dirs.threads", "2"), (refused, f"{fixed}: [num.replica.alter.log.dirs.threads]")),
        ((node, "broker.id", "3"), (refused, f"{fixed}: [broker.id]")),
        ((node, "groupkeeper.lenient.replication", "true"), (refused, f"{fixed}: [groupkeeper.lenient.replication]")),
        ((node, key_store, "/k"), (refused, f"{by_listener}: [{key_store}]")),
        ((ALL, own_key_store, "/k"), (refused, f"{of_a_node}: [{own_key_store}]")),
        ((node, "num.io.threads", "many"), (refused, no_number)),
        ((node, "min.insync.replicas", "1"), (bad, not_altered)),
        ((node, "min.insync.replicas", None, DELETE), (bad, not_altered)),
        ((ALL, "min.insync.replicas", None, DELETE), (bad, not_removed)),
    ):
        assert await wire.alter(BROKER, *asked) == told, asked


async def test_small_segments_by_the_internal_setting(start: Start, connect: Connect) -> None:
    sizes = {
        "offsets.topic.segment.bytes": "1000",
        "transaction.state.log.segment.bytes": "1001",
        "share.coordinator.state.topic.segment.bytes": "1002",
    }
    broker = await start(properties=sizes)
    wire = await connect(broker)
    await wire.create("t", internal_segment_bytes="100")
    (config,) = await describe(wire, TOPIC, "t", "internal.segment.bytes")
    assert (config.value, config.config_source) == ("100", 1)
    await wire.create("u")
    assert await describe(wire, TOPIC, "u", "internal.segment.bytes") == []
    for host in (broker.groups, broker.transactions, broker.share_states):
        host.ensure_topic()
    internal = ("__consumer_offsets", "__transaction_state", "__share_group_state")
    for name, size in (("t", 100), ("u", 1073741824), *zip(internal, (1000, 1001, 1002), strict=True)):
        assert topic_of(broker, name).config.roll_bytes == size


async def test_settings_of_the_file(start: Start, connect: Connect) -> None:
    """Also of what Kafka has and this broker does nothing with; secrets and what is unknown are not told."""
    file = {"num.io.threads": "4", "ssl.key.password": "open sesame", "nobody.knows": "this", "num.partitions": "2"}
    wire = await connect(await start(properties={**file, "listener.name.plaintext.max.connections": "7"}))
    told = {one.name: one for one in await describe(wire, BROKER, "1")}
    assert list(told)[:2] == ["listener.name.plaintext.max.connections", "nobody.knows"]
    assert [
        (
            one.value,
            one.config_source,
            one.is_sensitive,
            [(each.name, each.value, each.source) for each in one.synonyms],
        )
        for one in (told[name] for name in ("broker.id", *file))
    ] == [
        ("1", 4, False, [("broker.id", "1", 4), ("broker.id", "-1", 5)]),
        ("4", 4, False, [("num.io.threads", "4", 4), ("num.io.threads", "8", 5)]),
        (None, 4, True, [("ssl.key.password", None, 4)]),
        (None, 4, True, [("nobody.knows", None, 4)]),
        ("2", 4, False, [("num.partitions", "2", 4), ("num.partitions", "1", 5)]),
    ]
    assert "sesame" not in repr(told.values())


async def test_all_brokers_have_the_same_insync_replicas(start: Start, connect: Connect, tmp_path: Path) -> None:
    """With eligible leader replicas (KIP-966) the file of the first start counts, and then what clients give."""
    broker = await start(directory=tmp_path, properties={"min.insync.replicas": "2"})
    wire = await connect(broker)
    await wire.create("t")
    default, static = ("min.insync.replicas", "1", 5), ("min.insync.replicas", "2", 4)
    assert await sources(wire, TOPIC, "t", "min.insync.replicas") == [("min.insync.replicas", "2", 3), static, default]
    assert await wire.alter(BROKER, ALL, "min.insync.replicas", "3") == (0, None)
    await broker.stop()
    wire = await connect(await start(directory=tmp_path))
    assert await sources(wire, TOPIC, "t", "min.insync.replicas") == [("min.insync.replicas", "3", 3), default]
    without = await connect(await start(properties={"feature.eligible.leader.replicas.version": "0"}))
    assert await sources(without, BROKER, "1", "min.insync.replicas") == [default]
    assert await without.alter(BROKER, "1", "min.insync.replicas", "2") == (0, None)


async def test_a_listeners_own_settings(start: Start, connect: Connect) -> None:
    wire = await connect(await start())
    name = "listener.name.plaintext.max.connections"
    assert await wire.alter(BROKER, ALL, name, "11") == (0, None)
    assert await wire.alter(BROKER, "1", name, "9") == (0, None)
    assert await wire.alter(BROKER, "1", "listener.name.tls.ssl.keystore.location", "/k") == (0, None)
    found = await sources(wire, BROKER, "1", name)
    assert found == [(name, "9", 2), (name, "11", 3), ("max.connections", "2147483647", 5)]
    assert await sources(wire, BROKER, ALL, name) == [(name, "11", 3)]


async def test_subscriptions_to_metrics(start: Start, connect: Connect, tmp_path: Path) -> None:
    """The words and codes are those of Apache Kafka 4.3.1."""
    broker = await start(directory=tmp_path)
    wire = await connect(broker)
    bad_interval = "Invalid value 5 for interval.ms, interval must be between 100 and 3600000 (1 hour)"
    refused, bad = InvalidRequest.code, InvalidConfig.code
    for (name, setting, value, operation), answer in (
        (("m", "metrics", "org.apache", SET), (0, None)),
        (("m", "match", "client_id=a.*", SET), (0, None)),
        (("m", "match", "nope=a", SET), (bad, "Illegal client matching pattern: nope=a")),
        (("m", "interval.ms", "5", SET), (refused, bad_interval)),
        (("m", "nope", "5", SET), (refused, "Unknown client metrics configuration: nope")),
        (("m", "metrics", "x", APPEND), (bad, "Can't APPEND to key metrics because its type is not LIST.")),
        (("", "metrics", "x", SET), (refused, "Subscription name can't be empty")),
    ):
        assert await wire.alter(METRICS, name, setting, value, operation) == answer
    await broker.stop()
    wire = await connect(await start(directory=tmp_path))
    told = [(one.name, one.value, one.config_source) for one in await describe(wire, METRICS, "m")]
    assert told == [("interval.ms", "300000", 5), ("match", "client_id=a.*", 7), ("metrics", "org.apache", 7)]
    listed = await wire.call(m.ListConfigResourcesRequest(), 0)
    assert [(one.resource_name, one.resource_type) for one in listed.config_resources] == [("m", METRICS)]
