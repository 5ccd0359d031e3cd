"""Translates offsets of one log to another one with the same records, by the times of records.

A lookup by time (ListOffsets) gives the first record in the order of the log whose time is not earlier. The same lookup
in both logs gives the same record where both have it: reading from there on skips nothing, and reads again the records
between it and the wanted one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from groupkeeper.client.admin.types import FirstRecord, ListedOffset
from groupkeeper.operations.plans.by_time import NOTHING_THERE
from groupkeeper.operations.plans.log_walk import Kept
from groupkeeper.operations.times import utc_text


class Ends(NamedTuple):
    """The first offset of a log, and the one after its last record."""

    log_start: int
    log_end: int


class Lookups(NamedTuple):
    """The first records of a log at (`at`) and after (`after`, a millisecond later) a record's time.

    Records of aborted transactions are left out. `doubt`: why a first record may be further on.
    """

    at: ListedOffset = NOTHING_THERE
    after: ListedOffset = NOTHING_THERE
    doubt: str = ""


class Count(NamedTuple):
    """A number of records, without aborted ones: `least` without those of open transactions, `most` with them."""

    least: int
    most: int


class LogPart(NamedTuple):
    """All records of a log from `begin` up to `end`: offsets alone don't tell how many there are."""

    begin: int
    end: int
    records: Sequence[Kept]

    def counted(self, begin: int, end: int) -> Count | None:
        if begin < self.begin or end > self.end:
            return None
        states = Counter(one.is_aborted for one in self.records if begin <= one.offset < end)
        return Count(states[False], states[False] + states[None])


class TranslationFacts(NamedTuple):
    """The facts about a partition in both clusters."""

    committed: int
    source: Ends
    target: Ends
    record: FirstRecord
    """The first that the group has not read, or the last that it has where `is_all_read`."""
    is_all_read: bool
    here: Lookups
    there: Lookups
    is_append_time: bool = False
    """Whether the target stamps records when they arrive."""
    counterpart: ListedOffset = NOTHING_THERE
    """The source's first record from the timestamp of `there` on, where that is not the timestamp of `here`."""
    last: ListedOffset | None = None
    """The source's first record from the timestamp of the target's last record on, where no record there is late
    enough; None: unknown.
    """
    keeps_times: bool = True
    """Whether the target's last record has a timestamp of the source; otherwise timestamps prove nothing."""
    leaves_out: bool = False
    """Whether aborted records before `record` were left out, as by consumers of committed records."""
    source_part: LogPart | None = None
    """The records by which to count; None: none, or too many to read."""
    target_part: LogPart | None = None
    """None: none, or too many to read."""


class Certainty(StrEnum):
    """How sure it is that a translated offset is right.

    The first four are exact, by the records' content. BOUNDED is at or before the right offset, by content; TIME is by
    times alone.
    """

    IDENTITY = "identity"
    HEADER = "header"
    SYNC = "sync"
    CONTENT = "content"
    BOUNDED = "bounded"
    TIME = "time"


EXACT = (Certainty.IDENTITY, Certainty.HEADER, Certainty.SYNC, Certainty.CONTENT)


class Translated(NamedTuple):
    """The translated offset, with the reason."""

    offset: int
    why: str
    skips: int | None = None
    """The most unread records that are skipped; None: to be counted from the offsets, as the next one."""
    replays: int | None = None
    """The most read records that are read again; None: to be counted."""
    leader_epoch: int | None = None
    """None: not known."""
    certainty: Certainty = Certainty.TIME
    to_come: int | None = None
    """The time of the record to be read next, where the target doesn't have it yet; else None."""


def translate(facts: TranslationFacts) -> Translated:
    """Translates a committed offset. The result is the target's end if the next record is not there yet."""
    if facts.there.doubt and facts.there.at.offset >= 0:
        return _in_doubt(facts)
    if facts.is_append_time and facts.there.at.offset >= 0:
        return _by_arrival(facts)
    if facts.is_all_read:
        return _after_the_last(facts)
    found = _at_the_next(facts)
    return found._replace(to_come=facts.record.timestamp) if facts.there.at.offset < 0 else found


