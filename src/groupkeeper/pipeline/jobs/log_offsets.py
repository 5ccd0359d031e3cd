"""tables.LOG_OFFSETS: the clusters are asked in tasks, each about its share of the partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.pipeline.measuring import Row, cluster_of, measure
from groupkeeper.pipeline.options import Options, parse_options
from groupkeeper.pipeline.tables import LOG_OFFSETS
from groupkeeper.pipeline.tables.schema import ddl_of

__all__ = ["log_offsets"]

_FOUND = pa.struct([(column.name, column.type) for column in LOG_OFFSETS.columns if column.name not in LOG_OFFSETS.key])


def log_offsets(current_offsets: DataFrame, options: Mapping[str, str]) -> DataFrame:
    """Of the partitions of rows of tables.CURRENT_OFFSETS; `options` are those of the source that gave the rows.

    Every use of the result asks the clusters anew: write it, or cache it.
    """
    asks = _asking(parse_options({**options, "rows": "decoded"}))
    measured = arrow_udf(asks, ddl_of(_FOUND)).asNondeterministic()  # type: ignore[call-overload]
    keys = [F.col(name) for name in LOG_OFFSETS.key]
    wanted = current_offsets.groupBy(*keys).agg(F.collect_set("committed_offset").alias("wanted"))
    return (
        wanted.select(*keys, measured(*keys, F.col("wanted")).alias("found"))
        .select(*keys, "found.*")
        .select(*LOG_OFFSETS.names)
    )


def _asking(options: Options) -> Callable[[pa.Array, pa.Array, pa.Array, pa.Array], pa.Array]:
    def ask(clusters: pa.Array, topics: pa.Array, partitions: pa.Array, wanted: pa.Array) -> pa.Array:
        places = list(zip(topics.to_pylist(), partitions.to_pylist(), strict=True))
        names, offsets = clusters.to_pylist(), wanted.to_pylist()
        rows: list[Row] = [{}] * len(places)
        for name in dict.fromkeys(names):
            own = [index for index, each in enumerate(names) if each == name]
            cluster = cluster_of(options, name)
            if cluster is None:
                nothing = {"is_deleted": False, "problem": f"cluster {name} is not among those to ask"}
                found = {TopicPartition(*places[index]): nothing for index in own}
            else:
                found = measure(cluster, {TopicPartition(*places[index]): offsets[index] for index in own})
            for index in own:
                rows[index] = found[TopicPartition(*places[index])]
        return pa.array(rows, _FOUND)

    for name in ("clusters", "topics", "partitions", "wanted", "return"):
        ask.__annotations__[name] = pa.Array  # Spark chooses the kind by them
    return ask
