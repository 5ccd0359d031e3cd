"""Transactions while nodes die, hang, are cut off and return at random: each is in all its partitions or in none, with
its offsets, none hangs, and what was answered holds.
"""

import asyncio
import random
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.broker.held import log_of
from tests.broker.nodes import PROPERTIES, Nodes
from tests.patience import becomes

from groupkeeper.broker import Broker
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
from groupkeeper.protocol.primitives import RootMessage
from groupkeeper.protocol.record_batch import Record, write_batch

PARTITIONS = 2
CLIENTS = 3
ROUNDS = 20
SEEDS = 2
SETTINGS = PROPERTIES | {
    "broker.session.timeout.ms": "100",
    "request.timeout.ms": "300",
    "offsets.commit.timeout.ms": "300",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
_LOST = (OSError, asyncio.IncompleteReadError, TimeoutError)


_FINAL = {
    one.code
    for one in (
        errors.InvalidProducerEpoch,
        errors.InvalidProducerIdMapping,
        errors.InvalidTxnState,
        errors.OutOfOrderSequenceNumber,
        errors.ProducerFenced,
        errors.TransactionAbortable,
    )
}


_OF_TRANSACTION, _OF_GROUP = -1, -2


def code_in(answer: Any) -> int:
    if isinstance(answer, m.ProduceResponse):
        return answer.responses[0].partition_responses[0].error_code
    if isinstance(answer, m.TxnOffsetCommitResponse):
        return answer.topics[0].partitions[0].error_code
    return int(answer.error_code)


class GaveUp(Exception):
    """Nobody answered in time, or the producer is fenced."""


class Client:
    """One transactional producer, which also commits offsets.

    Attributes:
        outcomes: of each transaction by number: True committed, False aborted, None not known.
        acknowledged: the partitions with the records of each. with_offset: those that also commit their number as
        an offset of t-0, for a group with the client's name.
    """

    def __init__(self, nodes: Nodes, name: str, dice: random.Random) -> None:
        self.outcomes: dict[int, bool | None] = {}
        self.acknowledged: dict[int, set[int]] = {}
        self.with_offset: list[int] = []
        self.name = name
        self._nodes = nodes
        self._dice = dice
        self._owner = -1, -1
        self._sequences: dict[int, int] = {}

    async def work(self, is_over: asyncio.Event) -> None:
        number = 0
        while not is_over.is_set():
            with suppress(GaveUp):
                await self._begin()
                while not is_over.is_set():
                    number += 1
                    await self._transaction(number)

    async def _begin(self) -> None:
        found = await self._ask(_OF_TRANSACTION, m.InitProducerIdRequest(self.name, 1000), 4)
        self._owner = found.producer_id, found.producer_epoch
        self._sequences.clear()

    async def _transaction(self, number: int) -> None:
        self.acknowledged[number] = set()
        for partition in self._dice.sample(range(PARTITIONS), self._dice.randint(1, PARTITIONS)):
            sequence = self._sequences.get(partition, 0)
            values = [Record(None, f"{self.name} {number}".encode(), timestamp=1)]
            owned = partial(write_batch, producer_id=self._owner[0], producer_epoch=self._owner[1])
            batch = owned(values, base_sequence=sequence, is_transactional=True)
            parts = [m.PartitionProduceData(partition, batch)]
            request = m.ProduceRequest(self.name, -1, 200, [m.TopicProduceData("t", partition_data=parts)])
            await self._ask(partition, request, 12)
            self._sequences[partition] = sequence + 1
            self.acknowledged[number].add(partition)
        if self._dice.random() < 0.5:
            offset = m.TxnOffsetCommitRequestPartition(0, number)
            topics = [m.TxnOffsetCommitRequestTopic("t", self._log(0).topic_id, [offset])]
            await self._ask(_OF_GROUP, m.TxnOffsetCommitRequest(self.name, self.name, *self._owner, topics=topics), 5)
            self.with_offset.append(number)
        commits = self._dice.random() < 0.8
        self.outcomes[number] = None
        ended = await self._ask(_OF_TRANSACTION, m.EndTxnRequest(self.name, *self._owner, commits), 5)
        self.outcomes[number] = commits
        self._owner = ended.producer_id, ended.producer_epoch
        self._sequences.clear()

    async def _ask(self, partition: int, request: RootMessage, version: int) -> Any:
        """Asks the leader, or the coordinator, as somebody who may know an old one, until it does what is asked."""
        for _ in range(40):
            node = self._leader(partition) if self._dice.random() < 0.9 else self._dice.randint(1, 3)
            code = -1
            if node > 0:
                with suppress(*_LOST):
                    async with asyncio.timeout(2):
                        wire = await self._nodes.connect(node)
                        try:
                            answer = await wire.call(request, version)
                        finally:
                            wire.writer.close()
                    code = code_in(answer)
                    if code == 0:
                        return answer
                    if code in _FINAL:
                        break
            await asyncio.sleep(0.02)
        raise GaveUp

    def _leader(self, partition: int) -> int:
        if partition >= 0:
            return self._log(partition).placement.leader
        broker = self._nodes.broker
        host = broker.groups if partition == _OF_GROUP else broker.transactions
        return host.shard_of(self.name).log.placement.leader if host.shards else 1

    def _log(self, partition: int) -> PartitionLog:
        return log_of(self._nodes.broker, "t", partition)


async def disturb(broker: Broker, dice: random.Random) -> None:
    """Something happens to a node, and after a while it is well again; meanwhile leaders and coordinators move."""
    node = dice.randint(1, 3)
    way = dice.choice(["stop", "kill", "pause", "cut_off", "hide", "slow"])
    await (broker.slow_node(node, 20) if way == "slow" else getattr(broker, f"{way}_node")(node))
    for _ in range(dice.randint(0, 3)):
        await asyncio.sleep(dice.random() * 0.1)
        topic = dice.choice(["t", "__transaction_state", "__consumer_offsets"])
        log = broker.topics.partition(topic, dice.randrange(PARTITIONS))
        if log is not None:
            with suppress(ValueError):
                await broker.move_leader(topic, log.index, dice.choice(log.placement.isr or [node]))
    await asyncio.sleep(dice.random() * 0.2)
    await (broker.start_node if way in ("stop", "kill") else broker.resume_node)(node)


async def disturb_often(broker: Broker, dice: random.Random) -> None:
    for _ in range(ROUNDS):
        with suppress(ValueError):  # something is wrong with this node already
            await disturb(broker, dice)


def committed(log: PartitionLog) -> list[str]:
    """The values of a log that consumers of committed records get."""
    assert log.last_stable_offset == log.high_watermark == log.log_end_offset
    aborted = log.producers.aborted
    return [
        (record.value or b"").decode()
        for header, records in log.records()
        for record in records
        if not header.is_control
        and not any(
            one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset
            for one in aborted
        )
    ]


async def offset_of(nodes: Nodes, group: str) -> int:
    """What a group has committed for t-0; −1 without a commit."""
    wanted = m.OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=None)], require_stable=True)
    wire = await nodes(nodes.broker.groups.shard_of(group).log.placement.leader)
    (found,) = (await wire.call(wanted, 9)).groups
    assert found.error_code == 0
    assert [part.error_code for topic in found.topics for part in topic.partitions] in ([], [0])
    return next((part.committed_offset for topic in found.topics for part in topic.partitions), -1)


