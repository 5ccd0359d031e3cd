"""Groups of every type, as a collector finds them, with members."""

import asyncio
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from tests.cli.groups.test_streams_groups_beside_others import commit
from tests.cli.share_members import ShareMember, join
from tests.cli.stages import connect
from tests.differential.wire import Pool
from tests.live.stage import collector
from tests.times_and_transactions import producer_of, send

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import GroupState, GroupType, TopicPartition
from groupkeeper.live.alerts import Alerts, Key, helpful
from groupkeeper.live.limits import GroupLimits, LimitFinding, judge
from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.live.rules import rules_of
from groupkeeper.live.statuses import judge_status
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.streams_group_heartbeat_request import Subtopology, Topology
from groupkeeper.rules.limits import Measure, Verdict
from groupkeeper.rules.status import Status
from groupkeeper.testing.background import BackgroundBroker
from groupkeeper.web.exporter import Choices, Exporter
from groupkeeper.web.exposition import Format
from groupkeeper.web.series import Level


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    settings = {"group.streams.initial.rebalance.delay.ms": "0", "group.initial.rebalance.delay.ms": "0"}
    with BackgroundBroker(properties=settings) as broker:
        pool = Pool(broker.bootstrap_servers)
        pool.ask(m.CreateTopicsRequest([m.CreatableTopic("t", 1, 1)], 10_000), 7)
        commit(pool, "plain", "", -1)  # offset 5, as the streams group
        joining = m.StreamsGroupHeartbeatRequest(
            "app", "m", 0, rebalance_timeout_ms=1000, topology=Topology(0, [Subtopology("0", ["t"])]), process_id="p",
            active_tasks=[], standby_tasks=[], warmup_tasks=[],
        )  # fmt: skip
        commit(pool, "app", "m", pool.ask(joining, 0).member_epoch)
        send(producer_of(broker.bootstrap_servers), "t", [1_700_000_000_000 + number for number in range(12)])
        yield broker.bootstrap_servers
        pool.close()


