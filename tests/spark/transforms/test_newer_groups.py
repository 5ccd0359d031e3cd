"""Share groups and streams groups in the tables, beside what Admin reports of them: on our broker and Apache Kafka."""

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer, ShareConsumer
from pyspark.sql import SparkSession
from tests.acts import ask, begin_with_the_first_record, new_topic, produce
from tests.apache_kafka import require as require_apache_kafka
from tests.patience import until
from tests.spark.kafka.test_source import PATIENCE_S
from tests.spark.streams_member import StreamsMember
from tests.spark.transforms.test_fleet import Rows
from tools.apache_kafka import ApacheKafka

from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.report.reading import read_report
from groupkeeper.testing.background import BackgroundBroker

APACHE = pytest.param("apache", marks=[pytest.mark.conformance, pytest.mark.timeout(400)])
TABLES = ("commits", "current_offsets", "group_records", "groups", "members", "group_events", "rates", "lag", "status")
RECORDS = 30


@pytest.fixture(params=["groupkeeper", APACHE])
def newest(request: pytest.FixtureRequest) -> Iterator[str]:
    """A broker of its own that has share groups and streams groups."""
    if request.param == "groupkeeper":
        with BackgroundBroker(properties={"offsets.topic.num.partitions": "4"}) as broker:
            yield broker.bootstrap_servers
        return
    features = ("--feature", "streams.version=1", "--feature", "share.version=1")
    require_apache_kafka()
    with ApacheKafka(format_options=features) as kafka:
        yield kafka.bootstrap_servers


class Tables:
    """The tables of a directory, brought up to date, narrowed down to one group."""

    def __init__(self, spark: SparkSession, servers: str, directory: Path, group_id: str) -> None:
        self.directory = directory
        self._group_id = group_id
        self._update = partial(snapshot, spark, {"kafka.bootstrap.servers": servers, "cluster": "c"}, str(directory))

    def now(self) -> dict[str, Rows]:
        summary = self._update()
        assert (summary.problems, summary.notes) == ([], [])
        found = {name: pq.read_table(self.directory / name).to_pylist() for name in TABLES}
        return {name: [row for row in rows if row["group_id"] == self._group_id] for name, rows in found.items()}


def told(row: Mapping[str, Any], *columns: str) -> tuple[Any, ...]:
    return tuple(row[column] for column in columns)


def in_order(rows: Rows) -> list[str]:
    return [row["event"] for row in sorted(rows, key=lambda row: row["log_offset"])]


def partitions_of(row: Mapping[str, Any], column: str) -> list[int]:
    return sorted(number for topic in row[column] for number in topic["partitions"])


def a_queue(servers: str, group_id: str) -> str:
    """A topic with records that the share group begins with the first of."""
    topic = new_topic(servers)
    produce(servers, topic, map(str, range(RECORDS)), range(3))
    begin_with_the_first_record(servers, group_id)
    return topic


def worker(servers: str, group_id: str, topic: str, client_id: str) -> ShareConsumer:
    made = ShareConsumer({"bootstrap.servers": servers, "group.id": group_id, "client.id": client_id})
    made.subscribe([topic])
    return made


