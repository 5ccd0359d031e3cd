"""Topics with their sizes, who reads what, and whose it is: on a broker whose records and readers the test has made."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from tests.acts import begin_transaction, commit, produce
from tests.apache_kafka import require as require_apache_kafka
from tests.docs.questions import preparation, questions
from tests.spark.written_rows import rows_of
from tools.apache_kafka import ApacheKafka

from groupkeeper.client.admin.resources.types import ProducerState, TransactionDescription, TransactionState
from groupkeeper.client.admin.types import Node, TopicPartition
from groupkeeper.operations.transactions import OpenTransaction
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.jobs.topics import TopicFacts, _rows
from groupkeeper.pipeline.jobs.transactions import _rows as transaction_rows
from groupkeeper.pipeline.kafka.instants import ClusterIdentity, Instant, InstantRefused, LogEnds
from groupkeeper.pipeline.owners import owner_of, parse_owners
from groupkeeper.testing.background import BackgroundBroker

OWNERS = """\
# the last that matches counts
*            nobody
group:bil*   billing-team
topic:orders orders-team

  audit      auditors
"""


@contextmanager
def running(kind: str, more: Mapping[str, str] = MappingProxyType({})) -> Iterator[Any]:
    properties = {
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        **more,
    }
    if kind == "embedded":
        with BackgroundBroker(properties=properties) as broker:
            yield broker
        return
    require_apache_kafka()
    with ApacheKafka(properties) as kafka:
        yield kafka


@pytest.fixture(scope="module", params=["embedded", pytest.param("apache", marks=pytest.mark.conformance)])
def tables(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two refreshes: of groups that only commit, a reader that has left, and one that is there by a pattern."""
    tables = tmp_path_factory.mktemp("context") / "tables"
    with running(request.param) as broker:
        where = {"bootstrap.servers": broker.bootstrap_servers}
        config = {"retention.ms": "3600000", "retention.bytes": "1000000", "cleanup.policy": "delete"}
        admin = AdminClient(where)
        for made in admin.create_topics([NewTopic("orders", 2, config=config), NewTopic("audit", 1)]).values():
            made.result()
        produce(broker.bootstrap_servers, "orders", [bytes(1000)] * 40, (0, 1))
        commit(broker.bootstrap_servers, "billing", {("orders", 0): 5})
        commit(broker.bootstrap_servers, "copy", {("orders", 0): 6, ("audit", 0): 0})
        held = begin_transaction(
            broker.bootstrap_servers, "slow", "audit", [b"1", b"2"], **{"transaction.timeout.ms": 600_000}
        )
        left = Consumer({**where, "group.id": "search", "client.id": "old", "auto.offset.reset": "earliest"})
        left.subscribe(["orders"])
        while left.poll(0.1) is None:
            pass
        left.close()  # and has committed, as it does so by itself
        there = Consumer({**where, "group.id": "search-2", "client.id": "new", "group.protocol": "consumer"})
        there.subscribe(["^ord.*"])
        while not there.assignment():
            there.poll(0.1)
        options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "cluster": "c"}
        for _ in range(2):
            assert snapshot(spark, options, str(tables), owners=parse_owners(OWNERS, "owners")).problems == []
        there.close()
        held.abort_transaction(60)
    return tables


@pytest.mark.long
def test_topics_have_settings_sizes_and_readers(tables: Path) -> None:
    topics = {row["topic"]: row for row in rows_of(tables, "topics")}
    assert topics.keys() == {"orders", "audit", "__consumer_offsets", "__transaction_state"}
    orders = topics["orders"]
    assert [orders[name] for name in ("partitions", "replication_factor", "cleanup_policy", "retention_ms",
            "retention_bytes", "records", "is_internal", "problem")] == [
        2, 1, "delete", 3_600_000, 1_000_000, 40, False, None,
    ]  # fmt: skip
    assert 40_000 < orders["log_bytes"] == orders["disk_bytes"] < 60_000
    assert orders["groups"] == len({"billing", "copy", "search"})
    assert topics["__consumer_offsets"]["is_internal"] is True
    assert len(orders["measures"]) <= 2


