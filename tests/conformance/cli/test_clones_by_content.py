"""Clones by what records hold, from and to Apache Kafka: truth are the numbers that producers wrote into them."""

import random
import time
from collections.abc import Iterator

import pytest
from tests.acts import end_of, make_topic
from tests.conformance.brokers import PROPERTIES
from tests.copies import FIRST_MS, Item, Writer, items, made_of, without, write
from tests.mirroring import EXACT, log_of
from tools.apache_kafka import ApacheKafka

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.testing.background import BackgroundBroker

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("apache_jars"), pytest.mark.timeout(300)]

OTHERS = [Item(-number, None, b"another's", FIRST_MS - 5, (("n", b"-%d" % number),)) for number in range(1, 40)]
LEAST = {"twice": 0.4, "behind": 0.4, "holes": 0.8}
"""The share of exact places; where nothing is missing it is nearly all."""

SHAPES = ["the same", "transactions", "others before", "holes", "twice", "stamped", "behind"]


@pytest.fixture(scope="module", params=["3.9.1", "4.3.1"])
def kafka(request: pytest.FixtureRequest) -> Iterator[str]:
    with ApacheKafka(PROPERTIES, version=request.param) as kafka:
        yield kafka.bootstrap_servers


@pytest.fixture(scope="module")
def embedded() -> Iterator[str]:
    with BackgroundBroker(properties={"log.retention.ms": "-1"}) as broker:
        yield broker.bootstrap_servers


def copy(servers: str, topic: str, records: list[Item], shape: str) -> None:
    """What a mirror makes of these records."""
    make_topic(servers, topic, **({"message.timestamp.type": "LogAppendTime"} if shape == "stamped" else {}))
    if shape in ("others before", "stamped"):
        write(servers, topic, OTHERS)
    if shape == "holes":
        records = without(records, *range(0, 2_000, 13), *range(500, 600))
    if shape == "behind":
        records = records[:1_200]
    if shape == "twice":
        write(servers, topic, records[:1_000])
        records = records[990:]
    for start in range(0, len(records), 500):
        write(servers, topic, records[start : start + 500], **{"compression.type": "zstd"})


@pytest.mark.parametrize("is_source", [True, False], ids=["from", "to"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_nothing_is_skipped_and_exact_is_exact(kafka: str, embedded: str, shape: str, is_source: bool) -> None:
    here, there = (kafka, embedded) if is_source else (embedded, kafka)
    topic, records = f"t{time.time_ns()}", items(2_000)
    make_topic(here, topic)
    source = Writer(here, topic, shape == "transactions", **{"compression.type": "lz4"})
    for start in range(0, 2_000, 250):
        source.write(records[start : start + 250])
        if shape == "transactions":
            source.write(items(20, first=start + 100_000), commits=False)
    copy(there, topic, records, shape)
    ours, theirs = log_of(here, topic), log_of(there, topic)
    newest = max(theirs.numbers.values())
    exact = 0
    places = [0, end_of(here, topic), *random.Random(shape).sample(range(end_of(here, topic)), 20)]
    for committed in places:
        made = await made_of(here, there, {TopicPartition(topic, 0): committed})
        assert made.troubles == ()
        ((change,),) = [group.changes.values() for group in made.plan.groups]
        assert change.after is not None
        judged = ours.judged(committed, theirs, change.after.offset)
        to_come = sum(number > newest for at, number in ours.numbers.items() if at < committed)  # read, and not copied
        assert judged.skipped == 0, (committed, change)
        assert change.replayed is not None
        assert judged.replayed + to_come <= change.replayed, (committed, judged, change)
        exact += change.certainty in EXACT
    assert exact >= len(places) * LEAST.get(shape, 0.95), exact
