"""Plans on a broker, with whatever moves between making and applying them.

A plan never commits outside of the log nor to a partition that wasn't selected, a stale one is not applied at all, and
undo restores exactly what was, deleting what wasn't there.
"""

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groupkeeper.client.addresses import parse_bootstrap_servers
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, OffsetSpec, TopicPartition
from groupkeeper.client.connection import Connection
from groupkeeper.client.opener import open_connection
from groupkeeper.client.security.transport import Security
from groupkeeper.client.settings import Settings
from groupkeeper.operations.plans import document
from groupkeeper.operations.plans.builder import Made, Otherwise, PlanTopics, Policies, Request, make_reset
from groupkeeper.operations.plans.changes import ApplyResult
from groupkeeper.operations.plans.deletions import make_deletion
from groupkeeper.operations.plans.execution import apply_plan
from groupkeeper.operations.plans.journal import Journal
from groupkeeper.operations.plans.recorder import Recorder
from groupkeeper.operations.plans.reset import Scenario, ShiftBy, ToEarliest, ToLatest, ToOffset, ToTime
from groupkeeper.operations.plans.undo import make_undo
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.record_batch import Record, write_batch

BROKER = {"properties": {"offsets.topic.num.partitions": "2"}}
PARTITIONS = 3
GROUPS = ("one", "two")
FIRST_MS = 1_700_000_000_000
PATIENCE_S = 60.0

Offsets = dict[TopicPartition, OffsetAndMetadata]
World = dict[str, Offsets]


class Log(NamedTuple):
    """How many records were written, and below which offset they are deleted."""

    records: int
    start: int


class Move(NamedTuple):
    """What happens in between: a commit of one group, records that come or go."""

    kind: str
    group: int
    partition: int
    amount: int


logs = st.integers(0, 8).flatmap(lambda records: st.builds(Log, st.just(records), st.integers(0, records)))
commits = st.none() | st.builds(OffsetAndMetadata, st.integers(0, 9), st.none(), st.sampled_from(["", "text"]))
worlds = st.tuples(
    st.lists(logs, min_size=PARTITIONS, max_size=PARTITIONS),
    st.lists(st.lists(commits, min_size=PARTITIONS, max_size=PARTITIONS), min_size=2, max_size=2),
)
scenarios = st.one_of(
    st.just(ToEarliest()),
    st.just(ToLatest()),
    st.builds(ToOffset, st.integers(0, 10)),
    st.builds(ShiftBy, st.integers(-9, 9)),
    st.builds(ToTime, st.integers(FIRST_MS - 1, FIRST_MS + 9)),
    st.none(),  # a deletion
)
policies = st.builds(
    Policies, st.sampled_from([Otherwise.END, Otherwise.SKIP]), st.sampled_from([Otherwise.CLAMP, Otherwise.SKIP])
)
moves = st.lists(
    st.builds(
        Move,
        st.sampled_from(["commit", "produce", "cut"]),
        st.integers(0, 1),
        st.integers(0, PARTITIONS - 1),
        st.integers(1, 4),
    ),
    max_size=2,
)
selections = st.sets(st.integers(0, PARTITIONS - 1), min_size=1)


class Stage:
    """One example's topic and groups; names are never used twice."""

    numbers = count()

    def __init__(self, admin: Admin, connection: Connection) -> None:
        number = next(self.numbers)
        self.topic = f"topic-{number}"
        self.groups = [f"{name}-{number}" for name in GROUPS]
        self.places = [TopicPartition(self.topic, index) for index in range(PARTITIONS)]
        self.admin = admin
        self._connection = connection

    async def set_up(self, logs: list[Log], commits: list[list[OffsetAndMetadata | None]]) -> None:
        keeps = {"retention.ms": "-1"}
        (await self.admin.create_topics([NewTopic(self.topic, PARTITIONS, 1, configs=keeps)])).all()
        for index, log in enumerate(logs):
            await self.produce(index, log.records)
            await self.cut(index, log.start)
        for group_id, some in zip(self.groups, commits, strict=True):
            await self.commit(group_id, {tp: one for tp, one in zip(self.places, some, strict=True) if one})

    async def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if offsets:
            (await self.admin.alter_consumer_group_offsets(group_id, offsets)).all()

    async def produce(self, partition: int, records: int) -> None:
        if not records:
            return
        start = (await self.ends())[self.places[partition]][1]
        batch = write_batch([Record(b"k", b"v", timestamp=FIRST_MS + start + number) for number in range(records)])
        data = [m.TopicProduceData(self.topic, partition_data=[m.PartitionProduceData(partition, batch)])]
        request = m.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data)
        answer = await self._connection.ask(request, 9, m.ProduceResponse, PATIENCE_S)
        assert answer.responses[0].partition_responses[0].error_code == 0

    async def cut(self, partition: int, start: int) -> None:
        wanted = m.DeleteRecordsTopic(self.topic, [m.DeleteRecordsPartition(partition, start)])
        request = m.DeleteRecordsRequest([wanted], 30_000)
        answer = await self._connection.ask(request, 2, m.DeleteRecordsResponse, PATIENCE_S)
        assert answer.topics[0].partitions[0].error_code == 0

    async def move(self, move: Move) -> None:
        tp = self.places[move.partition]
        start, end = (await self.ends())[tp]
        if move.kind == "commit":
            now = (await self.committed())[self.groups[move.group]].get(tp)
            offset = now.offset + 1 if now else move.amount
            await self.commit(self.groups[move.group], {tp: OffsetAndMetadata(offset)})
        elif move.kind == "produce":
            await self.produce(move.partition, move.amount)
        else:
            await self.cut(move.partition, min(end, start + move.amount))

    async def ends(self) -> dict[TopicPartition, tuple[int, int]]:
        oldest = (await self.admin.list_offsets(dict.fromkeys(self.places, OffsetSpec.earliest()))).all()
        latest = (await self.admin.list_offsets(dict.fromkeys(self.places, OffsetSpec.latest()))).all()
        return {tp: (oldest[tp].offset, latest[tp].offset) for tp in self.places}

    async def committed(self) -> World:
        found = (await self.admin.list_consumer_group_offsets(dict.fromkeys(self.groups))).all()
        return {key: {tp: one for tp, one in batch.all().items() if one} for key, batch in found.items()}

    async def plan(self, scenario: Scenario | None, selected: set[int], policies: Policies) -> Made:
        topics = PlanTopics(partitions=[self.places[index] for index in sorted(selected)])
        if scenario is None:
            return await make_deletion(self.admin, self.groups, topics, 0)
        return await make_reset(self.admin, Request(self.groups, topics, scenario, policies))


