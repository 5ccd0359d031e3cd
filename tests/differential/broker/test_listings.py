"""What Apache Kafka 4.4.0 and our broker answer to ListOffsets, OffsetFetch and Metadata, in every version: special and
odd timestamps, all topics of a group, what is unknown or named twice, and the order of it all.

Only where Apache Kafka's order is that of a hash table, both answers are sorted.
"""

import random
import time
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import pytest
from tests.differential.pair import Place, Step, difference, seeds
from tests.differential.pair import Side as AnySide
from tests.patience import until

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.compression import CODECS
from groupkeeper.protocol.errors import UnknownTopicId
from groupkeeper.protocol.messages import metadata_request as asking
from groupkeeper.protocol.messages import offset_commit_request as committing
from groupkeeper.protocol.messages import offset_fetch_request as fetching
from groupkeeper.protocol.primitives import ZERO_UUID
from groupkeeper.protocol.record_batch import Record, write_batch

STEPS = 40
PROPERTIES = {"auto.create.topics.enable": "true", "group.initial.rebalance.delay.ms": "0"}
NOW_MS = int(time.time() * 1000)
NOWHERE = b"\x07" * 16
SPECIAL = (-1, -2, -3, -4, -5, -6, -7, -99)
IDS_SINCE = 10
INVALID_NAMES = ("", "a b", ".", "x" * 250)


class Wanted(NamedTuple):
    place: Place
    timestamp: int
    leader_epoch: int


class OfGroup(NamedTuple):
    group: int
    places: tuple[Place, ...] | None


class Named(NamedTuple):
    """A topic of a Metadata request: by its number, or by a name that no program has; by id, or by both."""

    number: int
    name: str | None = None
    by_id: bool = False
    by_name: bool = True


