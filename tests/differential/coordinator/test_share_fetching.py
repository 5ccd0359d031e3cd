"""The same share fetches and acknowledgements on Apache Kafka 4.4.0 and on our broker: the same answers, and the same
state of every record afterwards.

Programs are random, one request after the other. Members are sessions: their group has no other members than one that
keeps its session open, so that both brokers lead the share-partitions all the time.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import pytest
from tests.differential import pair
from tests.differential.pair import Step, of_all_attempts, seeds
from tests.differential.wire import Connection
from tests.patience import until

from groupkeeper.broker.shares.state_host import coordinator_key
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import incremental_alter_configs_request as configuring
from groupkeeper.protocol.messages import initialize_share_group_state_request as initializing
from groupkeeper.protocol.messages import produce_request as producing
from groupkeeper.protocol.messages import read_share_group_state_request as reading
from groupkeeper.protocol.messages import share_acknowledge_request as acknowledging
from groupkeeper.protocol.messages import share_fetch_request as fetching
from groupkeeper.protocol.primitives import RootMessage
from groupkeeper.protocol.record_batch import Record, iter_headers, write_batch

STEPS = 60
PARTITIONS = 2
LOCK_MS = 2000
"""Of the programs in which locks end: the requests of one round take less."""
FEW = 500
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.record.lock.duration.ms": "60000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.partition.max.record.locks": "400",
}
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
DONE = (2, 4)
FINAL = -1
SERVER_ERROR = -1
KEEPER = "keeper"
GROUP_RESOURCE = 32
NOWHERE_NAME, NOWHERE = "nowhere", b"\x01" * 16

Place = tuple[str, int]


class Said(NamedTuple):
    """What a member says of a range of records."""

    place: Place
    first: int
    last: int
    types: tuple[int, ...]


class Asked(NamedTuple):
    """A ShareFetch; with `is_fetch` false a ShareAcknowledge."""

    member_id: str
    epoch: int
    said: tuple[Said, ...] = ()
    wanted: tuple[Place, ...] = ()
    forgotten: tuple[Place, ...] = ()
    max_records: int = FEW
    batch_size: int = FEW
    is_strict: bool = False
    is_renewal: bool = False
    is_fetch: bool = True
    version: int = 2
    wait_ms: int = 0
    min_bytes: int = 1
    max_bytes: int = 1 << 20


class Side(pair.Asked):
    """One broker, with the topics, group and connections of one program."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._connections: dict[str, Connection] = {}
        self.group_id = ""
        self._ids: dict[str, bytes] = {}

    def begin(self, program: str, settings: dict[str, str]) -> None:
        for one in self._connections.values():
            one.close()
        self._connections = {}
        self.group_id = program
        names = [f"{program}-t", f"{program}-u"]
        topics = [m.CreatableTopic(one, PARTITIONS, 1) for one in names]
        answer = self.pool.ask(m.CreateTopicsRequest(topics, 10_000), 7)
        self._ids = {topic.name[-1]: topic.topic_id for topic in answer.topics}
        configs = [configuring.AlterableConfig(name, 0, value) for name, value in settings.items()]
        resource = configuring.AlterConfigsResource(GROUP_RESOURCE, program, configs)
        answer = self.pool.ask(configuring.IncrementalAlterConfigsRequest([resource]), 1)
        assert answer.responses[0].error_code == 0
        key = coordinator_key(SharePartitionKey(program, self._ids["t"], 0))
        until(lambda: self.coordinator_error(2, key) == 0)
        until(self._initialize)
        until(self._is_led)

    def _is_led(self) -> bool:
        """Whether the share-partitions are loaded: the first fetch of Apache Kafka doesn't wait for that."""
        places = tuple((name, index) for name in "tu" for index in range(PARTITIONS))
        answer = self.ask(Asked(KEEPER, 0, wanted=places, wait_ms=200))
        self.ask(Asked(KEEPER, 1, forgotten=places))
        assert isinstance(answer, tuple)
        return [(place, errors) for place, (errors, _, _) in answer[2]] == [(place, (0, 0)) for place in places]

    def _initialize(self) -> bool:
        topics = [
            initializing.InitializeStateData(
                topic_id, [initializing.PartitionData(index, 1, 0) for index in range(PARTITIONS)]
            )
            for topic_id in self._ids.values()
        ]
        answer = self.pool.ask(initializing.InitializeShareGroupStateRequest(self.group_id, topics), 0)
        return all(one.error_code == 0 for topic in answer.results for one in topic.partitions)

    def produce(self, place: Place, sizes: Sequence[int]) -> object:
        batches = [write_batch([Record(b"k", b"v" * 20, timestamp=1000)] * size) for size in sizes]
        said = []
        for batch in batches:
            partition_data = [producing.PartitionProduceData(place[1], batch)]
            data = producing.TopicProduceData(f"{self.group_id}-{place[0]}", partition_data=partition_data)
            answer = self.pool.ask(producing.ProduceRequest(None, -1, 10_000, [data]), 9)
            part = answer.responses[0].partition_responses[0]
            said.append((part.error_code, part.base_offset))
        return said

    def disconnect(self, member_id: str) -> object:
        connection = self._connections.pop(member_id, None)
        if connection is not None:
            connection.close()
            time.sleep(0.3)
        return None

    def pause(self, seconds: float) -> object:
        time.sleep(seconds)
        return None

    def ask(self, asked: Asked) -> object:
        request = self._fetch(asked) if asked.is_fetch else self._acknowledge(asked)
        if asked.member_id not in self._connections:
            self._connections[asked.member_id] = Connection(self.bootstrap_servers)
        connection = self._connections[asked.member_id]
        connection.send(request, asked.version)
        answer = connection.receive(30)
        if asked.epoch == FINAL:
            time.sleep(0.1)  # what the member had is given back beside the answer
        if isinstance(answer, m.ShareFetchResponse):
            return self._of_fetch(answer)
        assert isinstance(answer, m.ShareAcknowledgeResponse)
        return self._of_acknowledgement(answer)

    def _id(self, name: str) -> bytes:
        return self._ids.get(name, NOWHERE)

    def _fetch(self, asked: Asked) -> RootMessage:
        parts: dict[Place, list[fetching.AcknowledgementBatch]] = {place: [] for place in asked.wanted}
        for said in asked.said:
            parts.setdefault(said.place, []).append(
                fetching.AcknowledgementBatch(said.first, said.last, list(said.types))
            )
        topics = [
            fetching.FetchTopic(
                self._id(name),
                [fetching.FetchPartition(index, 0, some) for (topic, index), some in parts.items() if topic == name],
            )
            for name in dict.fromkeys(name for name, _ in parts)
        ]
        forgotten = [fetching.ForgottenTopic(self._id(name), [index]) for name, index in asked.forgotten]
        sizes = (
            (0, 0, 0, 0) if asked.is_renewal else (asked.wait_ms, asked.min_bytes, asked.max_bytes, asked.max_records)
        )
        return fetching.ShareFetchRequest(
            *(self.group_id, asked.member_id, asked.epoch, *sizes, asked.batch_size),
            *(int(asked.is_strict), asked.is_renewal, topics, forgotten),
        )

    def _acknowledge(self, asked: Asked) -> RootMessage:
        parts: dict[Place, list[acknowledging.AcknowledgementBatch]] = {}
        for said in asked.said:
            parts.setdefault(said.place, []).append(
                acknowledging.AcknowledgementBatch(said.first, said.last, list(said.types))
            )
        by_name: dict[str, list[acknowledging.AcknowledgePartition]] = {}
        for (name, index), some in parts.items():
            by_name.setdefault(name, []).append(acknowledging.AcknowledgePartition(index, some))
        topics = [acknowledging.AcknowledgeTopic(self._id(name), each) for name, each in by_name.items()]
        return acknowledging.ShareAcknowledgeRequest(
            self.group_id, asked.member_id, asked.epoch, asked.is_renewal, topics
        )

    def _name(self, topic_id: bytes) -> str:
        return next((name for name, known in self._ids.items() if known == topic_id), NOWHERE_NAME)

    def _of_fetch(self, answer: m.ShareFetchResponse) -> object:
        parts = {}
        for topic in answer.responses:
            for one in topic.partitions:
                batches = [(header.base_offset, header.last_offset) for _, header in iter_headers(one.records or b"")]
                acquired = [(part.first_offset, part.last_offset, part.delivery_count) for part in one.acquired_records]
                errors = (one.error_code, one.acknowledge_error_code)
                parts[self._name(topic.topic_id), one.partition_index] = (errors, batches, acquired)
        return answer.error_code, answer.acquisition_lock_timeout_ms, sorted(parts.items())

    def _of_acknowledgement(self, answer: m.ShareAcknowledgeResponse) -> object:
        parts = {
            (self._name(topic.topic_id), one.partition_index): one.error_code
            for topic in answer.responses
            for one in topic.partitions
        }
        return answer.error_code, sorted(parts.items())

    def settle(self) -> None:
        """Waits, after each step, until nothing is under way."""

    def left(self) -> object:
        """What a program leaves."""
        return self.stored()

    def stored(self) -> object:
        """What the share coordinator has of every record, whatever batches it keeps it in.

        When a lock ends at the start, what is done is stored before the start moves, or with it.
        """
        topics = [
            reading.ReadStateData(topic_id, [reading.PartitionData(index, 0) for index in range(PARTITIONS)])
            for topic_id in self._ids.values()
        ]
        answer = self.pool.ask(reading.ReadShareGroupStateRequest(self.group_id, topics), 0)
        found = {}
        for topic in answer.results:
            for part in topic.partitions:
                states = {
                    offset: (batch.delivery_state, batch.delivery_count)
                    for batch in part.state_batches
                    for offset in range(batch.first_offset, batch.last_offset + 1)
                }
                start = part.start_offset
                while states.get(start, (0, 0))[0] in DONE:
                    del states[start]
                    start += 1
                found[self._name(topic.topic_id), part.partition] = (part.error_code, start, states)
        return sorted(found.items())


