"""The first offset at or after a time, found by reading: batches before that time are skipped by their headers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from groupkeeper.pipeline.decode.batches import Batches, CorruptBatch
from groupkeeper.pipeline.decode.records import records_of
from groupkeeper.pipeline.decode.views import choose
from groupkeeper.pipeline.kafka.fetching import corrupt, fetch
from groupkeeper.pipeline.kafka.options import ReadOptions
from groupkeeper.pipeline.kafka.planning import Range


class ScanFound(NamedTuple):
    """The first record of `range` that is late enough."""

    range: Range
    offset: int
    timestamp_ms: int


def scan(ranges: Sequence[Range], options: ReadOptions, time_ms: int) -> list[ScanFound]:
    """The first record of each partition with a timestamp at or after `time_ms`. As in ListOffsets, markers and aborted
    records count. Partitions without such a record are left out. The ranges are of one cluster. A partition is read no
    further than that record. Raises SourceError.
    """
    found: dict[tuple[str, int], ScanFound] = {}
    for fetched in fetch(ranges, options, is_done=lambda piece: (piece.topic, piece.partition) in found):
        batches = fetched.batches
        for row in np.flatnonzero(batches.max_timestamp >= time_ms).tolist():
            piece = fetched.ranges[int(batches.set_index[row])]
            key = (piece.topic, piece.partition)
            if key not in found and (first := _first(batches, row, piece, time_ms)) is not None:
                found[key] = first
    return list(found.values())


def _first(batches: Batches, row: int, piece: Range, time_ms: int) -> ScanFound | None:
    """The first record of a batch that is late enough and in the range."""
    try:
        records = records_of(choose(batches, np.array([row])))
    except CorruptBatch as error:
        raise corrupt(piece, error) from error
    is_late = (records.timestamp >= time_ms) & (records.offset >= piece.start) & (records.offset < piece.end)
    hits = np.flatnonzero(is_late)
    return ScanFound(piece, int(records.offset[hits[0]]), int(records.timestamp[hits[0]])) if len(hits) else None
