"""A real MirrorMaker 2 between clusters under traffic, killed on the way, and how good translations of offsets are."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from tests.acts import cut, end_of, make_topic
from tests.copies import FIRST_MS, Item, Writer, items, write
from tools.mirror_maker import MirrorMaker

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.builder import ALL_COMMITTED, Made, Policies
from groupkeeper.operations.plans.clones.builder import CloneRequest, Source, make_clone
from groupkeeper.operations.plans.clones.mirror_maker import mirror_of, names_of
from groupkeeper.operations.plans.model import Change

PLAIN, LEDGER, CUT, COMPACTED, STAMPED, BEATS = TOPICS = ("plain", "ledger", "cut", "compacted", "stamped", "beats")
RECORDS = 3_000
GROUPS = 60
OFTEN_CLEANED = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
CLEANING = {"log.cleaner.backoff.ms": "200"}
"""A property of the source's broker."""
EXACT = ("identity", "header", "sync", "content")


class Judged(NamedTuple):
    """How many of the unread records are not read any more, and how many of the read ones again."""

    skipped: int
    replayed: int


class Log(NamedTuple):
    """The committed records of a topic, by offset: which one of the producer's it is."""

    numbers: Mapping[int, int]

    def judged(self, committed: int, target: Log, offset: int) -> Judged:
        unread = {number for at, number in self.numbers.items() if at >= committed}
        read = set(self.numbers.values()) - unread
        behind = [number for at, number in target.numbers.items() if at >= offset]
        before = {number for at, number in target.numbers.items() if at < offset}
        skipped = (before & unread).difference(behind)
        return Judged(len(skipped), sum(number in read for number in behind))


