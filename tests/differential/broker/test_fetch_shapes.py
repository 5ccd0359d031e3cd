"""The shape of Fetch answers on Apache Kafka 4.4.0 and on our broker: which partitions in which order, how many bytes,
which batches, errors, watermarks, starts, aborted transactions; at once or after the wait; with sessions and without.

A longer run: `DIFFERENTIAL_PROGRAMS=200 DIFFERENTIAL_SEED=1000 pytest tests/differential/broker/test_fetch_shapes.py`
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
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic, ForgottenTopic
from groupkeeper.protocol.messages.fetch_response import PartitionData
from groupkeeper.protocol.record_batch import Record, iter_headers, write_batch

STEPS = 30
PROPERTIES = {"fetch.max.bytes": "2500000", "message.max.bytes": "2000000", "group.initial.rebalance.delay.ms": "0"}
NOW_MS = int(time.time() * 1000)
NOWHERE = b"\x07" * 16
WAIT_MS = 500
UNLIMITED = 2**31 - 1
IDS_SINCE = 13
NO_SESSION, OPENS, GOES_ON, WRONG_EPOCH, UNKNOWN, CLOSES = range(6)


class Wanted(NamedTuple):
    place: Place
    offset: int
    max_bytes: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1


class Asked(NamedTuple):
    version: int
    wanted: tuple[Wanted, ...]
    forgotten: tuple[Place, ...] = ()
    session: int = NO_SESSION
    max_bytes: int = UNLIMITED
    min_bytes: int = 1
    wait_ms: int = 0
    is_committed: bool = False


class Side(AnySide):
    """A side that fetches; it has one transactional producer and at most one session."""

    def begin(self, program: str, topics: Mapping[int, tuple[int, Mapping[str, str]]]) -> None:
        super().begin(program, topics)
        self._session_id = 0
        self._epoch = 0
        self._producer = (-1, -1)
        self._sequences: dict[Place, int] = {}

    def fetch(self, asked: Asked) -> object:
        by_id = asked.version >= IDS_SINCE
        topics: list[FetchTopic] = []
        for one in asked.wanted:
            part = FetchPartition(
                one.place[1], one.leader_epoch, one.offset, one.last_fetched_epoch, partition_max_bytes=one.max_bytes
            )
            topics.append(FetchTopic(*self._named(one.place[0], by_id), [part]))
        forgotten = [ForgottenTopic(*self._named(number, by_id), [part]) for number, part in asked.forgotten]
        session_id, epoch = self._session(asked.session)
        request = m.FetchRequest(
            max_wait_ms=asked.wait_ms,
            min_bytes=asked.min_bytes,
            max_bytes=asked.max_bytes,
            isolation_level=int(asked.is_committed),
            session_id=session_id,
            session_epoch=epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )
        began = time.monotonic()
        answer = self.pool.ask(request, asked.version)
        took_s = time.monotonic() - began
        self._remember(asked.session, answer)
        parts = [
            (self.number(topic.topic, topic.topic_id), [self._shape(part) for part in topic.partitions])
            for topic in answer.responses
        ]
        has_waited = asked.wait_ms > 0 and took_s > asked.wait_ms * 0.0009
        return answer.error_code, answer.session_id > 0, parts, has_waited

    def _named(self, number: int, by_id: bool) -> tuple[str, bytes]:
        return ("", self.ids.get(number, NOWHERE)) if by_id else (self.name(number), bytes(16))

    def _session(self, session: int) -> tuple[int, int]:
        return {
            NO_SESSION: (0, -1),
            OPENS: (self._session_id, 0),
            GOES_ON: (self._session_id, self._epoch),
            WRONG_EPOCH: (self._session_id, self._epoch + 3),
            UNKNOWN: (12_345, 1),
            CLOSES: (self._session_id, -1),
        }[session]

    def _remember(self, session: int, answer: m.FetchResponse) -> None:
        if session == OPENS:
            self._session_id, self._epoch = answer.session_id, 1
        elif session == GOES_ON:
            self._epoch += 1

    def _shape(self, part: PartitionData) -> object:
        records = part.records or b""
        batches = [(header.base_offset, header.size_in_bytes) for _, header in iter_headers(records)]
        aborted = part.aborted_transactions
        return (
            *(part.partition_index, part.error_code, part.high_watermark, part.last_stable_offset),
            *(part.log_start_offset, len(records), batches),
            None if aborted is None else [one.first_offset for one in aborted],
            (part.diverging_epoch.epoch, part.diverging_epoch.end_offset),
            (part.current_leader.leader_epoch, part.preferred_read_replica, part.records is None),
        )

    # ------------------------------------------------------------------ transactions

    def transact(self, place: Place, size: int) -> object:
        """Records of a transaction, which is begun where none is open."""
        if self._producer[0] < 0:
            self.coordinator_error(1, self.program)
            until(self._init)
        until(lambda: self._add(place))
        sequence = self._sequences.get(place, 0)
        batch = write_batch(
            [Record(b"k", bytes(size), timestamp=NOW_MS)],
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
            is_transactional=True,
        )
        self._sequences[place] = sequence + 1
        return self.append({place: batch}, self.program)

    def _init(self) -> bool:
        answer = self.pool.ask(m.InitProducerIdRequest(self.program, 600_000), 4)
        self._producer = (answer.producer_id, answer.producer_epoch)
        return answer.error_code == 0

    def _add(self, place: Place) -> bool:
        topics = [m.AddPartitionsToTxnTopic(self.name(place[0]), [place[1]])]
        request = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.program,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=topics,
        )
        return (
            self.pool.ask(request, 3).results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
        )

    def end(self, places: list[Place], is_commit: bool) -> object:
        before = self.ends(places)
        answer = self.pool.ask(m.EndTxnRequest(self.program, *self._producer, is_commit), 3)
        until(lambda: all((end or 0) > (before[at] or 0) for at, end in self.ends(places, is_committed=True).items()))
        return answer.error_code, self.ends(places)


class FetchProgram:
    """Logs of random batches, then requests: most with limits that cut somewhere."""

    def __init__(self, seed: int) -> None:
        self._chance = chance = random.Random(seed)
        self.topics = {
            number: (
                chance.choice([1, 1, 2, 3, 8, 30, 200 if number == 0 else 4]),
                {"segment.bytes": str(chance.choice([1 << 20, 1 << 30]))},
            )
            for number in range(chance.randint(1, 3))
        }
        self._places = [(number, index) for number, (count, _) in self.topics.items() for index in range(count)]
        self._batches: dict[Place, list[tuple[int, int]]] = {place: [] for place in self._places}  # end offset, size
        self._room = 8_000_000
        self._steps = STEPS
        self._fills = chance.randint(1, 6)
        self._open: list[Place] = []
        self._session: tuple[int, list[Place]] | None = None

    def next(self) -> Step | None:
        chance = self._chance
        if self._fills:
            self._fills -= 1
            some = [place for place in self._places if chance.random() < 0.7]
            return ("append", {place: self._batch(len(some)) for place in some})
        if not self._steps:
            return None
        self._steps -= 1
        lot = chance.random()
        if lot < 0.1:
            return ("append", {chance.choice(self._places): self._batch(1)})
        if lot < 0.15:
            place = self._place()
            return ("cut", place, chance.choice([0, -1, self._end(place) // 2, self._end(place) + 1]))
        if lot < 0.2:
            place = chance.choice(self._places)
            return ("transact", place, chance.choice([10, 1000, 50_000]))
        if lot < 0.25 and self._open:
            return ("end", self._open, chance.random() < 0.5)
        return ("fetch", self._asked())

    def _batch(self, share: int) -> bytes:
        chance = self._chance
        size = min(int(10 ** chance.uniform(1.5, 6)), max(self._room // (4 * share), 20))
        self._room -= size * share
        count = chance.choice([1, 1, 2, 7])
        records = [
            Record(b"k", chance.randbytes(max(size // count, 1)), timestamp=NOW_MS + number) for number in range(count)
        ]
        return write_batch(records, compression=chance.choice(CODECS))

    def _end(self, place: Place) -> int:
        batches = self._batches.get(place)
        return batches[-1][0] if batches else 0

    def _place(self) -> Place:
        return self._chance.choice([*self._places * 12, (0, 999), (9, 0), (9, 1)])

    def _limit(self, place: Place | None) -> int:
        chance = self._chance
        sizes = [size for _, size in self._batches.get(place, ())] if place else []
        sizes = sizes or [size for batches in self._batches.values() for _, size in batches] or [100]
        size = chance.choice(sizes)
        some = [1, 0, 12, 61, size - 1, size, size + 1, size + 30, 2 * size, int(10 ** chance.uniform(1, 6.5))]
        return chance.choice([*some, 1 << 20, 1 << 20, UNLIMITED, UNLIMITED])

    def _wanted(self, place: Place, version: int) -> Wanted:
        chance = self._chance
        end = self._end(place)
        offset = chance.choice([0, 0, 0, chance.randint(0, end), chance.randint(0, end), end, end + 1, -1])
        if chance.random() < 0.85:
            offset = min(max(offset, 0), end)
        odd = version >= 12 and chance.random() < 0.05
        return Wanted(
            place,
            offset,
            self._limit(place),
            chance.choice([-1, -1, -1, 0, 0, 4]) if version >= 9 and chance.random() < 0.2 else -1,
            chance.choice([0, 0, 1]) if odd else -1,
        )

    def _some(self, version: int) -> tuple[Wanted, ...]:
        chance = self._chance
        if chance.random() < 0.4:
            places = self._places[:]
            if chance.random() < 0.5:
                chance.shuffle(places)
        else:
            places = [self._place() for _ in range(chance.choice([1, 2, 3, 10, 40]))]
        return tuple(self._wanted(place, version) for place in places)

    def _asked(self) -> Asked:
        chance = self._chance
        session, version = NO_SESSION, chance.randint(4, 18)
        wanted, forgotten = (), ()  # type: tuple[Wanted, ...], tuple[Place, ...]
        if self._session is not None and chance.random() < 0.7:
            version, places = self._session
            session = chance.choices([GOES_ON, OPENS, WRONG_EPOCH, UNKNOWN, CLOSES], [30, 2, 1, 1, 1])[0]
            if chance.random() < 0.4:
                wanted = self._some(version)[: chance.choice([1, 3, 400])]
            if chance.random() < 0.15:
                forgotten = tuple(chance.sample(places, min(len(places), chance.choice([1, 2, 300]))))
            if session == GOES_ON and chance.random() < 0.05:
                # Names where ids were used, or the other way round.
                version, wanted, forgotten = chance.choice([7, 12, 13, 18]), (), ()
        elif version >= 7 and chance.random() < 0.6:
            session = OPENS
        if session in (NO_SESSION, OPENS):
            wanted = self._some(version)
        min_bytes = chance.choice([0, 1, 1, 1000, 100_000, UNLIMITED])
        wait_ms = WAIT_MS if chance.random() < 0.15 else 0
        return Asked(
            version,
            wanted,
            forgotten,
            session,
            self._limit(None),
            min_bytes,
            wait_ms,
            is_committed=chance.random() < 0.4,
        )

    def learn(self, step: Step, answer: object) -> None:
        verb = step[0]
        if verb == "append":
            self._appended(step[1], answer)
        elif verb == "transact":
            assert isinstance(answer, list)
            for number, part, _, base_offset in answer:
                self._batches[number, part].append((base_offset + 1, 100))
                if (number, part) not in self._open:
                    self._open.append((number, part))
        elif verb == "end":
            assert isinstance(answer, tuple)
            for place, end in answer[1].items():
                self._batches[place].append((end, 78))
            self._open = []
        elif verb == "fetch":
            self._fetched(step[1], answer)

    def _appended(self, batches: object, answer: object) -> None:
        assert isinstance(batches, dict)
        assert isinstance(answer, list)
        for number, part, error, base_offset in answer:
            batch = batches[number, part]
            if error == 0:
                (_, header), *_ = iter_headers(batch)
                self._batches[number, part].append((base_offset + header.last_offset_delta + 1, len(batch)))

    def _fetched(self, asked: object, answer: object) -> None:
        assert isinstance(asked, Asked)
        assert isinstance(answer, tuple)
        error, has_session, _, _ = answer
        if asked.session == OPENS:
            self._session = (asked.version, [one.place for one in asked.wanted]) if has_session else None
        elif asked.session == CLOSES or (asked.session == GOES_ON and not (error == 0 and has_session)):
            self._session = None


@pytest.mark.conformance
@pytest.mark.timeout(1800)
def test_same_fetch_answers(sides: tuple[Side, Side]) -> None:
    for seed in seeds(12):
        found = difference(sides, partial(FetchProgram, seed), f"f{seed}")
        assert found is None, found
