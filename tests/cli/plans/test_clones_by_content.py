"""Clones that know the place by what the records hold: from one embedded broker to another."""

import asyncio
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.acts import commit, cut, end_of, make_topic
from tests.copies import FIRST_MS, Item, Writer, checked, cloned, items, without, write

from groupkeeper import SyncAdmin
from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Failure, OffsetAndMetadata, Position, TopicPartition
from groupkeeper.operations.plans.clones import record_reader
from groupkeeper.operations.plans.clones.record_times import Sides
from groupkeeper.operations.plans.clones.search_order import Hints, find_offsets
from groupkeeper.operations.plans.clones.translator import Ends, Translated
from groupkeeper.operations.plans.document import read
from groupkeeper.operations.plans.log_walk import walk


class Two(NamedTuple):
    """The servers of both clusters, and a topic that both have."""

    here: str
    there: str
    topic: str


@pytest.fixture
def two(clusters: tuple[str, str]) -> Two:
    topic = f"t{time.time_ns()}"
    for servers in clusters:
        make_topic(servers, topic)
    return Two(*clusters, topic)


def check(two: Two, offset: int, meant: int, certainty: str) -> None:
    checked(asyncio.run(cloned(two.here, two.there, two.topic, offset)), meant, certainty)


def test_the_same_logs_have_the_same_offsets(two: Two) -> None:
    """In other batches, with another compression; several records have each time."""
    records = items(300)
    write(two.here, two.topic, records, **{"compression.type": "zstd"})
    for start in range(0, 300, 7):
        write(two.there, two.topic, records[start : start + 7])
    for offset in (0, 1, 150, 299, 300):
        check(two, offset, offset, "identity")
    # What the source has lost unread is here.
    cut(two.here, two.topic, 100)
    check(two, 50, 50, "identity")
    # What is not copied yet is no reason to doubt; what the target has lost is said.
    cut(two.there, two.topic, 120)
    change = asyncio.run(cloned(two.here, two.there, two.topic, 110))
    checked_offset = change.after.offset if change.after else None
    assert (checked_offset, change.skipped, change.replayed) == (120, 10, 0), change


def test_copies_behind_others_and_in_transactions(two: Two) -> None:
    """Markers and aborted records have offsets here, in the source too, and the target has records of its own."""
    records = items(120)
    source = Writer(two.here, two.topic, True)
    source.write(records[:50])  # its marker is at 50
    source.write(items(10, first=1000), commits=False)  # 51 to 60, and a marker
    source.write(records[50:])  # from 62 on
    write(two.there, two.topic, [Item(-1, None, b"another's", FIRST_MS - 5)] * 3)
    target = Writer(two.there, two.topic, True)
    target.write(items(4, first=2000), commits=False)  # 3 to 6, and a marker
    target.write(records[:40])  # 8 to 47, and a marker
    target.write(records[40:])  # from 49 on
    for offset, meant in ((1, 9), (30, 38), (39, 47), (40, 49), (50, 59), (55, 59), (62, 59), (63, 60), (131, 128)):
        check(two, offset, meant, "content")
    assert end_of(two.here, two.topic) == 133
    check(two, 133, end_of(two.there, two.topic), "content")


def test_holes_and_copies_that_are_there_twice(two: Two) -> None:
    records = items(100)
    write(two.here, two.topic, records)
    write(two.there, two.topic, without(records, 30, 31, 40)[:60])
    write(two.there, two.topic, records[50:])  # 50 to 62 are there again
    check(two, 30, 30, "content")
    check(two, 31, 30, "content")
    check(two, 41, 38, "content")
    change = asyncio.run(cloned(two.here, two.there, two.topic, 55))
    assert change.after is not None
    assert (change.after.offset, change.skipped, change.certainty) == (52, 0, "bounded")
    assert change.replayed is not None
    assert 5 <= change.replayed <= 13


def test_records_that_are_all_the_same_lead_to_the_earlier_side(two: Two) -> None:
    nothing = [Item(number, None, None, FIRST_MS) for number in range(200)]
    write(two.here, two.topic, nothing)
    write(two.there, two.topic, nothing)
    change = asyncio.run(cloned(two.here, two.there, two.topic, 90))
    assert change.after is not None
    assert change.certainty in ("bounded", "time")
    assert change.skipped == 0
    assert change.replayed is not None
    assert change.replayed >= 90 - change.after.offset


