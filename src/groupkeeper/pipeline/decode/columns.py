"""Keys and values that are columns already → the columns of tables.DECODED, row for row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from groupkeeper.pipeline.decode.arrow import Origin, decode
from groupkeeper.pipeline.decode.records import Records
from groupkeeper.pipeline.decode.views import Ints
from groupkeeper.pipeline.tables import DECODED
from groupkeeper.pipeline.tables.log import PLACE

__all__ = ["CONTENT", "decode_columns"]

CONTENT = tuple(
    column
    for column in DECODED.columns
    if column.name not in {place.name for place in PLACE} | {"log_timestamp_ms", "producer_id"}
)
"""The columns that key and value alone decide."""


def decode_columns(keys: pa.Array, values: pa.Array) -> pa.StructArray:
    """A struct of CONTENT for each pair of key and value, both binary."""
    key_data, key_at, key_size = _pieces(keys)
    value_data, value_at, value_size = _pieces(values)
    count = len(keys)
    zeros = np.zeros(count, np.int64)
    never = np.zeros(count, np.bool_)
    records = Records(
        data=key_data + value_data,
        set_index=zeros,
        offset=np.arange(count),
        timestamp=zeros,
        has_log_append_time=never,
        producer_id=zeros - 1,
        is_control=never,
        key_at=key_at,
        key_size=key_size,
        value_at=value_at + len(key_data),
        value_size=value_size,
        headers_at=zeros,
    )
    found = pa.Table.from_batches(decode(records, [Origin("", 0)]), DECODED.arrow)
    if len(found.column(0).chunks) > 1:  # commits come first
        found = found.take(np.argsort(found["log_offset"].to_numpy()))
    content = found.select([column.name for column in CONTENT]).combine_chunks()
    return pa.StructArray.from_arrays(
        [_whole(content[column.name], column.type) for column in CONTENT],
        fields=[pa.field(column.name, column.type) for column in CONTENT],
    )


def _whole(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], kind)])


def _pieces(column: pa.Array | pa.ChunkedArray) -> tuple[bytes, Ints, Ints]:
    """The bytes of a binary column, and where each value lies; −1 is the size of a null."""
    if isinstance(column, pa.ChunkedArray):
        column = _whole(column, column.type)
    column = column.cast(pa.binary())
    _, bounds, data = column.buffers()
    if bounds is None or not len(column):
        return b"", np.empty(0, np.int64), np.empty(0, np.int64)
    ends = np.frombuffer(bounds, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    first, last = int(ends[0]), int(ends[-1])
    octets = bytes(memoryview(data)[first:last]) if data is not None else b""
    size = np.diff(ends)
    if column.null_count:
        size = np.where(column.is_null().to_numpy(zero_copy_only=False), -1, size)
    return octets, ends[:-1] - first, size
