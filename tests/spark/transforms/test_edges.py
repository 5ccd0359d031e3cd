"""Who reads what: of all of history at once as of history that comes in parts."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from tests.spark.transforms.traces import Trace, at, seconds_of

from groupkeeper.pipeline.present.edges import edges, spans
from groupkeeper.pipeline.tables import EDGES, FRESHNESS, MEMBERS, TOPICS, Table

Found = dict[tuple[str, str, str | None], tuple[float | None, float | None]]


def rows(table: Table, *given: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([dict.fromkeys(table.names) | {"cluster": "c"} | row for row in given], table.arrow)


MEMBERS_NOW = rows(
    MEMBERS,
    {"group_id": "new", "client_id": "etl", "subscribed_topics": ["named"], "assigned": []},
    {"group_id": "new", "client_id": "etl", "assigned": [{"topic_id": "id-1", "partitions": [0]}]},
    {"group_id": "new", "client_id": "etl", "assigned": [{"topic_id": "of a topic that is gone", "partitions": [0]}]},
    {"group_id": "classic", "client_id": "app", "assigned": [{"topic": "t", "partitions": [0]}]},
    {"group_id": "none", "client_id": "app", "cluster": "not queried", "subscribed_topics": ["t"]},
)
TOPICS_NOW = rows(
    TOPICS,
    {"topic": "by id", "topic_id": "id-1", "measured_time": at(40)},
    {"topic": "t", "measured_time": at(40)},
    {"topic": "other", "topic_id": "id-1", "measured_time": at(98), "cluster": "d"},
)
FRESHNESS_NOW = rows(
    FRESHNESS,
    {"log_partition": 0, "measured_time": at(100)},
    {"log_partition": 1},
    {"log_partition": 0, "measured_time": at(200), "cluster": "d"},
)


def parts() -> tuple[Trace, Trace, Trace]:
    first, second, third = Trace("classic"), Trace("classic"), Trace("classic")
    first.group(1, 1, ["a"], topics=["t", "u"])
    first.commit(5, 1)
    first.commit(4, 2, partition=1)
    first.commit(6, None)
    second.commit(20, 3)
    second.commit(21, 9, topic="v", commit_time=None)
    third.record(
        40, "ConsumerGroupMemberMetadata", group_id="new", client_id="etl", subscribed_topics=["named", "earlier"]
    )
    third.record(50, "ConsumerGroupMemberMetadata", group_id="new", gone=True)
    third.group(60, 2)
    return first, second, third


def made(cuts: Sequence[Sequence[Trace]]) -> Found:
    """The table after a refresh for each of the parts of history."""
    known: pa.Table = EDGES.arrow.empty_table()
    for traces in cuts:
        commits, records = Trace(), Trace()
        for trace in traces:
            commits.commit_rows += trace.commit_rows
            records.group_rows += trace.group_rows
        new = spans(commits.commits(), records.group_records())
        known = edges(new, MEMBERS_NOW, TOPICS_NOW, FRESHNESS_NOW, known)
    return {
        (row["group_id"], row["topic"], row["client_id"]): (seconds_of(row["first_time"]), seconds_of(row["last_time"]))
        for row in known.to_pylist()
    }


def test_edges_of_history_and_of_who_is_there() -> None:
    first, second, third = parts()
    whole = made([parts()])
    assert whole == {
        ("classic", "t", None): (4, 20),
        ("classic", "v", None): (21, 21),
        ("classic", "t", "app"): (1, 100),
        ("classic", "u", "app"): (1, 1),
        ("new", "named", "etl"): (40, 100),
        ("new", "earlier", "etl"): (40, 40),
        ("new", "by id", "etl"): (100, 100),
    }
    assert made([[first], [second], [third], []]) == whole