@pytest.mark.long
def test_edges_are_who_reads_what_and_did(tables: Path) -> None:
    edges = {(row["group_id"], row["topic"], row["client_id"]): row for row in rows_of(tables, "edges")}
    assert edges.keys() == {
        ("billing", "orders", None),
        ("copy", "orders", None),
        ("copy", "audit", None),
        ("search", "orders", None),
        ("search", "orders", "old"),
        ("search-2", "orders", "new"),
    }
    measured = rows_of(tables, "freshness")[0]["measured_time"]  # topics are measured once a minute
    assert edges["search-2", "orders", "new"]["last_time"] == measured
    assert edges["search", "orders", "old"]["last_time"] < measured
    assert all(row["first_time"] <= row["last_time"] for row in edges.values())


@pytest.mark.long
def test_owners_of_groups_and_topics(spark: SparkSession, tables: Path) -> None:
    owners = {(row["kind"], row["name"]): row["owner"] for row in rows_of(tables, "owners")}
    assert owners["group", "billing"] == "billing-team"
    assert owners["group", "copy"] == "nobody"
    assert owners["topic", "orders"] == "orders-team"
    assert owners["topic", "audit"] == "auditors"
    assert len(owners) == len(rows_of(tables, "topics")) + len(rows_of(tables, "groups"))
    for name in ("topics", "edges", "owners", "freshness"):
        spark.read.parquet(str(tables / name)).createOrReplaceTempView(name)
    printed = {question.title: question.sql for question in questions()}
    readers_of_orders = spark.sql(printed["Which groups read this topic last month?"]).collect()
    teams = spark.sql(printed["How much does each team read and store?"]).collect()
    assert {(row.group_id, row.client_id) for row in readers_of_orders} == {
        (row["group_id"], row["client_id"]) for row in rows_of(tables, "edges") if row["topic"] == "orders"
    }
    disk = {row.owner: row.disk_bytes for row in teams}
    sizes = {row["topic"]: row["disk_bytes"] for row in rows_of(tables, "topics")}
    assert (disk["orders-team"], disk["billing-team"]) == (sizes["orders"], None)


@pytest.mark.long
def test_all_questions_can_be_asked_of_what_a_run_wrote(tables: Path) -> None:
    with duckdb.connect() as database:
        database.execute(preparation("sql").replace("'tables/", f"'{tables}/"))
        found = {question.title: database.sql(question.sql).fetchall() for question in questions()}
    assert len(found["How fresh are the answers?"]) == 1
    (waiting,) = found["Which open transactions block readers?"]
    assert (waiting[1:3], waiting[4:6]) == (("audit", 0), ("slow", 2))
    lag = {row["group_id"]: 0 for row in rows_of(tables, "lag")}
    for row in rows_of(tables, "lag"):
        lag[row["group_id"]] += row["lag"]
    assert {row[1]: row[2] for row in found["Which groups are furthest behind?"]} == {
        group: records for group, records in lag.items() if records
    }


@pytest.mark.long
def test_open_transactions_and_who_waits(tables: Path) -> None:
    (opened,) = rows_of(tables, "transactions")
    assert [opened[name] for name in ("topic", "partition", "transactional_id", "state", "first_offset",
            "held_offsets", "timeout_ms", "is_hanging", "groups")] == [
        "audit", 0, "slow", "Ongoing", 0, 2, 600_000, False, 1,
    ]  # fmt: skip
    assert 0 <= opened["open_ms"] < 600_000


