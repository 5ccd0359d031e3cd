"""Places of copies that got other times, at other offsets, without brokers: the logs are lists."""

import random
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import pytest
from tests.unit.operations.clones.test_search_order import PLACE, Log, kept

from groupkeeper.client.admin.types import Position
from groupkeeper.operations.plans.clones.mirror_syncs import Pair
from groupkeeper.operations.plans.clones.record_times import Sides
from groupkeeper.operations.plans.clones.sampler import Sampler
from groupkeeper.operations.plans.clones.translator import Ends, Translated
from groupkeeper.operations.plans.log_walk import Kept

SEEDS = 150


class Copied(NamedTuple):
    """Two logs. `origins`: of the target's offsets that are copies, the source's offsets. `repeats`: what is in
    them comes again, whether that can be seen in what is kept or not.
    """

    source: Log
    target: Log
    origins: Mapping[int, int]
    repeats: bool


class Copier:
    """Writes a target: others' records, markers and aborted copies, holes, and copies that were made again."""

    def __init__(self, rng: random.Random, end_here: int) -> None:
        self.rng, self.end_here = rng, end_here
        self.offset = 0
        self.records: list[Kept] = []
        self.origins: dict[int, int] = {}
        self._stamps = rng.random() < 0.5
        self._times = rng.choice(("late", "late", "online", "part"))

    def put(self, one: Kept, origin: int | None, *, is_aborted: bool = False) -> None:
        time = one.timestamp + (10**7 if self._times == "late" else 5)
        if self._times == "part" and origin is not None and origin < self.end_here // 2:
            time = one.timestamp
        put = one._replace(offset=self.offset, timestamp=time, is_append_time=self._stamps, is_aborted=is_aborted)
        self.records.append(put)
        if origin is not None and not is_aborted:
            self.origins[self.offset] = origin
        self.offset += 1

    def others(self, count: int) -> None:
        for _ in range(count):
            self.put(kept(0, 10**6, f"another's {self.offset}"), None)

    def copy(self, records: list[Kept]) -> None:
        at, again, mixes = 0, self.rng.choice((0, 0, 500)), self.rng.random() < 0.3
        while at < len(records):
            some = records[at : at + self.rng.choice((1, 60, 700))]
            for one in some[:20] if self.rng.random() < 0.1 else ():
                self.put(one, one.offset, is_aborted=True)
            for one in some:
                self.put(one, one.offset)
            at += len(some)
            self.offset += self.rng.random() < 0.4  # a marker
            self.others(self.rng.choice((0, 0, 30)) if mixes else 0)
            if again and at > again and self.rng.random() < 0.1:
                at, again = at - again, 0


def copied(seed: int) -> Copied:
    """The source has markers and aborted records, and some that come again and again. Both may be cut; copies may be
    behind.
    """
    rng = random.Random(seed)
    count, kinds = rng.randrange(300, 9_000), rng.choice((10**9, 10**9, 10**9, 50, 3_000))
    ours: list[Kept] = []
    offset = 0
    while len(ours) < count:
        is_aborted = rng.random() < 0.1
        for _ in range(rng.choice((1, 20, 300))):
            ours.append(kept(offset, 10**6 + offset, f"{offset % kinds}")._replace(is_aborted=is_aborted))
            offset += 1
        offset += rng.random() < 0.3
    committed = [one for one in ours if not one.is_aborted]
    copier = Copier(rng, offset)
    copier.others(rng.choice((0, 3, 4_000)))
    copier.copy(committed[: max(1, len(committed) - rng.choice((0, 0, 1, 40, 3_000)))])
    cut_here, cut_there = (rng.choice((0, 0, rng.randrange(1 + end // 2))) for end in (offset, copier.offset))
    source = Log([one for one in ours if one.offset >= cut_here], offset, cut_here)
    target = Log([one for one in copier.records if one.offset >= cut_there], copier.offset, cut_there)
    origins = {at: origin for at, origin in copier.origins.items() if at >= cut_there}
    return Copied(source, target, origins, kinds < offset)


async def found_in(
    logs: Copied, offsets: list[int], searched: int = 2_000, told: list[Pair] | None = None
) -> dict[int, Translated]:
    source, target = logs.source, logs.target
    ends = {PLACE: Ends(source.log_start, source.end)}, {PLACE: Ends(target.log_start, target.end)}
    sides = Sides(None, None, {PLACE: PLACE}, *ends)  # type: ignore[arg-type]
    sampler = Sampler(sides, (source, target), searched, {PLACE: told or []})  # type: ignore[arg-type]
    places = {Position(*PLACE, at): at for at in offsets}
    found = await sampler.find(places, await source.around(places))
    return {at.offset: one for at, one in found.items()}


def check(logs: Copied, found: Mapping[int, Translated]) -> None:
    """By what the records are: nothing unread is skipped, and what is read again is within its bound."""
    copies = Counter(logs.origins.values())
    newest = max(copies, default=-1)
    still_to_come = [one.offset for one in logs.source.records if one.offset > newest and not one.is_aborted]
    for committed, one in found.items():
        behind = [origin for at, origin in logs.origins.items() if at >= one.offset]
        skipped = {origin for at, origin in logs.origins.items() if at < one.offset and origin >= committed}
        assert skipped <= set(behind), (committed, one)
        again = sum(origin < committed for origin in behind) + sum(at < committed for at in still_to_come)
        cannot_know = logs.repeats or len(copies) < len(logs.origins)  # second copies are not looked for further on
        assert one.replays is not None
        assert cannot_know or again <= one.replays, (committed, one, again)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, 50))
async def test_nothing_is_skipped_and_bounds_hold(first: int) -> None:
    exact = asked = 0
    for seed in range(first, first + 50):
        logs = copied(seed)
        rng = random.Random(seed)
        here = logs.source
        offsets = sorted({here.log_start, here.end, *(rng.randrange(here.log_start, here.end) for _ in range(12))})
        found = await found_in(logs, offsets)
        check(logs, found)
        asked += len(offsets)
        exact += sum(one.certainty == "content" for one in found.values())
    assert exact > asked // 3, (exact, asked)
