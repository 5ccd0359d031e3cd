"""Draws a story from a seed: topics of all sorts, those who write them, and those who read them."""

import random
from collections.abc import Sequence
from typing import Any

from tests.rig.clusters import OURS, kind_of, release_of
from tests.rig.story import (
    Actor,
    Committer,
    Consumer,
    Cutter,
    Grower,
    Mirror,
    Onlooker,
    Phoenix,
    Producer,
    Reader,
    Sharer,
    Sleeper,
    Story,
    Streamer,
    Topic,
)

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ODD_NAMES = ("gruppe übermäßig", "a/b\\c", "群組 1", 'quoted "name", with commas', "-starts-with-a-dash", "*",
             "tab\tin it", "x" * 200, "%41&amp;", "'; --")  # fmt: skip
ODD_METADATA = ("", "plain", 'ünï\t"quoted"\n', '{"a": [1, 2]}', "m" * 500)
BYTES_PER_S = 400_000
"""Of one cluster's producers together, so that the rig runs beside others on two cores."""


class Casting:
    """One cluster's part of a story."""

    def __init__(self, rng: random.Random, cluster: str, prefix: str, pace: float) -> None:
        self.rng = rng
        self.pace = pace
        self.cluster = cluster
        self.prefix = prefix
        self.topics: list[Topic] = []
        self.actors: list[Actor] = []

    def topic(self, name: str, partitions: int, **settings: str) -> str:
        full = f"{self.prefix}-{name}"
        self.topics.append(Topic(self.cluster, full, partitions, {k.replace("_", "."): v for k, v in settings.items()}))
        return full

    def name(self, role: str) -> str:
        return f"{self.prefix}-{role}-{len(self.actors)}"

    def producer(self, topic: str, size: tuple[int, int], **fields: object) -> None:
        rate = min(self.rng.choice([5.0, 15.0, 40.0]), BYTES_PER_S / 4 / (sum(size) / 4))
        settings: dict[str, Any] = {
            "codec": self.rng.choice(CODECS), "linger_ms": self.rng.choice([0, 5, 100, 1000]), "rate": rate, **fields,
        }  # fmt: skip
        settings["rate"] = round(settings["rate"] * self.pace, 2)
        self.actors.append(Producer(self.name("writer"), self.cluster, topic, size=size, **settings))

    def consumers(self, count: int, topics: Sequence[str], **fields: object) -> None:
        group = fields.pop("group", f"{self.prefix}-{fields.get('protocol', 'classic')}-{len(self.actors)}")
        for _ in range(count):
            every = self.rng.choice([1, 10, 50])
            self.actors.append(
                Consumer(self.name("reader"), self.cluster, group, tuple(topics), every=every, **fields)  # type: ignore[arg-type]
            )

    def committer(self, group: str, topics: Sequence[str], **fields: object) -> None:
        self.actors.append(Committer(self.name("committer"), self.cluster, group, tuple(topics), **fields))  # type: ignore[arg-type]


def draw(seed: int, minutes: float, clusters: Sequence[str]) -> Story:
    """The story of a seed. Clusters get the same sorts of topics, with what is drawn for each.

    With more than two clusters all write more slowly: together they are to fit on two cores.
    """
    pace = min(1.0, 2 / len(clusters))
    parts = [
        _part(random.Random(f"{seed}:{index}"), cluster, f"c{index}", pace) for index, cluster in enumerate(clusters)
    ]
    _vast(parts[seed % len(parts)])
    can_java = any(kind_of(cluster) in ("apache-4.4.0", "apache-4.3.1") for cluster in clusters)
    for index, one in enumerate(parts):
        if (seed + index) % 2 and (can_java or kind_of(one.cluster) not in OURS):
            _java(one)
    for index, one in enumerate(parts):
        if len(parts) > 1:
            _mirror(one, parts[(index + 1) % len(parts)])
    topics = tuple(topic for part in parts for topic in part.topics)
    actors = tuple(actor for part in parts for actor in part.actors)
    return Story(seed, minutes, tuple(clusters), topics, actors)


def _part(rng: random.Random, cluster: str, prefix: str, pace: float) -> Casting:
    cast = Casting(rng, cluster, prefix, pace)
    orders = cast.topic("orders", rng.choice([1, 3, 6]))
    cast.producer(orders, (10, 1000), times="now", nulls=0.05)
    blobs = cast.topic("blobs", rng.choice([2, 5]))
    cast.producer(blobs, (10_000, 500_000), linger_ms=rng.choice([100, 1000]), codec="none")
    jumbled = cast.topic("jumbled", 3)
    cast.producer(jumbled, (10, 20_000), times="back", kind="idempotent")
    cast.producer(jumbled, (100, 100), times="back", codec=rng.choice(CODECS))
    equal = cast.topic("equal", 2)
    cast.producer(equal, (10, 100), times="equal", linger_ms=1000, rate=30.0)
    stamped = cast.topic("stamped", 2, message_timestamp_type="LogAppendTime")
    cast.producer(stamped, (100, 5000), times="log")
    paid = cast.topic("paid", rng.choice([1, 4]))
    cast.producer(paid, (10, 2000), kind="transactional", aborts=0.4, leaves_open=True)
    old = cast.topic("old", 2)
    cast.producer(old, (10, 1000), times="past", rate=20.0)
    cast.actors.append(Cutter(cast.name("cutter"), cluster, old, every_s=8.0))
    keyed = cast.topic("keyed", 2, cleanup_policy="compact", segment_ms="3000", min_cleanable_dirty_ratio="0.01",
                       max_compaction_lag_ms="3000")  # fmt: skip
    cast.producer(keyed, (10, 500), keys=30, nulls=0.2)
    brief = cast.topic("brief", 2, retention_ms="10000", segment_ms="2000")
    cast.producer(brief, (10, 1000))
    cast.actors.append(Onlooker(cast.name("onlooker"), cluster, brief))
    growing = cast.topic("growing", 1)
    cast.producer(growing, (10, 1000))
    cast.actors.append(Grower(cast.name("grower"), cluster, growing))
    cast.actors.append(Phoenix(cast.name("phoenix"), cluster, f"{prefix}-ashes", f"{prefix}-phoenix"))
    wide = cast.topic("wide", 200)
    cast.producer(wide, (10, 200), rate=30.0, linger_ms=1000)
    everything = [orders, blobs, jumbled, equal, stamped, paid, old, keyed, brief, growing]
    _readers(cast, everything)
    cast.committer(f"{prefix}-wide", [wide], every_s=15.0, share=0.9)
    for odd in rng.sample(ODD_NAMES, 3):
        cast.committer(f"{prefix}{odd}" if odd[0] not in "-*" else odd, rng.sample(everything, 2), share=0.7,
                       metadata=ODD_METADATA)  # fmt: skip
    cast.committer(f"{prefix}-follower", [orders, old, paid], style="follow", every_s=1.0)
    cast.actors.append(Sleeper(cast.name("sleeper"), cluster, f"{prefix}-sleepers", (orders, jumbled, old)))
    cast.actors.append(Reader(cast.name("alone"), cluster, f"{prefix}-alone", (orders, jumbled)))
    cast.committer(f"{prefix}-rare", rng.sample(everything, 3), every_s=20.0, metadata=ODD_METADATA)
    return cast


