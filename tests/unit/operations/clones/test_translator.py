"""Offsets translated by time, between logs whose truth is known: no more is skipped or read again than is said."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from groupkeeper.client.admin.types import FirstRecord, ListedOffset
from groupkeeper.operations.plans.by_time import NOTHING_THERE
from groupkeeper.operations.plans.clones.translator import (
    Ends,
    LogPart,
    Lookups,
    Translated,
    TranslationFacts,
    translate,
)
from groupkeeper.operations.plans.log_walk import Kept

MARKER = -1
"""In place of the number of a record."""


class Log(NamedTuple):
    """`records`: (which one it is, its time) by offset from `log_start` on; markers are MARKER, records of `aborted`
    transactions have offsets there. `is_seen`: whether its parts are small enough to be looked at.
    """

    log_start: int
    records: Sequence[tuple[int, int]]
    aborted: frozenset[int] = frozenset()
    is_seen: bool = True

    @property
    def ends(self) -> Ends:
        return Ends(self.log_start, self.log_start + len(self.records))

    @property
    def committed(self) -> list[FirstRecord]:
        return [
            FirstRecord(at, ms)
            for at, (number, ms) in enumerate(self.records, self.log_start)
            if number != MARKER and at not in self.aborted
        ]

    def first_from(self, time_ms: int) -> ListedOffset:
        """What lookups by time are resolved to."""
        found = (ListedOffset(one.offset, one.timestamp) for one in self.committed if one.timestamp >= time_ms)
        return next(found, NOTHING_THERE)

    def lookups(self, time_ms: int) -> Lookups:
        return Lookups(self.first_from(time_ms), self.first_from(time_ms + 1))

    def part(self, begin: int = 0) -> LogPart | None:
        kept = [
            Kept(at, ms, is_aborted=at in self.aborted)
            for at, (number, ms) in enumerate(self.records, self.log_start)
            if number != MARKER and at >= begin
        ]
        return LogPart(max(begin, self.log_start), self.ends.log_end, kept) if self.is_seen else None


def facts_of(source: Log, target: Log, committed: int, *, is_append_time: bool = False) -> TranslationFacts:
    """What a clone finds out."""
    following = [one for one in source.committed if one.offset >= committed]
    record = following[0] if following else source.committed[-1]
    here, there = source.lookups(record.timestamp), target.lookups(record.timestamp)
    counterpart, last, begin = NOTHING_THERE, None, 0
    if there.at.offset < 0 and target.committed:
        last_ms = target.committed[-1].timestamp
        last, begin = source.first_from(last_ms), target.first_from(last_ms).offset
    elif there.at.offset >= 0 and there.at.timestamp != here.at.timestamp:
        counterpart = source.first_from(there.at.timestamp)
    return TranslationFacts(
        committed, source.ends, target.ends, record, not following, here, there,
        is_append_time and there.at.offset >= 0, counterpart, last,
        source_part=source.part(), target_part=target.part(begin),
    )  # fmt: skip


def truth(source: Log, target: Log, committed: int, offset: int) -> tuple[int, int]:
    """How many records that the group has not read it never gets though the target has them, and how many that it has
    read it gets again, of those too that the target gets later. Aborted ones are nobody's.
    """
    copies = {target.records[one.offset - target.log_start][0]: one.offset for one in target.committed}
    newest = max(copies, default=-1)
    skipped = replayed = 0
    for one in source.committed:
        number = source.records[one.offset - source.log_start][0]
        if one.offset >= committed:
            skipped += number in copies and copies[number] < offset
        else:
            replayed += copies[number] >= offset if number in copies else number > newest
    if source.log_start:  # what it has lost may be in the target: there offsets are the records' numbers
        skipped += sum(committed <= number < source.log_start and at < offset for number, at in copies.items())
        replayed += sum(number < min(committed, source.log_start) and at >= offset for number, at in copies.items())
    known = {number for number, _ in source.records}
    skipped += sum(number > max(known) and at < offset for number, at in copies.items())
    return skipped, replayed


def in_transactions(rng: random.Random, records: Sequence[tuple[int, int]], marked_ms: int, *, aborts: bool) -> Log:
    """The same records, in transactions whose markers are of other times; with `aborts` some are tried twice."""
    found: list[tuple[int, int]] = []
    aborted: set[int] = set()
    left = list(records)
    while left:
        size = rng.randrange(1, 6)
        if aborts and rng.random() < 0.4:
            aborted.update(range(len(found), len(found) + len(left[:size])))
            found += [*left[:size], (MARKER, marked_ms + len(found))]
        found += [*left[:size], (MARKER, marked_ms + len(found))]
        left = left[size:]
    return Log(rng.choice((0, 0, 7)) if not aborted else 0, found, frozenset(aborted))


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
        committed = rng.randrange(source.ends.log_end + 1)
        judged(source, target, committed)


def judged(source: Log, target: Log, committed: int) -> tuple[TranslationFacts, Translated]:
    """What a place becomes, which is no worse than is said of it."""
    facts = facts_of(source, target, committed)
    found = translate(facts)
    skipped, replayed = truth(source, target, committed, found.offset)
    assert found.skips is not None
    assert found.replays is not None
    assert (skipped <= found.skips, replayed <= found.replays) == (True, True), (facts, found, skipped, replayed)
    return facts, found


def source_with_transactions(
    rng: random.Random, records: Sequence[tuple[int, int]], marked_ms: int, ahead_ms: int
) -> Log:
    """Some transactions are aborted; their records' times may be later than those after them."""
    found: list[tuple[int, int]] = []
    aborted: set[int] = set()
    for number, (_, ms) in enumerate(records):
        if rng.random() < 0.3 or number == len(records) - 1:
            begin = len(found)
            for _ in range(rng.randrange(3)):
                aborted.add(len(found))
                found.append((10_000 + len(found), ms + (rng.randint(1, ahead_ms) if ahead_ms else 0)))
            found += [(MARKER, marked_ms + number)] * (len(found) > begin)
        found.append((number, ms))
        found += [(MARKER, marked_ms + number)] * (rng.random() < 0.5)
    if rng.random() < 0.5:
        aborted.add(len(found))
        found += [(10_000 + len(found), found[-1][1] + 1), (MARKER, marked_ms + len(found))]
    return Log(0, found, frozenset(aborted))