def _in_doubt(facts: TranslationFacts) -> Translated:
    """For a doubtful lookup: its offset may be any number of records before the right one, but never after it."""
    at = facts.there.at
    replays = _all_behind(facts, at.offset)
    why = f"before the record of {utc_text(facts.record.timestamp)}: {facts.there.doubt}, {_again(replays)}"
    return Translated(at.offset, why + _lost(facts), _lost_there(facts, at.offset), replays, at.leader_epoch)


def _by_arrival(facts: TranslationFacts) -> Translated:
    offset = facts.there.at.offset
    replays = _all_behind(facts, offset)
    why = (
        f"the first record that arrived at or after {utc_text(facts.record.timestamp)}, as the target stamps records "
        f"when they arrive: {_again(replays)}; none is skipped unless its clock is slow"
    )
    skips = _lost_there(facts, offset)
    return Translated(offset, why + _lost(facts), skips, replays, facts.there.at.leader_epoch)


def _all_behind(facts: TranslationFacts, offset: int) -> int:
    """The most records to read again from an offset on: those in the target, or all that the group has read if these
    are more, as the target may still get them. Each record is copied once.
    """
    there, log_start = max(0, facts.target.log_end - offset), facts.source.log_start
    lost = min(there, log_start)  # what only the target still has
    return max(there, _read_to(facts) - log_start + lost)


def _at_the_next(facts: TranslationFacts) -> Translated:
    here, there, record = facts.here.at, facts.there.at, facts.record
    text = utc_text(record.timestamp)
    if there.offset < 0:
        replays = _still_to_come(facts)
        why = (
            f"the target has no record from {text} on yet: the end of the log"
            f"{_if_any(replays, '; once it has them, {}')}"
        )
        end, skips = facts.target.log_end, 0
        has_later = facts.last is not None and facts.last.offset >= record.offset  # its last one is to be read
        if has_later or not facts.keeps_times:
            skips = min(end - facts.target.log_start, facts.source.log_end - record.offset)
            what = "it has later records with earlier times" if has_later else "but its records have other times"
            why += _if_any(skips, f"; {what}: up to {skips} are skipped")
        return Translated(end, why + _lost(facts), skips + _lost_there(facts, end), replays)
    if there.timestamp == here.timestamp:
        replays = _count(facts.source_part, here.offset, record.offset).most + _surplus(facts)
        how = f"{_again(replays)}, as they have the same time or a later one" if replays else "the only one of its time"
        why = f"the record of {text}: {how}{_lost(facts)}{_aborted(facts)}"
        return Translated(there.offset, why, _lost_there(facts, there.offset), replays, there.leader_epoch)
    back = facts.counterpart
    has_it = back.offset >= record.offset and back.timestamp == there.timestamp
    next_copied = back.offset if back.offset >= record.offset else facts.source.log_end
    skips = _count(facts.source_part, record.offset, next_copied).most
    replays = 0 if has_it else max(0, facts.target.log_end - there.offset)
    why = (
        f"the target has no record of {text}: its next one is of {utc_text(there.timestamp)}, "
        f"{skips if has_it else f'up to {skips}'} records before it are skipped"
    )
    why += _if_any(replays, "; the source has none of that time: {}")
    skips += _lost_there(facts, there.offset)
    return Translated(there.offset, why + _lost(facts), skips, replays, there.leader_epoch)


def _after_the_last(facts: TranslationFacts) -> Translated:
    text = utc_text(facts.record.timestamp)
    later, end = facts.there.after, facts.source.log_end
    if facts.there.at.offset < 0:
        replays = _still_to_come(facts)
        why = (
            f"all is read: the end of the log{_if_any(replays, f'; not all records up to {text} are there yet: {{}}')}"
        )
        return Translated(facts.target.log_end, why, 0, replays)
    surplus = _surplus(facts)
    is_cut = 0 < facts.there.at.offset <= facts.target.log_start
    if surplus or is_cut:  # the target may have records of this very time that the source has not yet
        replays = _count(facts.source_part, facts.here.at.offset, end).most + surplus
        why = f"all is read up to {text}, and the target may have more records of that time: {_again(replays)}"
        return Translated(facts.there.at.offset, why, 0, replays, facts.there.at.leader_epoch)
    after = facts.here.after.offset
    replays = _missing(facts) + (_count(facts.source_part, after, end).most if after >= 0 else 0)
    aborts = facts.source_part is None or any(one.is_aborted for one in facts.source_part.records)
    if later.offset >= 0 and (facts.here.at.timestamp != facts.there.at.timestamp or aborts):
        # The record found may be older than all of the source, or the copy of an aborted record among these.
        replays += facts.target.log_end - later.offset
    if later.offset < 0:
        why = f"all is read: the end of the log; {_again(replays) if replays else 'exact'}"
        return Translated(facts.target.log_end, why, 0, replays)
    why = f"all is read up to {text}: the first record after that; {_again(replays) if replays else 'exact'}"
    return Translated(later.offset, why, 0, replays, later.leader_epoch)


