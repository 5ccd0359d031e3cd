"""Records of the offsets topic from elsewhere (another connector, archived files) → tables.DECODED."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from groupkeeper.pipeline.decode.archive import archive_parts, read_archive
from groupkeeper.pipeline.decode.columns import PLACE_COLUMNS, decode_columns
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.planning import share
from groupkeeper.pipeline.tables import DECODED


def decode_key_value(records: DataFrame, *, cluster: str | None = None) -> DataFrame:
    """tables.DECODED of a DataFrame with binary `key` and `value`, as Spark's own Kafka connector gives it.

    `partition`, `offset`, `timestamp` (a time, or milliseconds) and `cluster` are copied if they exist, otherwise they
    are null. The argument `cluster` names the cluster of all records. Records of aborted transactions must already be
    left out. Raises SourceError when key or value is missing.
    """
    kinds = dict(records.dtypes)
    for name in ("key", "value"):
        if kinds.get(name) != "binary":
            raise SourceError(f"a binary column {name} is needed, the columns are: {', '.join(records.columns)}")

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from decode_columns(batch, cluster)

    places = [name for name in PLACE_COLUMNS if name in kinds]
    return records.select("key", "value", *places).mapInArrow(decode, DECODED.ddl)


def decode_archive(
    spark: SparkSession, location: str, *, cluster: str | None = None, tasks: int | None = None
) -> DataFrame:
    """As `decode_key_value`, for parquet files below a path or a URI that pyarrow supports, but much cheaper: the
    records do not pass through Java before they are decoded. Workers read the files, so they must be reachable for
    workers.

    `tasks` is the number of tasks, None: as many as are useful; a row group is never split. Raises SourceError when
    there is nothing to read, or key or value is missing.
    """
    shares = share(archive_parts(location), tasks)

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                for part in shares[number]:
                    yield from read_archive(location, part, cluster)

    return spark.range(0, len(shares), 1, max(1, len(shares))).mapInArrow(decode, DECODED.ddl)
