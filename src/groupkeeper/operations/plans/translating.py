"""Where offsets of one log lead in another one with the same records: by the times of records, as far as those tell.

A lookup by time (ListOffsets) gives the first record in the order of the log whose time is not earlier. The same lookup
in both logs gives the same record where both have it: reading from there on skips nothing, and reads again what lies
between it and the record that is meant.
"""

from __future__ import annotations

from typing import NamedTuple

from groupkeeper.client.admin.types import FirstRecord, ListedOffset
from groupkeeper.operations.times import utc_text

NOTHING_THERE = ListedOffset(-1, -1, None)


class Ends(NamedTuple):
    """Of a log: its first offset, and the one after its last record."""

    oldest: int
    latest: int


class Lookups(NamedTuple):
    """The first records of a log from a time on: ``at`` the record's, ``after`` it (a millisecond later)."""

    at: ListedOffset = NOTHING_THERE
    after: ListedOffset = NOTHING_THERE


class Facts(NamedTuple):
    """What is known of a partition in both clusters.

    ``record`` is the first that the group has not read, or the last that it has where ``is_all_read``.
    ``is_append_time``: the target stamps records when they arrive. ``counterpart``: what a lookup in the source by the
    time of the target's record finds, where that isn't the time looked for. ``last``: the same for the target's last
    record, where no record there is late enough; None: that could not be told.
    """

    committed: int
    source: Ends
    target: Ends
    record: FirstRecord
    is_all_read: bool
    here: Lookups
    there: Lookups
    is_append_time: bool = False
    counterpart: ListedOffset = NOTHING_THERE
    last: ListedOffset | None = None


class Found(NamedTuple):
    """Where an offset leads, and why there.

    ``skips``: at most so many records that the group has not read are passed over. ``replays``: at most so many that
    it has are read again.
    """

    offset: int
    why: str
    skips: int | None = None
    replays: int | None = None
    leader_epoch: int | None = None


def translate(facts: Facts) -> Found:
    """The offset in the target: its end, where ``is_to_come``."""
    if facts.is_append_time and facts.there.at.offset >= 0:
        return _by_arrival(facts)
    return _after_the_last(facts) if facts.is_all_read else _at_the_next(facts)


def is_to_come(facts: Facts) -> bool:
    """Whether the target has no record of the time of the next one, or later."""
    return not facts.is_all_read and facts.there.at.offset < 0


def _by_arrival(facts: Facts) -> Found:
    offset = facts.there.at.offset
    replays = facts.target.latest - offset
    why = (
        f"the first record that arrived from {utc_text(facts.record.timestamp)} on, as the target stamps records when "
        f"they arrive: {_again(replays)}; none is skipped unless its clock is slow"
    )
    skips = _lost_there(facts, offset)
    return Found(offset, why + _lost(facts), skips, max(0, replays), facts.there.at.leader_epoch)


def _at_the_next(facts: Facts) -> Found:
    here, there, record = facts.here.at, facts.there.at, facts.record
    text = utc_text(record.timestamp)
    if there.offset < 0:
        replays = _still_to_come(facts)
        why = f"no record from {text} on is there yet: the end of the log{_if_any(replays, '; when they come, {}')}"
        end, skips = facts.target.latest, 0
        if facts.last is not None and facts.last.offset >= record.offset:  # its last record is one that is to be read
            skips = min(end - facts.target.oldest, facts.source.latest - record.offset)
            why += f"; it has later records with earlier times: up to {skips} are skipped"
        return Found(end, why + _lost(facts), skips + _lost_there(facts, end), replays)
    if there.timestamp == here.timestamp:
        replays = max(0, record.offset - here.offset) + max(0, -_missing(facts))
        how = f"{_again(replays)}, as they have the same time or a later one" if replays else "exact"
        why = f"the record of {text}: {how}{_lost(facts)}"
        return Found(there.offset, why, _lost_there(facts, there.offset), replays, there.leader_epoch)
    back = facts.counterpart
    has_it = back.offset >= record.offset and back.timestamp == there.timestamp
    skips = (back.offset if back.offset >= record.offset else facts.source.latest) - record.offset
    replays = 0 if has_it else max(0, facts.target.latest - there.offset)
    why = (
        f"the target has no record of {text}: its next one is of {utc_text(there.timestamp)}, "
        f"{skips if has_it else f'up to {skips}'} records before it are skipped"
    )
    why += _if_any(replays, "; the source has none of that time: {}")
    skips += _lost_there(facts, there.offset)
    return Found(there.offset, why + _lost(facts), skips, replays, there.leader_epoch)


def _after_the_last(facts: Facts) -> Found:
    text = utc_text(facts.record.timestamp)
    later, end = facts.there.after, facts.source.latest
    if facts.there.at.offset < 0:
        replays = _still_to_come(facts)
        why = f"all is read: the end of the log{_if_any(replays, f'; not all up to {text} is there yet: {{}}')}"
        return Found(facts.target.latest, why, 0, replays)
    missing = _missing(facts)
    is_cut = 0 < facts.there.at.offset <= facts.target.oldest
    if missing < 0 or is_cut:  # the target may have records of this very time that the source has not yet
        replays = end - facts.here.at.offset + max(0, -missing)
        why = f"all is read up to {text}, and the target may have more records of that time: {_again(replays)}"
        return Found(facts.there.at.offset, why, 0, replays, facts.there.at.leader_epoch)
    replays = missing + (max(0, end - facts.here.after.offset) if facts.here.after.offset >= 0 else 0)
    if later.offset >= 0 and facts.here.at.timestamp != facts.there.at.timestamp:
        replays += facts.target.latest - later.offset  # what it leads to may be older than all that the source has
    if later.offset < 0:
        why = f"all is read: the end of the log; {_again(replays) if replays else 'exact'}"
        return Found(facts.target.latest, why, 0, replays)
    why = f"all is read up to {text}: the first record after that; {_again(replays) if replays else 'exact'}"
    return Found(later.offset, why, 0, replays, later.leader_epoch)


def _missing(facts: Facts) -> int:
    """How many records of the time, and of those up to the next later one, the target has less than the source."""
    here, there = facts.here, facts.there
    if here.at.timestamp != there.at.timestamp:
        return 0
    in_source = (here.after.offset if here.after.offset >= 0 else facts.source.latest) - here.at.offset
    in_target = (there.after.offset if there.after.offset >= 0 else facts.target.latest) - there.at.offset
    return in_source - in_target


def _still_to_come(facts: Facts) -> int:
    """How many records that the group has read may not be in the target yet."""
    read_to = facts.source.latest if facts.is_all_read else facts.record.offset
    begin = facts.source.oldest if facts.last is None else facts.last.offset
    return max(0, read_to - begin) if begin >= 0 else 0


def _lost(facts: Facts) -> str:
    lost = facts.source.oldest - facts.committed
    return f"; the source's log has lost the {lost} records before" if lost > 0 else ""


def _lost_there(facts: Facts, offset: int) -> int:
    """How many of the records that the source has lost unread the target may still have before an offset."""
    return max(0, min(facts.source.oldest - facts.committed, offset - facts.target.oldest))


def _again(replays: int) -> str:
    return f"up to {replays} records are read again"


def _if_any(replays: int, text: str) -> str:
    return text.format(_again(replays)) if replays else ""