def _count(part: LogPart | None, begin: int, end: int) -> Count:
    """The number of records in a range; without its records, between none and one for each offset."""
    counted = None if part is None else part.counted(begin, end)
    return Count(0, max(0, end - begin)) if counted is None else counted


def _of_the_time(facts: TranslationFacts) -> tuple[Count, Count]:
    """The numbers of records in source and target from the record's time up to the next later one."""
    here, there = facts.here, facts.there
    if here.at.timestamp != there.at.timestamp:
        return Count(0, 0), Count(0, 0)
    in_source = _count(facts.source_part, here.at.offset, _end(here.after, facts.source))
    return in_source, _count(facts.target_part, there.at.offset, _end(there.after, facts.target))


def _surplus(facts: TranslationFacts) -> int:
    """How many more records of that time the target may have than the source."""
    in_source, in_target = _of_the_time(facts)
    return max(0, in_target.most - in_source.least)


def _missing(facts: TranslationFacts) -> int:
    """How many fewer records of that time the target may have than the source; some may be copies of aborted ones."""
    in_source, in_target = _of_the_time(facts)
    records = () if facts.source_part is None else facts.source_part.records
    aborted = sum(bool(one.is_aborted) for one in records if one.timestamp == facts.record.timestamp)
    return max(0, in_source.most - max(0, in_target.least - aborted))


def _still_to_come(facts: TranslationFacts) -> int:
    """How many records that the group has read may still be missing in the target."""
    read_to, log_start = _read_to(facts), facts.source.log_start
    begin = log_start if facts.last is None else facts.last.offset
    if begin < 0:
        return 0
    here, there = facts.source_part, facts.target_part
    is_known = facts.last is not None and (begin > log_start or log_start == 0)  # where the log is cut, others are not
    if not is_known or here is None or there is None or here.begin > begin or here.end < facts.source.log_end:
        return _count(here, begin, read_to).most
    records = [one for one in here.records if one.offset >= begin]
    is_read = [one.offset < read_to and not one.is_aborted for one in records]
    wanted = Counter(one.timestamp for one, is_one in zip(records, is_read, strict=True) if is_one)
    others = Counter(one.timestamp for one, is_one in zip(records, is_read, strict=True) if not is_one)
    copies = Counter(one.timestamp for one in there.records if one.is_aborted is False)
    return sum(max(0, count - max(0, copies[ms] - others[ms])) for ms, count in wanted.items())


def _read_to(facts: TranslationFacts) -> int:
    return facts.source.log_end if facts.is_all_read else facts.record.offset


def _end(after: ListedOffset, ends: Ends) -> int:
    return after.offset if after.offset >= 0 else ends.log_end


def _aborted(facts: TranslationFacts) -> str:
    return "; records of aborted transactions before it are left out" if facts.leaves_out else ""


def _lost(facts: TranslationFacts) -> str:
    lost = facts.source.log_start - facts.committed
    return f"; the source's log has lost the {lost} records before" if lost > 0 else ""


def _lost_there(facts: TranslationFacts, offset: int) -> int:
    """How many records that the source lost unread the target may still have before an offset."""
    return max(0, min(facts.source.log_start - facts.committed, offset - facts.target.log_start))


def _again(replays: int) -> str:
    return f"up to {replays} records are read again"


def _if_any(count: int, text: str) -> str:
    return text.format(_again(count)) if count else ""
