"""Which places of two logs are taken for the same, without brokers: the logs are lists."""

import hashlib
import random
from bisect import bisect_left
from collections.abc import Mapping
from struct import pack

import pytest

from groupkeeper.client.admin.types import Position, TopicPartition
from groupkeeper.operations.plans.clones.matcher import Trace
from groupkeeper.operations.plans.clones.mirror_syncs import Pair, Syncs
from groupkeeper.operations.plans.clones.record_reader import CONTEXT, look_of
from groupkeeper.operations.plans.clones.record_times import Sides
from groupkeeper.operations.plans.clones.search_order import Hints, _PlaceFinder, _Sought
from groupkeeper.operations.plans.clones.translator import Ends, Translated
from groupkeeper.operations.plans.log_walk import Kept
from groupkeeper.protocol.record import Record

PLACE = TopicPartition("t", 0)


def kept(offset: int, time: int, text: str, *, is_append_time: bool = False) -> Kept:
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return Kept(offset, time, is_append_time, False, digest)


class Log:
    """As a Reader, of one partition, which may have holes."""

    def __init__(self, records: list[Kept], end: int, log_start: int = 0) -> None:
        self.records, self.end, self.log_start = records, end, log_start
        self._offsets = [one.offset for one in records]
        self.read = 0

    async def around(self, offsets: Mapping[Position, int]) -> dict[Position, Trace]:
        return {key: self._trace(at - CONTEXT, at + CONTEXT) for key, at in offsets.items()}

    async def between(
        self, ranges: Mapping[Position, tuple[int, int]], *, is_whole: bool = True
    ) -> dict[Position, Trace]:
        return {key: self._trace(*each) for key, each in ranges.items()}

    def _trace(self, begin: int, end: int) -> Trace:
        begin = min(max(begin, self.log_start), self.end)
        end = max(begin, min(end, self.end))
        first, last = (bisect_left(self._offsets, at) for at in (begin, end))
        self.read += last - first
        return Trace(begin, end, self.records[first:last], begin <= self.log_start, end >= self.end)

    def forget(self) -> None:
        """All is kept."""


def finder_of(source: Log, target: Log) -> _PlaceFinder:
    here, there = {PLACE: Ends(0, source.end)}, {PLACE: Ends(0, target.end)}
    finder = _PlaceFinder(Sides(None, None, {PLACE: PLACE}, here, there), Hints(), {}, {})  # type: ignore[arg-type]
    finder._source, finder._target = source, target  # type: ignore[assignment]
    return finder


async def sought(source: Log, offset: int) -> tuple[Position, _Sought]:
    at = Position(*PLACE, offset)
    return at, _Sought({}, {}, {at: offset}, await source.around({at: offset}))


async def guessed(source: Log, target: Log, offset: int) -> Translated | None:
    """What is found before any lookup of times."""
    at, search = await sought(source, offset)
    return (await finder_of(source, target)._guessed(search, search.offsets, {})).get(at)


@pytest.mark.parametrize("source_stamps", [False, True])
@pytest.mark.parametrize("target_stamps", [False, True])
async def test_devices_in_turn_are_no_reason_to_skip(source_stamps: bool, target_stamps: bool) -> None:
    """A hundred devices say the same in turn; the copy lacks the first thousand records."""
    ours = [kept(at, 10**6 + at, f"{at % 100}", is_append_time=source_stamps) for at in range(6_000)]
    late = 10**7 if target_stamps else 10**6
    theirs = [kept(at - 1_000, late + at, f"{at % 100}", is_append_time=target_stamps) for at in range(1_000, 6_000)]
    found = await guessed(Log(ours, 6_000), Log(theirs, 5_000), 3_000)
    assert found is None or found.offset <= 2_000


async def test_one_record_says_little_without_times() -> None:
    ours = [kept(0, 10**6, "refresh")]
    theirs = [kept(at, 10**7 + at, "refresh" if at == 20 else f"{at}", is_append_time=True) for at in range(60)]
    assert await guessed(Log(ours, 1), Log(theirs, 60), 0) is None


async def test_the_same_logs() -> None:
    """Times that the source stamped are in the copy."""
    ours = [kept(at, 10**6 + at, f"{at}", is_append_time=True) for at in range(300)]
    theirs = [each._replace(is_append_time=False) for each in ours]
    found = await guessed(Log(ours, 300), Log(theirs, 300), 200)
    assert found is not None
    assert (found.offset, found.certainty) == (200, "identity")


