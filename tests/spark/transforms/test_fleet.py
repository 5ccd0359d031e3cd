"""The tables of a broker with groups of all kinds, beside what Admin reports of them."""

import time
import uuid
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests import acts
from tests.acts import ask, commit, new_topic
from tests.patience import until
from tests.spark.commits import commits_in
from tests.spark.kafka.test_source import consume, decoded, produce, records_of_groups

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetSpec
from groupkeeper.client.admin.types import TopicPartition as Place
from groupkeeper.operations.plans import document, kip122
from groupkeeper.pipeline.jobs.restoring import OffsetThen, kip122_plans, of_topics_now, restore_plan, then_of
from groupkeeper.pipeline.jobs.scan_time import scan_time
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.tables import SCAN_TIME
from groupkeeper.pipeline.transforms.offsets_as_of import offsets_as_of
from groupkeeper.protocol.uuids import uuid_text


def member(servers: str, group_id: str, topic: str, protocol: str) -> Consumer:
    return acts.member(servers, group_id, topic, partitions=3, client={"group.protocol": protocol, "client.id": "me"})


Rows = list[dict[str, Any]]


@pytest.mark.long
def test_groups_of_all_kinds_are_as_admin_reports_them(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    topic, mark = new_topic(servers), uuid.uuid4().hex[:6]
    began_ms = time.time_ns() // 10**6
    acts.produce(servers, topic, "v" * 90, range(3))
    written_ms = time.time_ns() // 10**6
    names = {kind: f"{kind}-{mark}" for kind in ("classic", "consumer", "empty", "simple", "deleted")}
    for kind in ("simple", "deleted"):
        commit(servers, names[kind], {(topic, 0): 5, (topic, 1): 30})
    ask(servers, lambda admin: admin.delete_consumer_group_offsets(names["simple"], [Place(topic, 1)]))
    ask(servers, lambda admin: admin.delete_consumer_groups([names["deleted"]]))
    consume(servers, names["empty"], topic, 90)
    readers = [member(servers, names[kind], topic, kind) for kind in ("classic", "consumer")]
    try:
        for reader in readers:
            reader.commit(offsets=[TopicPartition(topic, 2, 10, metadata="note")], asynchronous=False)
        settled = ask(servers, lambda admin: _settled(admin, names))
        listing = ask(servers, lambda admin: admin.list_groups())
        summary = snapshot(spark, {"kafka.bootstrap.servers": servers, "cluster": "c"}, str(tmp_path))
        assert not summary.problems
    finally:
        for reader in readers:
            reader.close()

    def table(name: str) -> Rows:
        rows: Rows = pq.read_table(tmp_path / name).to_pylist()
        return [row for row in rows if row["group_id"] in names.values()]

    found = {row["group_id"]: row for row in table("groups")}
    listed = {name: each for name, each in listing.all().items() if name in names.values()}
    assert set(found) == set(listed) == set(names.values()) - {names["deleted"]}
    for name, each in listed.items():
        row = found[name]
        assert (row["group_state"], row["protocol_type"]) == (str(each.group_state), each.protocol_type), name
        assert row["group_type"] in (str(each.group_type).lower(), "simple"), name
    assert found[names["simple"]]["group_type"] == "simple"
    people = {row["group_id"]: row for row in table("members")}
    for name, described in settled.items():
        assert (found[name]["members"], found[name]["group_epoch"]) == (len(described.members), described.group_epoch)
        for each in described.members:
            row = people[name]
            assert (row["member_id"], row["client_id"], row["client_host"]) == (each.member_id, "me", each.host)
            parts = sorted(number for topics in row["assigned"] for number in topics["partitions"])
            assert parts == sorted(place.partition for place in each.assignment) == [0, 1, 2]
    gone = {(row["group_id"], row["removed_by"]) for row in table("commits") if row["is_tombstone"]}
    assert gone == {(names["simple"], "deleted"), (names["deleted"], "deleted")}
    lags = {(row["group_id"], row["partition"]): row for row in table("lag")}
    simple, read = lags[names["simple"], 0], lags[names["empty"], 0]
    assert (simple["lag"], simple["lag_basis"], read["lag"], read["lag_ms"]) == (25, "exact", 0, 0)
    measured_ms = round(simple["measured_time"].timestamp() * 1000)
    assert measured_ms - written_ms <= simple["lag_ms"] <= measured_ms - began_ms
    by_group = {row["group_id"]: row["status"] for row in table("status") if row["topic"] is None}
    assert by_group[names["empty"]] == "ok"
    commits_of = {row["group_id"]: row["offset_commits"] for row in table("rates")}
    assert commits_of[names["simple"]] == 2  # K496-60


async def _settled(admin: Admin, names: Mapping[str, str]) -> dict[str, Any]:
    described = await admin.describe_consumer_groups([names["classic"], names["consumer"], names["empty"]])
    assert not described.failed
    return described.done


@pytest.mark.long
def test_offsets_are_restored_as_they_were(spark: SparkSession, servers: str) -> None:
    topic, group_id = new_topic(servers), f"restored-{uuid.uuid4().hex[:6]}"
    produce(servers, topic, 300)
    commit(servers, group_id, {(topic, 0): 10, (topic, 1): 20})
    rows = decoded(spark, servers).where(F.col("group_id") == group_id)
    last = commits_in(rows).agg(F.max("log_time")).collect()[0][0]
    time_ms = int(last.timestamp() * 1000)
    until(lambda: time.time_ns() // 10**6 > time_ms)
    commit(servers, group_id, {(topic, 0): 90, (topic, 2): 50})
    history = decoded(spark, servers).where((F.col("group_id") == group_id) | F.col("group_id").isNull())
    found = offsets_as_of(commits_in(history), records_of_groups(history), time_ms)
    columns = list(OffsetThen._fields)
    then = then_of(OffsetThen(*row) for row in found.select(*columns).collect())
    assert {tp.partition: commit.offset for tp, commit in then[group_id].items()} == {0: 10, 1: 20}
    read = kip122.read(kip122_plans(then)[group_id])
    assert (read.group_id, read.offsets) == (group_id, {Place(topic, 0): 10, Place(topic, 1): 20})
    made = ask(servers, lambda admin: restore_plan(admin, then, made_ms=time_ms))
    assert not made.troubles
    plan = document.read("".join(document.write(made.plan)))
    (group,) = plan.groups
    changed = {
        tp.partition: (c.before and c.before.offset, c.after and c.after.offset) for tp, c in group.changes.items()
    }
    assert changed == {0: (90, 10), 1: (20, 20)}


@pytest.mark.long
def test_offsets_of_an_earlier_topic_are_left_out(servers: str) -> None:
    topic, group_id = new_topic(servers), f"restored-{uuid.uuid4().hex[:6]}"
    described = ask(servers, lambda admin: admin.describe_topics([topic]))
    topic_id = uuid_text(described.done[topic].topic_id or b"")
    mine = OffsetThen(group_id, topic, 0, 3, None, "", topic_id)
    untold, gone = mine._replace(partition=1, topic_id=None), mine._replace(topic=f"{topic}-gone")
    found = ask(servers, lambda admin: of_topics_now(admin, [mine, untold, gone]))
    assert (found.offsets, found.left_out) == ([mine, untold, gone], [])
    (doubt,) = found.doubts
    assert doubt.startswith(f"the commits in 1 topic ({topic}) do not have the topic's id (those of transactions, ")
    earlier = [mine._replace(topic_id="A" * 22), mine._replace(group_id="other", topic_id="A" * 22)]
    found = ask(servers, lambda admin: of_topics_now(admin, [*earlier, mine]))
    assert (found.offsets, found.doubts) == ([mine], [])
    (left_out,) = found.left_out
    assert left_out.startswith(f"topic {topic} was deleted and created again since: its id was {'A' * 22}, and is ")
    assert left_out.endswith(f"{topic_id}; 2 offsets in the earlier one, of 2 groups ({group_id}, …), left out")


def test_a_scan_finds_what_list_offsets_finds(spark: SparkSession, servers: str) -> None:
    topic = new_topic(servers)
    begin_ms = 1_700_000_000_000
    times_ms = [begin_ms + 10 * number - (number * 7919) % 50 for number in range(1500)]  # out of order, in batches too
    client = {"linger.ms": 5, "batch.num.messages": 20}
    acts.produce(servers, topic, "v" * 1500, (0, 1), times_ms=times_ms, client=client)
    options = {"kafka.bootstrap.servers": servers, "cluster": "c", "subscribe": topic}
    for offset_ms in (7331, 10**9):
        time_ms = begin_ms + offset_ms
        found = scan_time(spark, options | {"minPartitions": "4"}, time_ms)
        assert found.schema == SCAN_TIME.arrow
        spec = {Place(topic, partition): OffsetSpec(time_ms) for partition in range(3)}
        asked = ask(servers, partial(Admin.list_offsets, specs=spec))
        assert {row["partition"]: (row["offset"], row["record_time"] and int(row["record_time"].timestamp() * 1000))
                for row in found.to_pylist()} == {
            tp.partition: (each.offset, None if each.offset < 0 else each.timestamp)
            for tp, each in asked.done.items()
        }  # fmt: skip
