"""Places found by what records hold, between logs whose truth is known: nothing is skipped, exact is exact."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from groupkeeper.operations.plans.clones.matcher import Match, Trace, match
from groupkeeper.operations.plans.log_walk import Kept


class One(NamedTuple):
    """Of a log: which record of the source it is (None: a marker), its time, what it holds."""

    number: int | None
    timestamp: int
    digest: bytes
    is_aborted: bool = False
    is_append_time: bool = False


def trace_of(log: Sequence[One], begin: int = 0, end: int | None = None) -> Trace:
    end = len(log) if end is None else min(end, len(log))
    begin = max(0, begin)
    records = [
        Kept(at, one.timestamp, one.is_append_time, one.is_aborted, one.digest)
        for at, one in enumerate(log)
        if begin <= at < end and one.number is not None
    ]
    return Trace(begin, end, records, begin == 0, end == len(log))


def source_of(rng: random.Random, count: int, kinds: int, *, transactions: bool) -> list[One]:
    """`kinds`: of so many different contents; several records have the same time."""
    log: list[One] = []
    now = 1000
    for number in range(count):
        now += rng.choice((0, 0, 1, 5))
        is_aborted = transactions and rng.random() < 0.1
        log.append(One(number, now, bytes([rng.randrange(kinds)]), is_aborted))
        if transactions and rng.random() < 0.2:
            log.append(One(None, now, b""))
    return log


def moved(source: Sequence[One], target: Sequence[One], committed: int, offset: int) -> tuple[int, int]:
    """How many unread records are passed over in the target, and do not come later; how many read ones come again."""
    places = {one.number: at for at, one in enumerate(source) if one.number is not None and not one.is_aborted}
    before = {one.number for one in target[:offset] if one.number in places}
    behind = [one.number for one in target[offset:] if one.number in places]
    skipped = sum(places[number] >= committed for number in before.difference(behind))
    return skipped, sum(places[number] < committed for number in behind)


def asked(source: Sequence[One], target: Sequence[One], committed: int, width: int = 32) -> Match | None:
    """As a clone asks that has no idea where in the target the place is."""
    return match(trace_of(source, committed - width, committed + width), committed, trace_of(target))


SHAPES = ["the same", "without holes", "lost start", "more there", "holes", "twice", "aborted too", "stamped", "behind"]


def copied(rng: random.Random, source: Sequence[One], shape: str) -> list[One]:
    """What a mirror makes of a log."""
    if shape == "the same":
        return list(source)
    seen = [one for one in source if one.number is not None and (not one.is_aborted or shape == "aborted too")]
    seen = [one._replace(is_aborted=False) for one in seen]
    if shape == "lost start":
        return seen[rng.randrange(len(seen) // 2) :]
    if shape == "more there":
        return [One(-number, 1, b"other") for number in range(1, 8)] + seen
    if shape == "holes":
        return [one for one in seen if rng.random() < 0.8]
    if shape == "twice":
        at, size = rng.randrange(len(seen)), rng.randrange(1, 9)
        return [*seen[: at + size], *seen[at:]]
    if shape == "stamped":
        return [one._replace(timestamp=5000 + at // 3, is_append_time=True) for at, one in enumerate(seen)]
    if shape == "behind":
        return seen[: rng.randrange(1, len(seen))]
    return seen


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kinds", [2, 250])
def test_nothing_is_skipped_and_no_more_read_again_than_is_said(shape: str, kinds: int) -> None:
    rng = random.Random(f"{shape}{kinds}")
    exact = asked_for = 0
    for _ in range(60):
        source = source_of(rng, rng.randrange(10, 90), kinds, transactions=shape != "twice")
        target = copied(rng, source, shape)
        for committed in rng.sample(range(len(source) + 1), 4):
            found = asked(source, target, committed)
            asked_for += 1
            if found is None:
                continue
            skipped, replayed = moved(source, target, committed, found.offset)
            assert skipped == 0, (committed, found, source, target)
            if shape == "behind":  # what is read and not copied yet is read again later
                newest = max(one.number for one in target if one.number is not None)
                replayed += sum(
                    one.number is not None and one.number > newest and not one.is_aborted for one in source[:committed]
                )
            assert replayed <= found.replays, (committed, found, source, target)
            exact += found.is_exact
    if kinds == 250 and shape in ("the same", "without holes", "more there", "stamped"):
        assert exact >= 0.95 * asked_for


def test_times_tell_equal_contents_apart() -> None:
    source = [One(number, 1000 + number, b"beat") for number in range(200)]
    found = asked(source, source[50:], 120)
    assert found is not None
    assert (found.offset, found.is_exact) == (70, True)


def test_the_same_contents_of_another_hour_are_other_records() -> None:
    """A cycle of contents: what is looked for is not copied, and the target keeps times."""
    source = [One(number, 1000 + number, bytes([number % 20])) for number in range(100)]
    assert asked(source, source[:20], 80) is None
    assert asked(source, source[90:], 40) is None
