"""The plan of a run: who does what, on which cluster. The same seed gives the same story."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import get_args


@dataclass(frozen=True)
class Topic:
    cluster: str
    name: str
    partitions: int
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Mirror:
    """How a second cluster gets a topic's records: by the producer itself, which knows both offsets of each.

    `shift`: so many older records are there already, `is_cut`: and are deleted. `lost`: of every 100 records
    so many in a row are missing. `behind`: so many are still to come. `partitions`: 0: as many as the original.
    """

    cluster: str
    shift: int = 0
    is_cut: bool = False
    lost: int = 0
    behind: int = 0
    partitions: int = 0


@dataclass(frozen=True)
class OnCluster:
    name: str
    cluster: str


@dataclass(frozen=True)
class OfOneTopic(OnCluster):
    topic: str


@dataclass(frozen=True)
class InGroup(OnCluster):
    group: str


@dataclass(frozen=True)
class Reads(InGroup):
    topics: tuple[str, ...]


@dataclass(frozen=True)
class Producer(OfOneTopic):
    """`times`: now, back, equal, past, log. `kind`: plain, idempotent, transactional. `keys`: 0: all differ."""

    kind: str = "plain"
    codec: str = "none"
    linger_ms: int = 5
    size: tuple[int, int] = (10, 1000)
    rate: float = 20.0
    times: str = "now"
    keys: int = 0
    nulls: float = 0.0
    aborts: float = 0.0
    leaves_open: bool = False
    mirror: Mirror | None = None


@dataclass(frozen=True)
class Consumer(Reads):
    """`library`: confluent, kafka-python, aiokafka, java. `protocol`: classic, consumer, both (by turns).

    `commits`: the share of partitions that it commits each time.
    `flap_s`: leaves and comes back after so long, 0: stays. `dies_s`: is killed after so long, 0: lives.
    `left`: topics of which the group committed the first offset, and that it reads no more.
    """

    library: str = "confluent"
    protocol: str = "classic"
    assignor: str = "range"
    every: int = 50
    commits: float = 1.0
    delay_ms: float = 0.0
    flap_s: float = 0.0
    dies_s: float = 0.0
    left: tuple[str, ...] = ()


@dataclass(frozen=True)
class Committer(Reads):
    """Commits for a group without members. `style`: follow (what it reads), wander (anywhere in the log and out)."""

    style: str = "wander"
    every_s: float = 2.0
    share: float = 0.5
    metadata: tuple[str, ...] = ("",)


@dataclass(frozen=True)
class Sleeper(Reads):
    """Has committed days ago, and has been idle since."""


@dataclass(frozen=True)
class Reader(Reads):
    """Reads partitions that it assigns to itself, in the name of a group, and commits nothing: no group comes of it."""


@dataclass(frozen=True)
class Cutter(OfOneTopic):
    """Deletes the oldest records of a topic now and then (DeleteRecords)."""

    every_s: float = 10.0


@dataclass(frozen=True)
class Onlooker(OfOneTopic):
    """Writes down where the logs of a topic begin that retention cuts."""


@dataclass(frozen=True)
class Grower(OfOneTopic):
    """Gives a topic one more partition now and then, up to `most`."""

    every_s: float = 15.0
    most: int = 8


@dataclass(frozen=True)
class Phoenix(OfOneTopic):
    """Makes a topic, writes and commits, deletes it, and begins again."""

    group: str
    partitions: int = 2
    every_s: float = 10.0


@dataclass(frozen=True)
class Sharer(Reads):
    """A member of a share group; `releases`: the share of records that it gives back at first."""

    releases: float = 0.1


@dataclass(frozen=True)
class Streamer(InGroup):
    """The member of a streams group that reads one topic."""

    topic: str


Actor = Producer | Consumer | Committer | Sleeper | Reader | Cutter | Onlooker | Grower | Phoenix | Sharer | Streamer
KINDS: dict[str, type] = {kind.__name__: kind for kind in get_args(Actor)}


@dataclass(frozen=True)
class Story:
    seed: int
    minutes: float
    clusters: tuple[str, ...]
    topics: tuple[Topic, ...]
    actors: tuple[Actor, ...]

    def with_actors(self, actors: Iterable[Actor]) -> Story:
        """The same with some of the actors, and the topics that those need."""
        chosen = tuple(actors)
        wanted = {(actor.cluster, topic) for actor in chosen for topic in topics_of(actor)}
        for actor in chosen:
            if isinstance(actor, Producer) and actor.mirror is not None:
                wanted.add((actor.mirror.cluster, actor.topic))
        topics = tuple(topic for topic in self.topics if (topic.cluster, topic.name) in wanted)
        used = {topic.cluster for topic in topics}
        clusters = tuple(cluster for cluster in self.clusters if cluster in used)
        return replace(self, actors=chosen, topics=topics, clusters=clusters)

    def without(self, drop: Callable[[Actor], bool]) -> Story:
        return self.with_actors(actor for actor in self.actors if not drop(actor))

    def save(self, path: Path) -> None:
        fields = asdict(self)
        fields["actors"] = [{"actor": type(actor).__name__, **asdict(actor)} for actor in self.actors]
        path.write_text(json.dumps(fields, indent=1, ensure_ascii=False))

    @staticmethod
    def load(path: Path) -> Story:
        fields = json.loads(path.read_text())
        topics = tuple(Topic(**topic) for topic in fields["topics"])
        actors = tuple(_actor(actor) for actor in fields["actors"])
        return Story(fields["seed"], fields["minutes"], tuple(fields["clusters"]), topics, actors)

    def text(self) -> str:
        """For people: a line for each topic and actor."""
        lines = [f"topic {_short(topic)}" for topic in self.topics]
        lines += [f"{type(actor).__name__.lower()} {_short(actor)}" for actor in self.actors]
        return "\n".join(lines)


def topics_of(actor: Actor) -> Sequence[str]:
    left = actor.left if isinstance(actor, Consumer) else ()
    return (actor.topic,) if isinstance(actor, OfOneTopic | Streamer) else (*actor.topics, *left)


def _actor(fields: dict[str, object]) -> Actor:
    kind = KINDS[str(fields.pop("actor"))]
    for name in ("topics", "size", "metadata", "left"):
        if name in fields:
            fields[name] = tuple(fields[name])  # type: ignore[arg-type]
    if fields.get("mirror"):
        fields["mirror"] = Mirror(**fields["mirror"])  # type: ignore[arg-type]
    return kind(**fields)


def _short(thing: object) -> str:
    """Fields that are not their defaults."""
    fields = asdict(thing)  # type: ignore[call-overload]
    defaults = type(thing).__dataclass_fields__  # type: ignore[attr-defined]
    shown = {name: value for name, value in fields.items() if value != defaults[name].default and value != {}}
    return ", ".join(f"{name}={value!r}" for name, value in shown.items())
