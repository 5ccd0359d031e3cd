"""Share groups' offsets by the topic of their state: what a member has accepted, rejected and given back."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer
from tests.acts import ask, begin_with_the_first_record, make_topic, produce
from tests.apache_kafka import require as require_apache_kafka
from tools.apache_kafka import ApacheKafka

from groupkeeper.broker import authorizer as brokers
from groupkeeper.pipeline.jobs.log_offsets import Clusters
from groupkeeper.pipeline.jobs.share_offsets import share_offsets
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.kafka.planning import named, plan
from groupkeeper.protocol import SHARE_STATE_TOPIC
from groupkeeper.testing.background import BackgroundBroker

PATIENCE_S = 60
RECORDS = 10
ACCEPTED, REJECTED = (0, 1, 2, 4), (5,)
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "200",
}


@pytest.fixture(params=["embedded", pytest.param("apache", marks=pytest.mark.conformance)])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "embedded":
        with BackgroundBroker(properties=PROPERTIES) as broker:
            yield broker.bootstrap_servers
        return
    require_apache_kafka()
    with ApacheKafka(PROPERTIES) as kafka:
        yield kafka.bootstrap_servers


def work(servers: str) -> None:
    """Ten jobs, one portion of them: some accepted, one rejected, the others given back."""
    make_topic(servers, "jobs")
    begin_with_the_first_record(servers, "queue")
    produce(servers, "jobs", map(str, range(RECORDS)))
    settings = {"bootstrap.servers": servers, "group.id": "queue", "share.acknowledgement.mode": "explicit"}
    deadline = time.monotonic() + PATIENCE_S
    with ShareConsumer(settings) as consumer:
        consumer.subscribe(["jobs"])
        seen = 0
        while seen < RECORDS:
            assert time.monotonic() < deadline
            for message in consumer.poll(0.2):
                if message.error() is None:
                    seen += 1
                    kind = AcknowledgeType.RELEASE
                    if message.offset() in ACCEPTED:
                        kind = AcknowledgeType.ACCEPT
                    elif message.offset() in REJECTED:
                        kind = AcknowledgeType.REJECT
                    consumer.acknowledge(message, kind)
        assert [error for error in consumer.commit_sync(PATIENCE_S).values() if error is not None] == []


@pytest.mark.timeout(300)
def test_what_a_share_group_has_done_and_what_it_gave_back(servers: str) -> None:
    work(servers)
    options = parse_options({"kafka.bootstrap.servers": servers, "cluster": "c", "rows": "decoded"})
    found = asyncio.run(plan(options))
    notes: list[str] = []
    (row,) = share_offsets(Clusters(named(options, found.ranges), found.instants, {}), notes.append).to_pylist()
    assert notes == []
    expected = {
        "cluster": "c", "group_id": "queue", "topic": "jobs", "partition": 0, "start_offset": 3, "lag": 5,
        "done_ahead": 2, "rejected": 1, "to_redeliver": 5, "redelivered": 0, "most_deliveries": 1,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    offsets = ask(servers, lambda admin: admin.list_share_group_offsets({"queue": None})).done["queue"].done
    assert [each.lag for each in offsets.values() if each is not None] == [row["lag"]]


@pytest.mark.timeout(300)
def test_a_cluster_whose_state_may_not_be_read_is_noted() -> None:
    rules = brokers.RuleAuthorizer(allows_without_rules=True)
    with BackgroundBroker(authorizer=rules, properties=PROPERTIES) as broker:
        work(broker.bootstrap_servers)
        options = parse_options(
            {"kafka.bootstrap.servers": broker.bootstrap_servers, "cluster": "c", "rows": "decoded"}
        )
        found = asyncio.run(plan(options))
        rules.deny(brokers.Operation.READ, brokers.ResourceType.TOPIC, SHARE_STATE_TOPIC)
        notes: list[str] = []
        rows = share_offsets(Clusters(named(options, found.ranges), found.instants, {}), notes.append)
    assert rows.num_rows == 0
    assert len(notes) == 1
    assert SHARE_STATE_TOPIC in notes[0]
