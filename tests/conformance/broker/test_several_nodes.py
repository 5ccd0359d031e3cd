"""Three nodes in one process answer as three nodes of Apache Kafka while they are suspended, stop, die and return."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

import pytest
from tests.broker.conftest import Wire
from tests.broker.nodes import Nodes, code_of, placed, produce
from tools.apache_kafka import ApacheKafka

from groupkeeper.broker import Broker
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.elect_leaders_request import TopicPartitions
from groupkeeper.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics

PATIENCE_S = 60
SETTINGS = {
    "broker.session.timeout.ms": "5000",
    "replica.lag.time.max.ms": "10000",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "offsets.commit.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "3000",
}
"""Groups and transactional ids with an even letter belong to partition 0, the others to partition 1."""
QUICK = {
    "broker.session.timeout.ms": "1500",
    "offsets.commit.timeout.ms": "200",
    "group.initial.rebalance.delay.ms": "600",
}
REFUSED = errors.CoordinatorNotAvailable.code


class Control(Protocol):
    """A cluster with nodes 1 to 3. Of Kafka's, node 1 is the controller, too: it is never stopped."""

    async def wire(self, node: int) -> Wire: ...

    async def connect(self, node: int) -> Wire:
        """Another connection."""

    async def do(self, what: str, node: int) -> None:
        """`what`: stop, kill, start, pause or resume."""


class Embedded:
    def __init__(self, broker: Broker) -> None:
        self.wire = nodes = Nodes(broker)
        self.connect = nodes.connect
        self._broker = broker

    async def do(self, what: str, node: int) -> None:
        act: Callable[[int], Coroutine[Any, Any, None]] = getattr(self._broker, f"{what}_node")
        await act(node)


class Real:
    def __init__(self) -> None:
        first = ApacheKafka(SETTINGS)
        self.nodes = {1: first, 2: first.another_node(2), 3: first.another_node(3)}
        self._wires: dict[tuple[int, int], Wire] = {}

    async def wire(self, node: int) -> Wire:
        at = self.nodes[node]
        if (node, at.pid) not in self._wires:
            self._wires[node, at.pid] = await self.connect(node)
        return self._wires[node, at.pid]

    async def connect(self, node: int) -> Wire:
        return await Wire.open(self.nodes[node].bootstrap_servers)

    async def do(self, what: str, node: int) -> None:
        at = self.nodes[node]
        acts: dict[str, Callable[[], object]] = {
            "stop": lambda: at.stop(keep=True),
            "kill": at.kill,
            "start": at.start,
            "pause": lambda: os.kill(at.pid, signal.SIGSTOP),
            "resume": lambda: os.kill(at.pid, signal.SIGCONT),
        }
        await asyncio.to_thread(acts[what])


@pytest.fixture(params=["groupkeeper", pytest.param("apache", marks=pytest.mark.conformance)])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Control]:
    if request.param == "groupkeeper":
        async with Broker(brokers=3, properties=SETTINGS | QUICK) as broker:
            yield Embedded(broker)
        return
    request.getfixturevalue("apache_jars")
    real = Real()
    try:
        await asyncio.gather(*(real.do("start", node) for node in (1, 2, 3)))
        yield real
    finally:
        for at in real.nodes.values():
            at.kill()
            at.stop()


async def becomes(ask: Callable[[], Awaitable[object]], wanted: object) -> None:
    """Waits until the answer is as wanted."""
    answer: object = None
    try:
        async with asyncio.timeout(PATIENCE_S):
            while (answer := await ask()) != wanted:  # noqa: ASYNC110 no event tells of it
                await asyncio.sleep(0.05)
    except TimeoutError:
        assert answer == wanted


