"""The source `groupkeeper` inside Spark: what it reads, and what it says when it cannot."""

import json
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests import acts
from tests.acts import ask, commit, cut, new_topic
from tests.spark.commits import commits_in

from groupkeeper.pipeline.decode.history import group_records
from groupkeeper.pipeline.errors import cause_of
from groupkeeper.pipeline.tables import COMMITS, CURRENT_OFFSETS, DECODED, GROUP_RECORDS
from groupkeeper.pipeline.transforms.decoded import decode_archive, decode_key_value
from groupkeeper.pipeline.transforms.latest import latest
from groupkeeper.testing.background import BackgroundBroker

T = TypeVar("T")
PATIENCE_S = 60
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def produce(servers: str, topic: str, count: int, **settings: Any) -> list[tuple[int, bytes | None, bytes | None]]:
    """Records on all partitions by turns, with headers, nulls and times: their partition, key and value."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, **settings})
    sent = []
    for number in range(count):
        key = None if number % 7 == 0 else b"k%d" % number
        value = None if number % 11 == 0 else b"v" * (number % 50)
        headers: list[tuple[str, str | bytes | None]] | None = [("h", b"%d" % number)] if number % 5 == 0 else None
        partition = number % 3
        producer.produce(topic, value, key, partition, headers=headers, timestamp=1_700_000_000_000 + number)
        sent.append((partition, key, value))
    assert producer.flush(PATIENCE_S) == 0
    return sent


def consume(servers: str, group_id: str, topic: str, count: int) -> None:
    """A member of a classic group that reads some records, commits and leaves."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    found = consumer.consume(count, PATIENCE_S)
    assert len(found) == count
    consumer.commit(asynchronous=False)
    consumer.close()


def read(spark: SparkSession, servers: str, **options: Any) -> DataFrame:
    reader = spark.read.format("groupkeeper").option("kafka.bootstrap.servers", servers).option("cluster", "c")
    return reader.options(**options).load()


def current_offsets(decoded: DataFrame) -> DataFrame:
    return latest(commits_in(decoded), CURRENT_OFFSETS.key)


def records_of_groups(decoded: DataFrame) -> DataFrame:
    return decoded.mapInArrow(lambda batches: map(group_records, batches), GROUP_RECORDS.ddl)


def decoded(spark: SparkSession, servers: str, **options: Any) -> DataFrame:
    return read(spark, servers, rows="decoded", **options)


def refusal(frame: Callable[[], DataFrame]) -> str:
    """What the user is told."""
    with pytest.raises(PySparkException) as caught:
        frame().collect()
    return told(caught.value)


def told(error: PySparkException) -> str:
    """What the user is told: all that Python says, but for a frame or two of it and of PySpark."""
    text = cause_of(error)
    assert text is not None, str(error)
    before, _, after = str(error).partition("Traceback (most recent call last):\n")
    trace = after.partition(text)[0].splitlines()
    assert len(before.splitlines()) == 1
    assert len(trace) <= 7, str(error)
    assert trace[-1] == "groupkeeper.pipeline.errors.SourceError: "
    return text


@pytest.mark.long
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_records_as_sparks_own_connector_has_them(spark: SparkSession, servers: str, compression: str) -> None:
    topic = new_topic(servers)
    sent = produce(servers, topic, 1000, **{"compression.type": compression})
    frame = read(spark, servers, subscribe=topic, includeHeaders="true", minPartitions=4)
    names = "key value topic partition offset timestamp timestampType headers cluster"
    assert frame.columns == names.split()
    rows = frame.orderBy("timestamp").collect()
    as_bytes = [
        (row.partition, row.key and bytes(row.key), row.value if row.value is None else bytes(row.value))
        for row in rows
    ]
    assert as_bytes == sent
    assert {row.headers[0].key for row in rows[::5]} == {"h"}
    assert rows[1].headers is None
    assert {(row.topic, row.cluster, row.timestampType) for row in rows} == {(topic, "c", 0)}
    middle = read(
        spark, servers, subscribe=topic, startingOffsets=json.dumps({topic: {"0": 300, "1": 10, "2": -2}}),
        endingOffsets=json.dumps({topic: {"0": -1, "1": 12, "2": 0}}),
    )  # fmt: skip
    assert sorted((row.partition, row.offset) for row in middle.collect()) == [
        *((0, offset) for offset in range(300, 334)), (1, 10), (1, 11)
    ]  # fmt: skip
    late = read(spark, servers, assign=json.dumps({topic: [1]}), startingTimestamp=1_700_000_000_000 + 990)
    assert [row.offset for row in late.collect()] == [330, 331, 332]


