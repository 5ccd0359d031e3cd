"""Progress of queries as commits of a group: asynchronous, the latest wins, nobody else's group is touched."""

import json
import logging
import socket
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests import acts
from tests.acts import make_topic
from tests.patience import until

from groupkeeper.client.admin import Admin
from groupkeeper.pipeline.checkpoints.committing import CommitProgress, Committer
from groupkeeper.pipeline.checkpoints.listener import CommitsToKafka
from groupkeeper.testing.background import BackgroundBroker

BROKER = {"properties": {"group.initial.rebalance.delay.ms": "0"}}
PATIENCE_S = 20


@pytest.fixture(scope="module")
def servers(broker: BackgroundBroker) -> str:
    make_topic(broker.bootstrap_servers, "orders", 2)
    return broker.bootstrap_servers


def committed(servers: str, group_id: str) -> dict[tuple[str, int], tuple[int, str]]:
    found = acts.committed(servers, group_id)
    return {(tp.topic, tp.partition): (each.offset, each.metadata) for tp, each in found.items()}


def at(number: int, query: str = "q1") -> CommitProgress:
    return CommitProgress(query, number, [json.dumps({"orders": {"0": number, "1": 2 * number}}), "5"])


def test_the_latest_progress_is_committed(servers: str) -> None:
    committer = Committer(servers, interval_s=60)
    for number in range(1, 1000):
        committer.put("many", at(number))
        committer.put("other", at(number, "q2"))
    assert committer.close(PATIENCE_S)
    found = committed(servers, "many")
    assert {place: offset for place, (offset, _) in found.items()} == {("orders", 0): 999, ("orders", 1): 1998}
    assert json.loads(found["orders", 0][1]) == {"query": "q1", "batch": 999}
    assert json.loads(committed(servers, "other")["orders", 1][1]) == {"query": "q2", "batch": 999}
    committer.put("many", at(5000))  # it is closed
    assert committed(servers, "many") == found


def test_two_sources_of_a_partition_count_as_the_slower_one(servers: str) -> None:
    committer = Committer(servers)
    sources = ['{"orders":{"0":7,"1":null}}', '{"orders":{"0":5}}', '{"gone":{"0":1}}']
    committer.put("slower", CommitProgress("q", 1, sources))
    assert committer.close(PATIENCE_S)
    assert {place: offset for place, (offset, _) in committed(servers, "slower").items()} == {("orders", 0): 5}


def test_of_the_packages_own_source_a_cluster_is_committed(servers: str, caplog: pytest.LogCaptureFixture) -> None:
    own = acts.ask(servers, Admin.describe_cluster).cluster_id
    one, two = (json.dumps({name: {"orders": {"0": 7}, "__consumer_offsets": {"3": 9}}, "west": {"orders": {"0": 2}}})
                for name in (own, "east"))  # fmt: skip
    found = []
    for group_id, source, cluster in (("by-id", one, None), ("by-name", two, "east"), ("west", two, "west"),
                                      ("neither", two, None)):  # fmt: skip
        committer = Committer(servers, cluster=cluster, interval_s=0.01)
        for number in range(3):
            committer.put(group_id, CommitProgress("q", number, [source, '{"orders":{"1":5}}']))
            until(lambda: not committer._due and not committer._is_busy)  # noqa: B023
        with caplog.at_level(logging.WARNING):
            assert committer.close(PATIENCE_S)
        found.append({place[1]: offset for place, (offset, _) in committed(servers, group_id).items()})
    assert found == [{0: 7, 1: 5}, {0: 7, 1: 5}, {0: 2, 1: 5}, {1: 5}]
    assert [each for each in committed(servers, "by-id") if each[0] != "orders"] == []
    said = [record.message for record in caplog.records]
    assert len(said) == 3  # each once
    assert said[0].startswith("group by-id: the query's offsets of __consumer_offsets are not committed: each commit")
    assert said[2].startswith(f"group neither: it reads east and west, and this cluster is {own}: give its name there")