class Program:
    """Steps that mostly make sense, from what the brokers answered to the earlier ones."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        chance = self._chance
        self.has_locks = chance.random() < 0.2
        self.settings = {
            "share.delivery.count.limit": chance.choice(["2", "3", "5", "7"]),
            "share.partition.max.record.locks": chance.choice(["100", "400"]),
            "share.renew.acknowledge.enable": chance.choice(["true", "true", "false"]),
            "share.record.lock.duration.ms": str(LOCK_MS) if self.has_locks else "60000",
        }
        self.members = [f"{name}AAAAAAAAAAAAAAAAAAAAA" for name in "abc"[: chance.randint(1, 3)]]
        self._is_single = chance.random() < 0.6
        self._ends = dict.fromkeys(self._places(), 0)
        self._epochs: dict[str, int] = {}
        self._held: dict[str, list[tuple[Place, int, int]]] = {}
        self._is_strict = chance.random() < 0.3
        self._largest = chance.choice([3, 10, 60])

    def _places(self) -> list[Place]:
        """One partition, or several with so few records that a member can always get all of them.

        Which partition comes first where not all can be served is Apache Kafka's own: it depends on what it has read.
        """
        return [("t", 0)] if self._is_single else [(name, index) for name in "tu" for index in range(PARTITIONS)]

    def next(self) -> Step:
        chance = self._chance
        kinds = {"produce": 3, "ask": 16, "open": 2, "close": 1, "disconnect": 0.5, "expire": 1.5 * self.has_locks}
        kind = chance.choices(list(kinds), list(kinds.values()))[0]
        member_id = chance.choice(self.members)
        match kind:
            case "produce":
                place = chance.choice(self._places())
                largest = self._largest if self._is_single else min(self._largest, FEW // 40)
                sizes = [chance.randint(1, largest) for _ in range(chance.randint(1, 4))]
                if not self._is_single and sum(self._ends.values()) + sum(sizes) > FEW:
                    return "pause", 0.0
                self._ends[place] += sum(sizes)
                return "produce", place, sizes
            case "open":
                return "ask", self._opening(member_id)
            case "close" if member_id in self._epochs:
                said = self._say(member_id) if chance.random() < 0.5 else ()
                return "ask", Asked(member_id, FINAL, said, is_fetch=chance.random() < 0.5)
            case "disconnect":
                self._epochs.pop(member_id, None)
                self._held.pop(member_id, None)
                return "disconnect", member_id
            case "expire":
                self._held = {}
                return "pause", LOCK_MS / 1000 + 0.7
            case _ if member_id not in self._epochs:
                return "ask", self._opening(member_id)
            case _:
                return "ask", self._asking(member_id)

    def _opening(self, member_id: str) -> Asked:
        chance = self._chance
        places = self._places()
        wanted = tuple(places if chance.random() < 0.7 else chance.sample(places, chance.randint(0, len(places))))
        said = (Said(places[0], 0, 0, (ACCEPT,)),) if chance.random() < 0.05 else ()
        return self._sized(Asked(member_id, 0, said, wanted))

    def _sized(self, asked: Asked) -> Asked:
        chance = self._chance
        return asked._replace(
            max_records=chance.choice([1, 2, 5, 20, FEW]) if self._is_single else FEW,
            batch_size=chance.choice([1, 5, 20, FEW]),
            is_strict=self._is_strict,
            version=2 if self._is_strict or asked.is_renewal or chance.random() < 0.7 else 1,
        )

    def _asking(self, member_id: str) -> Asked:
        chance = self._chance
        epoch = self._epochs[member_id]
        if chance.random() < 0.05:
            epoch = chance.choice([epoch + 1, max(epoch - 1, 1), 0, 77])
        is_fetch = chance.random() < 0.6
        said = self._say(member_id, is_fetch=is_fetch) if not is_fetch or chance.random() < 0.5 else ()
        if is_fetch:
            said = self._along(said)
        is_renewal = any(RENEW in one.types for one in said) and chance.random() < 0.9
        asked = Asked(member_id, epoch, said, is_fetch=is_fetch, is_renewal=is_renewal)
        if is_fetch and chance.random() < 0.15:
            # Of an unknown topic id Apache Kafka makes an answer of −1, since it has no name.
            asked = asked._replace(wanted=(chance.choice([("t", 9), *self._places(), *self._places()]),))
        if is_fetch and chance.random() < 0.08:
            asked = asked._replace(forgotten=(chance.choice(self._places()),))
        return self._sized(asked)

    def _along(self, said: tuple[Said, ...]) -> tuple[Said, ...]:
        """What may be said along with a fetch, which Apache Kafka serves while it stores that: nothing that the same
        fetch could get.
        """
        if max(self._ends.values()) >= int(self.settings["share.partition.max.record.locks"]):
            return ()
        return tuple(
            one._replace(types=tuple(ACCEPT if kind == RELEASE else kind for kind in one.types))
            for one in said
            if one.place[0] != NOWHERE_NAME
        )

    def _say(self, member_id: str, *, is_fetch: bool = False) -> tuple[Said, ...]:
        """Of what a member holds; now and then of what it doesn't, or nonsense, but not along with a fetch: Apache
        Kafka tells then of the partitions that are fetched too, or doesn't.
        """
        chance = self._chance
        held = self._held.get(member_id, [])
        said = []
        kinds = (
            [ACCEPT, RELEASE, REJECT, RENEW] if chance.random() < 0.1 else [ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT]
        )
        for place, first, last in held:
            if chance.random() < 0.3:
                continue
            begin = first if chance.random() < 0.6 else chance.randint(first, last)
            end = last if chance.random() < 0.6 else chance.randint(begin, last)
            types: tuple[int, ...] = (chance.choice(kinds),)
            if chance.random() < 0.3:
                types = tuple(chance.choice([*kinds, *kinds, 0]) for _ in range(end - begin + 1))
            said.append(Said(place, begin, end, types))
        if chance.random() < 0.1 and not is_fetch:
            place = chance.choice([*self._places(), (NOWHERE_NAME, 0), ("t", 9)])
            first = chance.randint(0, self._ends.get(place, 5) + 3)
            types = chance.choice([(ACCEPT,), (RELEASE,), (5,), (ACCEPT, ACCEPT), ()])
            said.append(Said(place, first, first + chance.choice([0, 2, -1]), types))
        said.sort(key=lambda one: (one.place, one.first))
        return tuple(said)

    def learn(self, step: tuple[object, ...], answer: object) -> None:
        if step[0] != "ask":
            return
        asked = step[1]
        assert isinstance(asked, Asked)
        assert isinstance(answer, tuple)
        if answer[0]:
            return
        member_id = asked.member_id
        if asked.epoch == FINAL:
            self._epochs.pop(member_id, None)
            self._held.pop(member_id, None)
            return
        self._epochs[member_id] = asked.epoch + 1
        if asked.epoch == 0:
            self._held[member_id] = []
        held = self._held.setdefault(member_id, [])
        errors = dict(answer[-1])
        for said in asked.said:
            error = errors.get(said.place, 0)
            if (error[0][1] if isinstance(error, tuple) else error) == 0 and RENEW not in said.types:
                held[:] = [rest for one in held for rest in _without(one, said)]
        if asked.is_fetch:
            for place, (_, _, acquired) in answer[2]:
                held += [(place, first, last) for first, last, _ in acquired]


def _without(held: tuple[Place, int, int], said: Said) -> Iterator[tuple[Place, int, int]]:
    place, first, last = held
    if place != said.place or said.last < first or said.first > last:
        yield held
        return
    if first < said.first:
        yield place, first, said.first - 1
    if last > said.last:
        yield place, said.last + 1, last


def fails_itself(answer: object) -> bool:
    """Whether Apache Kafka made a server error of nonsense that it was told: then the program ends there."""
    return isinstance(answer, tuple) and answer[0] == SERVER_ERROR


def is_refused(answer: object) -> bool:
    assert isinstance(answer, tuple)
    if answer[0]:
        return True
    errors = [of if isinstance(of, int) else of[0][1] for _, of in answer[-1]]
    return any(errors)


def run(sides: tuple[Side, Side], new_program: Callable[[int], Program], seed: int, attempt: int) -> str | None:
    """The whole program when the brokers differ, else None."""
    program = new_program(seed)
    trace = [f"program {seed}: {program.settings}"]
    for side in sides:
        side.begin(f"p{seed}-{attempt}", program.settings)
    for number in range(STEPS):
        step = program.next()
        mine, theirs = (side.take(step) for side in sides)
        trace += [f"{number} {step}", f"    ours   {mine}", f"    apache {theirs}"]
        if fails_itself(theirs):
            return None if is_refused(mine) else "\n".join(trace)
        if mine != theirs:
            return "\n".join(trace)
        program.learn(step, mine)
        for side in sides:
            side.settle()
    left = [side.left() for side in sides]
    return None if left[0] == left[1] else "\n".join([*trace, f"at the end {left[0]}", f"apache     {left[1]}"])


@pytest.mark.conformance
@pytest.mark.timeout(1800)
def test_same_share_fetches(sides: tuple[Side, Side]) -> None:
    for seed in seeds(30):
        # Where locks and connections end, a slow machine may make the difference: it is one if it shows every time.
        difference = of_all_attempts(partial(run, sides, Program, seed))
        assert difference is None, difference


SHAPES: list[tuple[list[int], dict[str, int | bool]]] = [
    (sizes, limits)
    for sizes in ([200], [1, 199], [99, 101], [100, 100], [60, 60, 80], [2] * 100, [300, 1])
    for limits in (
        {"max_records": 200},
        {"max_records": 200, "is_strict": True},
        {"max_records": 1, "batch_size": 1},
        {"max_records": 500, "batch_size": 50},
        {"max_records": 500, "max_bytes": 1500},
        {"max_records": 500, "max_bytes": 1, "min_bytes": 1},
        {"max_records": 500, "max_bytes": 5000, "min_bytes": 4000},
    )
]


def shape(sides: tuple[Side, Side], group_id: str, sizes: list[int], limits: dict[str, Any]) -> int | str:
    """The most records that one fetch acquired, or what the brokers did differently."""
    settings = {"share.partition.max.record.locks": "100", "share.auto.offset.reset": "earliest"}
    member_id, place = "aAAAAAAAAAAAAAAAAAAAAA", ("t", 0)
    for side in sides:
        side.begin(group_id, settings)
        side.produce(place, sizes)
    held: list[Said] = []
    largest = 0
    for epoch in range(8):
        asked = Asked(member_id, epoch, (), (place,) if epoch == 0 else ())._replace(**limits)
        if epoch % 3 == 2:  # Apache Kafka serves a fetch while it stores what is said along with it
            asked, held = Asked(member_id, epoch, tuple(held), is_fetch=False), []
        mine, theirs = (side.ask(asked) for side in sides)
        if mine != theirs:
            return f"{sizes} {limits} {asked}\n    ours   {mine}\n    apache {theirs}"
        if asked.is_fetch:
            assert isinstance(mine, tuple)
            acquired = [part for _, (_, _, parts) in mine[2] for part in parts]
            held += [Said(place, first, last, (ACCEPT,)) for first, last, _ in acquired]
            largest = max(largest, sum(last - first + 1 for first, last, _ in acquired))
    return largest


@pytest.mark.conformance
@pytest.mark.timeout(900)
def test_same_shapes_at_the_cap(sides: tuple[Side, Side]) -> None:
    """How much a member gets at a time when no more than 100 records of a partition may be acquired.

    A batch of the log is not torn apart unless the member wants exactly as many records as it says: so one fetch may
    exceed the cap, on Apache Kafka too.
    """
    largest = 0
    for number, (sizes, limits) in enumerate(SHAPES):
        for attempt in range(pair.ATTEMPTS):  # a busy Apache Kafka may have nothing at the first fetch
            found = shape(sides, f"shape{number}-{attempt}", sizes, limits)
            if isinstance(found, int):
                break
        assert isinstance(found, int), found
        largest = max(largest, found)
    assert largest == 300


@pytest.mark.conformance
@pytest.mark.timeout(300)
def test_what_cannot_be_loaded_or_is_not_wanted(sides: tuple[Side, Side]) -> None:
    """A group that never began is told so by an answer that has waited; who wants no records gets no partitions."""
    for attempt in range(pair.ATTEMPTS):  # a busy Apache Kafka may need longer to read the state
        ours, theirs = (not_loaded(side, attempt) for side in sides)
        if ours == theirs:
            break
    assert ours == theirs
    assert [len(answer[2]) for answer, _ in ours[1]] == [0, 1, 0]


def not_loaded(side: Side, attempt: int) -> tuple[object, list[tuple[Any, bool]], object]:
    side.begin(f"led{attempt}", {})
    side.produce(("t", 0), [3])
    loaded = [side.ask(Asked(KEEPER, 0, wanted=(("t", 0),), wait_ms=1000)), side.ask(Asked(KEEPER, FINAL))]
    asked = Asked(KEEPER, 0, wanted=(("t", 0),), wait_ms=500)
    for limited in (asked._replace(max_records=0), asked._replace(max_bytes=0), asked._replace(min_bytes=0)):
        loaded += [side.ask(limited)]
    side.group_id = f"never-began{attempt}"
    side.ask(Asked(KEEPER, 0, wanted=(("t", 0),), wait_ms=3000))
    waits: list[tuple[Any, bool]] = []
    for wait_ms in (0, 2000, 0):
        time.sleep(1.5)  # who asks while Kafka's leader reads the state is not told that it failed
        began = time.monotonic()
        answer = side.ask(Asked(KEEPER, 0, wanted=(("t", 0),), wait_ms=wait_ms))
        waits.append((answer, time.monotonic() - began >= 1.9))
    return loaded, waits, side.ask(Asked(KEEPER, 0, wanted=(("t", 9),), wait_ms=5000))