def test_the_offsets_topic_as_tables(spark: SparkSession, servers: str) -> None:
    topic = new_topic(servers)
    produce(servers, topic, 300)
    group_ids = [f"g-{uuid.uuid4().hex[:6]}" for _ in range(5)]
    for number in range(20):
        for group_id in group_ids:
            commit(servers, group_id, {(topic, 0): number, (topic, 1): 2 * number, (topic, 2): 5})
    consume(servers, group_ids[0], topic, 300 - 19 - 38 - 5)
    ask(servers, lambda admin: admin.delete_consumer_groups(group_ids[4:]))
    frame = decoded(spark, servers).where(F.col("group_id").isin(group_ids)).cache()
    assert frame.schema == spark.createDataFrame([], DECODED.ddl).schema
    history = commits_in(frame)
    assert history.columns == COMMITS.names
    assert history.where((F.col("group_id") == group_ids[1]) & ~F.col("is_tombstone")).count() == 60
    now = {(row.group_id, row.topic, row.partition): row.committed_offset for row in current_offsets(frame).collect()}
    asked = ask(servers, lambda admin: admin.list_consumer_group_offsets(dict.fromkeys(group_ids)))
    wanted = {
        (group_id, tp.topic, tp.partition): found.offset
        for group_id, offsets in asked.done.items()
        for tp, found in offsets.done.items()
        if found is not None
    }
    assert now == wanted
    assert len(wanted) == 4 * 3
    last = current_offsets(decoded(spark, servers, latestOnly="true")).where(F.col("group_id").isin(group_ids))
    assert {(r.group_id, r.topic, r.partition): r.committed_offset for r in last.collect()} == wanted
    gone = history.where(F.col("is_tombstone")).collect()
    assert {row.group_id for row in gone} == {group_ids[4]}
    groups = records_of_groups(frame)
    assert groups.columns == GROUP_RECORDS.names
    (generation,) = groups.where("group_type = 'classic' AND size(members) = 1").orderBy("log_offset").tail(1)
    assert generation.members[0].subscribed_topics == [topic]
    assert generation.members[0].assigned[0].partitions == [0, 1, 2]
    frame.unpersist()


