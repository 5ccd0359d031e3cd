"""Collectors beside an embedded broker: what they find, and what they say of what they cannot find out."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer
from tests.live.stage import HOUR_MS, ORDERS, arrange, collector, commit
from tests.times_and_transactions import producer_of, send

from groupkeeper.broker.authorizer import Operation, ResourceType, RuleAuthorizer
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import GroupState, GroupType, NewTopic
from groupkeeper.live import collector as live_collector
from groupkeeper.live.cluster_poll import WantedGroups
from groupkeeper.live.collector import Collector
from groupkeeper.live.history import BOUNDS, History
from groupkeeper.live.model import ClusterSnapshot, GroupView, Scope, WaitSum
from groupkeeper.live.statuses import judge_status
from groupkeeper.operations import lag
from groupkeeper.operations.selection import Choice, Names
from groupkeeper.rules.status import Status
from groupkeeper.testing.background import BackgroundBroker
from groupkeeper.web.exporter import Choices, Exporter
from groupkeeper.web.exposition import Format

DAY_MS = 24 * HOUR_MS


@pytest.fixture(scope="module")
def authorizer() -> RuleAuthorizer:
    return RuleAuthorizer(allows_without_rules=True)


@pytest.fixture(scope="module")
def broker(authorizer: RuleAuthorizer) -> Iterator[BackgroundBroker]:
    with BackgroundBroker(authorizer=authorizer, properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        arrange(broker.bootstrap_servers)
        yield broker


@pytest.fixture
def servers(broker: BackgroundBroker, authorizer: RuleAuthorizer) -> Iterator[str]:
    rules = authorizer.rules
    yield broker.bootstrap_servers
    authorizer.rules = rules
    broker.faults.clear()


async def found(servers: str, wanted: WantedGroups = WantedGroups()) -> ClusterSnapshot:  # noqa: B008 it is immutable
    watching = collector(servers, wanted)
    snapshot = await watching.poll()
    await watching.close()
    return snapshot


def age_ms(group: GroupView, snapshot: ClusterSnapshot, written_ms: int) -> int:
    assert snapshot.measured_ms is not None
    assert group.wait.lag_ms is not None
    return group.wait.lag_ms - (snapshot.measured_ms - written_ms)


async def test_lag_is_counted_and_timed_by_the_records(servers: str) -> None:
    before = time.time_ns() // 1_000_000
    snapshot = await found(servers)
    assert snapshot.measured_ms is not None
    assert before <= snapshot.measured_ms <= time.time_ns() // 1_000_000
    assert {name: group.lag.lag for name, group in snapshot.groups.items()} == {"audit": 0, "billing": 5, "search": 8}
    billing, audit, search = (snapshot.groups[name] for name in ("billing", "audit", "search"))
    assert age_ms(billing, snapshot, ORDERS[3]) == 0
    assert age_ms(search, snapshot, ORDERS[0]) == 0
    assert audit.wait == WaitSum(0)
    assert billing.wait.margin_ms == ORDERS[3] + 10 * HOUR_MS - snapshot.measured_ms
    assert search.wait.margin_ms == ORDERS[0] + 10 * HOUR_MS - snapshot.measured_ms
    assert [(name, topic.lag.lag) for name, topic in billing.topics.items()] == [("orders", 5), ("payments", 0)]
    assert (billing.group_type, billing.group_state, billing.members) == (GroupType.CLASSIC, GroupState.EMPTY, 0)
    assert (snapshot.problems, snapshot.polls.done, snapshot.polls.failed, snapshot.listed) == ((), 1, 0, 3)
    assert snapshot.polls.succeeded_ms is not None


async def test_without_reading_records_times_lie_between_looks(servers: str) -> None:
    async with Admin(servers) as admin:
        await commit(admin, "poller", "payments", 0)
        watching = collector(servers, WantedGroups(reads_records=False))
        assert (await watching.poll()).groups["search"].wait == WaitSum(None, unknown=1)
        assert (await watching.poll()).groups["poller"].wait == WaitSum(0)
        began = time.time_ns() // 1_000_000
        send(producer_of(servers), "payments", [began - 7 * HOUR_MS])  # the record's own time is not looked at
        snapshot = await watching.poll()
        await watching.close()
        (await admin.delete_consumer_groups(["poller"])).all()
    wait = snapshot.groups["poller"].wait
    assert (wait.estimated, wait.unknown) == (1, 0)
    assert snapshot.measured_ms is not None
    assert wait.lag_ms is not None
    assert 0 <= wait.lag_ms <= snapshot.measured_ms - began + 1000


async def test_only_what_is_chosen_is_asked_for(servers: str) -> None:
    wanted = WantedGroups(Choice(Names(["*i*"]), Names(["audit"])), Choice(Names([]), Names(["pay*"])))
    snapshot = await found(servers, wanted)
    assert {name: list(group.topics) for name, group in snapshot.groups.items()} == {"billing": ["orders"]}
    assert snapshot.listed == 3
    assert snapshot.scope == Scope(("audit", "search"), (), are_topics_chosen=True)
    groups = Choice(Names(["no-*", "nobody", "bill*"]), Names([]))
    wanted = WantedGroups(groups, Choice(Names(["orders", "none"]), Names([])))
    snapshot = await found(servers, wanted)
    nothing = ("--group 'nobody'", "--group 'no-*'", "--topic 'none'")
    assert snapshot.scope == Scope(("audit", "search"), nothing, are_topics_chosen=True)


async def test_a_group_that_may_not_be_seen_is_a_reason_in_its_row(servers: str, authorizer: RuleAuthorizer) -> None:
    # It is listed all the same, since the cluster may be described.
    authorizer.deny(Operation.DESCRIBE, ResourceType.GROUP, "billing")
    snapshot = await found(servers)
    told = {name: group.lag.lag for name, group in snapshot.groups.items()}
    assert told == {"audit": 0, "billing": None, "search": 8}
    [problem] = snapshot.groups["billing"].problems
    assert (problem.error, str(problem.acl)) == ("GROUP_AUTHORIZATION_FAILED", "DESCRIBE on group billing")
    assert snapshot.groups["billing"].members is None
    assert snapshot.groups["search"].problems == ()


async def test_a_topic_whose_records_may_not_be_read_has_its_lag_all_the_same(
    servers: str, authorizer: RuleAuthorizer
) -> None:
    authorizer.allow(Operation.DESCRIBE, ResourceType.TOPIC, "orders")
    snapshot = await found(servers)
    search = snapshot.groups["search"]
    assert (search.lag.lag, search.wait) == (8, WaitSum(None, unknown=1))
    told = [str(problem.acl) for problem in search.problems]
    assert told == ["READ on topic orders", "DESCRIBE_CONFIGS on topic orders"]
    assert snapshot.groups["audit"].problems == ()  # it has nothing to read there


async def test_settings_that_may_not_be_seen_leave_the_margin_unknown(servers: str, authorizer: RuleAuthorizer) -> None:
    authorizer.allow(Operation.READ, ResourceType.TOPIC, "orders")
    snapshot = await found(servers)
    assert age_ms(snapshot.groups["search"], snapshot, ORDERS[0]) == 0
    search = snapshot.groups["search"]
    assert [(wait.margin_ms, wait.is_margin_known) for wait in search.waits] == [(None, False)]
    assert [str(problem.acl) for problem in search.problems] == ["DESCRIBE_CONFIGS on topic orders"]


async def test_times_are_known_where_settings_are_not(servers: str, broker: BackgroundBroker) -> None:
    with broker.faults.disconnect("DescribeConfigs"):
        watching = collector(servers, timeout_ms=300)
        snapshot = await watching.poll()
        await watching.close()
    assert age_ms(snapshot.groups["search"], snapshot, ORDERS[0]) == 0
    assert not snapshot.groups["search"].waits[0].is_margin_known


async def test_offsets_of_hidden_topics_are_left_out_and_that_is_said(servers: str, authorizer: RuleAuthorizer) -> None:
    authorizer.deny(Operation.DESCRIBE, ResourceType.TOPIC)
    snapshot = await found(servers)
    assert [group.lag.lag for group in snapshot.groups.values()] == [None] * 3
    assert {problem.error for group in snapshot.groups.values() for problem in group.problems} == {"TOPICS_HIDDEN"}


async def test_a_group_without_a_coordinator_holds_nobody_back(servers: str, broker: BackgroundBroker) -> None:
    away = broker.faults.move_coordinator("billing", away_ms=None)
    snapshot = await asyncio.wait_for(found(servers), 20)
    away.come_back()
    assert snapshot.is_up
    assert {name: group.lag.lag for name, group in snapshot.groups.items() if group.lag.lag is not None} in (
        {"audit": 0, "search": 8},  # the group isn't even listed
        {"audit": 0, "billing": None, "search": 8},
    )


async def test_a_group_that_nobody_lists_is_unknown_until_a_coordinator_tells(tmp_path: Path) -> None:
    """As long as its partition of __consumer_offsets has no leader. It may have been deleted meanwhile."""
    history = History(tmp_path / "history.sqlite", BOUNDS)
    with BackgroundBroker() as broker:
        await asyncio.to_thread(arrange, broker.bootstrap_servers)
        watching = collector(broker.bootstrap_servers, history=history, timeout_ms=120_000)
        before = (await watching.poll()).groups["billing"]
        away = broker.faults.move_coordinator("billing", away_ms=None)
        began = time.monotonic()
        snapshot = await watching.poll()
        assert time.monotonic() - began < 60  # others do not wait for it
        group = snapshot.groups["billing"]
        assert (group.lag.lag, group.committed) == (None, before.committed)
        assert [problem.error for problem in group.problems] == ["CALL_TIMED_OUT"]
        assert judge_status(group, snapshot.measured_ms or 0).status is Status.UNKNOWN
        assert snapshot.groups["search"].lag.lag == 8
        await watching.close()
        # So it is after a restart, whose first poll does not find it.
        again = collector(broker.bootstrap_servers, history=history, timeout_ms=20_000)
        assert (await again.poll()).groups["billing"].problems
        away.come_back()
        back = (await again.poll()).groups["billing"]
        assert (back.lag.lag, back.progress_ms) == (before.lag.lag, before.progress_ms)
        async with Admin(broker.bootstrap_servers) as admin:
            (await admin.delete_consumer_groups(["billing"])).all()
        assert "billing" not in (await again.poll()).groups
        await again.close()
    history.close()


async def until(watching: Collector, is_so: Callable[[ClusterSnapshot], bool]) -> ClusterSnapshot:
    """The first snapshot for which it is so."""
    async with asyncio.timeout(20):
        while not is_so(snapshot := await watching.poll()):
            pass
    return snapshot


async def test_what_takes_longer_than_a_poll_waits_is_there_at_a_later_one(
    servers: str, broker: BackgroundBroker
) -> None:
    """As with brokers that are far away."""
    names = [f"short-lived-{number}" for number in range(5)]
    async with Admin(servers) as admin:
        for name in names:
            await commit(admin, name, "orders", 1)
        watching = collector(servers, interval_s=0.2)  # it waits for 50 ms
        broker.faults.delay("Fetch", 150)
        broker.faults.delay("DescribeConfigs", 150)
        assert (await watching.poll()).groups["search"].wait.lag_ms is None
        snapshot = await until(watching, lambda snapshot: snapshot.groups["search"].wait.lag_ms is not None)
        assert age_ms(snapshot.groups["search"], snapshot, ORDERS[0]) == 0
        assert snapshot.groups["search"].wait.margin_ms is not None
        broker.faults.delay("OffsetFetch", 150)
        (await admin.delete_consumer_groups(names)).all()
        snapshot = await watching.poll()
        assert {snapshot.groups[name].problems[0].error for name in names} == {"CALL_TIMED_OUT"}
        await until(watching, lambda snapshot: not snapshot.groups.keys() & set(names))
        await watching.close()


async def test_a_topic_that_was_made_again_between_two_polls_keeps_nothing(servers: str) -> None:
    async with Admin(servers) as admin:
        watching = collector(servers)
        for written_ms, retention_ms in ((ORDERS[1], 12 * HOUR_MS), (ORDERS[5], 20 * HOUR_MS)):
            new = NewTopic("again", 1, 1, configs={"retention.ms": str(retention_ms)})
            (await admin.create_topics([new])).all()
            send(producer_of(servers), "again", [written_ms] * (5 if written_ms == ORDERS[1] else 9))  # it is longer
            await commit(admin, "again", "again", 2)
            snapshot = await watching.poll()
            group = snapshot.groups["again"]
            assert age_ms(group, snapshot, written_ms) == 0
            assert snapshot.measured_ms is not None
            assert group.wait.margin_ms == written_ms + retention_ms - snapshot.measured_ms
            (await admin.delete_topics(["again"])).all()
        await watching.close()
        (await admin.delete_consumer_groups(["again"])).all()


async def test_new_certificates_and_their_authority_are_taken_from_the_same_files(tmp_path: Path) -> None:
    trusted = tmp_path / "authority.pem"
    properties = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": str(trusted)}
    port, watching = None, None
    for is_first in (True, False):
        with BackgroundBroker(tls=True, port=port) as broker:  # each has an authority of its own
            trusted.write_text(Path(broker.client_properties()["ssl.truststore.location"]).read_text())
            port = int(broker.bootstrap_servers.rpartition(":")[2])
            servers = broker.bootstrap_servers
            watching = watching or collector(servers, timeout_ms=1000, properties=list(properties.items()))
            snapshot = await until(watching, lambda snapshot: snapshot.is_up)
            assert (snapshot.replaced is None) == is_first
        assert not (await watching.poll()).is_up
    assert watching is not None
    await watching.close()


async def test_an_unreachable_cluster_has_a_snapshot_and_comes_back(tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite", BOUNDS)
    with BackgroundBroker() as broker:
        servers, port = broker.bootstrap_servers, int(broker.bootstrap_servers.rpartition(":")[2])
        await asyncio.to_thread(arrange, servers)
        watching = collector(servers, history=history, timeout_ms=500)
        before = await watching.poll()
        assert len(before.groups) == 3
    first = await watching.poll()
    snapshot = await watching.poll()
    assert snapshot.known is first.known is before
    assert snapshot.polls.failing_ms == first.polls.failing_ms
    assert before.measured_ms is not None
    assert before.measured_ms <= (first.polls.failing_ms or 0)
    assert (snapshot.is_up, snapshot.groups, snapshot.polls.done, snapshot.polls.failed) == (False, {}, 3, 2)
    assert snapshot.problems[0].error in ("CALL_TIMED_OUT", "CONNECTION_FAILED")
    assert str(port) in snapshot.problems[0].message
    with BackgroundBroker(port=port) as broker:
        await asyncio.to_thread(arrange, broker.bootstrap_servers)
        snapshot = await watching.poll()
        assert (snapshot.is_up, len(snapshot.groups), snapshot.polls.done, snapshot.polls.failed) == (True, 3, 4, 2)
        assert (snapshot.last, snapshot.polls.failing_ms) == (None, None)
        # It is another cluster: nothing of the first one is taken for its past.
        assert snapshot.replaced is not None
        assert snapshot.replaced.before == before.cluster_id != snapshot.cluster_id
        assert snapshot.groups["search"].rebalances == 0
        assert (snapshot.groups["search"].progress_ms or 0) >= snapshot.replaced.since_ms
        await watching.close()
    assert history.count()["polls"] == 4
    assert [sample.lag for sample in history.samples("prod", "search")] == [8]


async def test_a_program_that_starts_during_an_outage_shows_what_was_known_last(tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite", BOUNDS)
    with BackgroundBroker() as broker:
        servers = broker.bootstrap_servers
        await asyncio.to_thread(arrange, servers)
        watching = collector(servers, history=history, timeout_ms=500)
        before = await watching.poll()
        async with Admin(servers) as admin:
            (await admin.delete_consumer_groups(["audit"])).all()
        before = await watching.poll()
    down = await watching.poll()
    history.close()
    history = History(tmp_path / "history.sqlite", BOUNDS)
    again = await collector(servers, history=history, timeout_ms=500).poll()
    assert (again.is_up, again.polls.done, again.polls.failing_ms) == (False, 1, down.polls.failing_ms)
    assert (again.polls.succeeded_ms, again.known.measured_ms) == (before.polls.succeeded_ms, before.measured_ms)
    assert again.known.is_partial
    told = {name: (group.lag.lag, group.members, group.group_state) for name, group in again.known.groups.items()}
    assert told == {"billing": (5, 0, GroupState.EMPTY), "search": (8, 0, GroupState.EMPTY)}
    assert again.groups == {}
    history.close()


async def test_brokers_that_hang_hold_up_a_poll_for_the_time_limit_and_no_longer(
    servers: str, broker: BackgroundBroker
) -> None:
    watching = collector(servers, timeout_ms=300)
    assert (await watching.poll()).is_up
    broker.faults.delay("ListGroups", 120_000)
    began = time.monotonic()
    hung = await watching.poll()
    assert time.monotonic() - began < 60
    assert (hung.is_up, hung.groups) == (False, {})
    assert [problem.error for problem in hung.problems] == ["CALL_TIMED_OUT"]
    broker.faults.clear()
    broker.faults.delay("OffsetFetch", 20_000)
    partly = await watching.poll()
    assert partly.is_up
    assert {
        name: (group.lag.lag, [each.error for each in group.problems]) for name, group in partly.groups.items()
    } == {name: (None, ["CALL_TIMED_OUT"]) for name in ("audit", "billing", "search")}
    broker.faults.clear()
    well = await watching.poll()
    assert not any(group.problems for group in well.groups.values())
    assert well.polls.failed == 1
    await watching.close()


async def test_members_come_and_go(servers: str, tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite", BOUNDS)
    watching = collector(servers, WantedGroups(Choice(Names(["team"]), Names([]))), history)
    async with Admin(servers) as admin:
        await commit(admin, "team", "orders", 1)
        first = await watching.poll()
        settings = {"bootstrap.servers": servers, "group.id": "team", "enable.auto.commit": False}
        consumer = Consumer(settings)
        consumer.subscribe(["orders"])
        async with asyncio.timeout(30):
            while not consumer.assignment():
                await asyncio.to_thread(consumer.poll, 0.1)
        second = await watching.poll()
        await asyncio.to_thread(consumer.close)
        (await admin.delete_consumer_groups(["team"])).all()
    third = await watching.poll()
    await watching.close()
    assert [snapshot.groups["team"].members for snapshot in (first, second)] == [0, 1]
    assert second.groups["team"].group_state is GroupState.STABLE
    assert [snapshot.groups["team"].rebalances for snapshot in (first, second)] == [0, 1]
    assert second.groups["team"].topics["orders"].assigned == 1
    assert third.groups == {}
    assert "member_joined" in {change.what for change in history.changes("prod", "team")}


async def test_progress_is_known_again_after_a_restart(servers: str, tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    times = []
    for _ in range(2):
        history = History(path, BOUNDS)
        watching = collector(servers, history=history)
        snapshot = await watching.poll()
        times.append(snapshot.groups["search"].progress_ms)
        await watching.close()
        history.close()
    assert times[0] == times[1]


async def test_a_clock_that_steps_does_no_harm(
    servers: str, authorizer: RuleAuthorizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step_ms = 0

    def time_ns() -> int:
        return time.time_ns() + step_ms * 1_000_000

    for module in (lag, live_collector):
        monkeypatch.setattr(module, "time", SimpleNamespace(time_ns=time_ns, monotonic=time.monotonic))
    history = History(tmp_path / "history.sqlite", BOUNDS)
    watching = collector(servers, history=history)
    exporter = Exporter(Choices())
    before = authorizer.rules
    authorizer.allow(Operation.DESCRIBE, ResourceType.TOPIC, "orders")  # records may not be read
    try:
        refused = await watching.poll()
    finally:
        authorizer.rules = before
    assert refused.groups["billing"].problems
    waited: list[int | None] = []
    lags: set[int | None] = set()
    for step_ms in (-2 * DAY_MS, DAY_MS, 0):  # noqa: B007 the clock has it
        found = (await watching.poll()).groups["billing"]
        assert found.problems == (), "what was refused is asked for again"
        lags.add(found.lag.lag)
        waited.append(found.wait.lag_ms)
        exporter.take(watching.snapshot)
        text = b"".join(exporter.text(Format.PROMETHEUS)).decode()
        ages = [line.split()[-1] for line in text.splitlines() if line.startswith("groupkeeper_group_commit_age")]
        assert ages
        assert all(float(age) >= 0 for age in ages)
    await watching.close()
    history.close()
    assert len(lags) == 1
    assert waited[0] is None  # its records are two days ahead now
    # By the clock they were seen three days ago, which is before their timestamps.
    assert [int(ms or 0) // (6 * HOUR_MS) for ms in waited[1:]] == [12, 1]


async def test_a_history_that_cannot_be_written_stops_nobody(servers: str, tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite", BOUNDS)
    watching = collector(servers, history=history)
    history._file.execute("PRAGMA query_only = ON")
    assert len((await watching.poll()).groups) == 3
    assert "readonly" in str(watching._archive.problem)
    history._file.execute("PRAGMA query_only = OFF")
    await watching.poll()
    await watching.close()
    assert watching._archive.problem is None
    assert watching._archive.failed == 1
    assert len(history.samples("prod", "search")) == 1


async def test_a_poll_that_was_made_is_noted_though_the_end_comes_at_once(servers: str, tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite", BOUNDS)
    watching = collector(servers, history=history)
    is_free = threading.Event()
    await watching.poll()
    watching._archive._thread.submit(is_free.wait)  # the disk is slow
    polling = asyncio.create_task(watching.poll())
    async with asyncio.timeout(20):
        while watching.snapshot.polls.done < 2:  # noqa: ASYNC110 a collector tells nobody who isn't its runner
            await asyncio.sleep(0.01)
    polling.cancel()
    await asyncio.gather(polling, return_exceptions=True)
    is_free.set()
    await asyncio.to_thread(watching._archive._thread.shutdown)
    assert history.count()["polls"] == 2
    await watching.close()
