"""Keys and values that are columns already, as archives and other connectors have them → batches of tables.DECODED."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from groupkeeper.pipeline.decode.arrow import decode
from groupkeeper.pipeline.decode.records import Records
from groupkeeper.pipeline.decode.views import Ints

PLACE_COLUMNS = ("cluster", "partition", "offset", "timestamp")
"""The names of the optional columns beside `key` and `value`."""


def decode_columns(batch: pa.RecordBatch, cluster: str | None) -> Iterator[pa.RecordBatch]:
    """The decoded records of a batch with binary `key` and `value`, offset commits first; missing PLACE_COLUMNS are
    null. `cluster` None: it is in the column `cluster`.
    """
    columns = {
        "cluster": pa.repeat(pa.scalar(cluster), len(batch))
        if cluster is not None
        else _taken(batch, "cluster", pa.string()),
        "log_partition": _taken(batch, "partition", pa.int32()),
        "log_offset": _taken(batch, "offset", pa.int64()),
        "log_timestamp_ms": _milliseconds(batch),
        "producer_id": pa.nulls(len(batch), pa.int64()),
    }

    def places(records: Records) -> dict[str, pa.Array]:
        if len(records) == len(batch):
            return columns
        rows = pa.array(records.offset)
        return {name: column.take(rows) for name, column in columns.items()}

    return decode(_records(batch["key"], batch["value"]), places)


def _records(keys: pa.Array, values: pa.Array) -> Records:
    """The records as `Records`; a record's offset there is the number of its row."""
    key_data, key_at, key_size = _pieces(keys)
    value_data, value_at, value_size = _pieces(values)
    zeros = np.zeros(len(keys), np.int64)
    never = np.zeros(len(keys), np.bool_)
    return Records(
        data=b"".join((key_data, value_data)),
        set_index=zeros,
        offset=np.arange(len(keys)),
        timestamp=zeros,
        has_log_append_time=never,
        producer_id=zeros,
        is_control=never,
        key_at=key_at,
        key_size=key_size,
        value_at=value_at + len(key_data),
        value_size=value_size,
        headers_at=zeros,
    )


def _pieces(column: pa.Array) -> tuple[memoryview, Ints, Ints]:
    """The bytes of a binary column, and the position and size of each value; the size of a null is −1."""
    column = column.cast(pa.binary())
    _, bounds, data = column.buffers()
    if bounds is None or not len(column):
        return memoryview(b""), np.empty(0, np.int64), np.empty(0, np.int64)
    ends = np.frombuffer(bounds, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    first, last = int(ends[0]), int(ends[-1])
    size = np.diff(ends)
    if column.null_count:
        size = np.where(column.is_null().to_numpy(zero_copy_only=False), -1, size)
    return memoryview(data or b"")[first:last], ends[:-1] - first, size


def _taken(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    return batch[name].cast(kind) if name in batch.schema.names else pa.nulls(len(batch), kind)


def _milliseconds(batch: pa.RecordBatch) -> pa.Array:
    if "timestamp" in batch.schema.names and pa.types.is_timestamp(batch.schema.field("timestamp").type):
        zone = batch.schema.field("timestamp").type.tz
        return batch["timestamp"].cast(pa.timestamp("ms", zone), safe=False).cast(pa.int64())
    return _taken(batch, "timestamp", pa.int64())
