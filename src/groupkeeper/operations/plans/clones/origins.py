"""Finds places by a header of the copies with each record's offset in the source. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from groupkeeper.operations.plans.clones.matcher import ENOUGH, Match, Trace
from groupkeeper.operations.plans.log_walk import Kept


class HeaderSearch(NamedTuple):
    """A search for the first copy of an unread record, from `low` up to `high`. `guess`: where to look next,
    None: the search is over. `steps`: looks so far.
    """

    low: int
    high: int
    guess: int | None
    steps: int = 0

    def bounds(self, margin: int) -> tuple[int, int]:
        """The offsets to read: the guess with its neighbours, after the search the whole range."""
        low, high = (self.low, self.high) if self.guess is None else (self.guess, self.guess)
        return low - margin, high + margin


_LINEAR = 4
"""The number of steps for which the next guess assumes that copies have no gaps."""

_STEPS = 80
"""The most guesses of a search; halving needs 40 for any log that has copies all over."""


def narrowed(search: HeaderSearch, committed: int, target: Trace) -> HeaderSearch:
    """The next state of the search, after a look at the records around the guess."""
    low, high, guess, steps = search
    copies = _copies(target)
    read = [one for one in copies if one.origin is not None and one.origin < committed]
    unread = [one for one in copies if one.origin is not None and one.origin >= committed]
    steps += 1
    if read and (not unread or read[0].offset < unread[0].offset):
        low = max(low, max(one.offset for one in read if not unread or one.offset < unread[0].offset) + 1)
    if unread:
        high = min(high, unread[0].offset)
    is_found = (read or target.is_from_start) and (unread or target.is_to_end) and copies
    if guess is None or is_found or low >= high or steps >= _STEPS:
        return HeaderSearch(low, high, None, steps)
    if not copies:  # others' records
        return HeaderSearch(low, high, (low + guess) // 2 if guess > low else None, steps)
    one = read[-1] if read else unread[0]
    assert one.origin is not None
    guess = one.offset + committed - one.origin if steps <= _LINEAR else (low + high) // 2
    return HeaderSearch(low, high, min(max(guess, low), high), steps)


def is_in_order(target: Trace) -> bool:
    """Whether the copies are in the source's order, each of them once."""
    origins = [one.origin for one in _copies(target) if one.origin is not None]
    return all(one < other for one, other in pairwise(origins))


def nearest(source: Trace, committed: int, target: Trace) -> int | None:
    """The source's offset of the nearest copied record; None: `source` has some already, or none are known."""
    origins = [one.origin for one in _copies(target) if one.origin is not None]
    if not origins or any(source.begin <= origin < source.end for origin in origins):
        return None
    return min(origins, key=lambda origin: abs(origin - committed))


def match_origins(source: Trace, committed: int, target: Trace) -> Match | None:
    """The place where the group continues; None: such headers are missing, or the records contradict them."""
    copies = _copies(target)
    by_offset = {one.offset: one for one in source.records}
    pairs = [(by_offset[one.origin], one) for one in copies if one.origin in by_offset]
    held = {one.digest for one in source.records}
    others = (one for one in target.unaborted if one.origin is None)
    if any(one.digest != other.digest for one, other in pairs) or any(one.digest in held for one in others):
        return None  # headers are of another log, or some copies have none
    kinds = {one.digest for one, _ in pairs}
    has_times = any(one.timestamp == other.timestamp for one, other in pairs)
    if not has_times and len(kinds) < min(ENOUGH, len(held)):
        return None
    read = [index for index, one in enumerate(copies) if one.origin is not None and one.origin < committed]
    unread = [index for index, one in enumerate(copies) if one.origin is not None and one.origin >= committed]
    if not (unread or target.is_to_end) or not pairs:
        return None
    equal, first = len(pairs), unread[0] if unread else len(copies)
    last = max((index for index in read if index < first), default=None)
    if last is None and not target.is_from_start:
        return None
    offset = copies[first].offset if last is None else copies[last].offset + 1
    again = sum(index > first for index in read)
    if not unread:
        newest = max(copies[index].origin or 0 for index in read)
        left = [one for one in source.unaborted if newest < one.offset < committed]
        again += len(left) if source.begin <= newest + 1 and source.end >= committed else committed - newest - 1
    why = f"the offsets in its records' headers, and {equal} records around it are the same"
    return Match(offset, equal, again, why, has_times)


def _copies(trace: Trace) -> Sequence[Kept]:
    return [one for one in trace.unaborted if one.origin is not None]
