"""Clones that know the place by a header with the offset that a copied record has in the source."""

import time
from collections.abc import Sequence
from pathlib import Path
from struct import pack

import pytest
from tests.acts import commit, make_topic
from tests.copies import FIRST_MS, Item, items, without, write

from groupkeeper.cli.main import main
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.plans.document import read
from groupkeeper.operations.plans.model import Change

OTHER = Item(-1, None, b"another's", FIRST_MS)


def with_offsets(records: Sequence[Item], *, as_bytes: bool = False) -> list[Item]:
    """Copies as a mirror makes them that keeps the offset in a header."""
    return [
        one._replace(headers=(*one.headers, ("from", pack(">q", one.number) if as_bytes else b"%d" % one.number)))
        for one in records
    ]


def planned(clusters: tuple[str, str], topic: str, offset: int, folder: Path) -> Change:
    commit(clusters[0], topic, {TopicPartition(topic, 0): offset})
    where = ["--from-bootstrap-server", clusters[0], "--bootstrap-server", clusters[1]]
    plan = folder / "plan.json"
    assert main(["plan", "clone", topic, "--offset-header", "from", "--save", str(plan), *where]) == 0
    ((change,),) = [group.changes.values() for group in read(plan.read_text()).groups]
    return change


def topic_of(clusters: tuple[str, str], source: Sequence[Item], target: Sequence[Item]) -> str:
    """Its records here, and there, where they are stamped as they arrive."""
    topic = f"t{time.time_ns()}"
    make_topic(clusters[0], topic)
    make_topic(clusters[1], topic, **{"message.timestamp.type": "LogAppendTime"})
    write(clusters[0], topic, source)
    write(clusters[1], topic, target)
    return topic


@pytest.mark.parametrize("as_bytes", [False, True])
def test_places_of_records_that_are_all_the_same(clusters: tuple[str, str], tmp_path: Path, as_bytes: bool) -> None:
    beats = [Item(number, b"beat", None, FIRST_MS + number // 9) for number in range(2_000)]
    copies = with_offsets(without(beats, *range(700, 900), 1500), as_bytes=as_bytes)
    topic = topic_of(clusters, beats, [OTHER] * 3 + copies[:1000] + [OTHER] * 400 + copies[1000:])
    for offset, meant in (
        (0, 3),
        (1, 4),
        (699, 702),
        (800, 703),
        (1100, 903),
        (1500, 1703),
        (1501, 1703),
        (2000, 2202),
    ):
        change = planned(clusters, topic, offset, tmp_path)
        assert change.after is not None
        assert (change.after.offset, change.certainty) == (meant, "header"), (offset, change)


def test_where_records_have_no_header_or_that_of_another_log_the_next_rule_is_used(
    clusters: tuple[str, str], tmp_path: Path
) -> None:
    records = items(200)
    some = [one if one.number % 3 else with_offsets([one])[0] for one in records]
    change = planned(clusters, topic_of(clusters, records, [OTHER, *some]), 150, tmp_path)
    assert change.after is not None
    assert (change.after.offset, change.certainty) == (151, "content")
    wrong = [one._replace(number=one.number + 7) for one in records]
    change = planned(clusters, topic_of(clusters, records, [OTHER, *with_offsets(wrong)]), 150, tmp_path)
    assert change.after is not None
    assert (change.after.offset, change.certainty) == (151, "content")
