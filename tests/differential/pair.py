"""Apache Kafka 4.4.0 and our broker beside it, and programs of random steps that both carry out."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from tests.apache_kafka import require as require_apache_kafka
from tests.conformance.brokers import GroupkeeperBroker
from tests.differential.wire import Pool
from tests.patience import until
from tools.apache_kafka import ApacheKafka

from groupkeeper.protocol import messages as m

FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
PROGRAMS = int(os.environ.get("DIFFERENTIAL_PROGRAMS", "0"))
"""How many programs of each kind; 0 is as many as suit a run of all tests."""

ATTEMPTS = 3
SETTLED_S = 10.0
LATEST = -1
NO_MORE: Mapping[str, str] = {}
Step = tuple[object, ...]
Place = tuple[int, int]
"""Number of a topic, and partition."""


def seeds(usual: int) -> range:
    """Of the programs of one kind; `usual` is how many suit a run of all tests."""
    return range(FIRST_SEED, FIRST_SEED + (PROGRAMS or usual))


class Asked:
    """One broker, and connections to it."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.pool = Pool(bootstrap_servers)

    def take(self, step: Step) -> object:
        """Does what is called as the step's first member."""
        verb, *arguments = step
        return getattr(self, str(verb))(*arguments)

    def coordinator_error(self, key_type: int, key: str) -> int:
        request = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        return self.pool.ask(request, 6).coordinators[0].error_code


class Side(Asked):
    """A broker with the topics of one program. Topics are numbered; those that do not exist have numbers, too."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self.program = ""
        self.ids: dict[int, bytes] = {}

    def begin(self, program: str, topics: Mapping[int, tuple[int, Mapping[str, str]]]) -> None:
        """Makes the topics: number of partitions and settings by the topic's number."""
        self.program = program
        wanted = [
            m.CreatableTopic(
                self.name(number), count, 1, configs=[m.CreatableTopicConfig(*each) for each in settings.items()]
            )
            for number, (count, settings) in topics.items()
        ]
        made = self.pool.ask(m.CreateTopicsRequest(wanted, 30_000), 7).topics
        assert [topic.error_code for topic in made] == [0] * len(topics)
        ids = {topic.name: topic.topic_id for topic in made}
        self.ids = {number: ids[self.name(number)] for number in topics}
        places = [(number, index) for number, (count, _) in topics.items() for index in range(count)]
        until(lambda: None not in self.ends(places).values())

    def name(self, number: int) -> str:
        return f"{self.program}-{number}"

    def number(self, name: str | None, topic_id: bytes) -> object:
        """Which topic an answer means; what it says itself where it is none of the program's."""
        for number, known in self.ids.items():
            if known == topic_id or self.name(number) == name:
                return number
        return (name or "").removeprefix(self.program), topic_id

    def cut(self, place: Place, offset: int) -> object:
        topics = [m.DeleteRecordsTopic(self.name(place[0]), [m.DeleteRecordsPartition(place[1], offset)])]
        part = self.pool.ask(m.DeleteRecordsRequest(topics, 10_000), 2).topics[0].partitions[0]
        return part.error_code, part.low_watermark

    def ends(self, places: list[Place], *, is_committed: bool = False) -> dict[Place, int | None]:
        """The end of each partition; None while it cannot be told."""
        topics = [
            m.ListOffsetsTopic(
                self.name(number), [m.ListOffsetsPartition(part, -1, LATEST) for one, part in places if one == number]
            )
            for number in dict.fromkeys(number for number, _ in places)
        ]
        answer = self.pool.ask(m.ListOffsetsRequest(-1, int(is_committed), topics), 7)
        return {
            (int(str(self.number(topic.name, b"?"))), part.partition_index): None if part.error_code else part.offset
            for topic in answer.topics
            for part in topic.partitions
        }

    def append(self, batches: Mapping[Place, bytes], transactional_id: str | None = None) -> object:
        """One batch for each of some partitions."""
        data = [
            m.TopicProduceData(self.name(number), partition_data=[m.PartitionProduceData(part, batch)])
            for (number, part), batch in batches.items()
        ]
        answer = self.pool.ask(m.ProduceRequest(transactional_id, -1, 30_000, data), 9)
        return sorted(
            (self.number(topic.name, b"?"), part.index, part.error_code, part.base_offset)
            for topic in answer.responses
            for part in topic.partition_responses
        )


