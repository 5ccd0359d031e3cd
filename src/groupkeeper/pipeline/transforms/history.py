"""Selection of the rows of the history that a refresh reads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from groupkeeper.pipeline.relations import Array, keys, matches, numbers

LogOffsets = Mapping[str, Mapping[int, int]]
"""Offsets by cluster and partition of the offsets topic."""

_NEVER = 2**63 - 1


def between(rows: pa.Table, made_to: LogOffsets, read_to: LogOffsets) -> pa.Table:
    """The rows of history from `made_to` on and before `read_to`; an unknown partition has no limit."""
    offsets = numbers(rows["log_offset"])
    is_own = (offsets >= next_offsets(rows, made_to, 0)) & (offsets < next_offsets(rows, read_to, _NEVER))
    return rows if is_own.all() else rows.filter(pa.array(is_own))


def next_offsets(rows: pa.Table, offsets: LogOffsets, otherwise: int) -> Array:
    """For each row of history, the given offset of its log partition; `otherwise` if there is none."""
    given = [(name, number, offset) for name, own in offsets.items() for number, offset in own.items()]
    names, partitions, ends = zip(*given, strict=True) if given else ((), (), ())
    known = pa.table({"cluster": pa.array(names, pa.string()), "log_partition": pa.array(partitions, pa.int32())})
    at = matches(*keys(known.column_names, rows, known))
    return np.asarray(np.array([*ends, otherwise], np.int64)[at])  # −1 is the last place
