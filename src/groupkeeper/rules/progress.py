"""The progress of a group: its lag, its speed, and how long records have waited. Offsets count from 0; times are in ms,
rates in offsets a second. None: not known, unless a docstring says otherwise.
"""

from __future__ import annotations

from enum import StrEnum

_STEADY = 0.05
"""A trend is steady while the two rates differ by at most this fraction of the larger one."""

_FEWEST_GAPS = 3
"""With fewer long gaps than this, each may be an outage."""


def lag(committed_offset: int, end_offset: int | None) -> int | None:
    """Offsets from the committed offset to the end, never negative. Removed records count."""
    return None if end_offset is None else max(0, end_offset - committed_offset)


def lost(committed_offset: int, start_offset: int | None) -> int | None:
    """Offsets of the lag that were removed from the log before they were read."""
    return None if start_offset is None else max(0, start_offset - committed_offset)


def readable(lag_: int | None, lost_: int | None) -> int | None:
    """Offsets of the lag that the log still has."""
    return None if lag_ is None or lost_ is None else max(0, lag_ - lost_)


def time_lag_ms(written_ms: int, now_ms: int) -> int:
    """For how long a record has waited. Never negative, as a clock may be ahead: 0 does not mean that nothing waits."""
    return max(0, now_ms - written_ms)


def retention_margin_ms(record_ms: int, retention_ms: int | None, now_ms: int) -> int | None:
    """Time until the topic's `retention.ms` allows the record's removal; 0 or less: it may be removed now.

    `retention_ms` None or negative: records are not removed by age, and the answer is None.
    """
    return None if retention_ms is None or retention_ms < 0 else record_ms + retention_ms - now_ms


class Trend(StrEnum):
    """How a lag changes over time."""

    GROWING = "growing"
    STEADY = "steady"
    SHRINKING = "shrinking"


def trend(produced_per_s: float, consumed_per_s: float, lag_now: int) -> Trend:
    """The trend of a lag, from the rates at which records are produced and committed; steady if the lag is 0."""
    largest = max(abs(produced_per_s), abs(consumed_per_s))
    if lag_now == 0 or abs(produced_per_s - consumed_per_s) <= _STEADY * largest:
        return Trend.STEADY
    return Trend.GROWING if produced_per_s > consumed_per_s else Trend.SHRINKING


def catch_up_ms(lag_now: int, produced_per_s: float, consumed_per_s: float) -> int | None:
    """Time until the lag is 0 at these rates; None: never."""
    if lag_now == 0:
        return 0
    gain = consumed_per_s - produced_per_s
    return int(lag_now * 1000 / gain) if gain > 0 else None


def overtaken_ms(margin_ms: int, lag_now: int, produced_per_s: float, consumed_per_s: float) -> int | None:
    """Time until retention overtakes a group with these rates and may remove unread records; 0 or less: now; None:
    never. `margin_ms`: the retention margin of the next record; all others are assumed to be as old.
    """
    until_read_ms = catch_up_ms(lag_now, 0, consumed_per_s)
    if margin_ms <= 0 or until_read_ms is None or margin_ms < until_read_ms:
        return margin_ms
    is_growing = trend(produced_per_s, consumed_per_s, lag_now) is Trend.GROWING
    return int(margin_ms / (1 - consumed_per_s / produced_per_s)) if is_growing else None


def usual_gap_ms(gaps_ms: list[int], shorter_ms: int = 0) -> int | None:
    """The usual time between a group's commits: gaps of at least this length make up half of the total time. Twenty
    commits within five minutes of each hour give 55 minutes; a commit each second with rare outages gives a second.
    None: too few gaps of at least this length are known. `shorter_ms`: the sum of all other gaps, each shorter than
    `gaps_ms`; None also if the usual gap is among those.
    """
    passed, half = 0, (sum(gaps_ms) + shorter_ms) / 2
    for count, gap_ms in enumerate(sorted(gaps_ms, reverse=True), 1):
        passed += gap_ms
        if passed >= half and count >= _FEWEST_GAPS:
            return gap_ms
    return None
