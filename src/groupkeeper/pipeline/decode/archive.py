"""Archived records of the offsets topic, in parquet files with binary `key` and `value` → batches of tables.DECODED."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from groupkeeper.pipeline.checkpoints.folders import arrow_path
from groupkeeper.pipeline.decode.columns import PLACE_COLUMNS, decode_columns
from groupkeeper.pipeline.errors import SourceError

_ROWS = 32_768
"""Larger batches are decoded in fewer steps, smaller ones fit into memory that the process already has."""


class ArchivePart(NamedTuple):
    """A row group of a file."""

    path: str
    row_group: int
    size: int
    """Number of records."""


def archive_parts(location: str) -> list[ArchivePart]:
    """The row groups of all parquet files below a path or URI that pyarrow supports. Raises SourceError."""
    files, path = arrow_path(location)
    try:
        dataset = ds.dataset(path, format="parquet", filesystem=files)
        for name in ("key", "value"):
            if name not in dataset.schema.names or not _is_binary(dataset.schema.field(name).type):
                raise SourceError(f"{location}: a binary column {name} is needed: {', '.join(dataset.schema.names)}")
        return [
            ArchivePart(fragment.path, group.id, group.num_rows)
            for fragment in dataset.get_fragments()
            for group in fragment.row_groups
        ]
    except (OSError, pa.ArrowInvalid) as error:
        raise SourceError(f"{location}: {error}") from None


def read_archive(location: str, part: ArchivePart, cluster: str | None) -> Iterator[pa.RecordBatch]:
    """The decoded records of a part; `cluster` None: it is in the column `cluster`, or null without that column."""
    files, _ = arrow_path(location)
    with files.open_input_file(part.path) as opened:
        file = pq.ParquetFile(opened)
        names = [name for name in ("key", "value", *PLACE_COLUMNS) if name in file.schema_arrow.names]
        for batch in file.iter_batches(_ROWS, [part.row_group], names, use_threads=False):  # cores have tasks already
            yield from decode_columns(batch, cluster)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
