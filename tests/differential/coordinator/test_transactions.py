"""The same transactions, legal and not, on Apache Kafka 4.4.0 and on our broker: the same codes, epochs and reads."""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest
from tests.differential.pair import Asked, Step, both, seeds
from tests.patience import until

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import error_for
from groupkeeper.protocol.messages import add_partitions_to_txn_request as adding
from groupkeeper.protocol.messages import txn_offset_commit_request as committing
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.record_batch import Record, write_batch

STEPS = 40
PROPERTIES = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
WAIT_CODES = (3, 5, 6, 14, 15, 16)
SETTLED_S = 10.0


@dataclass
class Believed:
    """What a producer believes of itself."""

    producer_id: int = -1
    epoch: int = -1
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)


class Side(Asked):
    """One broker, and what its producers know: those of one name are rivals for one transactional id."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self.now_ms = int(time.time() * 1000)
        self.producers: dict[str, Believed] = {}
        self.program = ""

    def prepare(self) -> None:
        for key_type, key in ((0, "g"), (1, "tx")):
            self.until(partial(self.coordinator_error, key_type, key))
        self.until(lambda: self.pool.ask(m.InitProducerIdRequest("first", 1000), 4).error_code)

    def until(self, ask: object) -> int:
        """Asks again while a leader or coordinator is on its way."""
        deadline = time.monotonic() + SETTLED_S
        while (code := ask()) in WAIT_CODES and time.monotonic() < deadline:  # type: ignore[operator]
            time.sleep(0.02)
        return int(code)

    def begin(self, program: str) -> None:
        self.program = program
        self.producers = {name: Believed() for name in ("a", "b")}
        topics = [m.CreatableTopic(f"{program}-{name}", 1, 1) for name in "tu"]
        self.pool.ask(m.CreateTopicsRequest(topics, 10_000), 7)
        for name in "tu":
            self.until(lambda name=name: self.read(Believed(), name)[0])  # type: ignore[index]

    @property
    def transactional_id(self) -> str:
        return f"{self.program}-id"

    def take(self, step: Step) -> object:
        name, who, *arguments = step
        said = getattr(self, str(name))(self.producers[str(who)], *arguments)
        self.settle()
        return said

    def settle(self) -> None:
        """Until the coordinator has told every partition."""
        until(lambda: not self.state().startswith("Prepare"), "the transaction does not end")

    def state(self) -> str:
        answer = self.pool.ask(m.DescribeTransactionsRequest([self.transactional_id]), 0)
        return str(answer.transaction_states[0].transaction_state)

    # --- steps

    def init(self, who: Believed, version: int, claims: bool) -> object:
        claimed = (who.producer_id, who.epoch) if claims and version >= 3 else (-1, -1)
        answer = self.pool.ask(m.InitProducerIdRequest(self.transactional_id, 60_000, *claimed), version)
        if answer.error_code == 0:
            who.producer_id, who.epoch = answer.producer_id, answer.producer_epoch
            who.sequences.clear()
        return answer.error_code, who.epoch

    def add(self, who: Believed, version: int, topic: str) -> object:
        request = adding.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=who.producer_id,
            v3_and_below_producer_epoch=who.epoch,
            v3_and_below_topics=[adding.AddPartitionsToTxnTopic(f"{self.program}-{topic}", [0])],
        )
        (found,) = self.pool.ask(request, version).results_by_topic_v3_and_below
        return [one.partition_error_code for one in found.results_by_partition]

    def add_offsets(self, who: Believed, version: int) -> object:
        request = m.AddOffsetsToTxnRequest(self.transactional_id, who.producer_id, who.epoch, f"{self.program}-g")
        return self.pool.ask(request, version).error_code

    def commit_offset(self, who: Believed, version: int, offset: int) -> object:
        partitions = [committing.TxnOffsetCommitRequestPartition(0, offset)]
        topic = committing.TxnOffsetCommitRequestTopic(f"{self.program}-t", partitions=partitions)
        request = committing.TxnOffsetCommitRequest(
            self.transactional_id, f"{self.program}-g", who.producer_id, who.epoch, topics=[topic]
        )
        return self.pool.ask(request, version).topics[0].partitions[0].error_code

    def produce(self, who: Believed, version: int, topic: str, skipped: int) -> object:
        sequence = who.sequences.get((topic, who.epoch), 0) + skipped
        batch = write_batch(
            [Record(None, b"value", (), self.now_ms)],
            producer_id=max(who.producer_id, 0),
            producer_epoch=max(who.epoch, 0),
            base_sequence=sequence,
            is_transactional=True,
        )
        parts = [m.TopicProduceData(f"{self.program}-{topic}", partition_data=[m.PartitionProduceData(0, batch)])]
        answer = self.pool.ask(m.ProduceRequest(self.transactional_id, -1, 5000, parts), version)
        (found,) = answer.responses[0].partition_responses
        if found.error_code == 0:
            who.sequences[topic, who.epoch] = sequence + 1
        return found.error_code, found.base_offset

    def end(self, who: Believed, version: int, commit: bool) -> object:
        answer = self.pool.ask(m.EndTxnRequest(self.transactional_id, who.producer_id, who.epoch, commit), version)
        if answer.error_code == 0 and version >= 5:
            who.producer_id, who.epoch = answer.producer_id, answer.producer_epoch
        return answer.error_code, who.epoch

    def read(self, who: Believed, topic: str) -> object:
        wanted = FetchPartition(0, -1, 0, partition_max_bytes=1 << 20)
        topics = [FetchTopic(f"{self.program}-{topic}", partitions=[wanted])]
        request = m.FetchRequest(max_wait_ms=0, isolation_level=1, topics=topics)
        (found,) = self.pool.ask(request, 12).responses[0].partitions
        aborted = [one.first_offset for one in found.aborted_transactions or ()]
        return found.error_code, found.high_watermark, found.last_stable_offset, len(found.records or b""), aborted

    def offsets(self, who: Believed, stable: bool) -> object:
        topics = [m.OffsetFetchRequestTopics(f"{self.program}-t", partition_indexes=[0])]
        groups = [m.OffsetFetchRequestGroup(f"{self.program}-g", topics=topics)]
        request = m.OffsetFetchRequest(groups=groups, require_stable=stable)
        (found,) = self.pool.ask(request, 8).groups[0].topics[0].partitions
        return found.committed_offset, found.error_code

    def describe(self, who: Believed) -> object:
        return self.state()


def program(seed: int) -> Iterator[Step]:
    """Steps that more often than not make sense."""
    chance = random.Random(seed)
    has_own_epochs = seed % 2
    new, old = ((5, 12, 5), (3, 11, 4)) if has_own_epochs else ((3, 10, 4), (5, 12, 5))
    yield "init", "a", 4, False
    for _ in range(STEPS):
        end_version, produce_version, commit_version = new if chance.random() < 0.92 else old
        end_version = end_version if end_version == 5 else chance.randrange(5)
        who = "a" if chance.random() < 0.75 else "b"
        topic = chance.choice("ttu")
        yield chance.choices(
            (
                ("init", who, chance.choice((2, 3, 4, 5)), chance.random() < 0.4),
                ("add", who, chance.randrange(4), topic),
                ("add_offsets", who, chance.randrange(5)),
                ("commit_offset", who, min(commit_version, 5), chance.randrange(100)),
                ("produce", who, produce_version, topic, int(chance.random() < 0.08)),
                ("end", who, end_version, chance.random() < 0.6),
                ("read", who, topic),
                ("offsets", who, chance.random() < 0.5),
                ("describe", who),
            ),
            (1, 4, 2, 3, 6, 4, 4, 2, 1),
        )[0]


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[Side, Side]]:
    with both(Side, PROPERTIES, of_ours={"group.initial.rebalance.delay.ms": "0"}) as sides:
        for side in sides:
            side.prepare()
        yield sides


@pytest.mark.conformance
@pytest.mark.timeout(900)
def test_same_transactions(sides: tuple[Side, Side]) -> None:  # GO-20 … GO-23, GO-40, GO-41
    ours, reference = sides
    for seed in seeds(40):
        trace = [f"program {seed}"]
        for side in sides:
            side.begin(f"p{seed}")
        for step in program(seed):
            mine, theirs = ours.take(step), reference.take(step)
            trace.append(f"{step}: {mine} | {theirs}")
            assert mine == theirs, "\n".join([*trace, _named(mine), _named(theirs)])


def _named(said: object) -> str:
    code = said[0] if isinstance(said, tuple | list) else said
    return error_for(code).name if isinstance(code, int) and code > 0 else str(said)
