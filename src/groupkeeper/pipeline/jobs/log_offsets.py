"""tables.LOG_OFFSETS: the ends of logs at the instant, and the records at committed offsets, which tasks look up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.pipeline.kafka.instants import Instants, LogEnds
from groupkeeper.pipeline.kafka.measuring import Measure, Row, cluster_of, measure
from groupkeeper.pipeline.kafka.options import Options
from groupkeeper.pipeline.present.sql import ASSIGNED, Rows, made
from groupkeeper.pipeline.tables import LOG_OFFSETS
from groupkeeper.pipeline.tables.schema import ddl_of

__all__ = ["Clusters", "log_offsets"]

_FEW = 10_000
"""Up to this many partitions are looked up by this process; more are distributed over tasks."""

_PER_TASK = 2_000

_FOUND = pa.struct([(column.name, column.type) for column in LOG_OFFSETS.columns if column.name not in LOG_OFFSETS.key])


class Clusters(NamedTuple):
    """The clusters by their names in the rows, their state at the instant, and why others could not be queried."""

    options: Options
    instants: Instants
    failed: Mapping[str, str]

    def why_unmeasured(self, name: str) -> str:
        """Why a cluster has no instant."""
        return self.failed.get(name, f"cluster {name} is not among the given ones")


class Place(NamedTuple):
    """A partition, and the committed offsets of it that are of interest."""

    cluster: str
    partition: TopicPartition
    offsets: Sequence[int]


_WANTED = f"""
WITH assigned AS (
    SELECT cluster, group_id, group_type, topic, unnest(partitions) AS partition FROM ({ASSIGNED})
),
lacking AS (  -- whether the log has records at all: before offset 0 is where it begins
    SELECT cluster, topic, partition, -1 AS committed_offset
    FROM assigned ANTI JOIN current_offsets USING (cluster, group_id, topic, partition)
    WHERE group_type != 'share'
)
SELECT cluster, topic, partition, list(DISTINCT committed_offset) FILTER (committed_offset IS NOT NULL) AS wanted
FROM (
    SELECT cluster, topic, partition, committed_offset FROM current_offsets
    UNION ALL BY NAME SELECT cluster, topic, partition FROM assigned
    UNION ALL BY NAME FROM lacking
)
WHERE topic IS NOT NULL
GROUP BY ALL
"""
_NAMES = pa.schema([("cluster", pa.string()), ("topic_id", pa.string()), ("topic", pa.string())])
_PLACES = pa.schema([*(LOG_OFFSETS.arrow.field(name) for name in LOG_OFFSETS.key), ("wanted", pa.list_(pa.int64()))])


def log_offsets(
    spark: SparkSession, current_offsets: Rows, members: Rows, clusters: Clusters
) -> pa.RecordBatchReader | DataFrame:
    """Of the partitions of rows of tables.CURRENT_OFFSETS, and of those assigned in rows of tables.MEMBERS.

    Every use of the DataFrame may query the clusters again: write it, or cache it.
    """
    given = {"current_offsets": current_offsets, "members": members, "names": _names(clusters.instants)}
    wanted = made(_PLACES, _WANTED, given).read_all()
    if len(wanted) <= _FEW:  # done before a worker of Spark's would have started
        few = wanted.to_pylist()
        found = _ask(
            clusters,
            [Place(row["cluster"], TopicPartition(row["topic"], row["partition"]), row["wanted"] or []) for row in few],
        )
        rows = [{**row, **each} for row, each in zip(few, found, strict=True)]
        return pa.Table.from_pylist(rows, LOG_OFFSETS.arrow).to_reader()
    measured = arrow_udf(_asking(clusters), ddl_of(_FOUND)).asNondeterministic()  # type: ignore[call-overload]
    names = [F.col(name) for name in LOG_OFFSETS.key]
    return (
        spark.createDataFrame(wanted)
        .repartition(len(wanted) // _PER_TASK)
        .select(*names, measured(*names, F.col("wanted")).alias("found"))
        .select(*names, "found.*")
        .select(*LOG_OFFSETS.names)
    )


def _names(instants: Instants) -> pa.Table:
    """The names of topics by their ids."""
    found = {
        (cluster, log.topic_id, place.topic)
        for cluster, instant in instants.items()
        for place, log in instant.logs.items()
        if isinstance(log, LogEnds)
    }
    return pa.Table.from_pylist([dict(zip(_NAMES.names, each, strict=True)) for each in found], _NAMES)


def _asking(clusters: Clusters) -> Callable[[pa.Array, pa.Array, pa.Array, pa.Array], pa.Array]:
    def ask(names: pa.Array, topics: pa.Array, partitions: pa.Array, wanted: pa.Array) -> pa.Array:
        columns = (column.to_pylist() for column in (names, topics, partitions, wanted))
        places = [
            Place(name, TopicPartition(*key), offsets or []) for name, *key, offsets in zip(*columns, strict=True)
        ]
        return pa.array(_ask(clusters, places), _FOUND)

    for name in ("names", "topics", "partitions", "wanted", "return"):
        ask.__annotations__[name] = pa.Array  # Spark chooses the kind by them
    return ask


def _ask(clusters: Clusters, places: Sequence[Place]) -> list[Row]:
    """The columns of each place from the clusters, without the key. All clusters are queried at the same time."""
    found: dict[tuple[str, TopicPartition], Row] = {}
    measures: dict[str, Measure] = {}
    for name in dict.fromkeys(each.cluster for each in places):
        wanted = {each.partition: each.offsets for each in places if each.cluster == name}
        cluster, instant = cluster_of(clusters.options, name), clusters.instants.get(name)
        if cluster is None or instant is None:
            row = {"is_deleted": False, "problem": clusters.why_unmeasured(name)}
            found |= {(name, partition): dict(row) for partition in wanted}
        else:
            measures[name] = Measure(cluster, instant, wanted)
    for name, rows in zip(measures, measure(list(measures.values())), strict=True):
        found |= {(name, partition): row for partition, row in rows.items()}
    return [found[each.cluster, each.partition] for each in places]