@settings(max_examples=40, suppress_health_check=list(HealthCheck), derandomize=True)
@given(worlds, scenarios, selections, policies, moves)
def test_plans(
    servers: str,
    tmp_path_factory: pytest.TempPathFactory,
    world: tuple[list[Log], list[list[OffsetAndMetadata | None]]],
    scenario: Scenario | None,
    selected: set[int],
    policies: Policies,
    moves: list[Move],
) -> None:
    async def run() -> None:
        address = parse_bootstrap_servers(servers)[0]
        connection = await open_connection(address, Settings(), Security(), PATIENCE_S)
        async with Admin(servers) as admin:
            stage = Stage(admin, connection)
            await stage.set_up(*world)
            journal = Journal(tmp_path_factory.mktemp("state") / "journal.jsonl")
            await check(stage, journal, scenario, selected, policies, moves)
        connection.abort()

    asyncio.run(run())


async def check(
    stage: Stage, journal: Journal, scenario: Scenario | None, selected: set[int], policies: Policies, moves: list[Move]
) -> None:
    plan = (await stage.plan(scenario, selected, policies)).plan
    assert document.read("".join(document.write(plan))).groups == tuple(
        one._replace(adjustments=()) for one in plan.groups
    )
    planned = {(group.group_id, tp): change for group in plan.groups for tp, change in group.changes.items()}
    assert {tp.partition for _, tp in planned} <= selected
    for move in moves:
        await stage.move(move)
    before, ends = await stage.committed(), await stage.ends()
    is_stale = any(before[key].get(tp) not in (change.before, change.after) for (key, tp), change in planned.items())
    applied = await apply_plan(stage.admin, plan, Recorder(journal, ["apply"], None))
    now = await stage.committed()
    if is_stale:
        assert applied.troubles
    if applied.troubles:
        assert now == before
        assert not journal.path.exists()
        return
    for key, offsets in now.items():
        for tp in stage.places:
            change = planned.get((key, tp))
            assert offsets.get(tp) == (before[key].get(tp) if change is None else change.after)
            if offsets.get(tp) != before[key].get(tp) and offsets.get(tp) is not None:
                assert ends[tp][0] <= offsets[tp].offset <= ends[tp][1]
    assert (await apply_plan(stage.admin, plan, None)).done == ()
    await check_undone(stage, journal, before, ends)


async def check_undone(
    stage: Stage, journal: Journal, before: World, ends: Mapping[TopicPartition, tuple[int, int]]
) -> None:
    """Undo brings back what was; offsets that no log holds it refuses, and then it changes nothing."""
    now = await stage.committed()
    if now == before:
        assert not journal.path.exists()
        return
    (summary,), _ = journal.summaries()
    assert summary.result is ApplyResult.APPLIED
    recorded = journal.load(summary.head.id)
    assert recorded is not None
    undo, fit = await make_undo(stage.admin, recorded, (), 0)
    undone = await apply_plan(stage.admin, undo, Recorder(journal, ["undo"], None), fit=fit)
    lost = [
        tp
        for key, offsets in before.items()
        for tp, commit in offsets.items()
        if commit != now[key].get(tp) and not ends[tp][0] <= commit.offset <= ends[tp][1]
    ]
    assert bool(undone.troubles) == bool(lost)
    assert await stage.committed() == (now if lost else before)
