"""The stored state of one share-partition, as values."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

UNKNOWN_OFFSET: Final = -1
"""The start offset of a share-partition before its first read; `share.auto.offset.reset` decides then."""
UNKNOWN_COUNT: Final = -1

_first_offset = attrgetter("first_offset")
_last_offset = attrgetter("last_offset")


class SharePartitionKey(NamedTuple):
    """A partition of a topic in one share group."""

    group_id: str
    topic_id: bytes
    partition: int


class StateBatch(NamedTuple):
    """Records with the same delivery state, first to last offset inclusive.

    `delivery_state` is 0 available, 2 acknowledged, 3 archiving or 4 archived; acquired records are not stored.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


@dataclass(frozen=True, slots=True)
class ShareState:
    """The stored state of a share-partition."""

    snapshot_epoch: int = 0
    """Grows by one with each snapshot."""
    state_epoch: int = 0
    """The group epoch for which the group coordinator initialized it."""
    leader_epoch: int = 0
    """Epoch of the latest leader that read the state."""
    start_offset: int = UNKNOWN_OFFSET
    """Every record below it is done; −1: not known yet."""
    delivery_complete_count: int = UNKNOWN_COUNT
    """Records at or after the start offset that need no delivery; −1: unknown."""
    batches: tuple[StateBatch, ...] = ()
    """In order, disjoint, nothing below the start offset."""
    create_timestamp: int = 0
    """When the last snapshot was due, in milliseconds: at the initialization, or after enough updates."""
    write_timestamp: int = 0
    """When the last snapshot was written; later than it was due if it only keeps the log short."""


def combine_batches(
    stored: tuple[StateBatch, ...], added: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """`stored`, an earlier outcome of this function, merged with `added`; offsets below the start offset are removed,
    unless that is −1.

    If two batches have the same offset, the batch with the higher delivery count wins, then the batch with the higher
    state. Adjacent batches with equal fields are merged. [Kafka 4.4.0 PersisterStateBatchCombiner]
    """
    kept = _from_offset(stored, start_offset)
    above = [
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in added
        if batch.last_offset >= start_offset
    ]
    if not above:
        return kept
    # Only batches that overlap or touch the added ones are processed; most writes concern a few of many batches.
    lowest = min(batch.first_offset for batch in above)
    highest = max(batch.last_offset for batch in above)
    low = bisect_left(kept, lowest - 1, key=_last_offset)
    high = bisect_right(kept, highest + 1, key=_first_offset)
    touched = sorted((*kept[low:high], *above), key=_first_offset)
    return kept[:low] + _coalesce(_sweep(touched)) + kept[high:]


def _from_offset(batches: tuple[StateBatch, ...], offset: int) -> tuple[StateBatch, ...]:
    low = bisect_left(batches, offset, key=_last_offset)
    kept = batches[low:] if low else batches
    if kept and kept[0].first_offset < offset:
        kept = (kept[0]._replace(first_offset=offset), *kept[1:])
    return kept


def _sweep(batches: list[StateBatch]) -> Iterable[StateBatch]:
    """Cuts batches, sorted by first offset, into pieces in order that do not overlap."""
    waiting = batches[::-1]
    winner = waiting.pop()
    while waiting:
        other = waiting.pop()
        if other.first_offset > winner.last_offset:
            yield winner
            winner = other
        elif _rank(other) <= _rank(winner):
            _put_back(waiting, other, winner.last_offset + 1)
        else:
            if winner.first_offset < other.first_offset:
                yield winner._replace(last_offset=other.first_offset - 1)
            _put_back(waiting, winner, other.last_offset + 1)
            winner = other
    yield winner


def _put_back(waiting: list[StateBatch], batch: StateBatch, first_offset: int) -> None:
    """Inserts the part of a batch from an offset on into the reversed list; does nothing if that part is empty."""
    if first_offset > batch.last_offset:
        return
    at = len(waiting)
    while at > 0 and waiting[at - 1].first_offset < first_offset:
        at -= 1
    waiting.insert(at, batch._replace(first_offset=first_offset))


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.delivery_state


def _coalesce(batches: Iterable[StateBatch]) -> tuple[StateBatch, ...]:
    combined: list[StateBatch] = []
    for batch in batches:
        last = combined[-1] if combined else None
        if last is not None and last.last_offset + 1 == batch.first_offset and _rank(last) == _rank(batch):
            combined[-1] = last._replace(last_offset=batch.last_offset)
        else:
            combined.append(batch)
    return tuple(combined)
