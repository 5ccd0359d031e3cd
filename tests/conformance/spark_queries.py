"""A program that runs queries with Spark's own Kafka source, lets them commit to groups, and stops them in the midst of
their work.

Arguments: brokers, a folder. There it leaves the queries' checkpoints, and `seen.json`: of each query and batch up to
where the rows went that Spark gave, by topic and partition.
"""

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.checkpoints.listener import CommitsToKafka
from groupkeeper.pipeline.session import start_session

PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
PATIENCE_S = 240
BATCHES = 3
SOURCES: dict[str, list[dict[str, str]]] = {  # that with `cluster` is the package's own source
    "subscribed": [{"subscribe": "orders,payments", "maxOffsetsPerTrigger": "40"}],
    "pattern": [{"subscribePattern": "ord.*", "maxOffsetsPerTrigger": "30"}],
    "assigned": [{"assign": '{"orders": [1]}', "maxOffsetsPerTrigger": "20"}],
    "united": [{"subscribe": "orders", "maxOffsetsPerTrigger": "25"}, {"subscribe": "payments"}],
    "both": [{"subscribe": "orders", "maxOffsetsPerTrigger": "25"}, {"subscribe": "payments", "cluster": "east"}],
}


def main(servers: str, folder: Path) -> None:
    spark = start_session(
        "queries", master="local[2]", log=folder / "spark.log", is_short=True,
        settings={"spark.jars.packages": PACKAGE, "spark.sql.shuffle.partitions": "1"},
    )  # fmt: skip

    def stream(options: dict[str, str]) -> DataFrame:
        source = "groupkeeper" if "cluster" in options else "kafka"
        reader = spark.readStream.format(source).option("kafka.bootstrap.servers", servers)
        frame = reader.options(startingOffsets="earliest", **options).load()
        return frame.select("topic", "partition", "offset")

    seen: dict[str, dict[int, Any]] = defaultdict(dict)

    def note(name: str) -> Callable[[DataFrame, int], None]:
        def write(batch: DataFrame, number: int) -> None:
            rows = batch.groupBy("topic", "partition").agg((F.max("offset") + 1).alias("next")).collect()
            seen[name][number] = [[row.topic, row.partition, row.next] for row in rows]

        return write

    spark.streams.addListener(CommitsToKafka(servers, interval_s=0.5))
    spark.streams.addListener(CommitsToKafka("127.0.0.1:1", interval_s=0.1))  # which must not be noticed
    queries = []
    for name, sources in SOURCES.items():
        frame = stream(sources[0])
        for more in sources[1:]:
            frame = frame.union(stream(more))
        writer = frame.writeStream.foreachBatch(note(name)).option("checkpointLocation", f"{folder}/{name}")
        queries.append(writer.queryName(name).trigger(processingTime="200 milliseconds").start())
    print("running", flush=True)
    deadline = time.monotonic() + PATIENCE_S
    while any(len(seen[query.name]) < BATCHES for query in queries):
        assert time.monotonic() < deadline, {name: len(own) for name, own in seen.items()}
        for query in queries:
            if (error := query.exception()) is not None:
                raise error
        time.sleep(0.2)
    for query in queries:
        query.stop()
    (folder / "seen.json").write_text(json.dumps(seen))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