def test_a_transaction_that_no_coordinator_knows_hangs() -> None:
    tp = TopicPartition("orders", 0)
    at = instant(1_500_000, {0: 100})
    state = ProducerState(7, 1, 3, 400_000, 0, 60)
    known = TransactionDescription(Node(1, "h", 1), TransactionState.ONGOING, 7, 1, 60_000, 1_470_000, (tp,))

    def told(producer: ProducerState, *rest: Any) -> list[tuple[object, ...]]:
        rows = transaction_rows("c", at, [OpenTransaction(tp, producer, *rest)])
        return [tuple(row[name] for name in ("is_hanging", "open_ms", "held_offsets", "state")) for row in rows]

    assert told(state, None, None, True) == [(True, 1_100_000, 40, None)]
    assert told(state, None, None, False) == [(None, 1_100_000, 40, None)]
    assert told(state, None, None, True, None) == [(None, 1_100_000, 40, None)]  # brokers do not tell their limit
    assert told(state, "id", known, True) == [(False, 30_000, 40, "Ongoing")]
    assert told(state._replace(last_timestamp=1_499_000), None, None, True) == [(False, 1000, 40, None)]
    assert told(state._replace(last_timestamp=-1), None, None, True) == [(None, None, 40, None)]
    assert told(state._replace(transaction_start=100), None, None, True) == []  # it began after the instant


def instant(measured_ms: int, ends: dict[int, int | None], topic_id: str = "id") -> Instant:
    logs = {
        TopicPartition("orders", number): InstantRefused("no leader", False)
        if end is None
        else LogEnds(0, end, end, topic_id)
        for number, end in ends.items()
    }
    return Instant(measured_ms, ClusterIdentity(None, None), "__consumer_offsets", {}, logs)


def told(before: dict[str, Any] | None, now: Instant, size: int | None) -> dict[str, Any]:
    known = {} if before is None else {("c", "orders"): before}
    (row,) = _rows("c", now, {"orders": TopicFacts(log_bytes=size)}, known)
    return row


def test_growth_is_told_of_measurements() -> None:
    first = told(None, instant(0, {0: 100, 1: 50}), 1000)
    assert (first["records"], first["records_per_s"], first["growth_bytes_per_s"]) == (150, None, None)
    soon = told(first, instant(20_000, {0: 110, 1: 50}), 1100)
    assert (soon["records_per_s"], len(soon["measures"])) == (None, 2)
    later = told(soon, instant(100_000, {0: 150, 1: 200}), 900)
    assert (later["records_per_s"], later["growth_bytes_per_s"]) == (2.0, -1.0)
    unknown = told(later, instant(200_000, {0: 150, 1: None}), None)
    assert (unknown["records"], unknown["records_per_s"], unknown["growth_bytes_per_s"]) == (None, None, None)
    assert unknown["problem"] == "the ends of its logs are not all known"
    after = told(unknown, instant(300_000, {0: 350, 1: 200}), 1000)
    assert after["records_per_s"] == pytest.approx(400 / 300)
    other = told(after, instant(400_000, {0: 400, 1: 400}, "another"), 1000)
    assert (other["records_per_s"], len(other["measures"])) == (None, 1)
    for number in range(20):
        later = told(later, instant(500_000 + 60_000 * number, {0: 150, 1: 200}), 900)
    assert len(later["measures"]) == 11
    assert later["measures"][-1]["time"] == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=500 + 19 * 60)


def test_owners_are_those_of_the_last_line_that_matches() -> None:
    rules = parse_owners(OWNERS, "owners")
    found = {(kind, name): rule and (rule.owner, rule.pattern)
             for kind, name in (("group", "audit"), ("group", "bill"), ("topic", "bill"), ("topic", "orders"))
             for rule in [owner_of(rules, kind, name)]}  # fmt: skip
    assert found == {
        ("group", "audit"): ("auditors", "audit"),
        ("group", "bill"): ("billing-team", "bil*"),
        ("topic", "bill"): ("nobody", "*"),
        ("topic", "orders"): ("orders-team", "orders"),
    }
    assert owner_of(rules[1:], "group", "copy") is None
    for text, said in (("a\nb c", "line 1"), ("x y\n\ngroup: y", "line 3"), ("x", "expected PATTERN OWNER")):
        with pytest.raises(SourceError, match=said):
            parse_owners(text, "file")