@pytest.fixture(scope="module")
def snapshot(servers: str) -> Iterator[ClusterSnapshot]:
    settings = {"bootstrap.servers": servers, "group.id": "modern", "group.protocol": "consumer"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe(["t"])
    while not (message := consumer.poll(0.2)) or message.error():
        pass
    consumer.commit(message=message, asynchronous=False)

    async def look() -> ClusterSnapshot:
        async with Admin(servers) as admin:
            (await admin.alter_share_group_offsets("moved", {TopicPartition("t", 0): 4})).all()
            await join(admin, await connect(servers, "sharing"), ShareMember("queue", "s", "sharing", ["t"], 1), 20)
        watching = collector(servers)
        found = await watching.poll()
        await watching.close()
        return found

    yield asyncio.run(look())
    consumer.close()


def test_each_has_its_type_its_members_and_its_lag(snapshot: ClusterSnapshot) -> None:
    found = {
        name: (group.group_type, group.members, group.lag.lag, len(group.problems))
        for name, group in snapshot.groups.items()
    }
    assert found == {
        "app": (GroupType.STREAMS, 1, 7, 0),
        "modern": (GroupType.CONSUMER, 1, 11, 0),
        "moved": (GroupType.SHARE, 0, 8, 0),
        "plain": (GroupType.CLASSIC, 0, 7, 0),
        "queue": (GroupType.SHARE, 1, None, 0),  # no member has fetched anything yet
    }


def test_share_and_streams_groups_are_judged_as_others(snapshot: ClusterSnapshot) -> None:
    """Times are of records of 2023; a share group's lag begins at its start offset."""
    limits = GroupLimits(max_lag=7, max_time_lag_ms=1000, min_members=1, states=frozenset({GroupState.STABLE}))
    found = {(each.group_id, each.measure.value): each for each in judge(snapshot, limits, ["app", "moved", "queue"])}
    assert {key: each.verdict.value for key, each in found.items() if each.measure is not Measure.TIME_LAG} == {
        ("app", "lag"): "ok", ("app", "members"): "ok",
        ("app", "state"): "ok" if snapshot.groups["app"].group_state is GroupState.STABLE else "broken",
        ("moved", "lag"): "broken", ("moved", "members"): "broken", ("moved", "state"): "broken",
        ("queue", "lag"): "unknown", ("queue", "members"): "ok", ("queue", "state"): "ok",
    }  # fmt: skip
    assert (found["moved", "lag"].value, found["moved", "state"].value) == (8, "Empty")
    assert [found[name, "time_lag"].verdict for name in ("app", "moved")] == [Verdict.BROKEN] * 2
    assert judge_status(snapshot.groups["moved"], snapshot.measured_ms or 0).status is not Status.UNKNOWN
    text = '[[rule]]\nname = "behind"\ngroups = ["app", "moved"]\nmax_lag = 6\nto = ["chat"]\n'
    text += '[webhook.chat]\nurl = "http://chat.example"\n'
    notices = Alerts(rules_of(tomllib.loads(text), Path())).take(snapshot, 1)
    assert [(each.kind.value, each.key.group) for each in notices] == [("firing", "app"), ("firing", "moved")]


def test_the_command_for_lost_records_of_a_share_group_is_no_plan(snapshot: ClusterSnapshot) -> None:
    lost = [LimitFinding("moved", Measure.LOST, Verdict.BROKEN, 1, 0)]
    key, share = Key("r", "prod", "moved"), snapshot.groups["moved"]
    words = helpful(key, lost, {}, share, snapshot.at_ms)
    assert words == "groupkeeper groups why --bootstrap-server HOST:PORT moved"
    streams = share._replace(group_type=GroupType.STREAMS)
    assert helpful(key, lost, {}, streams).startswith("groupkeeper plan reset ")


def test_the_trend_of_share_and_streams_groups(servers: str) -> None:
    async def look() -> list[float | None]:
        watching = collector(servers, interval_s=0.1)
        async with Admin(servers) as admin:
            for start in (4, 5, 6):
                (await admin.alter_share_group_offsets("moved", {TopicPartition("t", 0): start})).all()
                found = await watching.poll()
                await asyncio.sleep(0.05)
            (await admin.alter_share_group_offsets("moved", {TopicPartition("t", 0): 4})).all()
        await watching.close()
        return [found.groups["moved"].lag_change_per_s, found.groups["app"].lag_change_per_s]

    moved, app = asyncio.run(look())
    assert moved is not None
    assert moved < 0
    assert app == 0


def test_epochs_assignments_and_tasks(snapshot: ClusterSnapshot) -> None:
    modern, app, queue = (snapshot.groups[name].description for name in ("modern", "app", "queue"))
    assert modern is not None
    assert app is not None
    assert queue is not None
    assert modern.group_epoch == modern.target_assignment_epoch
    assert [member.assignment for member in (*modern.members, *queue.members)] == [(TopicPartition("t", 0),)] * 2
    streams = snapshot.groups["app"].streams
    assert streams is not None
    assert len(streams.subtopologies) == 1
    exporter = Exporter(Choices(levels=frozenset(Level)))
    exporter.take(snapshot)
    text = b"".join(exporter.text(Format.PROMETHEUS)).decode()
    for line in (
        'groupkeeper_group_info{cluster="prod",group="queue",type="Share",state="Stable",assignor="simple"} 1',
        'groupkeeper_streams_group_tasks{cluster="prod",group="app",role="active"} ',
        'groupkeeper_streams_group_topology_epoch{cluster="prod",group="app"} 0',
        'groupkeeper_group_lag{cluster="prod",group="modern",topic="t"} 11',
        'groupkeeper_group_assigned_members{cluster="prod",group="queue",topic="t"} 1',
    ):
        assert line in text
    assert 'groupkeeper_group_lag{cluster="prod",group="queue"' not in text
