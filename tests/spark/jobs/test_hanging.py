"""The table `transactions` on brokers whose producers were killed: one that its coordinator will abort, one that none
knows.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from tests.acts import ask, commit, new_topic
from tests.spark.jobs.test_context import running
from tests.spark.written_rows import rows_of
from tests.times_and_transactions import STRAY, write_stray

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.pipeline.jobs.snapshot import snapshot

PATIENCE_S = 60
TIMEOUT_MS = 840_000
PRODUCER = """
import sys, time
from confluent_kafka import Producer
servers, topic, timeout_ms = sys.argv[1:]
producer = Producer({"bootstrap.servers": servers, "transactional.id": "killed", "transaction.timeout.ms": timeout_ms})
producer.init_transactions(60)
producer.begin_transaction()
for number in range(3):
    producer.produce(topic, b"%d" % number)
assert producer.flush(60) == 0
print("written", flush=True)
time.sleep(600)
"""


@pytest.fixture(params=["embedded", pytest.param("apache", marks=pytest.mark.conformance)])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    # What 4.0 and later refuse, a late batch of an old client or a broker's fault leaves: a batch of no transaction.
    with running(request.param, {"transaction.partition.verification.enable": "false"}) as broker:
        yield broker.bootstrap_servers


def killed_with_an_open_transaction(servers: str, topic: str) -> None:
    words = [sys.executable, "-c", PRODUCER, servers, topic, str(TIMEOUT_MS)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
    finally:
        process.kill()
        process.wait()


def by_topic(tables: Path) -> dict[str, dict[str, Any]]:
    return {row["topic"]: row for row in rows_of(tables, "transactions")}


@pytest.mark.long
def test_what_killed_producers_hold_up(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    killed, stray = new_topic(servers, 1), new_topic(servers, 1)
    began_ms = int(time.time() * 1000)
    killed_with_an_open_transaction(servers, killed)
    write_stray(servers, stray, began_ms - 1_000_000)
    producer = Producer({"bootstrap.servers": servers})
    for topic in (killed, stray):
        producer.produce(topic, b"behind it")
    assert producer.flush(PATIENCE_S) == 0
    for group in ("waits", "waits-too"):
        commit(servers, group, {(killed, 0): 0, (stray, 0): 0})
    options = {"kafka.bootstrap.servers": servers, "cluster": "c"}
    tables = tmp_path / "tables"
    assert not snapshot(spark, options, str(tables)).problems
    found = by_topic(tables)
    known = found[killed]
    assert (known["transactional_id"], known["state"], known["is_hanging"]) == ("killed", "Ongoing", False)
    assert (known["first_offset"], known["held_offsets"], known["groups"]) == (0, 4, 2)
    assert known["timeout_ms"] == TIMEOUT_MS
    assert 0 <= known["open_ms"] <= time.time() * 1000 - began_ms
    hanging = found[stray]
    assert (hanging["producer_id"], hanging["producer_epoch"], hanging["is_hanging"]) == (STRAY, 0, True)
    assert hanging["transactional_id"] is hanging["state"] is hanging["timeout_ms"] is None
    assert (hanging["first_offset"], hanging["held_offsets"], hanging["groups"]) == (0, 3, 2)
    assert hanging["open_ms"] >= 1_000_000
    lag = {(row["group_id"], row["topic"]): row for row in rows_of(tables, "lag")}
    assert {(row["lag"], row["committed_lag"]) for (_, topic), row in lag.items() if topic == stray} == {(3, 0)}

    async def abort(admin: Any) -> None:
        tp = TopicPartition(stray, 0)
        (state,) = (await admin.describe_producers([tp])).all()[tp]
        await admin.abort_transaction(tp, state)

    ask(servers, abort)
    assert not snapshot(spark, options, str(tables)).problems
    assert by_topic(tables).keys() == {killed}
    lag = {(row["group_id"], row["topic"]): row for row in rows_of(tables, "lag")}
    assert {row["committed_lag"] for (_, topic), row in lag.items() if topic == stray} == {4}
