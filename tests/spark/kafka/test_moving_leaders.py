"""A stream over three nodes whose leaders and coordinators move, and which die and return in turn: it reads each record
once.
"""

from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from groupkeeper.testing.background import BackgroundBroker

RETRIES = {"retry.backoff.ms": 20, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100}
COUNT = 60


def commit(servers: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "billing", "enable.auto.commit": False, **RETRIES})
    for attempt in range(20):
        try:
            consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
            break
        except KafkaException:  # its coordinator moves
            assert attempt < 19
    consumer.close()


@pytest.mark.long
def test_a_stream_reads_each_record_once(spark: SparkSession, tmp_path: Path) -> None:
    settings = {"offsets.topic.num.partitions": "1", "min.insync.replicas": "2"}
    with BackgroundBroker(properties=settings, brokers=3) as broker:
        servers = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        topics = [NewTopic("orders", 2, 3), NewTopic("__consumer_offsets", 1, 3)]
        for made in admin.create_topics(topics).values():
            made.result(60)
        source = spark.readStream.format("groupkeeper").option("kafka.bootstrap.servers", servers)
        source = source.options(subscribe="orders,__consumer_offsets", startingOffsets="earliest")
        rows = source.load().select("topic", "partition", "offset").writeStream.format("parquet")
        query = rows.option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(tmp_path / "rows"))
        producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, **RETRIES})
        for node in (1, 2, 3):
            broker.move_leader("orders", 0, node)
            broker.move_coordinator("billing", node)
            for number in range(COUNT):
                producer.produce("orders", b"x", partition=number % 2)
                if number == COUNT // 2:
                    producer.flush(60)
                    broker.kill_node(node)
                    commit(servers, node)
            assert producer.flush(60) == 0
            query.processAllAvailable()
            broker.start_node(node)
        query.processAllAvailable()
        query.stop()
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "none"})
        places = [("orders", 0), ("orders", 1), ("__consumer_offsets", 0)]
        ends = {place: consumer.get_watermark_offsets(TopicPartition(*place), timeout=60)[1] for place in places}
        consumer.close()
    read = Counter(tuple(row) for row in spark.read.parquet(str(tmp_path / "rows")).collect())
    assert ends["orders", 0] == ends["orders", 1] == 3 * COUNT // 2
    assert read == Counter((*place, offset) for place, end in ends.items() for offset in range(end))
