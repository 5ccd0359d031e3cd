"""Where lag goes: what was read and what came between two looks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from groupkeeper.cli.framework.reports import Row
from groupkeeper.operations.lag import PartitionLag

COLUMNS = ("produced_per_s", "consumed_per_s", "trend", "catch_up_s")

NO_TREND: Row = dict.fromkeys(COLUMNS)
"""Where it is not known."""

_STEADY = 0.05
"""By so much of what comes the two rates may differ."""


class _Seen(NamedTuple):
    """A partition as it was: what was committed, where the log ended, and when that was seen, in seconds."""

    committed: int
    end: int
    at_s: float


class FirstLook:
    """How far groups were, to compare with how far they are."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, int], _Seen] = {}

    def see(self, rows: Iterable[PartitionLag]) -> None:
        """Remember partitions of which both ends are known."""
        now = time.monotonic()
        for row in rows:
            if row.committed is not None and row.log_end_offset is not None:
                place = (row.group_id, row.topic, row.partition)
                self._seen[place] = _Seen(row.committed.offset, row.log_end_offset, now)

    def trend_of(self, rows: Sequence[PartitionLag]) -> Row:
        """The columns of some partitions together; of those that were seen before and are known now."""
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
            "trend": _trend(produced, consumed, lag),
            "catch_up_s": _catch_up_s(produced, consumed, lag),
        }


def _trend(produced: float, consumed: float, lag: int) -> str:
    if lag == 0 or abs(produced - consumed) <= _STEADY * max(abs(produced), abs(consumed)):
        return "steady"
    return "growing" if produced > consumed else "shrinking"


def _catch_up_s(produced: float, consumed: float, lag: int) -> int | None:
    if lag == 0:
        return 0
    return round(lag / (consumed - produced)) if consumed > produced else None