class Asker:
    """Asks node 1."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    async def create(self, name: str, replicas: list[int], least: int, *others: list[int]) -> None:
        """A topic with this least number of replicas in sync; returns when all are. `others` are the replicas of other
        partitions than the first.
        """
        configs = [m.CreatableTopicConfig("min.insync.replicas", str(least))]
        assigned = [m.CreatableReplicaAssignment(index, nodes) for index, nodes in enumerate((replicas, *others))]
        topic = m.CreatableTopic(name, -1, -1, assigned, configs)
        answer = await self.wire.call(m.CreateTopicsRequest([topic], 30_000), 7)
        assert answer.topics[0].error_code == 0
        await self.becomes(name, replicas[0], 0, replicas, sorted(replicas))

    async def becomes(
        self,
        name: str,
        leader: int,
        epoch: int,
        replicas: list[int],
        isr: list[int],
        eligible: Sequence[int] = (),
        last: Sequence[int] = (),
    ) -> None:
        """Waits until the topic is placed so."""
        await becomes(lambda: self._placed(name), (leader, epoch, replicas, isr, list(eligible), list(last)))

    async def _placed(self, name: str) -> object:
        try:
            return await placed(self.wire, name)
        except IndexError:  # Kafka's nodes learn of a topic after it was made
            return None

    async def end(self, name: str) -> int:
        """The high watermark."""
        found = await self.wire.list_offset(name, -1)
        assert found.error_code == 0
        return found.offset

    async def produce(self, name: str, acks: int = -1) -> int:
        return code_of(await produce(self.wire, name, b"x", acks=acks))

    async def commit(self, offset: int, group: str = "h") -> int:
        return await self.wire.commit(group, offset)

    async def stable_offset(self) -> tuple[int, int]:
        """The error and the offset that a group has committed, for who does not want what may be taken back."""
        return (await self.stable_offsets("h"))["h"]

    async def stable_offsets(self, *groups: str) -> dict[str, tuple[int, int]]:
        topics = [OffsetFetchRequestTopics("t", partition_indexes=[0])]
        asked = [OffsetFetchRequestGroup(group, topics=topics) for group in groups]
        answer = await self.wire.call(m.OffsetFetchRequest(groups=asked, require_stable=True), 9)
        return {
            one.group_id: (one.error_code, one.topics[0].partitions[0].committed_offset if one.topics else -1)
            for one in answer.groups
        }

    async def delete(self, *groups: str) -> dict[str, int]:
        answer = await self.wire.call(m.DeleteGroupsRequest(list(groups)), 2)
        return {one.group_id: one.error_code for one in answer.results}

    async def begin_transactions(self) -> int:
        return (await self.wire.call(m.InitProducerIdRequest("x", 60_000), 4)).error_code

    async def begin(self, transactional_id: str) -> m.AddPartitionsToTxnTransaction:
        """What adds a partition to the producer's transaction, which may take a second."""
        begun = await self.wire.call(m.InitProducerIdRequest(transactional_id, 1000), 4)
        topics = [m.AddPartitionsToTxnTopic("t", [0])]
        return m.AddPartitionsToTxnTransaction(transactional_id, begun.producer_id, begun.producer_epoch, topics=topics)

    async def add(self, transactions: list[m.AddPartitionsToTxnTransaction]) -> dict[str, int]:
        answer = await self.wire.call(m.AddPartitionsToTxnRequest(transactions), 4)
        return {
            one.transactional_id: one.topic_results[0].results_by_partition[0].partition_error_code
            for one in answer.results_by_transaction
        }

    async def join(self, group: str) -> m.JoinGroupResponse:
        protocols = [m.JoinGroupRequestProtocol("range", b"")]
        return await self.wire.call(m.JoinGroupRequest(group, 10_000, 10_000, "", None, "consumer", protocols), 3)

    async def sync(self, group: str, joined: m.JoinGroupResponse) -> int:
        assigned = [m.SyncGroupRequestAssignment(member.member_id, b"a") for member in joined.members]
        request = m.SyncGroupRequest(group, joined.generation_id, joined.member_id, assignments=assigned)
        return (await self.wire.call(request, 3)).error_code

    async def knows(self, group: str) -> bool:
        return (await self.wire.call(m.DescribeGroupsRequest([group]), 5)).groups[0].group_state != "Dead"

    async def reassign(self, name: str, replicas: list[int] | None) -> int:
        topics = [m.ReassignableTopic(name, [m.ReassignablePartition(0, replicas)])]
        request = m.AlterPartitionReassignmentsRequest(30_000, topics=topics)
        answer = await self.wire.call(request, 0)
        return answer.responses[0].partitions[0].error_code

    async def elect_uncleanly(self, name: str) -> int:
        request = m.ElectLeadersRequest(1, [TopicPartitions(name, [0])], 30_000)
        answer = await self.wire.call(request, 2)
        return answer.replica_election_results[0].partition_result[0].error_code


@pytest.mark.timeout(400)
async def test_replicas_in_sync_and_what_is_committed(cluster: Control) -> None:
    ask = Asker(await cluster.wire(1))
    for name, least in (("t", 2), ("u", 3), ("v", 1)):
        await ask.create(name, [1, 2, 3], least)
    await ask.create("m", [2, 3], 2)
    await ask.create("r", [1, 2], 1)
    await is_suspended(cluster, ask)
    await stop(cluster, ask)
    assert await ask.reassign("r", [3, 2]) == 0  # neither of them runs
    await ask.becomes("r", 1, 0, [3, 2, 1], [1])
    assert await ask.reassign("r", [2, 1]) == 0
    await ask.becomes("r", 1, 0, [2, 1, 3], [1])
    assert await ask.reassign("r", [9]) == errors.InvalidReplicaAssignment.code
    assert await ask.reassign("r", None) == 0
    await ask.becomes("r", 1, 1, [2, 1], [1])
    await cluster.do("start", 3)  # it was killed: not eligible any more
    await ask.becomes("m", -1, 2, [2, 3], [], [2], [3])
    await ask.becomes("t", 1, 0, [1, 2, 3], [1, 3])
    await cluster.do("start", 2)
    await ask.becomes("m", 2, 3, [2, 3], [2, 3])
    await ask.becomes("u", 1, 0, [1, 2, 3], [1, 2, 3])
    await becomes(lambda: ask.end("u"), 1)


