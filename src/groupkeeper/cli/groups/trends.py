"""The trend of lag: records consumed and produced between two measurements."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from groupkeeper.cli.framework.reports import Row
from groupkeeper.operations.lag import PartitionLag
from groupkeeper.rules.progress import catch_up_ms, trend

COLUMNS = ("produced_per_s", "consumed_per_s", "trend", "catch_up_ms")

NO_TREND: Row = dict.fromkeys(COLUMNS)
"""The columns when the trend is unknown."""


class _Seen(NamedTuple):
    """A measured partition: the committed offset, the log end offset, and the time of the measurement in seconds."""

    committed: int
    end: int
    at_s: float


class FirstMeasurement:
    """The first of two measurements of groups."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, int], _Seen] = {}

    def see(self, rows: Iterable[PartitionLag]) -> None:
        """Stores partitions with a committed offset and a known log end."""
        now = time.monotonic()
        for row in rows:
            if row.committed is not None and row.log_end_offset is not None:
                key = (row.group_id, row.topic, row.partition)
                self._seen[key] = _Seen(row.committed.offset, row.log_end_offset, now)

    def trend_of(self, rows: Sequence[PartitionLag]) -> Row:
        """The columns for some partitions together, from those known in both measurements."""
        now = time.monotonic()
        produced = consumed = 0.0
        lag = 0
        is_known = False
        for row in rows:
            seen = self._seen.get((row.group_id, row.topic, row.partition))
            if seen is None or row.committed is None or row.log_end_offset is None or row.lag is None:
                continue
            is_known = True
            seconds = max(now - seen.at_s, 0.001)
            produced += (row.log_end_offset - seen.end) / seconds
            consumed += (row.committed.offset - seen.committed) / seconds
            lag += row.lag
        if not is_known:
            return NO_TREND
        return {
            "produced_per_s": round(produced),
            "consumed_per_s": round(consumed),
            "trend": trend(produced, consumed, lag).value,
            "catch_up_ms": catch_up_ms(lag, produced, consumed),
        }