def _readers(cast: Casting, topics: list[str]) -> None:
    rng = cast.rng
    cast.consumers(2, rng.sample(topics, 3), commits=0.5)
    cast.consumers(1, rng.sample(topics, 2), delay_ms=rng.choice([50.0, 300.0]))
    cast.consumers(2, rng.sample(topics, 2), flap_s=12.0, assignor="cooperative-sticky")
    cast.consumers(1, rng.sample(topics, 2), dies_s=float(rng.randint(10, 30)))
    cast.consumers(1, rng.sample(topics, 2), library="kafka-python")
    cast.consumers(1, rng.sample(topics, 2), library="aiokafka", commits=0.7)
    cast.consumers(1, [topics[0]], left=(topics[6],))
    if release_of(cast.cluster) >= (4, 0):
        cast.consumers(1, [topics[3]], left=(topics[6],), protocol="consumer")
        cast.consumers(2, rng.sample(topics, 3), protocol="consumer", commits=0.8)
        cast.consumers(1, rng.sample(topics, 2), protocol="consumer", flap_s=15.0)
        mixed = rng.sample(topics, 2)
        cast.consumers(1, mixed, group=f"{cast.prefix}-mixed")
        cast.consumers(1, mixed, group=f"{cast.prefix}-mixed", protocol="both", flap_s=12.0)
    if release_of(cast.cluster) >= (4, 2):
        for _ in range(2):
            name, group = cast.name("sharer"), f"{cast.prefix}-sharers"
            cast.actors.append(Sharer(name, cast.cluster, group, (topics[0], topics[3])))
        cast.actors.append(Streamer(cast.name("streamer"), cast.cluster, f"{cast.prefix}-streams", topics[2]))


def _vast(cast: Casting) -> None:
    """A group of 1,000 partitions, on one cluster of a story, as brokers take their time for so many logs."""
    vast = cast.topic("vast", 800)
    cast.producer(vast, (10, 200), rate=15.0, linger_ms=1000)
    cast.committer(f"{cast.prefix}-vast", [f"{cast.prefix}-wide", vast], every_s=20.0, share=1.0)


def _java(cast: Casting) -> None:
    """Not on all clusters, as each costs a JVM."""
    protocol = cast.rng.choice(["classic", "consumer"]) if release_of(cast.cluster) >= (4, 0) else "classic"
    topics = cast.rng.sample(("orders", "jumbled", "equal", "paid"), 2)
    cast.consumers(1, [f"{cast.prefix}-{one}" for one in topics], library="java", protocol=protocol, commits=0.8)


def _mirror(cast: Casting, other: Casting) -> None:
    """A topic of one cluster and its copies in the other: as they are, shifted, with losses, cut up differently."""
    rng = cast.rng
    shapes = {
        "same": Mirror(other.cluster),
        "shifted": Mirror(other.cluster, shift=rng.randint(1, 300), is_cut=rng.random() < 0.5),
        "lossy": Mirror(other.cluster, shift=rng.randint(0, 50), lost=rng.randint(1, 30)),
        "late": Mirror(other.cluster, behind=rng.randint(5, 60)),
        "split": Mirror(other.cluster, partitions=5),
    }
    for name, mirror in shapes.items():
        partitions = 3
        topic = cast.topic(f"mirror-{name}", partitions)
        other.topics.append(Topic(other.cluster, topic, mirror.partitions or partitions))
        times = rng.choice(["now", "now", "back", "equal", "past"])
        sizes = rng.choice([(10, 1000), (10, 1000), (5_000, 40_000)])
        # Idempotent: others may change the order of records, and a mirror has the order of its original.
        cast.producer(topic, sizes, kind="idempotent", times=times, mirror=mirror,
                      rate=15.0 if sizes[1] > 1000 else 25.0,
                      linger_ms=rng.choice([5, 200, 1000]))  # fmt: skip
        cast.committer(f"{cast.prefix}-clone-{name}", [topic], style=rng.choice(["follow", "wander"]), every_s=3.0,
                       metadata=("", "cloned"))  # fmt: skip
