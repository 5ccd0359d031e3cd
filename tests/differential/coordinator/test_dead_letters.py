"""Dead-letter queues of share groups on Apache Kafka and on our broker: after the same steps the queue has the same
records, and the state of every record is the same.
"""

import random
from functools import partial
from itertools import count

import pytest
from tests.differential.coordinator import test_share_fetching as fetches
from tests.differential.coordinator.test_share_fetching import ACCEPT, REJECT, RELEASE, Asked, Said
from tests.differential.pair import of_all_attempts, seeds
from tests.patience import until

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.record_batch import Record, iter_headers, read_records, write_batch

PROPERTIES = {**fetches.PROPERTIES, "errors.deadletterqueue.auto.create.topics.enable": "true", "num.partitions": "3"}
MEMBER = "aAAAAAAAAAAAAAAAAAAAAA"
ENABLED = {"errors.deadletterqueue.group.enable": "true"}
ARCHIVING = 3
PLACE = ("t", 1)
NEWEST_FETCH = 12


class Side(fetches.Side):
    """A broker whose groups have dead-letter queues."""

    def make_queue(self, name: str, settings: dict[str, str]) -> None:
        configs = [m.CreatableTopicConfig(*one) for one in settings.items()]
        answer = self.pool.ask(m.CreateTopicsRequest([m.CreatableTopic(name, 2, 1, configs=configs)], 10_000), 7)
        assert answer.topics[0].error_code == 0

    def begin(self, program: str, settings: dict[str, str]) -> None:
        name = "errors.deadletterqueue.topic.name"
        self._queue = f"{settings[name]}-{program}"
        super().begin(program, {**settings, name: self._queue})

    def left(self) -> tuple[object, object]:
        return self.stored(), self.letters(self._queue)

    def settle(self) -> None:
        """Waits until no record is on its way to the queue."""
        until(lambda: not self._is_archiving())

    def _is_archiving(self) -> bool:
        stored = self.stored()
        assert isinstance(stored, list)
        return any(state == ARCHIVING for _, (_, _, states) in stored for state, _ in states.values())

    def letters(self, name: str) -> object:
        """Everything in a topic, by partition; None: there is no such topic."""
        topic = self.pool.ask(m.MetadataRequest([m.MetadataRequestTopic(b"\0" * 16, name)], False), 12).topics[0]
        if topic.error_code:
            return None
        found = []
        for index in range(len(topic.partitions)):
            wanted = [FetchTopic(name, partitions=[FetchPartition(index, fetch_offset=0, partition_max_bytes=1 << 24)])]
            request = m.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 25, topics=wanted)
            part = self.pool.ask(request, NEWEST_FETCH).responses[0].partitions[0]
            batches = part.records or b""
            records = [one for position, _ in iter_headers(batches) for one in read_records(batches, position)]
            said = [([(n, v) for n, v in one.headers], one.key, one.value) for one in records]
            found.append(sorted(said, key=repr))
        return found

    def write(self, batch: bytes) -> None:
        partition_data = [m.PartitionProduceData(PLACE[1], batch)]
        data = m.TopicProduceData(f"{self.group_id}-{PLACE[0]}", partition_data=partition_data)
        answer = self.pool.ask(m.ProduceRequest(None, -1, 10_000, [data]), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


class Program(fetches.Program):
    """Steps of a group that has a dead-letter queue, or one that cannot be used."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        chance = random.Random(seed)
        self.settings |= {
            "errors.deadletterqueue.topic.name": chance.choice(["dlq.", "dlq.", "other.", "dlq.not/valid"]),
            "errors.deadletterqueue.copy.record.enable": chance.choice(["true", "false"]),
        }


@pytest.mark.conformance
@pytest.mark.timeout(1800)
def test_same_dead_letters(sides: tuple[Side, Side]) -> None:
    for seed in seeds(30):
        difference = of_all_attempts(partial(fetches.run, sides, Program, seed))
        assert difference is None, difference


BATCHES = {
    "plain": write_batch([Record(b"k", b"v" * 20, [("h", b"1"), ("n", None)], 1000)] * 3),
    "null": write_batch([Record(None, None, timestamp=1000), Record(b"", b"", timestamp=1000)]),
    "packed": write_batch([Record(b"k", b"v" * 300, timestamp=1000)] * 4, compression="gzip"),
    "large": write_batch([Record(None, b"x" * 900, timestamp=1000), Record(None, b"x" * 2500, timestamp=1000)]),
    "packed and large": write_batch([Record(None, b"x" * 900, timestamp=1000)] * 5, compression="zstd"),
    "many": write_batch([Record(b"%d" % at, b"x" * 100, timestamp=1000) for at in range(60)]),
}
QUEUES = [ENABLED, {**ENABLED, "message.timestamp.type": "LogAppendTime"}, {**ENABLED, "max.message.bytes": "2000"}, {}]
_numbers = count()


@pytest.mark.conformance
@pytest.mark.timeout(900)
@pytest.mark.parametrize("copies", ["true", "false"])
@pytest.mark.parametrize("settings", QUEUES, ids=str)
def test_same_shapes(sides: tuple[Side, Side], settings: dict[str, str], copies: str) -> None:
    """Records of many shapes are rejected, or given back until they are delivered no more."""
    number = next(_numbers)
    name = f"shapes-{number}"
    queue = f"dlq.-{name}"
    own = {
        "errors.deadletterqueue.topic.name": "dlq.",
        "errors.deadletterqueue.copy.record.enable": copies,
        "share.delivery.count.limit": "2",
    }
    for side in sides:
        side.make_queue(queue, settings)
        side.begin(name, own)
        side.ask(Asked(MEMBER, 0, (), (PLACE,)))
    for epoch, batch in enumerate(BATCHES.values()):
        for side in sides:
            side.write(batch)
            for turn, kind in enumerate((RELEASE, (ACCEPT, RELEASE, REJECT)[epoch % 3])):
                answer = side.ask(Asked(MEMBER, 4 * epoch + 2 * turn + 1, wait_ms=500 if turn else 5000))
                assert isinstance(answer, tuple)
                acquired = [one for _, (_, _, some) in answer[2] for one in some]
                said = tuple(Said(PLACE, first, last, (kind,)) for first, last, _ in acquired)
                said = tuple(one._replace(types=(REJECT,)) if one.first % 7 == 2 else one for one in said)
                side.ask(Asked(MEMBER, 4 * epoch + 2 * turn + 2, said, is_fetch=False))
            side.settle()
    mine, theirs = (side.left() for side in sides)
    assert mine == theirs
    found = mine[1]
    assert isinstance(found, list)
    assert any(found) == bool(settings)