async def test_headers_tell_the_place_though_records_are_all_the_same() -> None:
    """The copies got other times, some are missing, and others' records are between; some were copied twice."""
    rng = random.Random(5)
    exact = 0
    for shape in ["holes", "others", "twice", "late start", "behind"] * 4:
        count = rng.randrange(500, 4_000)
        ours = [kept(at, 10**6 + at, "beat") for at in range(count)]
        origins: list[int | None] = list(range(count))
        if shape == "holes":
            origins = [at for at in origins if rng.random() < 0.7]
        elif shape == "others":
            origins = [one for at in origins for one in [at] + [None] * (rng.random() < 0.3)]
        elif shape == "twice":
            at, size = rng.randrange(count), rng.randrange(1, 300)
            origins = [*origins[: at + size], *origins[at:]]
        elif shape == "late start":
            origins = origins[rng.randrange(count) :]
        else:
            origins = origins[: rng.randrange(1, count)]
        theirs = [
            kept(at, 10**7 + at, "beat" if origin is not None else f"another's {at}")._replace(origin=origin)
            for at, origin in enumerate(origins)
        ]
        for committed in rng.sample(range(count + 1), 6):
            found = await by_header(Log(ours, count), Log(theirs, len(theirs)), committed)
            if found is None:
                continue
            before = {origin for origin in origins[: found.offset] if origin is not None}
            behind = [origin for origin in origins[found.offset :] if origin is not None]
            assert all(origin < committed or origin in behind for origin in before), (shape, committed, found)
            again = sum(origin < committed for origin in behind)
            newest = max(origin for origin in origins if origin is not None)
            again += max(0, committed - newest - 1) if shape == "behind" else 0
            if shape != "twice":  # what is twice further on is not looked at
                assert found.replays is not None
                assert again <= found.replays, (shape, committed, found)
            exact += found.certainty == "header"
    assert exact > 75


async def by_header(source: Log, target: Log, offset: int) -> Translated | None:
    at, search = await sought(source, offset)
    return (await finder_of(source, target)._by_origins(search, [at])).get(at)


async def test_headers_of_another_log_are_not_believed() -> None:
    ours = [kept(at, 10**6 + at, f"{at}") for at in range(300)]
    theirs = [kept(at, 10**7 + at, f"{at}")._replace(origin=at + 3) for at in range(300)]
    assert await by_header(Log(ours, 300), Log(theirs, 300), 200) is None
    some = [kept(at, 10**7 + at, f"{at}")._replace(origin=at if at % 5 else None) for at in range(300)]
    assert await by_header(Log(ours, 300), Log(some, 300), 200) is None


@pytest.mark.parametrize(
    ("value", "meant"),
    [(b"12345678", 12345678), (pack(">q", 7), 7), (b"0", 0), (b"-1", None), (pack(">q", -1), None), (b"", None),
     (None, None), (b"1" * 20, None), (b"abcdefghi", None)],
)  # fmt: skip
def test_what_a_header_tells(value: bytes | None, meant: int | None) -> None:
    record = Record(None, None, headers=[("offset", value), ("other", b"1")])
    assert look_of("offset")(record)[1] == meant
    assert look_of("offset")(record)[0] == look_of()(Record(None, None, headers=[("other", b"1")]))[0]


