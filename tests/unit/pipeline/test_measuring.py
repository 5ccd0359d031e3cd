"""What clusters are asked of partitions: rows of tables.LOG_OFFSETS, from a broker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from groupkeeper.broker.authorizer import Operation, ResourceType, RuleAuthorizer
from groupkeeper.client.admin.types import TopicPartition as Place
from groupkeeper.pipeline.measuring import Row, measure
from groupkeeper.pipeline.options import ClusterOptions, parse_options
from groupkeeper.pipeline.tables import LOG_OFFSETS
from groupkeeper.testing.background import BackgroundBroker

PATIENCE_S = 60
BEGIN_MS = 1_700_000_000_000


def cluster_at(servers: str) -> ClusterOptions:
    given = {"kafka.bootstrap.servers": servers, "cluster": "c", "rows": "decoded"}
    return parse_options(given | {"kafka.default.api.timeout.ms": "2000"}).clusters[0]


def as_read(found: dict[Place, Row]) -> dict[int, Row]:
    """The rows as any reader of the table finds them, by partition."""
    rows = [{"cluster": "c", "topic": place.topic, "partition": place.partition, **row} for place, row in found.items()]
    return {row["partition"]: row for row in pa.Table.from_pylist(rows, LOG_OFFSETS.arrow).to_pylist()}


def test_ends_and_the_records_at_committed_offsets() -> None:
    properties = {"log.retention.ms": "-1", "log.message.timestamp.after.max.ms": str(2**63 - 1)}
    with BackgroundBroker(properties=properties) as broker:
        servers = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic("t", 3, 1)])["t"].result(PATIENCE_S)
        producer = Producer({"bootstrap.servers": servers})
        for number in range(10):
            producer.produce("t", b"v", None, 0, timestamp=BEGIN_MS + 1000 * number)
        producer.produce("t", b"v", None, 1, timestamp=2**63 - 1)  # any time, where the topic lets clients
        assert producer.flush(PATIENCE_S) == 0
        (removed,) = admin.delete_records([TopicPartition("t", 0, 4)]).values()
        removed.result(PATIENCE_S)
        wanted = {Place("t", 0): [2, 7, 10, 99], Place("t", 1): [0], Place("t", 2): [0], Place("away", 9): [1]}
        before = datetime.now(UTC) - timedelta(milliseconds=1)
        rows = as_read(measure(cluster_at(servers), wanted))
    ends = ("log_start_offset", "last_stable_offset", "log_end_offset", "is_deleted")
    assert {number: tuple(row[name] for name in ends) for number, row in rows.items()} == {
        0: (4, 10, 10, False), 1: (0, 1, 1, False), 2: (0, 0, 0, False), 9: (None, None, None, True),
    }  # fmt: skip
    times = {each["offset"]: (each["is_there"], each["time"].timestamp() * 1000) for each in rows[0]["records"]}
    assert times == {2: (True, BEGIN_MS + 4000), 7: (True, BEGIN_MS + 7000)}  # 2 is gone: the first that is there
    assert rows[1]["records"] == [{"offset": 0, "is_there": True, "time": None}]
    assert rows[2]["records"] == []
    assert before <= rows[0]["measured_time"] <= datetime.now(UTC)
    assert rows[9]["problem"].startswith("UnknownTopicOrPartition")
    assert len(rows[0]["topic_id"]) == 22


def test_records_that_may_not_be_read_are_a_problem_beside_the_ends() -> None:
    authorizer = RuleAuthorizer(allows_without_rules=True)
    with BackgroundBroker(authorizer=authorizer) as broker:
        servers = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(PATIENCE_S)
        producer = Producer({"bootstrap.servers": servers})
        producer.produce("t", b"v", None, 0)
        assert producer.flush(PATIENCE_S) == 0
        authorizer.allow(Operation.DESCRIBE, ResourceType.TOPIC)
        (row,) = as_read(measure(cluster_at(servers), {Place("t", 0): [0]})).values()
    assert (row["log_end_offset"], row["records"]) == (1, [])
    assert row["problem"].startswith("the record at offset 0: TopicAuthorizationFailed")


def test_what_cannot_be_asked_is_a_problem_of_its_own() -> None:
    place = Place("t", 0)
    with BackgroundBroker(authorizer=RuleAuthorizer()) as locked:
        (row,) = as_read(measure(cluster_at(locked.bootstrap_servers), {place: [1]})).values()
    assert row["problem"].startswith("TopicAuthorizationFailed")
    assert (row["is_deleted"], row["measured_time"]) == (False, None)
    (row,) = as_read(measure(cluster_at("127.0.0.1:1"), {place: [1]})).values()
    assert row["problem"].startswith("cluster c: 127.0.0.1:1: connection refused")
