"""What clusters are asked of partitions: rows of tables.LOG_OFFSETS, from a broker."""

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from confluent_kafka import Message, Producer
from tests.acts import PATIENCE_S, commit, cut, make_topic, produce

from groupkeeper.broker.authorizer import Operation, ResourceType, RuleAuthorizer
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition as Place
from groupkeeper.pipeline.kafka.instants import (
    ClusterIdentity,
    Instant,
    InstantRefused,
    LogEnds,
    list_logs,
    measure_logs,
)
from groupkeeper.pipeline.kafka.measuring import CommittedByPartition, LogMeasure, Row, measure
from groupkeeper.pipeline.kafka.options import ClusterOptions, parse_options
from groupkeeper.pipeline.kafka.planning import plan
from groupkeeper.pipeline.tables import LOG_OFFSETS
from groupkeeper.testing.background import BackgroundBroker

BEGIN_MS = 1_700_000_000_000


def cluster_at(servers: str) -> ClusterOptions:
    given = {"kafka.bootstrap.servers": servers, "cluster": "c", "rows": "decoded"}
    return parse_options(given | {"kafka.default.api.timeout.ms": "1000"}).clusters[0]


def instant_of(cluster: ClusterOptions) -> Instant:
    """The cluster at the instant at which its offsets topic is looked at."""
    options = parse_options({"kafka.bootstrap.servers": cluster.bootstrap_servers, "rows": "decoded", "cluster": "c"})
    return asyncio.run(plan(options)).instants["c"]


def measured(servers: str, wanted: CommittedByPartition) -> dict[int, Row]:
    cluster = cluster_at(servers)
    (found,) = measure([LogMeasure(cluster, instant_of(cluster), wanted)])
    return as_read(found)


def as_read(found: dict[Place, Row]) -> dict[int, Row]:
    """The rows as any reader of the table finds them, by partition."""
    rows = [{"cluster": "c", "topic": tp.topic, "partition": tp.partition, **row} for tp, row in found.items()]
    return {row["partition"]: row for row in pa.Table.from_pylist(rows, LOG_OFFSETS.arrow).to_pylist()}


def test_ends_and_the_records_at_committed_offsets() -> None:
    properties = {"log.retention.ms": "-1", "log.message.timestamp.after.max.ms": str(2**63 - 1)}
    with BackgroundBroker(properties=properties) as broker:
        servers = broker.bootstrap_servers
        make_topic(servers, "t", 3)
        produce(servers, "t", [b"v"] * 10, times_ms=range(BEGIN_MS, BEGIN_MS + 10_000, 1000))
        produce(servers, "t", [b"v"], [1], times_ms=[2**63 - 1])  # any time, where the topic lets clients
        cut(servers, "t", 4)
        wanted = {Place("t", 0): [2, 7, 10, 99], Place("t", 1): [0], Place("t", 2): [0], Place("away", 9): [1]}
        commit(servers, "g", {("t", 0): 1})  # which makes the offsets topic
        before = datetime.now(UTC) - timedelta(milliseconds=1)
        rows = measured(servers, wanted)
    ends = ("log_start_offset", "last_stable_offset", "log_end_offset", "is_deleted")
    assert {number: tuple(row[name] for name in ends) for number, row in rows.items()} == {
        0: (4, 10, 10, False), 1: (0, 1, 1, False), 2: (0, 0, 0, False), 9: (None, None, None, True),
    }  # fmt: skip
    times = {each["offset"]: (each["is_there"], each["time"].timestamp() * 1000) for each in rows[0]["records"]}
    assert times == {2: (True, BEGIN_MS + 4000), 7: (True, BEGIN_MS + 7000)}  # 2 is gone: the first that is there
    timeless = {"is_there": True, "time": None, "is_committed_there": True, "committed_time": None}
    assert rows[1]["records"] == [{"offset": 0, **timeless}]
    assert rows[2]["records"] == []
    assert before <= rows[0]["measured_time"] <= datetime.now(UTC)
    assert rows[9]["problem"].startswith("UnknownTopicOrPartition")
    assert len(rows[0]["topic_id"]) == 22