def mirrored(rng: random.Random, ours: list[Kept], *, loses_syncs: bool) -> tuple[list[Kept], list[int], Syncs]:
    """What a mirror makes of a log that is killed now and then: copies, which ones they are, and its syncs."""
    theirs: list[Kept] = []
    numbers: list[int] = []
    syncs = Syncs()
    at, kills, since, written = 0, rng.randrange(3), 10**9, (-1, -1)
    while at < len(ours):
        one = ours[at]
        theirs.append(Kept(len(theirs), 10**8 + len(theirs) // 5, True, False, one.digest))
        numbers.append(one.offset)
        since += 1
        if since >= 100 and not (loses_syncs and rng.random() < 0.5):
            written, since = (one.offset, len(theirs) - 1), 0
            syncs.add(Pair(*written))
        at += 1
        if kills and rng.random() < 3 / len(ours):
            kills, at, since = kills - 1, rng.randrange(at), 10**9
    return theirs, numbers, syncs


@pytest.mark.parametrize("kinds", [1, 40, 10**9])
@pytest.mark.parametrize("loses_syncs", [False, True])
async def test_syncs_of_a_mirror_that_is_killed(kinds: int, loses_syncs: bool) -> None:
    rng = random.Random(f"{kinds}{loses_syncs}")
    exact = looked_at = 0
    for _ in range(8):
        count, density = rng.randrange(200, 1_500), rng.choice((1.0, 0.8))
        ours = [kept(at, 10**6 + at, f"{rng.randrange(kinds)}") for at in range(count) if rng.random() < density]
        theirs, numbers, syncs = mirrored(rng, ours, loses_syncs=loses_syncs)
        for committed in rng.sample(range(count + 1), 6):
            found = await by_syncs(Log(ours, count), Log(theirs, len(theirs)), committed, syncs)
            if found is None:
                continue
            looked_at += 1
            behind = numbers[found.offset :]
            assert all(one < committed or one in behind for one in numbers[: found.offset]), (committed, found)
            again = sum(one < committed for one in behind)
            assert found.replays is not None
            assert again <= found.replays, (committed, found, count)
            exact += not found.replays
    assert looked_at > 25
    if kinds == 10**9:
        assert exact > looked_at * 0.9


async def by_syncs(source: Log, target: Log, offset: int, syncs: Syncs) -> Translated | None:
    finder = finder_of(source, target)
    finder._syncs = {PLACE: syncs}
    at, search = await sought(source, offset)
    found, _ = await finder._by_syncs(search, [at])
    return found.get(at)


@pytest.mark.parametrize("target_stamps", [False, True])
@pytest.mark.parametrize(("kinds", "certainty"), [(10**9, "identity"), (100, None), (1_000, None), (1, None)])
async def test_the_same_logs_but_for_the_times(kinds: int, certainty: str | None, target_stamps: bool) -> None:
    """Records that come again and again may be others: the copy may lack some."""
    ours = [kept(at, 10**6 + at, f"{at % kinds}") for at in range(6_000)]
    theirs = [kept(at, 10**7 + at, f"{at % kinds}", is_append_time=target_stamps) for at in range(5_000)]
    found = await restamped(Log(ours, 6_000), Log(theirs, 5_000), 3_000)
    assert (found and (found.offset, found.certainty)) == (certainty and (3_000, certainty))
    others = [each._replace(digest=b"another") if each.offset == 4_999 else each for each in theirs]
    assert await restamped(Log(ours, 6_000), Log(others, 5_000), 3_000) is None


@pytest.mark.parametrize(
    ("shifts", "is_found"),
    [((5, 5), True), ((-5, -5), True), ((5, -5), False)],  # the source has the copies, or the target
)
async def test_copies_are_not_older(shifts: tuple[int, int], is_found: bool) -> None:
    ours = [kept(at, 10**6 + at, f"{at}") for at in range(600)]
    theirs = [each._replace(timestamp=each.timestamp + shifts[each.offset % 2]) for each in ours]
    found = await restamped(Log(ours, 600), Log(theirs, 600), 300)
    assert (found is not None) == is_found
    assert found is None or (found.offset, found.certainty) == (300, "identity")


async def restamped(source: Log, target: Log, offset: int) -> Translated | None:
    at, search = await sought(source, offset)
    return (await finder_of(source, target)._restamped(search, [at])).get(at)


async def test_a_known_place_leads_to_those_behind_it() -> None:
    """In a copy that stamps records, lacks some and has others' between."""
    rng = random.Random(7)
    ours = [kept(at, 10**6 + at, f"{at}") for at in range(4_000)]
    numbers = [one for at in range(4_000) if at % 397 for one in [at] + [-1] * (rng.random() < 0.005)]
    theirs = [
        kept(at, 10**7 + at, f"{one}" if one >= 0 else f"another's {at}", is_append_time=True)
        for at, one in enumerate(numbers)
    ]
    finder = finder_of(Log(ours, 4_000), Log(theirs, len(theirs)))
    finder._known = {PLACE: [(100, numbers.index(100))]}
    places = [at for at in range(150, 4_000, 350) if at % 397 and (at - 1) % 397]
    keys = {Position(*PLACE, at): at for at in places}
    known = {at: pair for at in keys if (pair := finder._known_before(at)) is not None}
    found = await finder._behind(_Sought({}, {}, keys, await finder._source.around(keys)), known)
    exact = {at.offset: one.offset for at, one in found.items()}
    assert len(exact) > len(places) / 2
    for at, place in exact.items():
        read = {one for one in numbers[:place] if one >= 0}
        assert read == {one for one in numbers if 0 <= one < at}


async def test_a_mirror_that_copies_exactly_once_has_markers_only_more() -> None:
    ours = [kept(at, 10**6 + at, f"{at}") for at in range(40_000)]
    theirs: list[Kept] = []
    syncs, end = Syncs(), 0
    for one in ours:
        if one.offset % 50 == 0:
            end += 1  # a marker
        if one.offset % 100 == 0:
            syncs.add(Pair(one.offset, end))
        theirs.append(one._replace(offset=end, timestamp=10**8 + end, is_append_time=True, is_transactional=True))
        end += 1
    for committed in (1, 777, 20_050, 39_999):
        found = await by_syncs(Log(ours, 40_000), Log(theirs, end), committed, syncs)
        assert found is not None
        assert (found.offset, found.replays) in [(theirs[committed].offset - marker, 0) for marker in (0, 1)]