def test_key_and_value_from_elsewhere_are_decoded_alike(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    topic = new_topic(servers)
    commit(servers, "archived", {(topic, 0): 1, (topic, 1): 2})
    produce(servers, topic, 3)
    consume(servers, "archived-members", topic, 3)
    raw = read(spark, servers, subscribe="__consumer_offsets")
    raw.write.parquet(str(tmp_path / "archive"))
    found = decode_key_value(spark.read.parquet(str(tmp_path / "archive")))
    is_marker = "coalesce(get_json_object(group_record, '$.record_name') = 'EndTransaction', false)"
    direct = decoded(spark, servers).where(f"NOT {is_marker}")
    assert found.schema == direct.schema
    place = ["log_partition", "log_offset"]
    seen = found.orderBy(*place).collect()
    assert seen == direct.withColumn("producer_id", F.lit(None).cast("bigint")).orderBy(*place).collect()
    archived = decode_archive(spark, str(tmp_path / "archive"))
    assert archived.orderBy(*place).collect() == found.orderBy(*place).collect()


def test_transactions(spark: SparkSession, servers: str) -> None:
    topic = new_topic(servers, 1)
    group_id = f"t-{uuid.uuid4().hex[:6]}"
    reader = Consumer({"bootstrap.servers": servers, "group.id": group_id})
    producer = Producer({"bootstrap.servers": servers, "transactional.id": group_id})
    producer.init_transactions(PATIENCE_S)
    for number, outcome in enumerate(["abort", "commit", "abort", "open"]):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number)
        offsets = [TopicPartition(topic, 0, 100 + number)]
        producer.send_offsets_to_transaction(offsets, reader.consumer_group_metadata(), PATIENCE_S)
        producer.flush(PATIENCE_S)
        if outcome == "commit":
            producer.commit_transaction(PATIENCE_S)
        elif outcome == "abort":
            producer.abort_transaction(PATIENCE_S)
    assert [bytes(row.value) for row in read(spark, servers, subscribe=topic).collect()] == [b"1"]
    uncommitted = {"kafka.isolation.level": "read_uncommitted"}
    everything = read(spark, servers, subscribe=topic, **uncommitted)
    assert sorted(bytes(row.value) for row in everything.collect()) == [b"0", b"1", b"2", b"3"]
    mine = F.col("group_id") == group_id
    (row,) = decoded(spark, servers).where(mine).collect()
    assert row.committed_offset == 101
    assert row.producer_id is not None
    all_rows = decoded(spark, servers, **uncommitted)
    assert sorted(row.committed_offset for row in all_rows.where(mine).collect()) == [100, 101, 102, 103]
    markers = records_of_groups(all_rows).where("record_name = 'EndTransaction'").select("value_json")
    kinds = [json.loads(row.value_json)["type"] for row in markers.collect()]
    assert (kinds.count("COMMIT"), kinds.count("ABORT")) == (1, 2)
    producer.abort_transaction(PATIENCE_S)
    reader.close()


def test_several_clusters(spark: SparkSession, servers: str) -> None:
    with BackgroundBroker() as other:
        commit(servers, "fleet", {(new_topic(servers), 0): 1})
        commit(other.bootstrap_servers, "fleet", {(new_topic(other.bootstrap_servers), 0): 2})
        clusters = {
            "east": {"kafka.bootstrap.servers": servers},
            "west": {"kafka.bootstrap.servers": other.bootstrap_servers},
        }
        frame = spark.read.format("groupkeeper").options(clusters=json.dumps(clusters), rows="decoded").load()
        found = current_offsets(frame).where("group_id = 'fleet'").collect()
        assert {(row.cluster, row.committed_offset) for row in found} == {("east", 1), ("west", 2)}


def test_records_that_are_gone(spark: SparkSession, servers: str) -> None:
    topic = new_topic(servers)
    produce(servers, topic, 300)
    cut(servers, topic, 40, 1)
    wanted = json.dumps({topic: {"0": 0, "1": 10, "2": 0}})
    text = refusal(lambda: read(spark, servers, subscribe=topic, startingOffsets=wanted))
    assert text.startswith(f"cluster c, partition {topic}-1: offsets 10 to 39 are gone, the log starts at 40")
    rest = read(spark, servers, subscribe=topic, startingOffsets=wanted, failOnDataLoss="false")
    assert rest.count() == 260


def test_errors_name_what_is_wrong(spark: SparkSession, servers: str) -> None:
    assert "topic nowhere: it does not exist" in refusal(lambda: read(spark, servers, subscribe="nowhere"))
    topic = new_topic(servers, 1)
    for option in ("startingOffsets", "endingOffsets", "startingOffsetsByTimestamp"):
        wrong = {option: json.dumps({topic: {"7": 0}})}
        elsewhere = refusal(partial(read, spark, servers, subscribe=topic, **wrong))
        assert f"of {topic}-7, which is not among the partitions to read" in elsewhere
    assert "did you mean startingOffsets?" in refusal(lambda: read(spark, servers, subscribe="t", startingOfsets="1"))
    unreachable = refusal(lambda: read(spark, "127.0.0.1:1", subscribe="t", **{"kafka.default.api.timeout.ms": "500"}))
    assert unreachable.startswith("cluster c: 127.0.0.1:1: connection refused")