class Side(AnySide):
    """A side that lists."""

    def begin(self, program: str, topics: Mapping[int, tuple[int, Mapping[str, str]]]) -> None:
        super().begin(program, topics)
        for group in (1, 2, 3):
            until(lambda group=group: self.coordinator_error(0, self._group(group)) == 0)  # type: ignore[misc]

    def list_offsets(self, version: int, wanted: tuple[Wanted, ...], is_committed: bool) -> object:
        topics: list[m.ListOffsetsTopic] = []
        for one in wanted:
            part = m.ListOffsetsPartition(one.place[1], one.leader_epoch, one.timestamp)
            topics.append(m.ListOffsetsTopic(self.name(one.place[0]), [part]))
        answer = self.pool.ask(m.ListOffsetsRequest(-1, int(is_committed), topics), version)
        return sorted(
            (
                *(str(self.number(topic.name, b"?")), part.partition_index, part.error_code),
                *(part.timestamp, part.offset, part.leader_epoch),
            )
            for topic in answer.topics
            for part in topic.partitions
        )

    # ------------------------------------------------------------------ committed offsets

    def _group(self, number: int) -> str:
        return f"{self.program}-g{number}" if number else ""

    def commit(self, group: int, offsets: dict[Place, tuple[int, int, str]]) -> object:
        topics = [
            committing.OffsetCommitRequestTopic(
                self.name(number), partitions=[committing.OffsetCommitRequestPartition(part, offset, epoch, note)]
            )
            for (number, part), (offset, epoch, note) in offsets.items()
        ]
        request = committing.OffsetCommitRequest(self._group(group), topics=topics)
        codes: list[int] = []

        def is_settled() -> bool:
            answer = self.pool.ask(request, 8)
            codes[:] = [part.error_code for topic in answer.topics for part in topic.partitions]
            return not {14, 15, 16} & set(codes)  # the coordinator's log is made or loaded

        until(is_settled)
        return codes

    def offsets(self, version: int, groups: tuple[OfGroup, ...], is_stable: bool) -> object:
        by_id = version >= IDS_SINCE
        request = fetching.OffsetFetchRequest(require_stable=is_stable)
        if version >= 8:
            request.groups = [self._of_group(one, by_id) for one in groups]
        else:
            topics = None if groups[0].places is None else [
                fetching.OffsetFetchRequestTopic(self.name(number), [part]) for number, part in groups[0].places
            ]  # fmt: skip
            request.group_id, request.topics = self._group(groups[0].group), topics
        answer = self.pool.ask(request, version)
        if version < 8:
            return answer.error_code, self._offsets_of(answer.topics, groups[0].places is None)
        return [
            (
                group.group_id.removeprefix(self.program),
                group.error_code,
                self._offsets_of(group.topics, any(one.places is None for one in groups)),
            )
            for group in answer.groups
        ]

    def _of_group(self, one: OfGroup, by_id: bool) -> fetching.OffsetFetchRequestGroup:
        topics = None if one.places is None else [
            fetching.OffsetFetchRequestTopics(
                *(("", self.ids.get(number, NOWHERE)) if by_id else (self.name(number), ZERO_UUID)), [part]
            )
            for number, part in one.places
        ]  # fmt: skip
        return fetching.OffsetFetchRequestGroup(self._group(one.group), topics=topics)

    def _offsets_of(self, topics: object, is_sorted: bool) -> object:
        found = [
            (
                *(str(self.number(topic.name, getattr(topic, "topic_id", b"?"))), part.partition_index),
                *(part.error_code, part.committed_offset, part.committed_leader_epoch, part.metadata),
            )
            for topic in topics  # type: ignore[attr-defined]
            for part in topic.partitions
        ]
        return sorted(found) if is_sorted else found

    # ------------------------------------------------------------------ metadata

    def metadata(self, version: int, named: tuple[Named, ...] | None, may_create: bool, operations: int) -> object:
        topics = None if named is None else [self._named(one) for one in named]
        request = asking.MetadataRequest(topics, may_create, bool(operations & 1), bool(operations & 2))
        answer = self.pool.ask(request, version)
        described = [self._described(topic) for topic in answer.topics if named or self._is_mine(topic)]
        return (
            *(answer.error_code, answer.cluster_authorized_operations, len(answer.brokers)),
            [topic.error_code in (0, UnknownTopicId.code) for topic in answer.topics] if named else None,
            sorted(described, key=repr),
        )

    def create(self, version: int, name: str) -> object:
        """By Metadata; waits until the topic is there."""
        first = self.metadata(version, (Named(0, f"{self.program}-{name}"),), True, 0)
        wanted = asking.MetadataRequest([asking.MetadataRequestTopic(name=f"{self.program}-{name}")], False)
        until(lambda: self.pool.ask(wanted, 12).topics[0].error_code == 0)
        return first, self.metadata(version, (Named(0, f"{self.program}-{name}"),), version < 4, 0)

    def _named(self, one: Named) -> asking.MetadataRequestTopic:
        name = self.name(one.number) if one.name is None else one.name
        topic_id = self.ids.get(one.number, NOWHERE) if one.by_id else ZERO_UUID
        return asking.MetadataRequestTopic(topic_id, name if one.by_name else None)

    def _is_mine(self, topic: m.MetadataResponseTopic) -> bool:
        return (topic.name or "").startswith(f"{self.program}-")

    def _described(self, topic: m.MetadataResponseTopic) -> object:
        parts = [
            (
                *(part.error_code, part.partition_index, part.leader_epoch),
                *(len(part.replica_nodes), len(part.isr_nodes), len(part.offline_replicas)),
            )
            for part in topic.partitions
        ]
        name = None if topic.name is None else topic.name.removeprefix(self.program)
        known = topic.topic_id if topic.topic_id in (ZERO_UUID, NOWHERE) else "known"
        return topic.error_code, name, known, topic.is_internal, parts, topic.topic_authorized_operations


