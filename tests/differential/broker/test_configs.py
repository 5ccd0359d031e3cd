"""The same DescribeConfigs on Apache Kafka 4.4.0 and on our broker: which settings, in which order, with which sources,
synonyms and flags, before and after the same changes; and the same answers to the changes.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.differential.pair import Asked, both, require_soon_alike

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import alter_configs_request as replacing
from groupkeeper.protocol.messages import incremental_alter_configs_request as changing

CLASS = 8
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
NODE, ALL = "1", ""
SET, DELETE, APPEND, SUBTRACT = range(4)
FILE = {
    "num.io.threads": "4",
    "nobody.knows": "1",
    "ssl.keystore.password": "secret",
    "listener.name.plaintext.max.connections": "7",
    "log.roll.hours": "24",
    "log.retention.hours": "48",
    "log.retention.minutes": "60",
    "min.insync.replicas": "2",
    "log.cleanup.policy": "compact",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "auto.create.topics.enable": "false",
    "log.retention.ms": "1000000",
    "offsets.topic.num.partitions": "4",
} | dict.fromkeys(
    (
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
    ),
    "1",
)  # fmt: skip
OUR_OWN = "groupkeeper."
OF_THE_MACHINE = ("log.dir", "log.dirs", "listeners", "advertised.listeners", "controller.quorum.voters")

Change = tuple[int, str, str, int, str | None]
"""Resource type and name, setting, operation, value."""

CHANGES: list[Change] = [
    (TOPIC, "t", "retention.ms", SET, "5"),
    (TOPIC, "t", "cleanup.policy", APPEND, "delete"),
    (TOPIC, "t", "min.insync.replicas", SET, "1"),
    (TOPIC, "t", "segment.ms", SET, "abc"),
    (TOPIC, "t", "nope", SET, "1"),
    (TOPIC, "", "retention.ms", SET, "1"),
    (TOPIC, "t", "cleanup.policy", SUBTRACT, "compact"),
    (TOPIC, "t", "retention.ms", DELETE, None),
    (GROUP, "g", "consumer.session.timeout.ms", SET, "50000"),
    (GROUP, "g", "share.auto.offset.reset", SET, "earliest"),
    (BROKER, ALL, "log.retention.ms", SET, "888000"),
    (BROKER, NODE, "log.retention.ms", SET, "777000"),
    (BROKER, ALL, "message.max.bytes", SET, "2000000"),
    (BROKER, NODE, "num.io.threads", SET, "6"),
    (BROKER, NODE, "num.io.threads", SET, "abc"),
    (BROKER, NODE, "leader.replication.throttled.rate", SET, "5"),
    (BROKER, NODE, "sasl.jaas.config", SET, "secret"),
    (BROKER, NODE, "sasl.enabled.mechanisms", APPEND, "PLAIN"),
    (BROKER, NODE, "log.cleanup.policy", APPEND, "compact"),
    (BROKER, NODE, "who.knows", SET, "x"),
    (BROKER, NODE, "listener.name.plaintext.max.connections", SET, "9"),
    (BROKER, ALL, "listener.name.plaintext.max.connections", SET, "11"),
    (BROKER, NODE, "listener.name.external.ssl.keystore.location", SET, "/k"),
    (BROKER, NODE, "listener.name.external.ssl.keystore.password", SET, "pw"),
    (BROKER, ALL, "listener.name.external.ssl.keystore.location", SET, "/k"),
    (BROKER, NODE, "listener.name.external.who.knows", SET, "y"),
    (BROKER, ALL, "min.insync.replicas", SET, "3"),
    (BROKER, ALL, "min.insync.replicas", DELETE, None),
    (BROKER, NODE, "min.insync.replicas", SET, "1"),
    (BROKER, NODE, "min.insync.replicas", DELETE, None),
    (BROKER, NODE, "auto.create.topics.enable", SET, "true"),
    (BROKER, NODE, "ssl.keystore.type", SET, "JKS"),
    (BROKER, NODE, "log.retention.ms", DELETE, None),
    (BROKER, ALL, "log.retention.ms", DELETE, None),
]


class Side(Asked):
    def change(self, *changes: Change, is_trial: bool = False) -> tuple[int, str | None]:
        kind, name = changes[0][:2]
        configs = [changing.AlterableConfig(setting, operation, value) for _, _, setting, operation, value in changes]
        resource = changing.AlterConfigsResource(kind, name, configs)
        answer: Any = self.pool.ask(changing.IncrementalAlterConfigsRequest([resource], is_trial), 1)
        return answer.responses[0].error_code, answer.responses[0].error_message

    def replace(self, kind: int, name: str, **settings: str) -> tuple[int, str | None]:
        configs = [replacing.AlterableConfig(key.replace("_", "."), value) for key, value in settings.items()]
        resource = replacing.AlterConfigsResource(kind, name, configs)
        answer: Any = self.pool.ask(replacing.AlterConfigsRequest([resource]), 2)
        return answer.responses[0].error_code, answer.responses[0].error_message

    def describe(self, kind: int, name: str, version: int = 4, keys: list[str] | None = None) -> list[object]:
        """What is told, without our own settings and what only names the machine."""
        request = m.DescribeConfigsRequest([m.DescribeConfigsResource(kind, name, keys)], True, version >= 3)
        answer: Any = self.pool.ask(request, version)
        result = answer.results[0]
        return [(result.error_code, result.error_message)] + [
            (
                *(one.name, one.value, one.read_only, one.config_source, one.is_sensitive, one.config_type),
                [(each.name, each.value, each.source) for each in one.synonyms],
                one.documentation if one.documentation is None else bool(one.documentation),
            )
            if one.name not in OF_THE_MACHINE
            else one.name
            for one in result.configs
            if not one.name.startswith(OUR_OWN)
        ]

    def listed(self, version: int = 1, *types: int) -> object:
        answer: Any = self.pool.ask(m.ListConfigResourcesRequest(list(types)), version)
        return answer.error_code, sorted((one.resource_type, one.resource_name) for one in answer.config_resources)


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[Side, Side]]:
    with both(Side, FILE, of_ours={"controller.quorum.voters": "1@127.0.0.1:1"}) as sides:
        configs = [m.CreatableTopicConfig("compression.type", "gzip"), m.CreatableTopicConfig("flush.ms", "7")]
        for side in sides:
            topics = [m.CreatableTopic("t", 1, 1), m.CreatableTopic("u", 1, 1, configs=configs)]
            side.pool.ask(m.CreateTopicsRequest(topics), 7)
        yield sides


def require_same_settings(sides: tuple[Side, Side], *places: tuple[int, str], why: object = None) -> None:
    for place in places:
        require_soon_alike(sides, lambda side, place=place: side.describe(*place), (place, why))  # type: ignore[misc]


@pytest.mark.conformance
@pytest.mark.timeout(180)
def test_same_settings_before_and_after_changes(sides: tuple[Side, Side]) -> None:
    places = ((TOPIC, "t"), (TOPIC, "u"), (BROKER, NODE), (BROKER, ALL), (GROUP, "g"))
    require_same_settings(
        sides,
        *places,
        (TOPIC, ""),
        (TOPIC, "nope"),
        (BROKER, "9"),
        (BROKER, "x"),
        (GROUP, ""),
        (99, "x"),
        (METRICS, "m"),
        (METRICS, ""),
        (LOGGER, ""),
        (LOGGER, "x"),
        (LOGGER, "9"),
    )
    for change in CHANGES:
        assert sides[0].change(change) == sides[1].change(change), change
        require_same_settings(sides, change[:2], (TOPIC, "t"), (BROKER, NODE), why=change)
    require_same_settings(sides, *places)
    for side in sides:
        assert side.replace(TOPIC, "u", segment_ms="70000") == (0, None)
    require_same_settings(sides, (TOPIC, "u"))
    for version in range(1, 5):
        for kind, name in places:
            some = ["retention.ms", "nope", "log.retention.ms", "cleanup.policy", "share.isolation.level"]
            for keys in (None, [], some):
                left, right = (side.describe(kind, name, version, keys) for side in sides)
                assert left == right, (kind, name, version, keys)


@pytest.mark.conformance
@pytest.mark.timeout(180)
def test_same_subscriptions_to_metrics(sides: tuple[Side, Side]) -> None:
    """The resource CLIENT_METRICS of KIP-714."""
    for setting, operation, value in (
        ("metrics", SET, "org.apache"),
        ("metrics", APPEND, "c"),
        ("metrics", SUBTRACT, "c"),
        ("interval.ms", SET, "5000"),
        ("interval.ms", SET, "5"),
        ("interval.ms", SET, "5000000"),
        ("interval.ms", SET, "abc"),
        ("interval.ms", APPEND, "1"),
        ("match", SET, "client_id=a.*,client_software_name=x"),
        ("match", SET, "nope=a"),
        ("match", SET, "client_id=["),
        ("match", SET, "client_id"),
        ("nope", SET, "1"),
        ("metrics", DELETE, None),
    ):
        for name in ("m", "") if operation == SET else ("m",):
            change = (METRICS, name, setting, operation, value)
            assert sides[0].change(change) == sides[1].change(change), change
        require_same_settings(sides, (METRICS, "m"), why=(setting, value))
    assert sides[0].replace(METRICS, "n", interval_ms="1000") == sides[1].replace(METRICS, "n", interval_ms="1000")
    require_same_settings(sides, (METRICS, "n"))
    for version, types in ((0, ()), (1, ()), (1, (METRICS,)), (1, (LOGGER, BROKER)), (1, (99,))):
        left, right = (side.listed(version, *types) for side in sides)
        assert left == right, (version, types)
    assert sides[0].listed(0) == (0, [(METRICS, "m"), (METRICS, "n")])
    for side in sides:
        assert side.replace(METRICS, "n") == (0, None)
    require_same_settings(sides, (METRICS, "n"))
    assert sides[0].listed(0) == (0, [(METRICS, "m")])


@pytest.mark.conformance
@pytest.mark.timeout(180)
def test_what_may_change_while_a_broker_runs(sides: tuple[Side, Side]) -> None:
    """Each setting that Kafka tells, set to what it is, of one broker and of all; what names the machine aside."""
    told: Any = sides[1].describe(BROKER, NODE)[1:]
    for name, value, _, _, _, kind, *_ in (one for one in told if not isinstance(one, str)):
        if value is None and kind == CLASS:
            continue  # there is no Java class that could be named
        for broker in (NODE, ALL):
            change = (BROKER, broker, name, SET, "0" if value is None else value)
            if name == "listener.security.protocol.map" and broker == NODE:
                continue  # listeners are opened at the start only
            left, right = (side.change(change, is_trial=True) for side in sides)
            if value is not None:
                assert left == right, change
            assert (left[0] == 42 and "Cannot update" in str(left[1])) == (
                right[0] == 42 and "Cannot update" in str(right[1])
            ), change
    several = [
        (BROKER, NODE, name, SET, "1") for name in ("broker.id", "node.id", "advertised.listeners", "num.partitions")
    ]
    assert sides[0].change(*several) == sides[1].change(*several)


@pytest.mark.conformance
@pytest.mark.timeout(300)
def test_how_far_settings_may_change_at_once(sides: tuple[Side, Side]) -> None:
    pools = ("background.threads", "num.io.threads", "num.recovery.threads.per.data.dir", "num.replica.fetchers")
    changes = [(name, value) for name in pools for value in ("0", "1", "2", "4", "5", "9", "12", "13", "100", "-1")]
    changes += [("num.network.threads", value) for value in ("0", "1", "6", "7")]
    changes += [("log.cleaner.threads", value) for value in ("1", "2", "3")]
    changes += [("log.cleaner.dedupe.buffer.size", value) for value in ("1048576", "1048577", "2097152", "-1")]
    changes += [("log.retention.ms", value) for value in ("0", "-1", "-2", "1")]
    changes += [("max.connections", value) for value in ("0", "1")]
    changes += [("max.connection.creation.rate", "0"), ("max.connections.per.ip", "0")]
    changes += [("max.connections.per.ip.overrides", "127.0.0.1:500")]
    for name, value in changes:
        for broker in (NODE, ALL):
            ours, expected = (side.change((BROKER, broker, name, SET, value), is_trial=True) for side in sides)
            assert ours == expected, (name, value, broker)
