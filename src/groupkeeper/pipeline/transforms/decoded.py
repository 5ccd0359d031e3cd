"""Records of the offsets topic from anywhere → tables.DECODED."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import TimestampType

from groupkeeper.pipeline.decode.columns import CONTENT, decode_columns
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.tables import DECODED
from groupkeeper.pipeline.tables.schema import ddl_of

__all__ = ["decode_key_value"]


def decode_key_value(records: DataFrame, *, cluster: str | None = None) -> DataFrame:
    """tables.DECODED of a DataFrame with binary `key` and `value`, as Spark's own Kafka connector gives it, or
    archived files have it.

    `partition`, `offset` and `timestamp` (a time, or milliseconds) and `cluster` are taken over where they are, and
    are null where not; `cluster` names all records' cluster. Aborted transactions must have been left out already.
    Raises SourceError when key or value is missing.
    """
    kinds = dict(records.dtypes)
    for name in ("key", "value"):
        if kinds.get(name) != "binary":
            raise SourceError(f"a binary column {name} is needed, the columns are: {', '.join(records.columns)}")
    schema = ", ".join(f"`{column.name}` {ddl_of(column.type)}" for column in CONTENT)
    content = arrow_udf(_decode, schema)(F.col("key"), F.col("value"))  # type: ignore[call-overload]
    place: dict[str, Column] = {
        "cluster": F.lit(cluster) if cluster is not None else _optional(records, "cluster", "string"),
        "log_partition": _optional(records, "partition", "int"),
        "log_offset": _optional(records, "offset", "bigint"),
        "log_timestamp_ms": _milliseconds(records),
        "producer_id": F.lit(None).cast("bigint"),
    }
    with_content = records.select(*(column.alias(name) for name, column in place.items()), content.alias("content"))
    own = [name for name in DECODED.names if name not in place]
    return with_content.select(*place, *(F.col(f"content.{name}").alias(name) for name in own)).select(*DECODED.names)


def _decode(keys: pa.Array, values: pa.Array) -> pa.Array:
    return decode_columns(keys, values)


_decode.__annotations__ = {"keys": pa.Array, "values": pa.Array, "return": pa.Array}  # Spark chooses the kind by them


def _optional(records: DataFrame, name: str, kind: str) -> Column:
    return F.col(name).cast(kind) if name in records.columns else F.lit(None).cast(kind)


def _milliseconds(records: DataFrame) -> Column:
    if "timestamp" not in records.columns:
        return F.lit(None).cast("bigint")
    if isinstance(records.schema["timestamp"].dataType, TimestampType):
        return F.unix_millis(F.col("timestamp"))
    return F.col("timestamp").cast("bigint")