class ListingProgram:
    """Some records and commits, then questions."""

    def __init__(self, seed: int) -> None:
        self._chance = chance = random.Random(seed)
        stamped = {"message.timestamp.type": "CreateTime", "segment.bytes": str(1 << 20)}
        self.topics = {number: (chance.choice([1, 2, 5]), stamped) for number in range(1, chance.randint(2, 4))}
        self._places = [(number, index) for number, (count, _) in self.topics.items() for index in range(count)]
        self._fills = chance.randint(1, 5)
        self._steps = STEPS
        self._names = 0

    def next(self) -> Step | None:
        chance = self._chance
        if self._fills:
            self._fills -= 1
            return ("append", {place: self._batch() for place in self._places if chance.random() < 0.7})
        if not self._steps:
            return None
        self._steps -= 1
        return chance.choices(
            [self._list_offsets, self._commit, self._offsets, self._metadata, self._create, self._cut],
            [30, 12, 25, 25, 3, 5],
        )[0]()

    def learn(self, step: Step, answer: object) -> None:
        """Nothing: what is there doesn't change what is asked."""

    def _batch(self) -> bytes:
        chance = self._chance
        first = NOW_MS + chance.randint(-5000, 0)
        records = [
            Record(
                b"k", chance.randbytes(chance.choice([10, 500])), timestamp=first + chance.choice([0, 1, -1, 7, 500])
            )
            for _ in range(chance.choice([1, 1, 3, 10]))
        ]
        return write_batch(records, compression=chance.choice(CODECS))

    def _place(self) -> Place:
        return self._chance.choice([*self._places * 6, (1, 999), (1, -1), (9, 0), (8, 1)])

    def _list_offsets(self) -> Step:
        chance = self._chance
        version = chance.randint(1, 11)
        wanted = []
        for _ in range(chance.choice([1, 2, 5, 12])):
            near = NOW_MS + chance.randint(-5100, 600)
            timestamp = chance.choice([*SPECIAL, near, near, near, 0, 2**62])
            epoch = chance.choice([-1, -1, -1, 0, 5, -2]) if version >= 4 else -1
            wanted.append(Wanted(self._place(), timestamp, epoch))
        return ("list_offsets", version, tuple(wanted), version >= 2 and chance.random() < 0.3)

    def _cut(self) -> Step:
        return ("cut", self._place(), self._chance.choice([0, 1, 2, 5, -1, 10_000]))

    def _commit(self) -> Step:
        chance = self._chance
        places = [self._place() for _ in range(chance.choice([1, 2, 6]))]
        values: list[list[object]] = [[0, 3, 2**40, -1], [-1, 0, 4], ["", "note", "n" * 5000]]
        return "commit", chance.choice([1, 2]), {place: tuple(map(chance.choice, values)) for place in places}

    def _offsets(self) -> Step:
        chance = self._chance
        version = chance.randint(1, 10)
        groups = []
        for _ in range(chance.choice([1, 1, 2, 3]) if version >= 8 else 1):
            places: tuple[Place, ...] | None = tuple(self._place() for _ in range(chance.choice([0, 1, 3, 8])))
            if version >= 2 and chance.random() < 0.4:
                places = None
            groups.append(OfGroup(chance.choice([1, 1, 2, 2, 3, 0]), places))
        return ("offsets", version, tuple(groups), version >= 7 and chance.random() < 0.3)

    def _metadata(self) -> Step:
        chance = self._chance
        version = chance.randint(0, 13)
        operations = chance.choice([0, 0, 1, 2, 3]) if version >= 8 else 0
        if operations & 1 and version > 10:
            operations &= 2
        named: tuple[Named, ...] | None = tuple(self._named(version) for _ in range(chance.choice([1, 1, 2, 6])))
        if chance.random() < 0.25:
            named = None if version else ()
        elif version and chance.random() < 0.05:
            named = ()
        return ("metadata", version, named, version < 4, operations)

    def _named(self, version: int) -> Named:
        chance = self._chance
        number = chance.choice([*self.topics, *self.topics, 9])
        if version >= 4 and chance.random() < 0.1:
            return Named(0, chance.choice(INVALID_NAMES))
        if version >= 12 and chance.random() < 0.5:
            return Named(number, None, by_id=True, by_name=chance.random() < 0.2)
        return Named(number if version >= 4 or number != 9 else 1)

    def _create(self) -> Step:
        self._names += 1
        return ("create", self._chance.randint(0, 13), f"made-{self._names}")


@pytest.mark.conformance
@pytest.mark.timeout(1800)
def test_same_listings(sides: tuple[Side, Side]) -> None:
    for seed in seeds(10):
        found = difference(sides, partial(ListingProgram, seed), f"l{seed}")
        assert found is None, found
