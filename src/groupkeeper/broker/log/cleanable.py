"""Decides what to clean in a log: old segments to delete, and the part worth compacting (Kafka 4.4.0's conditions)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.segment import Segment
from groupkeeper.broker.log.segment_index import NO_TIMESTAMP


def expired_count(log: PartitionLog, now_ms: int) -> int:
    """The number of oldest segments to delete by `retention.ms` and `retention.bytes`, possibly the active one too.
    Segments above the high watermark stay.
    """
    config = log.config
    if "delete" not in config.cleanup_policy:
        return 0
    count = 0
    excess = log.size - config.retention_bytes if config.retention_bytes >= 0 else -1
    for segment in log.segments:
        excess -= segment.size
        is_old = is_outdated(log, segment, now_ms)
        if segment.size == 0 and segment is log.segments[-1]:
            break
        if segment.next_offset > log.high_watermark or (not is_old and excess < 0):
            break
        count += 1
    return count


def is_outdated(log: PartitionLog, segment: Segment, now_ms: int) -> bool:
    """Whether even the latest record of a segment is older than `retention.ms`."""
    return log.config.retention_ms >= 0 and now_ms - _latest_ms(segment) > log.config.retention_ms


def _latest_ms(segment: Segment) -> int:
    """Time of the latest record; records without timestamps are as old as the file."""
    if segment.max_timestamp != NO_TIMESTAMP:
        return segment.max_timestamp
    return os.stat(segment.path).st_mtime_ns // 1_000_000


class Dirty(NamedTuple):
    """The part that a pass would compact.

    Attributes:
        segments: the segments that the pass may rewrite, from the first on. dirty_offset, end_offset: the range that no
            pass has read yet.
        ratio: the share of that range in the bytes of all these segments.
        is_due: whether a record in that range has waited for `max.compaction.lag.ms`.
    """

    segments: Sequence[Segment]
    dirty_offset: int
    end_offset: int
    ratio: float
    is_due: bool


def dirty_part(log: PartitionLog, cleaned_offset: int, now_ms: int) -> Dirty | None:
    """The part that may be compacted: sealed segments, old enough and without undecided transactions; None if there is
    none.

    `cleaned_offset` is where the last pass ended.
    """
    sealed = log.segments[:-1]
    if not sealed:
        return None
    config = log.config
    dirty_offset = max(cleaned_offset if cleaned_offset <= log.log_end_offset else 0, sealed[0].base_offset)
    end_offset = min(log.segments[-1].base_offset, log.last_stable_offset)
    clean_bytes = dirty_bytes = 0
    first_dirty = None
    for segment, following in pairwise(log.segments):
        if segment.base_offset >= end_offset:
            break
        if following.base_offset <= dirty_offset:
            clean_bytes += segment.size
            continue
        if config.min_compaction_lag_ms > 0 and _latest_ms(segment) > now_ms - config.min_compaction_lag_ms:
            end_offset = segment.base_offset
            break
        first_dirty = first_dirty or segment
        dirty_bytes += segment.size
    if end_offset <= dirty_offset or dirty_bytes == 0:
        return None
    segments = [segment for segment in sealed if segment.base_offset < end_offset]
    is_due = first_dirty is not None and now_ms - _earliest_ms(first_dirty) > config.max_compaction_lag_ms
    return Dirty(segments, dirty_offset, end_offset, dirty_bytes / (clean_bytes + dirty_bytes), is_due)


def _earliest_ms(segment: Segment) -> int:
    """Time of the first batch."""
    for _, _, _, header in segment.batches():
        return header.max_timestamp
    return _latest_ms(segment)


def active_is_heavy(log: PartitionLog, cleaned_offset: int, least_bytes: int) -> bool:
    """Whether the active segment has more bytes than the compacted segments, which a start must read anyway, and more
    than `least_bytes`.
    """
    if not log.segments:
        return False
    clean_bytes = sum(one.size for one in log.segments[:-1] if one.base_offset < cleaned_offset)
    return log.segments[-1].size > max(clean_bytes, least_bytes)
