"""Records by their times: corrects lookups by time (ListOffsets) that give no record.

Two of its answers are misleading. It may be the marker of a transaction, with the time of the transaction's end: the
wanted record comes later. And it may be that no record is found while one exists: Kafka searches only the first segment
with a large enough maximum timestamp, which may be that of a record removed by DeleteRecords.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    Failure,
    FirstRecord,
    ListedOffset,
    OffsetSpec,
    Position,
    TopicPartition,
)
from groupkeeper.operations.errors import TimeUnknown
from groupkeeper.operations.plans.log_walk import MOST_BYTES, Kept, Search, Tour, walk
from groupkeeper.operations.times import utc_text
from groupkeeper.operations.topics import listed, offsets_of

NOTHING_THERE = ListedOffset(-1, -1, None)

_BACK = (100, 2_000, 40_000)
"""How far before an offset to look for the last record that is not aborted, one distance after the other."""

_UNREAD = "it may be the end of a transaction instead of a record: you may not read the records"


class Since(NamedTuple):
    """The first record from a time on. `doubt`: why `at` may be before it; "": it is exact."""

    at: ListedOffset
    doubt: str = ""
    is_append_time: bool = False


Found = Batch[TopicPartition, Since]


async def first_since(admin: Admin, times: Mapping[TopicPartition, int], *, skips_aborted: bool = False) -> Found:
    """The first record at or after a time, in the log's order; `skips_aborted`: the first that is not aborted. Fails
    per partition as list_offsets, and with TimeUnknown.
    """
    if not times:
        return Batch()
    specs = {tp: OffsetSpec(max(0, time_ms)) for tp, time_ms in times.items()}
    looked_up = await admin.list_offsets(specs)
    found: Found = Batch({}, dict(looked_up.failed))
    answers = looked_up.done
    hits = {Position(*tp, at.offset): tp for tp, at in answers.items() if at.offset >= 0}
    read = await admin.first_records(hits)
    begins: dict[TopicPartition, int] = {}
    for position, tp in hits.items():
        record, at = read.done.get(position), answers[tp]
        if position in read.failed:  # it may be that the records may not be read
            found.done[tp] = Since(at, "" if at.timestamp == times[tp] else _UNREAD)
        elif record is None:
            found.done[tp] = Since(NOTHING_THERE)
        elif record.timestamp >= times[tp] and not (skips_aborted and record.is_transactional):
            is_hit = record.offset == at.offset
            found.done[tp] = Since(at if is_hit else _listed(record), is_append_time=record.is_append_time)
        else:
            begins[tp] = record.offset
    nothing = [tp for tp, at in answers.items() if at.offset < 0]
    begins |= await _doubtful(admin, {tp: times[tp] for tp in nothing})
    found.done.update((tp, Since(NOTHING_THERE)) for tp in nothing if tp not in begins)
    searches, failed = await _searched(admin, times, begins, skips_aborted)
    for tp, search in searches.items():
        if (one := search.found) is not None:
            found.done[tp] = Since(_listed(one), is_append_time=one.is_append_time)
        elif search.is_at_the_end and tp not in failed:
            found.done[tp] = Since(NOTHING_THERE)
        elif answers[tp].offset >= 0:
            found.done[tp] = Since(answers[tp], _UNREAD if tp in failed else _end_of(answers[tp]))
        else:
            found.failed[tp] = _contradiction(times[tp])
    found.failed.update((tp, failed[tp]) for tp in begins if tp not in searches)
    return found


async def committed_from(
    admin: Admin, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, FirstRecord | None]:
    """The first records at or after offsets that are not aborted, None: there is none. Records that cannot be found are
    missing.
    """
    searches, failed = await _searched(admin, {}, offsets, True)
    return {
        tp: None if search.found is None else _record(search.found)
        for tp, search in searches.items()
        if search.found is not None or (search.is_at_the_end and tp not in failed)
    }


async def committed_before(
    admin: Admin, ends: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, FirstRecord]:
    """The last records before offsets that were committed, or are in no transaction, as far as they are found.

    `ends`: the log's start, and the offset.
    """
    found: dict[TopicPartition, FirstRecord] = {}
    left = dict(ends)
    for steps in _BACK:
        begins = {tp: max(log_start, end - steps) for tp, (log_start, end) in left.items()}
        tours = await toured(admin, {tp: (begin, left[tp][1]) for tp, begin in begins.items()})
        for tp, records in tours.items():
            last = next((one for one in reversed(records) if one.is_aborted is False), None)
            if last is not None:
                found[tp] = _record(last)
        left = {
            tp: left[tp] for tp in tours if tp not in found and begins[tp] > left[tp][0]
        }  # of a part that is too large to be read, so is a larger one
    return found


async def toured(admin: Admin, ranges: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, list[Kept]]:
    """All records of each range, except ranges that are too large."""
    ends = await listed(admin, ranges, OffsetSpec.latest())
    tours = {tp: Tour(*ranges[tp], end.offset) for tp, end in ends.done.items()}
    failed = await walk(admin, tours)
    return {tp: tour.records for tp, tour in tours.items() if tour.is_whole and tp not in failed}


async def _doubtful(admin: Admin, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Log start offsets of the partitions whose largest timestamp is at or after the time."""
    largest = await listed(admin, times, OffsetSpec.max_timestamp())
    some = [tp for tp, at in largest.done.items() if at.timestamp >= times[tp]]
    log_starts = await listed(admin, some, OffsetSpec.earliest())
    return offsets_of(log_starts.done)


async def _searched(
    admin: Admin, times: Mapping[TopicPartition, int], begins: Mapping[TopicPartition, int], skips_aborted: bool
) -> tuple[dict[TopicPartition, Search], Mapping[TopicPartition, Failure]]:
    ends = await listed(admin, begins, OffsetSpec.latest())
    searches = {
        tp: Search(begins[tp], end.offset, times.get(tp), skips_aborted=skips_aborted) for tp, end in ends.done.items()
    }
    return searches, {**ends.failed, **await walk(admin, searches)}


def _listed(record: FirstRecord | Kept) -> ListedOffset:
    return ListedOffset(record.offset, record.timestamp)


def _record(kept: Kept) -> FirstRecord:
    return FirstRecord(kept.offset, kept.timestamp, kept.is_append_time)


def _end_of(marker: ListedOffset) -> str:
    return (
        f"it is the end of a transaction, of {utc_text(marker.timestamp)}, and that record is not within the next "
        f"{MOST_BYTES // 2**20} MiB of the log: earlier records are read again"
    )


def _contradiction(time_ms: int) -> Failure:
    return TimeUnknown(
        f"the broker finds no record at or after {utc_text(time_ms)}, but the log may have one far behind its start: "
        "name the offset with --to-offset"
    )
