"""Records as they are → Arrow batches with the columns of Spark's Kafka connector, and the cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from groupkeeper.pipeline.decode.batches import CorruptBatch
from groupkeeper.pipeline.decode.records import Records
from groupkeeper.pipeline.decode.texts import binaries, of_numbers
from groupkeeper.pipeline.relations import time_of
from groupkeeper.pipeline.tables.schema import TIME
from groupkeeper.protocol.record_batch import CorruptRecord, read_headers

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def raw_schema(includes_headers: bool) -> pa.Schema:
    """`timestampType` is 0 for the producer's time and 1 for the broker's; `headers` is null where there are none."""
    fields = [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIME),
        ("timestampType", pa.int32()),
        *([("headers", _HEADERS)] if includes_headers else []),
        ("cluster", pa.string()),
    ]
    return pa.schema(fields)


def raw_batch(records: Records, topics: Sequence[tuple[str, str, int]], includes_headers: bool) -> pa.RecordBatch:
    """The records, control records left out; `topics` has cluster, topic and partition of each record set. Raises
    CorruptBatch for malformed headers.
    """
    if records.is_control.any():
        records = records.where(~records.is_control)
    data = records.data
    sets = pa.array(records.set_index)
    partitions = np.array([partition for _, _, partition in topics], np.int64)
    columns = [
        binaries(data, records.key_at, records.key_size),
        binaries(data, records.value_at, records.value_size),
        pa.array([topic for _, topic, _ in topics], pa.string()).take(sets),
        of_numbers(partitions[records.set_index], pa.int32()),
        of_numbers(records.offset, pa.int64()),
        time_of(pa.array(records.timestamp)),
        of_numbers(records.has_log_append_time.astype(np.int64), pa.int32()),
        *([_headers(records)] if includes_headers else []),
        pa.array([cluster for cluster, _, _ in topics], pa.string()).take(sets),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=raw_schema(includes_headers))


def _headers(records: Records) -> pa.Array:
    found = []
    for row, at in enumerate(records.headers_at.tolist()):
        try:
            headers, _ = read_headers(records.data, at)
        except (CorruptRecord, IndexError, ValueError) as error:
            raise CorruptBatch(int(records.set_index[row]), int(records.offset[row]), str(error)) from error
        found.append([{"key": name, "value": value} for name, value in headers] or None)
    return pa.array(found, _HEADERS)
