"""Queries with Spark's own Kafka source, stopped in the midst of their work: lag is exactly the logs' ends minus the
checkpoint, and what that must say is known from the rows that Spark gave the queries.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests import acts
from tests.conformance.brokers import PROPERTIES
from tests.conformance.spark_queries import SOURCES
from tools.apache_kafka import ApacheKafka

from groupkeeper.cli.main import main
from groupkeeper.testing.background import BackgroundBroker

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(900)]

Place = tuple[str, str, int]
"""A query, a topic and a partition."""
TOPICS = {"orders": 2, "payments": 1}


@pytest.fixture(params=["embedded", "apache"])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "apache":
        request.getfixturevalue("apache_jars")
        with ApacheKafka(PROPERTIES) as kafka:
            yield kafka.bootstrap_servers
    else:
        with BackgroundBroker(properties=PROPERTIES) as broker:
            yield broker.bootstrap_servers


def produce(servers: str, stop: threading.Event) -> None:
    """Some records at once, and more while the queries run."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
    number = 0
    while number < 300 or not stop.wait(0.01):
        for topic, partitions in TOPICS.items():
            producer.produce(topic, str(number), partition=number % partitions)
        number += 1
        if number % 100 == 0:
            producer.flush(60)
    assert producer.flush(60) == 0


def ends(servers: str) -> dict[tuple[str, int], int]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "none"})
    places = [(topic, number) for topic, partitions in TOPICS.items() for number in range(partitions)]
    found = {place: consumer.get_watermark_offsets(TopicPartition(*place), timeout=60)[1] for place in places}
    consumer.close()
    return found


def done_batches(folder: Path, name: str) -> list[int]:
    return sorted(int(each) for each in os.listdir(folder / name / "commits") if each.isdecimal())


def truth(folder: Path, name: str, batch: int) -> dict[Place, int]:
    """The next offset of each partition by the rows of a query's batches up to this one."""
    batches = json.loads((folder / "seen.json").read_text())[name]
    found: dict[Place, int] = {}
    for number in range(batch + 1):
        for topic, partition, offset in batches.get(str(number), ()):
            found[name, topic, partition] = offset
    return found


def committed(servers: str, group_id: str) -> tuple[int, dict[Place, int]]:
    """The batch that a query's group stands at, and the offsets."""
    commits = acts.committed(servers, group_id)
    (batch,) = {json.loads(each.metadata)["batch"] for each in commits.values()}
    name = group_id.removeprefix("spark-")
    return batch, {(name, *tp): each.offset for tp, each in commits.items()}


def shown(report: Mapping[str, Any]) -> dict[Place, tuple[int, int]]:
    return {
        (row["query"], row["topic"], row["partition"]): (row["next_offset"], row["lag"]) for row in report["offsets"]
    }


def test_lag_of_queries_that_were_stopped(servers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(*each) for each in TOPICS.items()]).values():
        made.result(60)
    stop = threading.Event()
    producing = threading.Thread(target=produce, args=(servers, stop))
    producing.start()
    try:
        program = [sys.executable, "-m", "tests.conformance.spark_queries", servers, str(tmp_path)]
        ended = subprocess.run(program, capture_output=True, text=True, check=False, timeout=800)
    finally:
        stop.set()
        producing.join()
    if "unresolved dependency" in ended.stdout + ended.stderr:
        pytest.skip("Spark's Kafka source cannot be had")
    assert ended.returncode == 0, ended.stderr
    expected: dict[Place, int] = {}
    for name in SOURCES:
        last = done_batches(tmp_path, name)[-1]
        expected |= truth(tmp_path, name, last)
        batch, offsets = committed(servers, f"spark-{name}")
        assert batch in (last - 1, last)  # the query may be stopped before it tells of its last batch
        assert {place: offset for place, offset in offsets.items() if offset} == truth(tmp_path, name, batch)
    logs = ends(servers)
    wanted = {place: (offset, logs[place[1:]] - offset) for place, offset in expected.items()}
    paths = [str(tmp_path / name) for name in SOURCES]
    where = ["--bootstrap-server", servers]
    assert main(["spark", "lag", *paths, *where, "--output", "json"]) == 0
    assert shown(json.loads(capsys.readouterr().out)) == wanted
    assert sum(lag for _, lag in wanted.values()) > 0
    tables = tmp_path / "tables"
    checkpoints = [word for path in paths for word in ("--checkpoint", f"c:x-{Path(path).name}={path}")]
    done = subprocess.run(
        [sys.executable, "-m", "groupkeeper", "pipeline", "snapshot", "--tables", str(tables), *checkpoints,
         "--bootstrap-server", f"c={servers}"],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [row for row in pq.read_table(tables / "lag").to_pylist() if row["group_id"].startswith("x-")]
    assert {
        (row["group_id"].removeprefix("x-"), row["topic"], row["partition"]): (row["committed_offset"], row["lag"])
        for row in rows
    } == wanted
    types = {row["group_id"]: row["group_type"] for row in pq.read_table(tables / "groups").to_pylist()}
    assert types == {f"x-{name}": "spark" for name in SOURCES} | {f"spark-{name}": "simple" for name in SOURCES}
    assert main(["spark", "starting-offsets", "--checkpoint", str(tmp_path / "united"), *where]) == 0
    start = json.loads(capsys.readouterr().out)
    assert {
        ("united", topic, int(number)): offset for topic, own in start.items() for number, offset in own.items()
    } == {place: offset for place, offset in expected.items() if place[0] == "united"}