async def is_suspended(cluster: Control, ask: Asker) -> None:
    assert await ask.produce("t") == 0
    await cluster.do("pause", 3)  # in sync until it is missed
    answer = await produce(ask.wire, "t", b"b", timeout_ms=300)
    assert [part.base_offset for part in answer.responses[0].partition_responses] == [1]
    assert code_of(answer) == errors.RequestTimedOut.code
    assert await ask.end("t") == 1
    await ask.becomes("t", 1, 0, [1, 2, 3], [1, 2])
    await becomes(lambda: ask.end("t"), 2)
    await ask.becomes("u", 1, 0, [1, 2, 3], [1, 2], [3])
    assert await ask.produce("u") == errors.NotEnoughReplicas.code
    assert await ask.produce("u", acks=1) == 0
    assert await ask.end("u") == 0
    await cluster.do("resume", 3)
    await ask.becomes("u", 1, 0, [1, 2, 3], [1, 2, 3])
    await becomes(lambda: ask.end("u"), 1)


async def stop(cluster: Control, ask: Asker) -> None:
    await cluster.do("stop", 2)
    await ask.becomes("m", 3, 1, [2, 3], [3], [2])
    assert await ask.produce("m") == errors.NotLeaderOrFollower.code
    await cluster.do("kill", 3)
    await ask.becomes("m", -1, 2, [2, 3], [], [2, 3], [3])
    await ask.becomes("t", 1, 0, [1, 2, 3], [1], [3])
    await ask.becomes("u", 1, 0, [1, 2, 3], [1], [2, 3])
    await ask.becomes("v", 1, 0, [1, 2, 3], [1])
    assert await ask.elect_uncleanly("m") == errors.EligibleLeadersNotAvailable.code


@pytest.mark.timeout(400)
async def test_coordinators_answer_when_their_replicas_have_what_they_wrote(cluster: Control) -> None:
    ask = Asker(await cluster.wire(1))
    for name in ("t", "__consumer_offsets", "__transaction_state"):
        await ask.create(name, [1, 2, 3], 2, [1, 2, 3])
    await becomes(lambda: ask.commit(1), 0)
    await becomes(ask.begin_transactions, 0)
    await cluster.do("pause", 3)
    assert await ask.commit(2) == REFUSED  # written all the same
    assert await ask.stable_offset() == (errors.NotCoordinator.code, -1)
    assert await ask.begin_transactions() == 0
    await ask.becomes("__transaction_state", 1, 0, [1, 2, 3], [1, 2])
    await ask.becomes("__consumer_offsets", 1, 0, [1, 2, 3], [1, 2])
    await becomes(ask.stable_offset, (0, 2))
    assert await ask.commit(3) == 0
    await cluster.do("stop", 2)
    await ask.becomes("__consumer_offsets", 1, 0, [1, 2, 3], [1], [2])
    await ask.becomes("__transaction_state", 1, 0, [1, 2, 3], [1], [2])
    assert await ask.commit(4) == REFUSED
    assert await ask.begin_transactions() == REFUSED
    await cluster.do("start", 2)
    await becomes(ask.stable_offset, (0, 4))
    await becomes(ask.begin_transactions, 0)


@pytest.mark.timeout(400)
async def test_only_what_waits_for_a_late_replica_is_refused(cluster: Control) -> None:
    async def another() -> Asker:
        return Asker(await cluster.connect(1))

    ask = await another()
    await ask.create("t", [1, 2], 1)
    for name in ("__consumer_offsets", "__transaction_state"):
        await ask.create(name, [1, 3], 2, [1, 2])
    for group in "abgh":
        await becomes(partial(ask.commit, 1, group), 0)
    await becomes(ask.begin_transactions, 0)
    transactions = [await ask.begin(one) for one in "xy"]
    joined = await asyncio.gather(*[(await another()).join("j") for _ in range(2)])
    leader, follower = sorted(joined, key=lambda one: one.member_id != one.leader)
    parked = asyncio.create_task((await another()).sync("j", follower))
    joining = asyncio.create_task((await another()).join("l"))
    await becomes(partial(ask.knows, "l"), True)
    await cluster.do("pause", 3)
    answers = await asyncio.gather(
        (await another()).delete("b", "a"), (await another()).add(transactions), (await another()).sync("j", leader)
    )
    assert list[object](answers) == [{"b": REFUSED, "a": 0}, {"x": REFUSED, "y": 0}, REFUSED]
    assert await ask.stable_offsets("h", "g") == {"h": (errors.NotCoordinator.code, -1), "g": (0, 1)}
    assert await parked == REFUSED
    assert (await joining).error_code == 0  # nothing is written for it
    assert (await ask.join("n")).error_code == REFUSED  # the new group is, and the first rebalance takes longer