@pytest.mark.parametrize("nodes_at_a_time", [1, 2])
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_transactions_outlive_nodes(tmp_path: Path, seed: int, nodes_at_a_time: int) -> None:
    dice = random.Random(seed)
    async with Broker(directory=tmp_path / "data", properties=SETTINGS, brokers=3) as broker:
        nodes = Nodes(broker)
        for topic in ("t", "__transaction_state", "__consumer_offsets"):
            await nodes.create(topic, [1, 2, 3], [2, 3, 1], min_insync_replicas="2")
        is_over = asyncio.Event()
        clients = [Client(nodes, f"client-{number}", dice) for number in range(CLIENTS)]
        working = [asyncio.ensure_future(one.work(is_over)) for one in clients]
        await asyncio.gather(*(disturb_often(broker, dice) for _ in range(nodes_at_a_time)))
        is_over.set()
        await asyncio.gather(*working)
        logs = [log for index in range(PARTITIONS) if (log := broker.topics.partition("t", index)) is not None]
        async with asyncio.timeout(20):  # transactions that were given up time out
            written = [*logs, *(shard.log for shard in broker.groups.shards)]
            await becomes(lambda: all(log.producers.first_open_offset is None for log in written))
        found = [committed(log) for log in logs]
        for client in clients:
            for number, partitions in client.acknowledged.items():
                name = f"{client.name} {number}"
                outcome = client.outcomes.get(number, False)
                times = {partition: found[partition].count(name) for partition in range(PARTITIONS)}
                expected = {partition: int(partition in partitions) for partition in range(PARTITIONS)}
                nothing = dict.fromkeys(range(PARTITIONS), 0)
                allowed = [expected, nothing] if outcome is None else [expected if outcome else nothing]
                assert times in allowed, (name, outcome, partitions, times)
            sure = [number for number in client.with_offset if client.outcomes.get(number)]
            unsure = [number for number in client.with_offset if client.outcomes.get(number, False) is None]
            least = max(sure, default=-1)
            assert await offset_of(nodes, client.name) in {least, *(one for one in unsure if one > least)}
        assert sum(map(len, found)) > 0
