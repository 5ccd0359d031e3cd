"""Which places of two logs are taken for the same, without brokers: the logs are lists."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping

import pytest

from groupkeeper.client.admin.types import Position, TopicPartition
from groupkeeper.operations.plans.clones.matching import Trace
from groupkeeper.operations.plans.clones.reading import CONTEXT
from groupkeeper.operations.plans.clones.settling import Hints, _Settler
from groupkeeper.operations.plans.clones.timing import Sides
from groupkeeper.operations.plans.clones.translating import Ends, Found
from groupkeeper.operations.plans.walking import Kept

PLACE = TopicPartition("t", 0)


def kept(offset: int, time: int, text: str, *, is_append_time: bool = False) -> Kept:
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return Kept(offset, time, is_append_time, False, digest)


class Log:
    """As a Reader, of one partition."""

    def __init__(self, records: list[Kept], end: int) -> None:
        self._records, self.end = records, end

    async def around(self, offsets: Mapping[Position, int]) -> dict[Position, Trace]:
        return {key: self._trace(at - CONTEXT, at + CONTEXT) for key, at in offsets.items()}

    async def between(
        self, ranges: Mapping[Position, tuple[int, int]], *, is_whole: bool = True
    ) -> dict[Position, Trace]:
        return {key: self._trace(*each) for key, each in ranges.items()}

    def _trace(self, begin: int, end: int) -> Trace:
        begin = min(max(begin, 0), self.end)
        end = max(begin, min(end, self.end))
        found = [each for each in self._records if begin <= each.offset < end]
        return Trace(begin, end, found, begin <= 0, end >= self.end)


def guessed(source: Log, target: Log, offset: int) -> Found | None:
    """What is found before any lookup of times."""
    here, there = {PLACE: Ends(0, source.end)}, {PLACE: Ends(0, target.end)}
    settler = _Settler(Sides(None, None, {PLACE: PLACE}, here, there), Hints())  # type: ignore[arg-type]
    settler._ours, settler._theirs = source, target  # type: ignore[assignment]
    inside = {Position(*PLACE, offset): offset}

    async def work() -> Found | None:
        ours = await source.around(inside)
        return (await settler._guessed(inside, ours, {})).get(Position(*PLACE, offset))

    return asyncio.run(work())


@pytest.mark.parametrize("source_stamps", [False, True])
@pytest.mark.parametrize("target_stamps", [False, True])
def test_devices_in_turn_are_no_reason_to_skip(source_stamps: bool, target_stamps: bool) -> None:
    """A hundred devices say the same in turn; the copy lacks the first thousand records."""
    ours = [kept(at, 10**6 + at, f"{at % 100}", is_append_time=source_stamps) for at in range(6_000)]
    late = 10**7 if target_stamps else 10**6
    theirs = [kept(at - 1_000, late + at, f"{at % 100}", is_append_time=target_stamps) for at in range(1_000, 6_000)]
    found = guessed(Log(ours, 6_000), Log(theirs, 5_000), 3_000)
    assert found is None or found.offset <= 2_000


def test_one_record_says_little_without_times() -> None:
    ours = [kept(0, 10**6, "refresh")]
    theirs = [kept(at, 10**7 + at, "refresh" if at == 20 else f"{at}", is_append_time=True) for at in range(60)]
    assert guessed(Log(ours, 1), Log(theirs, 60), 0) is None


def test_the_same_logs() -> None:
    """Times that the source stamped are in the copy."""
    ours = [kept(at, 10**6 + at, f"{at}", is_append_time=True) for at in range(300)]
    theirs = [each._replace(is_append_time=False) for each in ours]
    found = guessed(Log(ours, 300), Log(theirs, 300), 200)
    assert found is not None
    assert (found.offset, found.certainty) == (200, "identity")