def test_groups_of_others_are_left_as_they_are(servers: str, caplog: pytest.LogCaptureFixture) -> None:
    settings = {"bootstrap.servers": servers, "group.id": "of-a-consumer"}
    with_members = Consumer({**settings, "group.id": "with-members"})
    with_members.subscribe(["orders"])
    consumer = Consumer(settings)
    consumer.commit(offsets=[TopicPartition("orders", 0, 3)], asynchronous=False)
    consumer.close()
    until(lambda: with_members.poll(0.1) is None and bool(with_members.assignment()))
    first = Committer(servers)
    first.put("of-a-query", at(4))
    assert first.close(PATIENCE_S)
    second = Committer(servers, interval_s=0.1)
    for group_id in ("of-a-consumer", "with-members", "of-a-query"):
        second.put(group_id, at(9, "q9"))
    with caplog.at_level(logging.WARNING):
        assert second.close(PATIENCE_S)
    said = {record.message.split(":")[0]: record.message for record in caplog.records}
    assert said.keys() == {"group of-a-consumer", "group with-members", "group of-a-query"}
    assert "committed by something else" in said["group of-a-consumer"]
    assert "it has members" in said["group with-members"]
    assert "of another query, q1" in said["group of-a-query"]
    assert [committed(servers, each).get(("orders", 0), (None,))[0] for each in
            ("of-a-consumer", "with-members", "of-a-query")] == [3, None, 4]  # fmt: skip
    third = Committer(servers, takes_over=True)
    third.put("of-a-query", at(9, "q9"))
    third.put("of-a-consumer", at(9, "q9"))
    assert third.close(PATIENCE_S)
    assert committed(servers, "of-a-query")["orders", 0][0] == 9
    assert committed(servers, "of-a-consumer")["orders", 0][0] == 3
    with_members.close()


def test_a_cluster_that_is_away_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    properties = {"default.api.timeout.ms": "300", "request.timeout.ms": "200"}
    committer = Committer(f"127.0.0.1:{port}", properties, interval_s=0.05)
    began = time.process_time()
    for number in range(10_000):
        committer.put("away", at(number))
    assert time.process_time() - began < 2
    with caplog.at_level(logging.WARNING):
        until(lambda: bool(caplog.records))
    assert "progress cannot be committed" in caplog.records[0].message
    assert committer.close(PATIENCE_S) is False


def event(**found: Any) -> Any:
    return SimpleNamespace(**found)


def test_what_the_listener_makes_of_events(servers: str) -> None:
    listener = CommitsToKafka(servers, interval_s=60, group_of=lambda name, query_id: name and f"g-{name}")
    sources = [event(endOffset='{"orders": {"0": 6}}'), event(endOffset=None), event(endOffset="3")]
    for name in ("named", None):
        progress = event(id="q", runId=f"run-{name}", name=name, batchId=2, sources=sources)
        listener.onQueryProgress(event(progress=progress))
    listener.onQueryIdle(event(runId="run-named"))
    listener.onQueryTerminated(event(runId="run-named"))
    until(lambda: committed(servers, "g-named") == {("orders", 0): (6, '{"query": "q", "batch": 2}')})
    listener.close()


def test_what_is_left_is_committed_when_the_program_ends(servers: str) -> None:
    port = servers.rpartition(":")[2]
    program = (
        "from groupkeeper.pipeline.checkpoints.listener import CommitsToKafka\n"
        "from groupkeeper.pipeline.checkpoints.committing import CommitProgress\n"
        f"listener = CommitsToKafka('localhost:{port}', interval_s=60)\n"
        "for number in (1, 2):\n"
        "    listener._committer.put('ended', CommitProgress('q', number, ['{\"orders\": {\"0\": %d}}' % number]))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert committed(servers, "ended")["orders", 0][0] == 2