def stream(spark: SparkSession, options: dict[str, str], checkpoint: Path) -> None:
    writer = spark.readStream.format("groupkeeper").options(**options).load().writeStream.format("noop")
    writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()


@pytest.mark.timeout(180)
def test_errors_are_told_in_one_line_in_batch_and_in_streams(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    topic = new_topic(servers, 1)
    at, quick = {"kafka.bootstrap.servers": servers}, {"kafka.default.api.timeout.ms": "1000"}
    wrong: dict[str, dict[str, str]] = {
        "topic nowhere: it does not exist: create it": {**at, "subscribe": "nowhere"},
        f"did you mean {topic}?": {**at, "subscribe": topic[:-1]},
        "topic a b: no topic has such a name": {**at, "subscribe": "a b"},
        f"{topic} has no partition 4: it has 1": {**at, "assign": json.dumps({topic: [4]})},
        "startingOffsets=erliest: it is written as earliest, latest": {**at, "startingOffsets": "erliest"},
        "connection refused: no broker listens there": {"kafka.bootstrap.servers": "127.0.0.1:1", **quick},
        "security.protocol=SLS is not known: use one of PLAINTEXT": {**at, "kafka.security.protocol": "SLS"},
        "topicIds names nowhere, which is not read": {**at, "topicIds": '{"nowhere": "AAAAAAAAAAAAAAAAAAAAAQ"}'},
    }
    users = {name: name for name in ("ann", "bob", "cyd")}
    with BackgroundBroker(users=users, acls=["ann CREATE,WRITE TOPIC *", "bob DESCRIBE TOPIC *"]) as locked:
        secured = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        as_ann = secured | {"sasl.username": "ann", "sasl.password": "ann"}
        acts.produce(locked.bootstrap_servers, topic, ["hidden"], client=as_ann)
        for said, name, password in (
            ("-0, offset 0: not authorized: the principal needs Read on the topic", "bob", "bob"),
            (f"topic {topic}: not authorized: the principal needs Describe and Read on the topic", "cyd", "cyd"),
            ("check username and password in sasl.jaas.config", "ann", "wrong"),
        ):
            own = {**secured, "bootstrap.servers": locked.bootstrap_servers}
            own["sasl.jaas.config"] = f'{PLAIN} required username="{name}" password="{password}";'
            wrong[said] = {"startingOffsets": "earliest"} | {f"kafka.{each}": value for each, value in own.items()}
        for number, (said, options) in enumerate(wrong.items()):
            if not {"subscribe", "assign"} & options.keys():
                options = options | {"subscribe": topic}
            assert said in refusal(spark.read.format("groupkeeper").options(**options).load)
            with pytest.raises(PySparkException) as caught:
                stream(spark, options, tmp_path / str(number))
            assert said in told(caught.value)
    with pytest.raises(PySparkException, match='format "groupkeeper" only reads: Spark writes to Kafka with format'):
        spark.range(1).write.format("groupkeeper").mode("append").save()


@pytest.mark.long
def test_a_stream_neither_loses_nor_doubles_a_row(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    topic = new_topic(servers)
    source = spark.readStream.format("groupkeeper").option("kafka.bootstrap.servers", servers)
    source = source.options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=200)

    def run() -> None:
        writer = source.load().select("partition", "offset").writeStream.format("parquet")
        query = (
            writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "rows"))
        )
        query.awaitTermination()

    for total in (500, 800):
        produce(servers, topic, total if total == 500 else 300)
        run()
        rows = spark.read.parquet(str(tmp_path / "rows")).collect()
        assert len(rows) == total
        assert len(set(rows)) == total
