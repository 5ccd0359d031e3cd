"""What a broker holds in this process: its topics and their logs."""

from groupkeeper.broker import Broker
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.topics import Topic


def topic_of(broker: Broker, name: str) -> Topic:
    topic = broker.topics.get(name)
    assert topic is not None
    return topic


def log_of(broker: Broker, topic: str, index: int = 0) -> PartitionLog:
    log = broker.topics.partition(topic, index)
    assert log is not None
    return log
