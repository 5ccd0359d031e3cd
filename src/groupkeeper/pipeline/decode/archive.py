"""Archived records of the offsets topic, in parquet files with binary `key` and `value` → batches of tables.DECODED."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from groupkeeper.pipeline.decode.columns import CONTENT, decode_columns
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.tables import DECODED

__all__ = ["ArchivePart", "archive_parts", "read_archive"]

_ROWS_DECODED = 200_000
_ROWS_GIVEN = 16_384
"""Large batches are decoded with less CPU, small ones reach the JVM with less."""
_OPTIONAL = ("cluster", "partition", "offset", "timestamp")


class ArchivePart(NamedTuple):
    """Row groups of one file."""

    path: str
    row_groups: tuple[int, ...]
    size: int
    """Number of records."""


def archive_parts(location: str) -> list[ArchivePart]:
    """The row groups of all parquet files below a path or URI that pyarrow knows. Raises SourceError."""
    files, path = _file_system(location)
    try:
        dataset = ds.dataset(path, format="parquet", filesystem=files)
        for name in ("key", "value"):
            if name not in dataset.schema.names or not _is_binary(dataset.schema.field(name).type):
                raise SourceError(f"{location}: a binary column {name} is needed: {', '.join(dataset.schema.names)}")
        return [
            ArchivePart(fragment.path, (group.id,), group.num_rows)
            for fragment in dataset.get_fragments()
            for group in fragment.row_groups
        ]
    except (OSError, pa.ArrowInvalid) as error:
        raise SourceError(f"{location}: {error}") from None


def read_archive(location: str, part: ArchivePart, cluster: str | None) -> Iterator[pa.RecordBatch]:
    """The decoded records of a part, in its order; `cluster` None: as the column `cluster` says, where there is one."""
    files, _ = _file_system(location)
    with files.open_input_file(part.path) as opened:
        file = pq.ParquetFile(opened)
        names = [name for name in ("key", "value", *_OPTIONAL) if name in file.schema_arrow.names]
        for batch in file.iter_batches(_ROWS_DECODED, row_groups=list(part.row_groups), columns=names):
            decoded = _decoded(batch, cluster)
            yield from (decoded.slice(start, _ROWS_GIVEN) for start in range(0, len(decoded), _ROWS_GIVEN))


def _decoded(batch: pa.RecordBatch, cluster: str | None) -> pa.RecordBatch:
    content = decode_columns(batch["key"], batch["value"])
    columns = {column.name: content.field(index) for index, column in enumerate(CONTENT)}
    columns |= {
        "log_partition": _taken(batch, "partition", pa.int32()),
        "log_offset": _taken(batch, "offset", pa.int64()),
        "log_timestamp_ms": _milliseconds(batch),
        "cluster": _taken(batch, "cluster", pa.string())
        if cluster is None
        else pa.repeat(pa.scalar(cluster, pa.string()), len(batch)),
        "producer_id": pa.nulls(len(batch), pa.int64()),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in DECODED.names], schema=DECODED.arrow)


def _taken(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    return batch[name].cast(kind) if name in batch.schema.names else pa.nulls(len(batch), kind)


def _milliseconds(batch: pa.RecordBatch) -> pa.Array:
    if "timestamp" in batch.schema.names and pa.types.is_timestamp(batch.schema.field("timestamp").type):
        zone = batch.schema.field("timestamp").type.tz
        return batch["timestamp"].cast(pa.timestamp("ms", zone), safe=False).cast(pa.int64())
    return _taken(batch, "timestamp", pa.int64())


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _file_system(location: str) -> tuple[fs.FileSystem, str]:
    if "://" not in location:
        return fs.LocalFileSystem(), location
    try:
        files, path = fs.FileSystem.from_uri(location)
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(f"{location}: {error}") from None
    return files, path