@pytest.mark.long
def test_a_share_group_from_its_first_member_to_its_deletion(spark: SparkSession, newest: str, tmp_path: Path) -> None:
    group_id = f"share-{uuid.uuid4().hex[:6]}"
    topic = a_queue(newest, group_id)
    tables = Tables(spark, newest, tmp_path, group_id)
    workers = [worker(newest, group_id, topic, f"worker-{number}") for number in (1, 2)]
    done = 0

    def settled() -> Any:
        nonlocal done
        for each in workers:
            done += sum(1 for message in each.poll(0.1) if message.error() is None)
            each.commit_sync(PATIENCE_S)
        found = ask(newest, lambda admin: admin.describe_share_groups([group_id])).done.get(group_id)
        if found is None:
            return None
        is_even = len(found.members) == 2 and found.group_epoch == found.target_assignment_epoch
        return found if is_even and all(each.member_epoch == found.group_epoch for each in found.members) else None

    deadline = time.monotonic() + PATIENCE_S
    while (described := settled()) is None or done < RECORDS:
        assert time.monotonic() < deadline, (described, done)
    found = tables.now()
    (group,) = found["groups"]
    assert told(group, "group_type", "group_state", "protocol_type", "members") == ("share", "Stable", "share", 2)
    assert told(group, "group_epoch", "assignment_epoch") == (described.group_epoch, described.target_assignment_epoch)
    # What a share group has done with is kept elsewhere, in __share_group_state.
    assert told(group, "topics", "partitions", "last_commit_time") == (0, 0, None)
    assert [found[name] for name in ("commits", "current_offsets", "lag", "status")] == [[], [], [], []]
    people = {row["member_id"]: row for row in found["members"]}
    assert set(people) == {each.member_id for each in described.members}
    for each in described.members:
        row = people[each.member_id]
        assert told(row, "group_type", "client_id", "client_host", "member_epoch", "member_state") == (
            "share", each.client_id, each.host, each.member_epoch, "STABLE",
        )  # fmt: skip
        assert told(row, "subscribed_topics", "subscribed_regex", "instance_id") == ([topic], None, None)
        wanted = sorted(place.partition for place in each.assignment)
        assert (partitions_of(row, "assigned"), partitions_of(row, "target")) == (wanted, wanted)
    events = Counter(row["event"] for row in found["group_events"])
    assert (events["created"], events["joined"], events["left"], events["emptied"]) == (1, 2, 0, 0)
    assert events["epoch_bumped"] == events["rebalanced"] - 1 or events["rebalanced"] >= 2
    assert {row["client_id"] for row in found["group_events"] if row["event"] == "joined"} == {"worker-1", "worker-2"}
    assert sum(row["completed_rebalances"] for row in found["rates"]) == events["rebalanced"]
    (shown,) = [each for each in read_report(str(tmp_path), hours=24, top=10).groups if each.group_id == group_id]
    assert (shown.status, shown.lag, shown.members) == ("ok", 0, 2)

    for each in workers:
        each.close()
    until(lambda: not ask(newest, lambda admin: admin.describe_share_groups([group_id])).result(group_id).members)
    found = tables.now()
    assert (found["groups"][0]["group_state"], found["groups"][0]["members"], found["members"]) == ("Empty", 0, [])
    last = in_order(found["group_events"])
    assert (last.count("left"), last.count("emptied")) == (2, 1)
    assert not ask(newest, lambda admin: admin.delete_share_groups([group_id])).failed
    found = tables.now()
    assert (found["groups"], found["members"]) == ([], [])
    assert in_order(found["group_events"])[-1] == "deleted"
    assert {row["problem"] for row in found["group_records"]} == {None}


@pytest.mark.long
def test_a_streams_group_from_its_first_member_to_its_deletion(
    spark: SparkSession, newest: str, tmp_path: Path
) -> None:
    group_id = f"streams-{uuid.uuid4().hex[:6]}"
    topic = new_topic(newest)
    producer = Producer({"bootstrap.servers": newest})
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % 3)
    assert producer.flush(PATIENCE_S) == 0
    tables = Tables(spark, newest, tmp_path, group_id)
    member = StreamsMember(newest, group_id, topic, "member-one")
    member.join(3)
    member.commit({0: 4, 1: 10})
    described = ask(newest, lambda admin: admin.describe_streams_groups([group_id])).result(group_id)
    found = tables.now()
    (group,) = found["groups"]
    assert told(group, "group_type", "protocol_type", "members", "topics", "partitions") == (
        "streams", "streams", 1, 1, 2,
    )  # fmt: skip
    assert told(group, "group_epoch", "assignment_epoch") == (described.group_epoch, described.target_assignment_epoch)
    (own,), (row,) = described.members, found["members"]
    assert told(row, "member_id", "client_id", "client_host") == ("member-one", own.client_id, own.host)
    assert told(row, "member_epoch", "member_state", "assigned") == (own.member_epoch, "STABLE", None)
    tasks = [
        json.loads(each["value_json"])["activeTasks"]
        for each in sorted(found["group_records"], key=lambda each: each["log_offset"])
        if each["record_name"] == "StreamsGroupCurrentMemberAssignment"
    ]
    assert [sorted(each["partitions"]) for each in tasks[-1]] == [[0, 1, 2]]
    assert {told(each, "topic", "partition", "committed_offset", "metadata") for each in found["current_offsets"]} == {
        (topic, 0, 4, "note"), (topic, 1, 10, "note"),
    }  # fmt: skip
    assert {told(each, "partition", "lag", "lag_basis") for each in found["lag"]} == {(0, 6, "exact"), (1, 0, "exact")}
    assert sum(each["offset_commits"] for each in found["rates"]) == 2
    events = in_order(found["group_events"])
    assert {"created", "joined", "rebalanced"} <= set(events) <= {"created", "joined", "rebalanced", "epoch_bumped"}

    member.leave()
    ask(newest, lambda admin: admin.delete_consumer_groups([group_id]))
    found = tables.now()
    assert (found["groups"], found["members"], found["current_offsets"]) == ([], [], [])
    ends = in_order(found["group_events"])[len(events) :]
    assert (ends[-1], sorted(ends)) == ("deleted", ["deleted", "emptied", "epoch_bumped", "left"])
    gone = {told(each, "partition", "removed_by") for each in found["commits"] if each["is_tombstone"]}
    assert gone == {(0, "deleted"), (1, "deleted")}
    assert {row["problem"] for row in found["group_records"]} == {None}
