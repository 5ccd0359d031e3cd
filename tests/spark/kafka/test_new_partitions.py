"""Partitions that come while a stream runs are read from where their logs begin."""

from pyspark.sql.streaming.datasource import ReadMaxRows
from tests.acts import cut, new_topic
from tests.spark.kafka.test_source import produce

from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.kafka.source import StreamReader


def test_new_partitions_start_where_their_logs_do(servers: str) -> None:
    topic = new_topic(servers)
    produce(servers, topic, 300)
    cut(servers, topic, 40, 1)
    options = {"kafka.bootstrap.servers": servers, "cluster": "c", "subscribe": topic, "startingOffsets": "earliest"}
    reader = StreamReader(parse_options(options, is_streaming=True))
    before = {"c": {topic: {"0": 10}}}  # a checkpoint of when there was one partition
    end = reader.latestOffset(before, ReadMaxRows(60))
    tasks = reader.partitions(before, end)
    found = sorted((each.partition, each.start) for task in tasks for each in task.value)
    assert found == [(0, 10), (1, 40), (2, 0)]
    ranges = [each for task in tasks for each in task.value]
    assert 60 <= sum(each.size for each in ranges) <= 62
    assert sum(1 for task in tasks for _ in reader.read(task)) > 0
