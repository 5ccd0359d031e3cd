"""What is told of a cluster that a run cannot measure."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from groupkeeper.broker import Broker
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.governance.quality import _ages
from groupkeeper.pipeline.jobs.freshness import freshness
from groupkeeper.pipeline.jobs.log_offsets import Clusters, wanted_of
from groupkeeper.pipeline.jobs.reading import same_clusters, why_unread
from groupkeeper.pipeline.kafka.instants import ClusterIdentity, Instant, LogEnds
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.kafka.planning import plan
from groupkeeper.pipeline.present.members import assigned
from groupkeeper.pipeline.tables import CURRENT_OFFSETS, FRESHNESS, MEMBERS, TOPICS, Table


def rows_of(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, table.arrow)


OPTIONS = parse_options({"kafka.bootstrap.servers": "127.0.0.1:1", "cluster": "c", "rows": "decoded"})


def test_assigned_partitions_are_asked_for_too() -> None:
    """By whichever of its name and its id members have of a topic; those of topics that are gone have no name."""
    logs = {TopicPartition("u", 5): LogEnds(0, 9, 9, "U")}
    instant = Instant(0, ClusterIdentity(None, None), "__consumer_offsets", {}, logs)
    partitions = [
        {"topic": "t", "topic_id": None, "partitions": [0, 1]},
        {"topic": None, "topic_id": "U", "partitions": [5]},
        {"topic": None, "topic_id": "gone", "partitions": [7]},
    ]
    key = {"cluster": "c", "group_id": "g"}
    rows = [{**key, "topic": "t", "partition": 0, "committed_offset": at} for at in (3, 4)]
    committed = rows_of(CURRENT_OFFSETS, rows)
    members = rows_of(
        MEMBERS,
        [{**key, "member_id": "m", "group_type": kind, "assigned": partitions} for kind in ("share", "classic")],
    )

    names = Clusters(OPTIONS, {"c": instant}, {}).names

    def wanted(members: pa.Table) -> set[tuple[Any, ...]]:
        return {tuple(row.values())[1:] for row in wanted_of(committed, assigned(members, names)).to_pylist()}

    own = {("t", 0, 3), ("t", 0, 4)}
    only_ends = {("t", 0, None), ("t", 1, None), ("u", 5, None)}
    assert wanted(members) == {*own, ("t", 1, -1), ("u", 5, -1), *only_ends}
    assert wanted(members.slice(0, 1)) == {*own, *only_ends}  # of a share group


def test_freshness_has_the_reason() -> None:
    clusters = Clusters(OPTIONS, {}, {"c": "cluster c: out of reach", "never read": "cluster never read: out of reach"})
    rows = freshness({"c": {0: 7, 1: 9}, "not given": {0: 1}}, clusters).to_pylist()
    told = [(row["cluster"], row["log_partition"], row["read_to"], row["problem"]) for row in rows]
    assert told == [("c", 0, 7, "cluster c: out of reach"), ("c", 1, 9, "cluster c: out of reach")]
    assert {row["measured_time"] for row in rows} == {None}


def test_the_age_of_each_cluster_counts() -> None:
    """Of those that the last run was given; topics of a cluster that is away have the time of its last measurement."""
    now = datetime.now(UTC)
    fresh = {"old": None, "new": now, "never": None}
    known = {"old": now - timedelta(minutes=10), "new": now, "not given": now - timedelta(days=1)}
    tables: dict[Table, list[dict[str, Any]]] = {
        FRESHNESS: [{"cluster": name, "log_partition": 0, "measured_time": at} for name, at in fresh.items()],
        TOPICS: [{"cluster": name, "topic": "t", "measured_time": at} for name, at in known.items()],
    }
    stored = SimpleNamespace(dataset=lambda table: rows_of(table, tables[table]))
    checks = {check.cluster: (check.result, check.detail) for check in _ages(stored, 300_000)}  # type: ignore[arg-type]
    assert checks == {
        "never": ("failed", "no measurement is known"),
        "old": ("failed", checks["old"][1]),
        "new": ("ok", checks["new"][1]),
    }
    assert checks["old"][1].startswith("measured 60")
    nothing = SimpleNamespace(dataset=lambda table: table.arrow.empty_table())
    (check,) = _ages(nothing, 1000)  # type: ignore[arg-type]
    assert (check.cluster, check.detail) == (None, "no cluster has been measured")


def test_another_cluster_is_named_before_what_it_lacks() -> None:
    lacks = SourceError("cluster c: topic __consumer_offsets: it does not exist")
    lacks.cluster_id = "new"
    known = SimpleNamespace(next_offsets={}, identities={"c": ClusterIdentity("old", None)})
    assert str(why_unread("c", lacks, known)).startswith(
        "cluster c: the tables are of another cluster, with the id old; the id is new now: "
    )
    lacks.cluster_id = "old"
    assert why_unread("c", lacks, known) is lacks
    assert why_unread("another", lacks, known) is lacks


async def test_who_has_replied_is_known_of_a_cluster_without_an_offsets_topic() -> None:
    async with Broker() as broker:
        options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "cluster": "c", "rows": "decoded"}
        (failure,) = (await plan(parse_options(options))).failed.values()
        assert "__consumer_offsets" in str(failure)
        assert failure.cluster_id == broker.cluster_id


def test_one_cluster_under_two_names_is_noted() -> None:
    identities = {
        "a": ClusterIdentity("x", None),
        "b": ClusterIdentity("y", None),
        "c": ClusterIdentity("x", None),
        "d": ClusterIdentity(None, None),
    }
    assert same_clusters(identities) == [
        "a and c are the same cluster, its id is x: its groups are in the tables once for each"
    ]
