"""The pytest plugin as its users meet it."""

import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests import acts

from groupkeeper.base_error import InvalidSetting
from groupkeeper.testing.background import BackgroundBroker


def produce(broker: BackgroundBroker, topic: str, count: int) -> None:
    values = [b"record %d" % number for number in range(count)]
    acts.produce(broker.bootstrap_servers, topic, values, client={"enable.idempotence": "true"})


def consume(broker: BackgroundBroker, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values = [message.value() or b"" for message in consumer.consume(count, 10)]
    consumer.close()
    return values


def test_a_broker_of_ones_own(groupkeeper_broker: BackgroundBroker) -> None:
    produce(groupkeeper_broker, "orders", 3)
    assert consume(groupkeeper_broker, "orders", 3) == [b"record 0", b"record 1", b"record 2"]


def test_a_broker_of_all_tests(
    groupkeeper_session_broker: BackgroundBroker, groupkeeper_settings: Mapping[str, str]
) -> None:
    assert groupkeeper_settings["group.initial.rebalance.delay.ms"] == "0"
    produce(groupkeeper_session_broker, "shared", 1)
    assert consume(groupkeeper_session_broker, "shared", 1) == [b"record 0"]


def test_a_restart_on_the_same_directory(tmp_path: Path) -> None:
    with BackgroundBroker(directory=tmp_path) as first:
        produce(first, "orders", 2)
    with BackgroundBroker(directory=tmp_path) as second:
        produce(second, "orders", 1)
        assert consume(second, "orders", 3) == [b"record 0", b"record 1", b"record 0"]


def test_a_start_that_fails_says_why(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with BackgroundBroker(directory=tmp_path), pytest.raises(InvalidSetting, match="in use by another broker"):
        BackgroundBroker(directory=tmp_path).start()
    assert set(threading.enumerate()) <= before


def test_a_setting_that_is_misspelt_is_a_warning_that_names_the_right_one() -> None:
    with pytest.warns(UserWarning, match=r"unknown setting num\.partition:.*did you mean num\.partitions\?"):
        BackgroundBroker(properties={"num.partition": "3"})
    with pytest.warns(UserWarning, match="unknown setting nothing.like.it: .* Kafka has it$"):
        BackgroundBroker(properties={"nothing.like.it": "3"})


@pytest.mark.groupkeeper(users={"alice": 'a"\\secret'}, tls=True)
def test_librdkafka_logs_in_with_the_properties_of_the_broker(groupkeeper_broker: BackgroundBroker) -> None:
    properties = groupkeeper_broker.librdkafka_properties("alice")
    assert properties["security.protocol"] == "SASL_SSL"
    assert AdminClient({**properties}).list_topics(timeout=20).brokers
    assert set(groupkeeper_broker.librdkafka_properties()) == set(properties) - {"sasl.username", "sasl.password"}
