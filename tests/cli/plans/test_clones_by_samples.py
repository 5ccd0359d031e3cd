"""Clones whose copies got other times, at other offsets: the truth are the numbers that producers wrote."""

import asyncio
import random
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from tests.acts import cut, end_of, make_topic, produce
from tests.copies import FIRST_MS, Item, Writer, items, write
from tests.mirroring import Judged, log_of

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Position, TopicPartition
from groupkeeper.operations.plans.clones.mirror_syncs import Pair
from groupkeeper.operations.plans.clones.record_times import Sides
from groupkeeper.operations.plans.clones.search_order import Hints, find_offsets
from groupkeeper.operations.plans.clones.translator import Ends, Translated
from groupkeeper.operations.plans.cluster_state import find_logs

RECORDS, OTHERS = 8_000, 5_000
PLACES = 15
SEARCHED = 2_000
"""Far less than copies are from the offsets that they have in the source."""
EXACT = ("identity", "content")
STAMPED = {"message.timestamp.type": "LogAppendTime"}


class Logs:
    """A topic of both clusters; `found`: where places of the source are, by their offsets."""

    def __init__(
        self, here: str, there: str, source: Mapping[str, str] = MappingProxyType({}), /, **config: str
    ) -> None:
        self.topic = f"t{time.time_ns()}"
        self.here, self.there = here, there
        make_topic(here, self.topic, **source)
        make_topic(there, self.topic, **config)
        self._there = Writer(there, self.topic)
        self.rng = random.Random(1)

    def fill(self, records: list[Item], **properties: str) -> None:
        write(self.here, self.topic, records, **properties)

    def fill_with_copies(self, records: list[Item]) -> None:
        """The source has the copies, with times of their own, and the target what they are copies of."""
        Writer(self.here, self.topic).write(records, keeps_times=False)

    def others(self, count: int, first: int = 1_000_000) -> None:
        """Records of the target that are no copies."""
        self._there.write(items(count, first=first), keeps_times=False)

    def copy(self, records: list[Item], *, keeps_times: bool = False) -> None:
        self._there.write(records, keeps_times=keeps_times)

    def copy_in_transactions(self, records: list[Item]) -> None:
        """Of many sizes, some of them aborted and done again."""
        target, start = Writer(self.there, self.topic, True), 0
        while start < len(records):
            some = records[start : start + self.rng.choice((3, 40, 170, 600))]
            if self.rng.random() < 0.2:
                target.write(some[: len(some) // 2], keeps_times=False, commits=False)
            target.write(some, keeps_times=False)
            start += len(some)

    def places(self) -> list[int]:
        end = end_of(self.here, self.topic)
        return sorted({0, end, *(self.rng.randrange(end) for _ in range(PLACES))})

    def found(
        self, offsets: list[int], told: list[Pair] | None = None, searched: int = SEARCHED
    ) -> dict[int, Translated]:
        return asyncio.run(self._found(offsets, told or [], searched))

    async def _found(self, offsets: list[int], told: list[Pair], searched: int) -> dict[int, Translated]:
        tp = TopicPartition(self.topic, 0)
        async with Admin(self.here) as here, Admin(self.there) as there:
            here_ends, there_ends = [{tp: await _ends(admin, tp)} for admin in (here, there)]
            named = {tp: tp}
            sides, positions = (Sides(here, there, named, here_ends, there_ends), [Position(*tp, at) for at in offsets])
            places = await find_offsets(sides, positions, Hints(searched), told={tp: told})
        assert not places.failed
        return {at.offset: one for at, one in places.done.items()}

    def judged(self, **search: Any) -> dict[int, Translated]:
        """Some places as they are found, none of them wrong."""
        found = self.found(self.places(), **search)
        self.judge(found)
        return found

    def judge(self, found: dict[int, Translated]) -> dict[int, Judged]:
        """Nothing is skipped, and not more read again than is said, by what consumers of both get."""
        here, there = log_of(self.here, self.topic), log_of(self.there, self.topic)
        judged = {at: here.judged(at, there, one.offset) for at, one in found.items()}
        for at, one in found.items():
            copied = set(there.numbers.values())
            to_come = sum(offset < at and number not in copied for offset, number in here.numbers.items())
            assert judged[at].skipped == 0, (at, one)
            assert one.replays is not None
            assert judged[at].replayed + to_come <= one.replays, (at, one, judged[at], to_come)
        return judged

    def judge_what_is_there(self, found: dict[int, Translated]) -> None:
        """Nothing is skipped, and of the target's records not more read again than is said."""
        here, there = log_of(self.here, self.topic), log_of(self.there, self.topic)
        for at, one in found.items():
            judged = here.judged(at, there, one.offset)
            assert judged.skipped == 0, (at, one, judged)
            assert judged.replayed <= (one.replays or 0), (at, one, judged)


async def _ends(admin: Admin, tp: TopicPartition) -> Ends:
    logs = await find_logs(admin, [tp])
    return Ends(logs.log_starts[tp], logs.log_ends[tp])


def is_all_exact(found: dict[int, Translated]) -> bool:
    return {one.certainty for one in found.values()} <= set(EXACT)


@pytest.mark.parametrize("config", [{}, STAMPED], ids=["CreateTime", "LogAppendTime"])
def test_copies_behind_others(clusters: tuple[str, str], config: dict[str, str]) -> None:
    logs, records = Logs(*clusters, **config), items(RECORDS)
    logs.fill(records, **{"compression.type": "lz4"})
    logs.others(OTHERS)
    logs.copy(records)
    found = logs.judged()
    assert is_all_exact(found), found


@pytest.mark.parametrize("source", [{}, STAMPED], ids=["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("lost", [0, 1_000])
@pytest.mark.parametrize("others", [0, OTHERS])
def test_back_to_what_they_are_copies_of(
    clusters: tuple[str, str], source: dict[str, str], lost: int, others: int
) -> None:
    """All records of the target are older than those of the source."""
    logs, records = Logs(*clusters, source), items(RECORDS)
    logs.fill_with_copies(records[lost:])
    logs.others(others)
    logs.copy(records, keeps_times=True)
    found = logs.judged()
    assert is_all_exact(found), found


@pytest.mark.parametrize("keeps_times", [True, False])
@pytest.mark.parametrize("more", [0, 40])
@pytest.mark.parametrize("first", [0, 300])
def test_a_log_with_its_end_once_more(clusters: tuple[str, str], keeps_times: bool, more: int, first: int) -> None:
    """A copier that began again: who has read all goes to the end; what others read again is said."""
    logs, records = Logs(*clusters), items(RECORDS)
    logs.fill(records)
    logs.others(first)
    logs.copy(records + records[-800:], keeps_times=keeps_times)
    logs.others(more)
    found = logs.judged()
    for at, one in found.items():
        wanted = (first + at, max(0, at - RECORDS + 800)) if at < RECORDS or more else (first + RECORDS + 800, 0)
        if not first:
            assert (one.offset, one.replays) == wanted, (at, one)


@pytest.mark.parametrize("keeps_times", [True, False])
def test_copiers_that_began_again_on_the_way(clusters: tuple[str, str], keeps_times: bool) -> None:
    logs, records = Logs(*clusters), items(RECORDS)
    logs.fill(records)
    start, stops = 0, [800, 3_000, 3_040, 6_500, RECORDS]
    for stop in stops:
        logs.copy(records[max(0, start - 60) : stop], keeps_times=keeps_times)
        start = stop
    offsets = sorted({at for stop in stops for at in range(stop - 200, min(stop + 20, RECORDS), 13)})
    found = logs.found(offsets, searched=10_000)
    logs.judge(found)
    for at in (747, 2_999, 6_470):  # nothing is known of their neighbours
        found |= logs.found([at], searched=10_000)
    logs.judge(found)
    offsets = list(found)
    again = {at for at in offsets if any(stop - 60 < at <= stop for stop in stops[:-1])}
    assert {at for at, one in found.items() if one.replays} <= again  # the second copy may be taken


def test_others_between_copies_and_further_copies(clusters: tuple[str, str]) -> None:
    """What is behind one place is not behind all: the first copies of some lie there."""
    logs, records = Logs(*clusters), items(RECORDS)
    logs.fill(records)
    logs.copy(records[: RECORDS // 2], keeps_times=True)
    logs.others(300)
    logs.copy(records[RECORDS // 2 :] + records[-800:], keeps_times=True)
    found = logs.judged()
    for at, one in found.items():
        if at < RECORDS:
            assert one.replays == max(0, at - RECORDS + 800), (at, one)
        else:
            assert (one.offset, one.replays) == (RECORDS + 300 + 800, 0), one


@pytest.mark.parametrize("target", [{}, STAMPED], ids=["to CreateTime", "to LogAppendTime"])
@pytest.mark.parametrize("source", [{}, STAMPED], ids=["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("is_older", [False, True])
def test_two_copies_of_a_third_log(
    clusters: tuple[str, str], source: dict[str, str], target: dict[str, str], is_older: bool
) -> None:
    """Which of them was made first says nothing of their records: each lacks some of the other's first ones."""
    logs, records = Logs(*clusters, source, **target), items(3_000)

    def copy_there() -> None:
        logs.others(57)
        logs.copy(records[300:])

    if is_older:
        copy_there()
    Writer(logs.here, logs.topic).write(items(13, first=2_000_000), keeps_times=False)
    logs.fill_with_copies(records[200:])
    if not is_older:
        copy_there()
    found = logs.found([*range(0, 120, 7), *logs.places()])
    logs.judge_what_is_there(found)
    for at, one in found.items():
        if at > 113 + 32:
            assert one.certainty in EXACT, (at, one)


@pytest.mark.parametrize("is_back", [False, True])
def test_copies_in_another_order(clusters: tuple[str, str], is_back: bool) -> None:
    """Each record's time leads to its copy, and unread ones are before it."""
    logs, records = Logs(*clusters), items(1_500, per_ms=1)
    blocks = [records[start : start + 10] for start in range(300, 1_500, 10)]
    mixed = [one for block in blocks for one in logs.rng.sample(block, 10)]
    logs.fill(mixed if is_back else records)
    logs.copy(records if is_back else mixed, keeps_times=True)
    logs.judge_what_is_there(logs.found(logs.places()))


def test_times_that_go_back(clusters: tuple[str, str]) -> None:
    logs = Logs(*clusters)
    records = [one._replace(time_ms=FIRST_MS + one.number * 37 % 500 * 100) for one in items(1_500)]
    logs.fill(records)
    logs.copy(records[300:], keeps_times=True)
    found = logs.found([*range(300, 400, 5), *logs.places()])
    here, there = log_of(logs.here, logs.topic), log_of(logs.there, logs.topic)
    for at, one in found.items():
        judged = here.judged(at, there, one.offset)
        assert judged.skipped <= (one.skips or 0), (at, one, judged)
        assert at < 300 or (judged.skipped, one.certainty) == (0, "content"), (at, one, judged)


def test_a_copier_that_lags_and_has_begun_again(clusters: tuple[str, str]) -> None:
    logs, records = Logs(*clusters), items(3_000)
    logs.fill(records)
    logs.copy(records[:800] + records[740:2_900], keeps_times=True)
    found = logs.found([760], searched=10_000)
    logs.judge(found)
    assert [one.replays for one in found.values()] == [20]


def test_all_copied_a_second_time_from_the_start(clusters: tuple[str, str]) -> None:
    """The last record of the target is not the newest one that it has."""
    logs, records = Logs(*clusters), items(RECORDS)
    logs.fill(records)
    logs.copy(records + records[: RECORDS * 6 // 10])
    here, there = log_of(logs.here, logs.topic), log_of(logs.there, logs.topic)
    for at, one in logs.found([RECORDS * 8 // 10, RECORDS - 50, RECORDS]).items():
        assert here.judged(at, there, one.offset).skipped == 0, (at, one)


def test_large_records_with_other_times(clusters: tuple[str, str]) -> None:
    """Fewer of them are read at once than are looked at, and what is read last is not the end."""
    logs = Logs(*clusters)
    records = [
        one._replace(value=b"%d" % one.number + random.Random(one.number).randbytes(9_000)) for one in items(2_000)
    ]
    logs.fill(records)
    logs.others(100)
    logs.copy(records)
    found = logs.found([1_500, 1_900, 1_990, 2_000])
    logs.judge(found)
    assert {one.certainty for one in found.values()} <= {"content", "time", "bounded"}


def test_heartbeats_between_two_copies_of_a_third_log(clusters: tuple[str, str]) -> None:
    """The target's copy was made earlier: times lead too far, also to places between those that are known."""
    logs = Logs(*clusters)
    beats = [Item(number, b"%d" % (number % 7), b"alive", FIRST_MS) for number in range(1_000, 5_000)]
    records = [*items(1_000), *beats, *items(1_000, first=5_000)]
    for start in range(0, len(records), 500):
        logs.copy(records[start : start + 500])
    for start in range(0, len(records), 500):
        Writer(logs.here, logs.topic).write(records[start : start + 500], keeps_times=False)
    here, there = log_of(logs.here, logs.topic), log_of(logs.there, logs.topic)
    for at, one in logs.found([500, 1_500, 3_000, 4_500, 5_500]).items():
        judged = here.judged(at, there, one.offset)
        assert judged.skipped <= (one.skips or 0), (at, one, judged)
        assert one.skips == 0 or at in (1_500, 3_000, 4_500), (at, one)


def test_more_partitions_than_are_remembered(clusters: tuple[str, str]) -> None:
    """Two places of each, known by their times alone."""
    here, there = clusters
    topic, count = f"t{time.time_ns()}", 70
    for servers in clusters:
        make_topic(servers, topic, count)
        keys = (b"%d" % (number // count % 7) for number in range(40 * count))
        produce(servers, topic, [b"alive"] * 40 * count, range(count), keys=keys, client={"linger.ms": 50})
    places = [TopicPartition(topic, partition) for partition in range(count)]

    async def all_found() -> dict[Position, Translated]:
        async with Admin(here) as source, Admin(there) as target:
            logs = [await find_logs(admin, places) for admin in (source, target)]
            here_ends, there_ends = [
                {tp: Ends(each.log_starts[tp], each.log_ends[tp]) for tp in places} for each in logs
            ]
            sides = Sides(source, target, {tp: tp for tp in places}, here_ends, there_ends)
            return (await find_offsets(sides, [Position(*tp, at) for tp in places for at in (15, 25)], Hints())).done

    assert len(asyncio.run(all_found())) == 2 * count


@pytest.mark.parametrize("source", [{}, STAMPED], ids=["CreateTime", "LogAppendTime"])
def test_back_to_records_that_come_again(clusters: tuple[str, str], source: dict[str, str]) -> None:
    """What the records hold does not tell the place, nor do their times: it is said what may be skipped."""
    logs = Logs(*clusters, source)
    beats = [Item(number, b"%d" % (number % 50), b"alive", FIRST_MS + number) for number in range(RECORDS)]
    logs.fill_with_copies(beats)
    logs.copy(beats[:200] + beats, keeps_times=True)
    here, there = log_of(logs.here, logs.topic), log_of(logs.there, logs.topic)
    for at, one in logs.found(logs.places()).items():
        judged = here.judged(at, there, one.offset)
        assert judged.skipped <= (one.skips or 0), (at, one, judged)


@pytest.mark.parametrize("config", [{}, STAMPED], ids=["CreateTime", "LogAppendTime"])
def test_transactions_on_both_sides(clusters: tuple[str, str], config: dict[str, str]) -> None:
    logs, records = Logs(*clusters, **config), items(RECORDS)
    source = Writer(logs.here, logs.topic, True)
    for start in range(0, RECORDS, 500):
        source.write(items(30, first=2_000_000 + start), commits=False)
        source.write(records[start : start + 500])
    logs.others(OTHERS)
    logs.copy_in_transactions(records)
    found = logs.judged()
    assert sum(one.certainty in EXACT for one in found.values()) >= len(found) - 2, found


@pytest.mark.parametrize("config", [{}, STAMPED], ids=["CreateTime", "LogAppendTime"])
def test_copies_that_are_far_behind(clusters: tuple[str, str], config: dict[str, str]) -> None:
    logs, records = Logs(*clusters, **config), items(RECORDS)
    logs.fill(records)
    logs.others(OTHERS)
    logs.copy(records[: RECORDS // 3])
    found = logs.judged()
    for at, one in found.items():
        if at <= RECORDS // 3:
            assert one.certainty in EXACT, (at, one)
        else:
            assert (one.offset, one.replays) == (end_of(logs.there, logs.topic), at - RECORDS // 3), (at, one)
            assert one.to_come is not None or at == RECORDS


def test_logs_that_were_cut(clusters: tuple[str, str]) -> None:
    logs, records = Logs(*clusters), items(RECORDS)
    logs.fill(records)
    logs.others(OTHERS)
    logs.copy(records)
    cut(logs.here, logs.topic, 3_000)
    cut(logs.there, logs.topic, OTHERS + 2_000)
    found = logs.found([at for at in logs.places() if at >= 3_000])
    logs.judge(found)
    assert is_all_exact(found), found


def test_a_copier_that_began_to_keep_times(clusters: tuple[str, str]) -> None:
    """And a topic whose earlier records are stamped by the broker."""
    logs, records = Logs(*clusters), items(RECORDS)
    logs.fill(records)
    logs.others(OTHERS)
    logs.copy(records[: RECORDS // 2])
    logs.copy(records[RECORDS // 2 :], keeps_times=True)
    found = logs.judged()
    assert sum(one.certainty in EXACT for one in found.values()) >= len(found) - 2, found


def test_records_that_come_again_are_not_told_apart(clusters: tuple[str, str]) -> None:
    """Devices in turn that say the same each time."""
    logs = Logs(*clusters)
    beats = [Item(number, b"%d" % (number % 50), b"alive", FIRST_MS + number) for number in range(RECORDS)]
    logs.fill(beats)
    logs.others(OTHERS)
    logs.copy(beats)
    for at, one in logs.found(logs.places()).items():
        assert one.certainty == "time", (at, one)
        assert one.offset <= OTHERS + at
        assert one.replays is not None
        assert one.replays >= OTHERS + at - one.offset


def test_others_between_copies(clusters: tuple[str, str]) -> None:
    """Two sources in one topic, by turns: some places have copies all around, the others are before them."""
    logs, records = Logs(*clusters, **STAMPED), items(RECORDS)
    logs.fill(records)
    start = 0
    while start < RECORDS:
        count = logs.rng.choice((5, 60, 900))
        logs.copy(records[start : start + count])
        logs.others(logs.rng.choice((4, 70, 300)), first=1_000_000 + start)
        start += count
    found = logs.judged()
    assert sum(one.certainty in EXACT for one in found.values()) > len(found) // 2, found


def test_copies_that_were_made_again(clusters: tuple[str, str]) -> None:
    """A copier that was killed: what is exact may be read again by the second copies, nothing is skipped."""
    logs, records = Logs(*clusters), items(RECORDS)
    logs.fill(records)
    logs.others(OTHERS)
    logs.copy(records[:5_000])
    logs.copy(records[4_000:])
    found = logs.found(logs.places())
    here, there = log_of(logs.here, logs.topic), log_of(logs.there, logs.topic)
    assert all(here.judged(at, there, one.offset).skipped == 0 for at, one in found.items()), found


def test_a_told_place_is_where_the_search_begins(clusters: tuple[str, str]) -> None:
    """Without one the place is beyond what is searched, as with a wrong one."""
    logs, records = Logs(*clusters), items(RECORDS)
    logs.fill(records)
    logs.others(OTHERS)
    logs.copy(records)
    logs.others(OTHERS, first=3_000_000)
    for told, certainty in (([], "time"), ([Pair(4_000, 17)], "time"), ([Pair(4_000, OTHERS + 4_000)], "content")):
        found = logs.found([4_100], told, searched=300)
        logs.judge(found)
        assert found[4_100].certainty == certainty, found
