"""tables.LOG_OFFSETS: the clusters are asked in tasks, each about its share of the partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.pipeline.measuring import Row, cluster_of, measure
from groupkeeper.pipeline.options import Options
from groupkeeper.pipeline.tables import LOG_OFFSETS
from groupkeeper.pipeline.tables.schema import ddl_of

__all__ = ["log_offsets"]

_FEW = 10_000
"""So many partitions are asked by this process; more are shared by tasks."""

_FOUND = pa.struct([(column.name, column.type) for column in LOG_OFFSETS.columns if column.name not in LOG_OFFSETS.key])


class Place(NamedTuple):
    """A partition, and the committed offsets of it that are of interest."""

    cluster: str
    partition: TopicPartition
    offsets: Sequence[int]


def log_offsets(current_offsets: DataFrame, options: Options) -> DataFrame:
    """Of the partitions of rows of tables.CURRENT_OFFSETS; `options` name the clusters as the rows do.

    Every use of the result may ask the clusters anew: write it, or cache it.
    """
    wanted = current_offsets.groupBy(*LOG_OFFSETS.key).agg(F.collect_set("committed_offset").alias("wanted"))
    few = wanted.limit(_FEW + 1).collect()
    if len(few) <= _FEW:  # asked before a worker of Spark's would have started
        places = [Place(row.cluster, TopicPartition(row.topic, row.partition), row.wanted) for row in few]
        found = _ask(options, places)
        rows = [{**row.asDict(), **each} for row, each in zip(few, found, strict=True)]
        table = pa.Table.from_pylist(rows, LOG_OFFSETS.arrow)
        return current_offsets.sparkSession.createDataFrame(table).select(*LOG_OFFSETS.names)
    measured = arrow_udf(_asking(options), ddl_of(_FOUND)).asNondeterministic()  # type: ignore[call-overload]
    names = [F.col(name) for name in LOG_OFFSETS.key]
    return (
        wanted.select(*names, measured(*names, F.col("wanted")).alias("found"))
        .select(*names, "found.*")
        .select(*LOG_OFFSETS.names)
    )


def _asking(options: Options) -> Callable[[pa.Array, pa.Array, pa.Array, pa.Array], pa.Array]:
    def ask(clusters: pa.Array, topics: pa.Array, partitions: pa.Array, wanted: pa.Array) -> pa.Array:
        columns = (column.to_pylist() for column in (clusters, topics, partitions, wanted))
        places = [Place(name, TopicPartition(*key), offsets) for name, *key, offsets in zip(*columns, strict=True)]
        return pa.array(_ask(options, places), _FOUND)

    for name in ("clusters", "topics", "partitions", "wanted", "return"):
        ask.__annotations__[name] = pa.Array  # Spark chooses the kind by them
    return ask


def _ask(options: Options, places: Sequence[Place]) -> list[Row]:
    """What the clusters say of each place, without the key."""
    found: dict[tuple[str, TopicPartition], Row] = {}
    for name in dict.fromkeys(each.cluster for each in places):
        wanted = {each.partition: each.offsets for each in places if each.cluster == name}
        cluster = cluster_of(options, name)
        if cluster is None:
            nothing = {"is_deleted": False, "problem": f"cluster {name} is not among those to ask"}
            found |= {(name, partition): nothing for partition in wanted}
        else:
            found |= {(name, partition): row for partition, row in measure(cluster, wanted).items()}
    return [found[each.cluster, each.partition] for each in places]
