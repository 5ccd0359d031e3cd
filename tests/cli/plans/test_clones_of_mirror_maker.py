"""Clones that use what MirrorMaker 2 has written down; its internal topics are written by the tests."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from struct import pack

import pytest
from tests.acts import cut, make_topic, produce
from tests.copies import FIRST_MS, Item, items, made_of, write

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.plans.builder import Made
from groupkeeper.operations.plans.model import Change
from groupkeeper.testing.background import BackgroundBroker

SYNCS, CHECKPOINTS = "mm2-offset-syncs.west.internal", "east.checkpoints.internal"


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[str, str]]:
    with BackgroundBroker() as here, BackgroundBroker() as there:
        make_topic(here.bootstrap_servers, SYNCS)
        make_topic(there.bootstrap_servers, CHECKPOINTS)
        yield here.bootstrap_servers, there.bootstrap_servers


def sync(servers: str, topic: str, pairs: Sequence[tuple[int, int]]) -> None:
    """As MirrorMaker 2 writes where records were copied to."""
    key = pack(">h", len(topic)) + topic.encode() + pack(">i", 0)
    values = [pack(">qq", *pair) for pair in pairs]
    produce(servers, SYNCS, [*values, b"?"], keys=[*[key] * len(values), b"no sync"])


def checkpoint(servers: str, group: str, topic: str, upstream: int, downstream: int) -> None:
    """As MirrorMaker 2 writes where a group can go on in the target."""
    key = b"".join(pack(">h", len(text)) + text.encode() for text in (group, topic)) + pack(">i", 0)
    produce(servers, CHECKPOINTS, [pack(">hqqh", 0, upstream, downstream, 0)], keys=[key])


def planned(clusters: tuple[str, str], topic: str, offset: int, group: str = "") -> Made:
    return asyncio.run(made_of(*clusters, {TopicPartition(topic, 0): offset}, group=group))


def change_of(made: Made) -> Change:
    assert made.troubles == ()
    ((change,),) = [group.changes.values() for group in made.plan.groups]
    assert change.after is not None
    return change


@pytest.fixture
def beats(clusters: tuple[str, str]) -> str:
    """A topic whose records are all the same, copied to one that stamps them."""
    topic = f"t{time.time_ns()}"
    make_topic(clusters[0], topic)
    make_topic(clusters[1], f"east.{topic}", **{"message.timestamp.type": "LogAppendTime"})
    beats = [Item(number, b"beat", None, FIRST_MS + number // 50) for number in range(400)]
    write(clusters[0], topic, beats)
    write(clusters[1], f"east.{topic}", beats[:250])
    write(clusters[1], f"east.{topic}", beats[200:])  # it was killed, and began again
    return topic


def test_syncs_say_where_records_are_that_are_all_the_same(clusters: tuple[str, str], beats: str) -> None:
    sync(clusters[0], beats, [(0, 0), (101, 101), (202, 202), (200, 250), (301, 351)])
    made = planned(clusters, beats, 101)
    assert any(f"{beats} is east.{beats}" in note for note in made.notes)
    for offset, meant, certainty, again in (
        (101, 101, "bounded", 48),  # the 48 records before the last sync may be copies of it, and of what is before
        (102, 102, "bounded", 48),
        (150, 102, "bounded", 96),
        (201, 251, "sync", 0),
        (220, 251, "bounded", 19),
        (301, 351, "sync", 0),
    ):
        change = change_of(planned(clusters, beats, offset))
        assert change.after is not None
        found = (change.after.offset, change.certainty, change.skipped, change.replayed)
        assert found == (meant, certainty, 0, again), (offset, change)


def test_syncs_of_another_copy_are_not_believed(clusters: tuple[str, str]) -> None:
    topic = f"t{time.time_ns()}"
    make_topic(clusters[0], topic)
    make_topic(clusters[1], f"east.{topic}")
    write(clusters[0], topic, items(300))
    write(clusters[1], f"east.{topic}", [Item(-1, None, b"another's", FIRST_MS - 5), *items(300)])
    sync(clusters[0], topic, [(0, 0), (100, 150)])
    change = change_of(planned(clusters, topic, 100))
    assert change.after is not None
    assert (change.after.offset, change.certainty) == (101, "content")


def test_a_checkpoint_has_the_place_that_the_source_has_lost(clusters: tuple[str, str]) -> None:
    topic = f"t{time.time_ns()}"
    make_topic(clusters[0], topic)
    make_topic(clusters[1], f"east.{topic}")
    write(clusters[0], topic, items(300))
    write(clusters[1], f"east.{topic}", [Item(-1, None, b"another's", FIRST_MS - 5), *items(300)])
    cut(clusters[0], topic, 200)
    checkpoint(clusters[1], "behind", f"east.{topic}", 120, 118)  # its last sync was a little before
    checkpoint(clusters[1], "went-back", f"east.{topic}", 180, 181)
    for group, offset, meant, certainty, skipped, again in (
        ("behind", 150, 118, "bounded", 0, 201 - 118),
        ("went-back", 150, 201, "time", 50, 0),  # what MirrorMaker 2 says is of a later offset
        ("behind", 250, 251, "content", 0, 0),
    ):
        change = change_of(planned(clusters, topic, offset, group))
        assert change.after is not None
        found = (change.after.offset, change.certainty, change.skipped, change.replayed)
        assert found == (meant, certainty, skipped, again), (group, change)


def test_a_topic_that_may_be_two_is_not_guessed(clusters: tuple[str, str], beats: str) -> None:
    make_topic(clusters[1], beats)
    made = planned(clusters, beats, 100)
    assert made.plan.groups == ()
    (trouble,) = made.troubles
    assert f"{beats} or east.{beats}" in str(trouble.failure)
    assert "--topic-prefix" in str(trouble.failure)
    for prefix in ("", "east."):
        made = asyncio.run(made_of(*clusters, {TopicPartition(beats, 0): 100}, prefix))
        assert [list(group.changes) for group in made.plan.groups] in ([[(prefix + beats, 0)]], [])
        assert not any("may be" in str(one.failure) for one in made.troubles)