def test_a_copy_that_is_behind(two: Two) -> None:
    records = items(100)
    write(two.here, two.topic, records)
    write(two.there, two.topic, [Item(-1, None, b"another's", FIRST_MS - 5), *records[:60]])
    check(two, 60, 61, "content")
    change = asyncio.run(cloned(two.here, two.there, two.topic, 65))
    assert change.after is not None
    assert (change.after.offset, change.skipped, change.replayed, change.certainty) == (61, 0, 5, "bounded")


@pytest.mark.parametrize(("searched", "certainty", "meant"), [("1000", "content", 250), ("20", "time", 0)])
def test_a_target_that_stamps_records_is_searched(
    clusters: tuple[str, str], tmp_path: Path, searched: str, certainty: str, meant: int
) -> None:
    here, there = clusters
    topic = f"t{time.time_ns()}"
    make_topic(here, topic)
    make_topic(there, topic, **{"message.timestamp.type": "LogAppendTime"})
    records = items(200)
    write(here, topic, records)
    write(there, topic, [Item(-1, None, b"another's", FIRST_MS)] * 100)
    write(there, topic, records)
    commit(here, topic, {TopicPartition(topic, 0): 150})
    plan, where = str(tmp_path / "one.json"), ["--from-bootstrap-server", here, "--bootstrap-server", there]
    assert main(["plan", "clone", topic, "--search-records", searched, "--save", plan, *where]) == 0
    ((change,),) = [group.changes.values() for group in read((tmp_path / "one.json").read_text()).groups]
    assert change.after is not None
    assert (change.after.offset, change.certainty) == (meant, certainty)


@pytest.mark.parametrize("how", ["CreateTime", "LogAppendTime"])
def test_the_same_logs_with_the_times_of_copying(clusters: tuple[str, str], how: str) -> None:
    topic = f"t{time.time_ns()}"
    make_topic(clusters[0], topic)
    make_topic(clusters[1], topic, **{"message.timestamp.type": how})
    records = items(400)
    write(clusters[0], topic, records)
    Writer(clusters[1], topic).write(records[:350], keeps_times=False)
    for offset in (0, 200, 349, 350):
        check(Two(*clusters, topic), offset, offset, "identity")


def test_all_groups_at_once(two: Two, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each to the group of its name; groups at the same place are one question."""
    records = items(300)
    write(two.here, two.topic, records)
    write(two.there, two.topic, [Item(-1, None, b"another's", FIRST_MS - 5), *records])
    offsets = {f"{two.topic}-{number}": number % 100 * 3 for number in range(200)}
    with SyncAdmin(two.here) as admin:
        tp = TopicPartition(two.topic, 0)
        wanted = {group: {tp: OffsetAndMetadata(offset)} for group, offset in offsets.items()}
        for done in admin.alter_offsets_of_groups(wanted).all().values():
            done.all()
    plan, where = str(tmp_path / "all.json"), ["--from-bootstrap-server", two.here, "--bootstrap-server", two.there]
    assert main(["plan", "clone", "--all-groups", "--topic", two.topic, "--save", plan, *where]) == 0
    made = {group.group_id: group for group in read((tmp_path / "all.json").read_text()).groups}
    for group, offset in offsets.items():
        (change,) = made[group].changes.values()
        assert change.after is not None
        assert (change.after.offset, change.certainty) == (offset + 1, "content")
    capsys.readouterr()


def test_many_places_of_a_partition_are_few_reads(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Near one another and far apart, in batches that are larger than what is compared."""
    records = items(6_000)
    write(two.here, two.topic, records, **{"linger.ms": "200"})
    write(two.there, two.topic, [Item(-1, None, b"another's", FIRST_MS - 5), *records])
    calls = []

    async def counted(*args: object, **more: object) -> object:
        calls.append(args)
        return await walk(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(record_reader, "walk", counted)
    offsets = [*range(3, 1_500, 7), *range(1_500, 6_000, 300), 6_000]
    here, there = asyncio.run(found_at(two, offsets))
    assert {at: one.offset for at, one in here.items()} == {at: at + 1 for at in offsets}
    assert {one.certainty for one in here.values()} == {"content"}
    assert there == {}
    assert len(calls) < 100


async def found_at(two: Two, offsets: list[int]) -> tuple[dict[int, Translated], dict[int, Failure]]:
    tp = TopicPartition(two.topic, 0)
    here_ends, there_ends = [{tp: Ends(0, end_of(servers, two.topic))} for servers in (two.here, two.there)]
    async with Admin(two.here) as here, Admin(two.there) as there:
        sides = Sides(here, there, {tp: tp}, here_ends, there_ends)
        places = await find_offsets(sides, [Position(*tp, at) for at in offsets], Hints())
    found = {at.offset: one for at, one in places.done.items()}
    return found, {at.offset: why for at, why in places.failed.items()}