def log_of(servers: str, topic: str) -> Log:
    """What consumers of committed records read; of topics whose records are all the same, in their order."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "judge",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.assign([Place(topic, 0, 0)])
    found: dict[int, int] = {}
    while True:
        message = consumer.poll(30)
        assert message is not None, topic
        if message.error():
            break
        headers = dict(message.headers() or [])
        offset, number = message.offset(), headers.get("n", b"%d" % len(found))
        assert offset is not None
        assert number is not None
        found[offset] = int(number)
    consumer.close()
    return Log(found)


class Mirrored(NamedTuple):
    """What came of it: the logs, what groups had committed, and both translations of that, by group and topic."""

    here: Mapping[str, Log]
    there: Mapping[str, Log]
    committed: Mapping[tuple[str, str], int]
    ours: Mapping[tuple[str, str], Change]
    theirs: Mapping[tuple[str, str], int]
    made: Made


def first_half(servers: str) -> None:
    for topic in TOPICS:
        make_topic(servers, topic, **(OFTEN_CLEANED if topic == COMPACTED else {}))
    write(servers, PLAIN, items(RECORDS // 2), **{"compression.type": "lz4"})
    ledger = Writer(servers, LEDGER, True)
    for start in range(0, RECORDS // 2, 50):
        ledger.write(items(50, first=start))
        if start % 200 == 0:
            ledger.write(items(7, first=start + 100_000), commits=False)
    write(servers, CUT, items(RECORDS // 2), **{"compression.type": "zstd"})
    cut(servers, CUT, 400)
    for start in range(0, RECORDS // 2, 100):
        write(servers, COMPACTED, keyed(start, start + 100))
    deadline = time.monotonic() + 60
    while len(log_of(servers, COMPACTED).numbers) > RECORDS // 3:
        assert time.monotonic() < deadline, "no compaction"
        time.sleep(0.5)
    write(servers, STAMPED, items(RECORDS // 2))
    write(servers, BEATS, beats(0, RECORDS // 2))


def keyed(first: int, last: int) -> list[Item]:
    return [one._replace(key=b"k%d" % (one.number * 7 % 500)) for one in items(last - first, first=first)]


def beats(first: int, last: int) -> list[Item]:
    return [Item(number, b"beat", None, FIRST_MS + number // 50) for number in range(first, last)]


def second_half(servers: str) -> None:
    ledger = Writer(servers, LEDGER, True)
    for start in range(RECORDS // 2, RECORDS, 150):
        write(servers, PLAIN, items(150, first=start), **{"compression.type": "gzip"})
        ledger.write(items(150, first=start))
        ledger.write(items(3, first=start + 100_000), commits=False)
        write(servers, CUT, items(150, first=start))
        write(servers, COMPACTED, keyed(start, start + 150))
        write(servers, STAMPED, items(150, first=start), **{"compression.type": "snappy"})
        write(servers, BEATS, beats(start, start + 150))


async def commit(servers: str) -> dict[tuple[str, str], int]:
    """Groups commit an offset of each topic, somewhere in its log."""
    rng = random.Random(1)
    committed = {
        (f"g{number:03}", topic): rng.randrange(400 if topic == CUT else 0, end_of(servers, topic) + 1)
        for topic in TOPICS
        for number in range(GROUPS)
    }
    offsets: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
    for (group, topic), offset in committed.items():
        offsets.setdefault(group, {})[TopicPartition(topic, 0)] = OffsetAndMetadata(offset)
    async with Admin(servers) as admin:
        for done in (await admin.alter_offsets_of_groups(offsets)).all().values():
            done.all()
    return committed


async def mirrored(
    source: str, target: str, folder: Path, properties: Mapping[str, str], called: Callable[[str], str]
) -> Mirrored:
    """`called`: what the source's topics are called in the target."""
    first_half(source)
    make_topic(target, called(STAMPED), **{"message.timestamp.type": "LogAppendTime"})
    make_topic(target, called(BEATS), **{"message.timestamp.type": "LogAppendTime"})
    maker = MirrorMaker(source, target, folder, {"east->west.topics": ", ".join(TOPICS), **properties})
    try:
        maker.start()
        wait(
            maker,
            lambda: all(
                has(target, called(topic), 1 if topic == COMPACTED else RECORDS // 2 - 400) for topic in TOPICS
            ),
            "the first half",
        )
        maker.kill()
        beats_before = end_of(target, called(BEATS))
        maker.start()
        second_half(source)
        committed = await commit(source)
        wait(
            maker,
            lambda: all(newest(target, called(one)) == newest(source, one) for one in TOPICS if one != BEATS),
            "all",
        )
        wait(maker, lambda: end_of(target, called(BEATS)) >= RECORDS, "all beats")
        await asyncio.sleep(8)  # checkpoints are written each second
    finally:
        maker.stop()
    async with Admin(source) as here, Admin(target) as there:
        groups = {group: group for group, _ in committed}
        made = await make_clone(there, Source(here), CloneRequest(groups, ALL_COMMITTED, Policies(), FIRST_MS))
        names = names_of(*[[one.name for one in await admin.list_topics()] for admin in (here, there)])
        named = {TopicPartition(topic, 0): TopicPartition(called(topic), 0) for topic in TOPICS}
        mirror, notes = await mirror_of(here, there, names, named)
    assert notes == []
    back = {called(topic): topic for topic in TOPICS}
    ours = {(group.group_id, back[tp.topic]): one for group in made.plan.groups for tp, one in group.changes.items()}
    theirs = {
        (group, tp.topic): pair.downstream
        for (group, tp), pair in mirror.checkpoints.items()
        if pair.upstream == committed.get((group, tp.topic))
    }
    logs = {topic: log_of(target, called(topic)) for topic in TOPICS}
    if len(logs[BEATS].numbers) > RECORDS:
        numbers = [*range(beats_before), *range(RECORDS)]
        logs[BEATS] = Log(dict(zip(logs[BEATS].numbers, numbers, strict=True)))
    return Mirrored({topic: log_of(source, topic) for topic in TOPICS}, logs, committed, ours, theirs, made)


def has(servers: str, topic: str, count: int) -> bool:
    try:
        return end_of(servers, topic) >= count
    except Exception:  # it isn't there yet
        return False


def newest(servers: str, topic: str) -> int:
    return max(log_of(servers, topic).numbers.values(), default=-1)


def wait(maker: MirrorMaker, is_done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not is_done():
        assert maker.is_running, maker.log.read_text()[-2_000:]
        assert time.monotonic() < deadline, f"{what}: {maker.log.read_text()[-2_000:]}"
        time.sleep(0.5)


class Score(NamedTuple):
    """Of translations: how many there are, go on at the very record, skip records; and how many are read again."""

    known: int
    exact: int
    skipping: int
    replayed: int


def score(judged: Iterable[Judged]) -> Score:
    each = list(judged)
    skipping = sum(one.skipped > 0 for one in each)
    return Score(len(each), sum(one == (0, 0) for one in each), skipping, sum(one.replayed for one in each))


def table(found: Mirrored) -> str:
    """Both translations beside each other, of each topic."""
    ours_first = f"{'':10} {'ours: exact':>14} {'called exact':>14} {'again':>9} {'skipping':>9}"
    lines = [f"{ours_first}  {'MirrorMaker 2: known':>21} {'exact':>7} {'again':>9} {'skipping':>9}"]
    for topic in TOPICS:
        keys = [key for key in found.committed if key[1] == topic]
        ours = score(judged_ours(found, keys))
        told = sum(found.ours[key].certainty in EXACT for key in keys)
        theirs = score(judged_theirs(found, [key for key in keys if key in found.theirs]))
        lines.append(
            f"{topic:10} {f'{ours.exact} of {len(keys)}':>14} {told:>14} {ours.replayed:>9} {ours.skipping:>9}  "
            f"{theirs.known:>21} {theirs.exact:>7} {theirs.replayed:>9} {theirs.skipping:>9}"
        )
    return "\n".join(lines)


def judged_ours(found: Mirrored, keys: Sequence[tuple[str, str]]) -> list[Judged]:
    places = {key: one.after.offset for key, one in found.ours.items() if one.after is not None}
    return [found.here[key[1]].judged(found.committed[key], found.there[key[1]], places[key]) for key in keys]


def judged_theirs(found: Mirrored, keys: Sequence[tuple[str, str]]) -> list[Judged]:
    return [found.here[key[1]].judged(found.committed[key], found.there[key[1]], found.theirs[key]) for key in keys]