@pytest.mark.parametrize("marked_ms", [1_000, 900_000], ids=["markers of now", "markers later than all records"])
@pytest.mark.parametrize("story", ["plain", "transactions", "tries twice", "behind", "loses", "copies aborted ones"])
def test_transactions_on_either_side(story: str, marked_ms: int) -> None:
    """The truth is never worse, and where the copy is whole and times are not the same, the offset is exact."""
    rng = random.Random(f"{story} {marked_ms}")
    for number in range(1500):
        has_own_times = number % 2 == 0
        count = rng.randrange(1, 20)
        ms = [1000 + 10 * at for at in range(count)] if has_own_times else times(rng, count, False)
        everything = list(enumerate(ms))
        source = source_with_transactions(rng, everything, marked_ms, 0 if story == "copies aborted ones" else 2)
        some = rng.randrange(count)
        copies = everything[:some] if story == "behind" else everything
        copies = everything[:some] + everything[some + 2 :] if story == "loses" else copies
        target = Log(rng.randrange(50), copies)
        if story in ("transactions", "tries twice"):
            target = in_transactions(rng, copies, marked_ms, aborts=story == "tries twice")
        elif story == "copies aborted ones":
            target = Log(3, [one for one in source.records if one[0] != MARKER])
        is_seen = rng.random() < 0.7
        source, target = source._replace(is_seen=is_seen), target._replace(is_seen=rng.random() < 0.7)
        committed = rng.randrange(source.ends.log_end + 1)
        facts, found = judged(source, target, committed)
        is_cut = facts.there.at.offset == target.log_start > 0  # it may have had more records of that time
        if story in ("plain", "transactions") and has_own_times and is_seen and target.is_seen and not is_cut:
            assert (found.skips, found.replays) == (0, 0), (facts, found)


def test_what_is_said_of_logs_with_the_same_records() -> None:
    """Each offset of a log leads to itself in a copy: exactly, or with as many records again as have its time."""
    log = Log(0, list(enumerate([5, 5, 5, 7, 6, 9])))
    found = [translate(facts_of(log, log, committed)) for committed in range(7)]
    assert [(one.offset, one.skips, one.replays) for one in found] == [
        (0, 0, 0), (0, 0, 1), (0, 0, 2), (3, 0, 0), (3, 0, 1), (5, 0, 0), (6, 0, 0),
    ]  # fmt: skip
    assert found[3].why.endswith("the only one of its time")
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
    behind = late._replace(records=late.records[:3])
    found = translate(facts_of(log, behind, 4, is_append_time=True))
    assert (found.offset, found.skips, found.replays) == (0, 0, 4)  # one of them is still on its way


def test_no_more_is_read_again_of_records_that_are_stamped_when_they_arrive() -> None:
    """Nor is more said than the target has, or will have of what is read."""
    rng = random.Random(5)
    for _ in range(1500):
        count = rng.randrange(1, 25)
        everything = list(enumerate(times(rng, count, goes_back=False)))
        lost, begin = rng.randrange(count), rng.randrange(count)
        lag_ms = rng.choice((0, 3, 10_000))
        arrived = [(number, ms + lag_ms) for number, ms in everything[begin : rng.randrange(begin, count) + 1]]
        source, target = Log(lost, everything[lost:]), Log(begin, arrived)
        committed = rng.randrange(lost, count + 1)
        found = translate(facts := facts_of(source, target, committed, is_append_time=True))
        if not facts.is_append_time:
            continue
        _, replayed = truth(source, target, committed, found.offset)
        assert found.replays is not None
        assert replayed <= found.replays <= max(target.ends.log_end - found.offset, committed), (facts, found)


def test_what_the_source_has_lost_unread_counts_as_skipped() -> None:
    log = Log(0, list(enumerate(range(100, 110))))
    found = translate(facts_of(Log(6, log.records[6:]), log, 2))
    assert (found.offset, found.skips, found.replays) == (6, 4, 0)
    assert found.why.endswith("; the source's log has lost the 4 records before")
