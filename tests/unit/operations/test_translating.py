"""Offsets translated by time, between logs whose truth is known: no more is skipped or read again than is said."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from groupkeeper.client.admin.types import FirstRecord, ListedOffset
from groupkeeper.operations.plans.translating import NOTHING_THERE, Ends, Facts, Lookups, translate


class Log(NamedTuple):
    """``records``: (which one it is, its time) by offset from ``oldest`` on."""

    oldest: int
    records: Sequence[tuple[int, int]]

    @property
    def ends(self) -> Ends:
        return Ends(self.oldest, self.oldest + len(self.records))

    def first_from(self, time_ms: int) -> ListedOffset:
        """As ListOffsets."""
        found = (ListedOffset(self.oldest + at, ms) for at, (_, ms) in enumerate(self.records) if ms >= time_ms)
        return next(found, NOTHING_THERE)

    def lookups(self, time_ms: int) -> Lookups:
        return Lookups(self.first_from(time_ms), self.first_from(time_ms + 1))


def facts_of(source: Log, target: Log, committed: int, *, is_append_time: bool = False) -> Facts:
    """What a clone finds out."""
    ends = source.ends
    is_all_read = committed >= ends.latest
    at = min(max(committed, ends.oldest), ends.latest) - is_all_read
    time_ms = source.records[at - ends.oldest][1]
    here, there = source.lookups(time_ms), target.lookups(time_ms)
    counterpart, last = NOTHING_THERE, None
    if there.at.offset < 0:
        last = source.first_from(target.records[-1][1]) if target.records else None
    elif there.at.timestamp != here.at.timestamp:
        counterpart = source.first_from(there.at.timestamp)
    return Facts(
        committed, ends, target.ends, FirstRecord(at, time_ms), is_all_read, here, there,
        is_append_time and there.at.offset >= 0, counterpart, last,
    )  # fmt: skip


def truth(source: Log, target: Log, committed: int, offset: int) -> tuple[int, int]:
    """How many records that the group has not read it never gets though the target has them, and how many that it has
    read it gets again, of those too that the target gets later.
    """
    passed_over = [one for one, _ in target.records[: offset - target.oldest]]
    ahead = [one for one, _ in target.records[offset - target.oldest :]]
    known = {one for one, _ in target.records}
    newest = max(known, default=-1)
    to_come = [one for one, _ in source.records if one > newest]
    return sum(one >= committed for one in passed_over), sum(one < committed for one in (*ahead, *to_come))


def times(rng: random.Random, count: int, goes_back: bool) -> list[int]:
    found, now = [], 1000
    for _ in range(count):
        now += rng.choice((0, 0, 0, 1, 1, 5)) - (rng.choice((0, 0, 0, 3, 8)) if goes_back else 0)
        found.append(now)
    return found


@pytest.mark.parametrize(
    ("story", "goes_back"),
    [
        *((story, False) for story in ("whole", "shifted", "behind", "loses", "cut", "ahead", "source is cut")),
        # Where times go back and one log lacks records, times alone do not tell: docs/plans.md says so.
        *((story, True) for story in ("whole", "shifted", "behind", "ahead")),
    ],
)
def test_no_more_is_skipped_or_read_again_than_is_said(story: str, goes_back: bool) -> None:
    """Offsets of the records are their numbers in the source."""
    rng = random.Random(f"{story} {goes_back}")
    for _ in range(1500):
        count = rng.randrange(1, 25)
        everything = list(enumerate(times(rng, count, goes_back)))
        source, target = Log(0, everything), Log(rng.randrange(1, 50) if story == "shifted" else 0, everything)
        some = rng.randrange(count)
        if story == "behind":
            target = Log(0, everything[:some])
        elif story == "loses":
            target = Log(0, everything[:some] + everything[some + rng.randrange(1, 5) :])
        elif story == "cut":
            target = Log(some, everything[some:])
        elif story == "ahead":
            source = Log(0, everything[: some + 1])
        elif story == "source is cut":
            source = Log(some, everything[some:])
        committed = rng.randrange(source.ends.latest + 1)
        facts = facts_of(source, target, committed)
        found = translate(facts)
        skipped, replayed = truth(source, target, committed, found.offset)
        assert found.skips is not None
        assert found.replays is not None
        assert (skipped <= found.skips, replayed <= found.replays) == (True, True), (facts, found, skipped, replayed)


def test_what_is_said_of_logs_with_the_same_records() -> None:
    """Each offset of a log leads to itself in a copy: exactly, or with as many records again as have its time."""
    log = Log(0, list(enumerate([5, 5, 5, 7, 6, 9])))
    found = [translate(facts_of(log, log, committed)) for committed in range(7)]
    assert [(one.offset, one.skips, one.replays) for one in found] == [
        (0, 0, 0), (0, 0, 1), (0, 0, 2), (3, 0, 0), (3, 0, 1), (5, 0, 0), (6, 0, 0),
    ]  # fmt: skip
    assert found[3].why.endswith(": exact")
    assert found[4].why.endswith("up to 1 records are read again, as they have the same time or a later one")
    assert found[6].why == "all is read: the end of the log; exact"


def test_records_that_the_target_lacks_are_skipped_by_number() -> None:
    log = Log(0, list(enumerate(range(100, 110))))
    found = translate(facts_of(log, Log(0, [*log.records[:3], *log.records[7:]]), 4))
    assert (found.offset, found.skips, found.replays) == (3, 3, 0)
    assert "its next one is of 1970-01-01T00:00:00.107Z, 3 records before it are skipped" in found.why


def test_a_target_that_stamps_records_when_they_arrive_exact_is_never_said() -> None:
    log = Log(0, list(enumerate(range(100, 110))))
    late = Log(0, [(number, 500) for number, _ in log.records])
    found = translate(facts_of(log, late, 4, is_append_time=True))
    assert (found.offset, found.skips, found.replays) == (0, 0, 10)
    assert "when they arrive" in found.why


def test_what_the_source_has_lost_unread_counts_as_skipped() -> None:
    log = Log(0, list(enumerate(range(100, 110))))
    found = translate(facts_of(Log(6, log.records[6:]), log, 2))
    assert (found.offset, found.skips, found.replays) == (6, 4, 0)
    assert found.why.endswith("; the source's log has lost the 4 records before")