def test_records_of_aborted_and_open_transactions() -> None:
    """A reader of committed records waits for the first one that no transaction has aborted, up to the LSO."""
    with BackgroundBroker(properties={"log.retention.ms": "-1"}) as broker:
        servers = broker.bootstrap_servers
        make_topic(servers, "t", 2)
        commit(servers, "g", {("t", 0): 1})
        first, other = (Producer({"bootstrap.servers": servers, "transactional.id": name}) for name in "ab")
        for producer in (first, other):
            producer.init_transactions(PATIENCE_S)
        for second, ending in enumerate([first.abort_transaction, first.commit_transaction, first.abort_transaction]):
            first.begin_transaction()
            first.produce("t", b"v", None, 0, timestamp=BEGIN_MS + 1000 * second)  # 0, 2, 4; markers 1, 3, 5
            assert first.flush(PATIENCE_S) == 0
            ending(PATIENCE_S)
        other.begin_transaction()
        other.produce("t", b"v", None, 0, timestamp=BEGIN_MS + 9000)  # 6
        assert other.flush(PATIENCE_S) == 0
        rows = measured(servers, {Place("t", 0): [0, 1, 2, 3, 6], Place("t", 1): []})
        other.abort_transaction(PATIENCE_S)
    assert (rows[0]["last_stable_offset"], rows[0]["log_end_offset"]) == (6, 7)
    seconds = {
        each["offset"]: tuple(
            None if each[name] is None else (each[name].timestamp() * 1000 - BEGIN_MS) // 1000
            for name in ("time", "committed_time")
        )
        for each in rows[0]["records"]
    }
    assert seconds == {0: (0, 1), 1: (1, 1), 2: (1, 1), 3: (2, None), 6: (9, None)}
    assert {each["offset"]: each["is_committed_there"] for each in rows[0]["records"]} == {
        0: True, 1: True, 2: True, 3: False, 6: False,
    }  # fmt: skip


def test_ends_are_those_of_the_instant_whatever_comes_after_it() -> None:
    """What is written while Spark works is no lag of the groups that could not have read it."""
    with BackgroundBroker() as broker:
        servers = broker.bootstrap_servers
        make_topic(servers, "t")
        produce(servers, "t", [b"v"] * 3)
        commit(servers, "g", {("t", 0): 1})
        cluster = cluster_at(servers)
        instant = instant_of(cluster)
        produce(servers, "t", [b"v"] * 100)
        (found,) = measure([LogMeasure(cluster, instant, {Place("t", 0): [1]})])
    (row,) = as_read(found).values()
    assert (row["log_end_offset"], row["measured_time"].timestamp() * 1000) == (3, instant.measured_ms)
    assert [each["offset"] for each in row["records"]] == [1]


def test_logs_are_measured_at_the_stated_instant_while_they_grow() -> None:
    """What was acknowledged before is in, and no log is stable beyond its end."""
    is_over = threading.Event()
    acknowledged: list[tuple[int, int]] = []

    def note(error: object, message: Message) -> None:
        offset = message.offset()
        assert error is None
        assert offset is not None
        acknowledged.append((time.time_ns() // 1_000_000, offset + 1))

    def write(servers: str) -> None:
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        while not is_over.is_set():
            if len(producer) < 1_000:
                producer.produce("t", b"v", on_delivery=note)
            producer.poll(0.0005)
        producer.flush(PATIENCE_S)

    async def ends(servers: str) -> list[tuple[int, LogEnds | InstantRefused]]:
        found = []
        async with Admin(servers) as admin:
            begins = await list_logs(admin)
            for _ in range(200):
                measured_ms, logs = await measure_logs(admin, begins)
                found.append((measured_ms, logs[Place("t", 0)]))
        return found

    with BackgroundBroker() as broker:
        servers = broker.bootstrap_servers
        make_topic(servers, "t")
        writer = threading.Thread(target=write, args=(servers,))
        writer.start()
        try:
            found = asyncio.run(ends(servers))
        finally:
            is_over.set()
            writer.join()
    assert acknowledged[-1][1] > 200
    for measured_ms, logs in found:
        assert isinstance(logs, LogEnds)
        before = max((end for at_ms, end in acknowledged if at_ms < measured_ms), default=0)
        assert max(logs.last_stable_offset, before) <= logs.log_end_offset


def test_records_that_may_not_be_read_are_a_problem_beside_the_ends() -> None:
    authorizer = RuleAuthorizer(allows_without_rules=True)
    with BackgroundBroker(authorizer=authorizer) as broker:
        servers = broker.bootstrap_servers
        make_topic(servers, "t")
        produce(servers, "t", [b"v"])
        commit(servers, "g", {("t", 0): 1})
        instant = instant_of(cluster_at(servers))
        authorizer.allow(Operation.DESCRIBE, ResourceType.TOPIC)
        (found,) = measure([LogMeasure(cluster_at(servers), instant, {Place("t", 0): [0]})])
    (row,) = as_read(found).values()
    assert (row["log_end_offset"], row["records"]) == (1, [])
    assert row["problem"].startswith("the record at offset 0: TopicAuthorizationFailed")


def test_what_cannot_be_asked_is_a_problem_of_its_own() -> None:
    tp = Place("t", 0)
    instant = Instant(1, ClusterIdentity(None, None), "__consumer_offsets", {0: 1}, {})  # in which it is not
    with BackgroundBroker(authorizer=RuleAuthorizer()) as locked:
        clusters = [cluster_at(locked.bootstrap_servers), cluster_at("127.0.0.1:1")]
        found = measure([LogMeasure(each, instant, {tp: [1]}) for each in clusters])
    (row,), (away,) = (as_read(each).values() for each in found)
    assert row["problem"].startswith("TopicAuthorizationFailed")
    assert (row["is_deleted"], row["measured_time"]) == (False, None)
    assert away["problem"].startswith("cluster c: 127.0.0.1:1: connection refused")
