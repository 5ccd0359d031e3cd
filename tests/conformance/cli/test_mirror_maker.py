"""Clones of what a real MirrorMaker 2 copied, beside its own translation: truth are the numbers that producers wrote.

`pytest -m conformance -s tests/conformance/cli/test_mirror_maker.py` prints both.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conformance.brokers import PROPERTIES
from tests.mirroring import CLEANING, EXACT, PLAIN, TOPICS, judged_ours, mirrored, table
from tools.apache_kafka import ApacheKafka

from groupkeeper.testing.background import BackgroundBroker

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("apache_jars"), pytest.mark.timeout(400)]

POLICY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


@pytest.fixture
def embedded() -> Iterator[str]:
    with BackgroundBroker(properties={"log.retention.ms": "-1", **CLEANING}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def other(request: pytest.FixtureRequest) -> Iterator[str]:
    """The other cluster: an embedded broker, or Apache Kafka."""
    if request.param == "embedded":
        with BackgroundBroker(properties={"log.retention.ms": "-1", **CLEANING}) as broker:
            yield broker.bootstrap_servers
    else:
        with ApacheKafka(PROPERTIES | CLEANING, version=request.param) as kafka:
            yield kafka.bootstrap_servers


@pytest.mark.parametrize(
    ("other", "is_source", "properties", "called"),
    [
        ("embedded", True, {}, "east.{}".format),
        ("4.3.1", True, {"replication.policy.separator": "--"}, "east--{}".format),
        ("4.3.1", False, {"replication.policy.class": POLICY}, "{}".format),
        ("embedded", True, {"west.exactly.once.source.support": "enabled"}, "east.{}".format),
        ("3.9.1", True, {"east->west.offset-syncs.topic.location": "target"}, "east.{}".format),
    ],
    indirect=["other"],
    ids=["embedded", "from-4.3.1", "to-4.3.1", "exactly-once", "from-3.9.1"],
)
async def test_nothing_is_skipped_and_exact_is_exact(
    embedded: str, other: str, is_source: bool, properties: dict[str, str], called: Callable[[str], str], tmp_path: Path
) -> None:
    source, target = (other, embedded) if is_source else (embedded, other)
    found = await mirrored(source, target, tmp_path, properties, called)
    print(f"\n{table(found)}")
    assert found.made.troubles == ()
    assert found.ours.keys() == found.committed.keys()
    if "west.exactly.once.source.support" not in properties:
        assert len(found.there[PLAIN].numbers) > len(found.here[PLAIN].numbers)  # copied again after the kill
    for topic in TOPICS:
        keys = [key for key in found.committed if key[1] == topic]
        for key, judged in zip(keys, judged_ours(found, keys), strict=True):
            change = found.ours[key]
            assert judged.skipped == 0, (key, found.committed[key], change)
            assert change.replayed is not None
            assert judged.replayed <= change.replayed, (key, found.committed[key], judged, change)
            if change.certainty in EXACT:
                assert judged.replayed == 0, (key, found.committed[key], judged, change)