class Taker(Protocol):
    """A side that carries out steps of programs."""

    def begin(self, program: str) -> None: ...

    def take(self, step: Any) -> object: ...


class Program(Protocol):
    """Steps by a seed: what a side does is called as the step's first member."""

    @property
    def topics(self) -> Mapping[int, tuple[int, Mapping[str, str]]]: ...

    def next(self) -> Step | None: ...

    def learn(self, step: Step, answer: object) -> None: ...


S = TypeVar("S", bound=Asked)


@contextmanager
def brokers(properties: Mapping[str, str], *, of_ours: Mapping[str, str] = NO_MORE) -> Iterator[tuple[str, str]]:
    """Bootstrap servers of our broker and of Apache Kafka; skips the test where that cannot be had.

    `of_ours`: properties of our broker only, for what the runner of Apache Kafka sets itself.
    """
    require_apache_kafka()
    ours = GroupkeeperBroker({**properties, **of_ours})
    with ApacheKafka(properties) as reference:
        ours.start()
        try:
            yield ours.bootstrap_servers, reference.bootstrap_servers
        finally:
            ours.stop()


@contextmanager
def sides_of(kind: Callable[[str], S], servers: tuple[str, str]) -> Iterator[tuple[S, S]]:
    """Both brokers as sides of one kind, whose connections are closed at the end."""
    ours, reference = servers
    sides = kind(ours), kind(reference)
    try:
        yield sides
    finally:
        for side in sides:
            side.pool.close()


@contextmanager
def both(
    kind: Callable[[str], S], properties: Mapping[str, str], *, of_ours: Mapping[str, str] = NO_MORE
) -> Iterator[tuple[S, S]]:
    """Our broker and Apache Kafka with these properties, as sides of one kind."""
    with brokers(properties, of_ours=of_ours) as servers, sides_of(kind, servers) as sides:
        yield sides


def take_steps(sides: tuple[Taker, Taker], steps: Iterable[object], name: str) -> None:
    """Both carry out a program, and must answer alike."""
    for side in sides:
        side.begin(name)
    trace = [f"program {name}"]
    for step in steps:
        mine, theirs = (side.take(step) for side in sides)
        trace.append(f"{step}: {mine} | {theirs}")
        assert mine == theirs, "\n".join(trace)


def difference(sides: tuple[Side, Side], new_program: Callable[[], Program], name: str) -> str | None:
    """The whole program when the brokers differ, else None.

    On a slow machine the time that an answer takes may make a difference: it is one if it shows every time.
    """
    return of_all_attempts(lambda attempt: _difference(sides, new_program(), f"{name}-{attempt}"))


def of_all_attempts(run: Callable[[int], str | None]) -> str | None:
    """The last difference, if each attempt makes one."""
    for attempt in range(ATTEMPTS):
        found = run(attempt)
        if found is None:
            return None
    return found


def require_soon_alike(sides: tuple[S, S], told: Callable[[S], object], why: object = None) -> None:
    """Apache Kafka answers a change before it can be seen."""
    deadline = time.monotonic() + SETTLED_S
    while (left := told(sides[0])) != (right := told(sides[1])):
        if time.monotonic() > deadline:
            assert left == right, why
        time.sleep(0.05)


def _difference(sides: tuple[Side, Side], program: Program, name: str) -> str | None:
    trace = [f"program {name}: {program.topics}"]
    for side in sides:
        side.begin(name, program.topics)
    while (step := program.next()) is not None:
        mine, theirs = (side.take(step) for side in sides)
        trace += [f"{step!r:.3000}", f"    ours   {mine!r:.3000}", f"    apache {theirs!r:.3000}"]
        if mine != theirs:
            return "\n".join(trace)
        program.learn(step, mine)
    return None
