"""`groupkeeper plan delete-offsets`, `sweep` and `clone` on the embedded broker, and on Apache Kafka."""

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acts import ask, committed
from tests.cli.stages import ACTIVE, FIRST_MS, INACTIVE, SETTINGS, Live, Stage, put_back, set_up
from tests.patience import until

from groupkeeper import SyncAdmin
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import ALL, NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.operations.commit_times import commit_times
from groupkeeper.operations.plans import document
from groupkeeper.operations.plans.builder import ALL_COMMITTED
from groupkeeper.operations.plans.journal import Journal
from groupkeeper.operations.plans.sweeps import Criteria, make_sweep
from groupkeeper.operations.times import utc_text
from groupkeeper.testing.background import BackgroundBroker

LOGS = Stage("logs", INACTIVE.records, INACTIVE.starts)
WITH_APACHE = True
STAGE = Stage(
    "both",
    INACTIVE.records,
    INACTIVE.starts,
    {
        **INACTIVE.commits,
        **ACTIVE.commits,
        "leaner": {("orders", 0): OffsetAndMetadata(4), ("payments", 0): OffsetAndMetadata(0)},
    },
    [
        Live("app", "client-of-app", ["payments"], {"payments": [0]}),
        Live("leaner", "client-of-leaner", ["payments"], {"payments": [0]}),
    ],
)
ORDERS = [TopicPartition("orders", number) for number in range(3)]
DAY_MS = 86_400_000

Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(servers: str, journal: Journal, groupkeeper: Run) -> Iterator[Run]:
    yield lambda *words, at=servers: groupkeeper(*words, "--bootstrap-server", at)
    asyncio.run(put_back(STAGE, servers))


def places(report: Any) -> list[tuple[str, str, int, int | None, int | None]]:
    keys = ("group", "topic", "partition", "before", "after")
    return [tuple(row[key] for key in keys) for row in report["changes"]]


def test_deletions_are_planned_applied_and_undone(run: Run, servers: str, tmp_path: Path) -> None:
    before, path = committed(servers, "billing"), str(tmp_path / "plan.json")
    status, report = run("plan", "delete-offsets", "bill*", "--topic", "orders:0,2", "--save", path)
    assert (status, places(report)) == (1, [("billing", "orders", 0, 4, None)])
    assert [(one["error"], one["partition"]) for one in report["problems"]] == [("NOTHING_TO_DELETE", 2)]
    assert committed(servers, "billing") == before
    assert run("apply", path, "--execute")[0] == 0
    assert ORDERS[0] not in committed(servers, "billing")
    assert {row["result"] for row in run("apply", path, "--execute")[1]["changes"]} == {"already"}
    assert run("undo", "--execute")[0] == 0
    assert committed(servers, "billing") == before


def test_offsets_that_no_member_reads_may_go_while_there_are_members(run: Run, servers: str, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    assert run("plan", "delete-offsets", "leaner", "--topic", "orders", "--save", path)[0] == 0
    assert run("apply", path, "--execute")[0] == 0
    assert {tp.topic for tp in committed(servers, "leaner")} == {"payments"}
    assert run("plan", "delete-offsets", "leaner", "--all-topics", "--save", path)[0] == 0
    for words in (["apply", path, "--execute"], ["undo", "--execute"]):
        status, report = run(*words)
        assert (status, report["problems"][0]["error"]) == (1, "GROUP_IS_ACTIVE")
    assert {tp.topic for tp in committed(servers, "leaner")} == {"payments"}


def test_offsets_of_topics_that_are_gone(run: Run, servers: str, tmp_path: Path) -> None:
    # The brokers delete such offsets by themselves; a commit for a topic that never was is the same to a sweep.
    path = str(tmp_path / "plan.json")

    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic("lost", 1, 1)]).all()
        wanted = {TopicPartition("lost", 0): OffsetAndMetadata(0)}
        # Kafka's coordinator hears of a new topic a little later.
        until(lambda: not admin.alter_consumer_group_offsets("loser", wanted).failed, within_s=30)
    status, report = run("plan", "sweep", "--all-groups", "--missing-topics", "--save", path)
    assert (status, places(report)) == (0, [])

    async def sweep() -> list[str]:
        async with Admin(servers) as admin:
            (await admin.delete_topics(["lost"])).all()
            made = await make_sweep(admin, ["loser"], ALL_COMMITTED, Criteria(finds_missing=True), 0)
            (await admin.delete_consumer_groups(["loser"])).failed.clear()
            return [change.why for group in made.plan.groups for change in group.changes.values()]

    # Whether the offset is still there depends on how fast the broker is.
    assert asyncio.run(sweep()) in ([], ["the topic does not exist"])


def test_idle_groups(run: Run, servers: str, tmp_path: Path) -> None:
    assert places(run("plan", "sweep", "--all-groups", "--idle", "P1D")[1]) == []
    now_ms = time.time_ns() // 10**6

    async def sweep(later_ms: int, *group_ids: str, by_records: bool = False) -> Any:
        async with Admin(servers) as admin:
            criteria = Criteria(idle_ms=30 * DAY_MS, by_records=by_records)
            return await make_sweep(admin, group_ids, ALL_COMMITTED, criteria, now_ms + later_ms)

    made = asyncio.run(sweep(31 * DAY_MS, "app", "billing", "zeta"))
    found = {group.group_id: group for group in made.plan.groups}
    assert set(found["billing"].changes) == set(committed(servers, "billing"))
    assert all(change.after is None for change in found["billing"].changes.values())
    why = found["billing"].changes[ORDERS[0]].why
    assert re.match(r"last commit 3[01] d ago \(20", why)
    # Its member reads payments only.
    assert {place.topic for place in found["app"].changes} == {"orders"}
    assert asyncio.run(sweep(29 * DAY_MS, "app", "billing", "zeta")).plan.groups == ()
    made = asyncio.run(sweep(0, "billing", by_records=True))
    assert [len(group.changes) for group in made.plan.groups] == [len(committed(servers, "billing"))]
    assert "last record read " in next(iter(made.plan.groups[0].changes.values())).why


def test_one_new_commit_keeps_a_group_from_being_idle(servers: str) -> None:
    async def look() -> tuple[dict[TopicPartition, int], Any]:
        async with Admin(servers) as admin:
            first = (await commit_times(admin, ["billing"])).commits["billing"]
            later = first
            while later[ORDERS[0]].time_ms == first[ORDERS[0]].time_ms:  # within the same millisecond
                (await admin.alter_consumer_group_offsets("billing", {ORDERS[0]: OffsetAndMetadata(4)})).all()
                later = (await commit_times(admin, ["billing"])).commits["billing"]
            age_ms = later[ORDERS[0]].time_ms - first[ORDERS[1]].time_ms
            criteria = Criteria(idle_ms=age_ms)
            made = await make_sweep(admin, ["billing"], ALL_COMMITTED, criteria, first[ORDERS[1]].time_ms + age_ms)
            return {tp: later[tp].time_ms - first[tp].time_ms for tp in ORDERS[:2]}, made

    grown, made = asyncio.run(look())
    assert grown[ORDERS[0]] > 0
    assert grown[ORDERS[1]] == 0
    assert made.plan.groups == ()


def test_what_would_expire_is_committed_again(run: Run, servers: str, tmp_path: Path) -> None:
    path, before = str(tmp_path / "plan.json"), committed(servers, "billing")

    def times() -> dict[TopicPartition, int]:
        found = ask(servers, lambda admin: commit_times(admin, ["billing"])).commits["billing"]
        return {tp: one.time_ms for tp, one in found.items()}

    first = times()
    assert places(run("plan", "sweep", "billing", "--expiring", "P1D")[1]) == []
    assert places(run("plan", "sweep", "billing", "--expiring", "P1D", "--retention", "P3D")[1]) == []
    status, report = run("plan", "sweep", "billing", "zeta", "--expiring", "P8D", "--save", path)
    assert (status, report["problems"]) == (0, [])
    assert [row["after"] for row in report["changes"] if row["group"] == "billing"] == [4, 12, 5]
    # What the log doesn't hold is not committed.
    assert any("99 is outside of the log" in note for note in report["notes"])
    assert run("apply", path, "--execute", "--confirm", "2")[0] == 0
    assert committed(servers, "billing") == before
    assert all(later > first[tp] for tp, later in times().items())


def test_what_a_commit_does_not_keep_from_expiring(servers: str, tmp_path: Path) -> None:
    """Offsets of a classic group that had members expire by the time when the last one left (GO-75)."""
    left = Live("left", "client-of-left", ["orders"], {"orders": [0]})

    async def look() -> Any:
        await set_up(Stage("left", live=[left]), servers, tmp_path)
        async with Admin(servers) as admin:
            await admin.remove_members("left", ALL)
            (await admin.alter_consumer_group_offsets("left", {ORDERS[0]: OffsetAndMetadata(4)})).all()
            criteria = Criteria(expiring_ms=8 * DAY_MS, retention_ms=7 * DAY_MS)
            made = await make_sweep(admin, ["left"], ALL_COMMITTED, criteria, time.time_ns() // 10**6)
            (await admin.delete_consumer_groups(["left"])).all()
        return made

    made = asyncio.run(look())
    assert made.plan.groups == ()
    assert "counted from the time when its last member left. A commit doesn't delay that" in made.notes[0]


def test_a_clone_in_the_same_cluster(run: Run, servers: str, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    status, report = run("plan", "clone", "billing", "copy", "--topic", "orders", "--save", path)
    assert (status, places(report)) == (0, [("copy", "orders", 0, None, 4), ("copy", "orders", 1, None, 12)])
    assert "there is no group copy: it is created when the plan is applied with --create" in report["notes"]
    assert run("apply", path, "--execute")[1]["problems"][0]["error"] == "GROUP_ID_NOT_FOUND"
    assert run("apply", path, "--execute", "--create")[0] == 0
    billing = committed(servers, "billing")
    assert committed(servers, "copy") == {tp: billing[tp] for tp in ORDERS[:2]}
    assert run("undo", "--execute")[0] == 0
    assert committed(servers, "copy") == {}
    status, report = run("plan", "clone", "nobody", "copy")
    assert (status, report["problems"][0]["error"]) == (1, "GROUP_ID_NOT_FOUND")
    # The same cluster by another way is the same cluster: nothing is translated, leader epochs stay.
    words = ["plan", "clone", "billing", "copy", "--from-bootstrap-server", servers, "--save", path]
    status, report = run(*words)
    assert (status, {row["why"] for row in report["changes"]}) == (0, {"exactly as billing has it"})
    assert "both groups are in the same cluster: offsets are copied as they are" in report["notes"]
    (group,) = document.read(Path(path).read_text()).groups
    assert group.offsets == billing
    # Without another name the group of the same name gets them.
    report = run("plan", "clone", "billing", *words[4:])[1]
    assert {row["group"] for row in report["changes"]} == {"billing"}
    # Other topics have other records at these offsets, also in the same cluster.
    status, report = run("plan", "clone", "billing", "copy", "--topic", "orders", "--topic-prefix", "no.")
    assert (status, [(one["error"], one["topic"], one["partition"]) for one in report["problems"]]) == (
        1,
        [("UNKNOWN_TOPIC_OR_PARTITION", "no.orders", None)],
    )
    # zeta has an offset beyond a log.
    for policy, after in [("clamp", [3, 9]), ("skip", [9]), ("fail", [9])]:
        status, report = run("plan", "clone", "zeta", "copy", "--if-out-of-range", policy)
        assert (status, [row["after"] for row in report["changes"]]) == (int(policy == "fail"), after)


def test_a_clone_from_another_cluster(run: Run, servers: str, tmp_path: Path) -> None:
    """The other cluster has lost the first records, or has none at all yet."""
    path = str(tmp_path / "plan.json")
    records = {"east.orders": [10, 20, 4], "east.payments": [0, 0]}
    there = Stage("there", records, {("east.orders", 0): 6})
    with BackgroundBroker(properties=SETTINGS) as other:
        asyncio.run(set_up(there, other.bootstrap_servers, tmp_path))
        words = ["plan", "clone", "billing", "copy", "--from-bootstrap-server", servers, "--topic-prefix", "east."]
        status, report = run(*words, "--save", path, at=other.bootstrap_servers)
        found = {(row["topic"], row["partition"]): (row["after"], row["why"]) for row in report["changes"]}
        assert status == 0
        offset, why = found["east.orders", 0]
        assert offset == 6
        assert f"its next one is of {utc_text(FIRST_MS + 6000)}" in why
        said = "the same offset: samples all over both logs are the same, as are 15 records around it: exact"
        assert found["east.orders", 1] == (12, said)
        moved = {(row["topic"], row["partition"]): (row["skipped"], row["replayed"]) for row in report["changes"]}
        # Record 4 is what the group reads next, and 6 the first that is here.
        assert (moved["east.orders", 0], moved["east.orders", 1]) == ((2, 0), (0, 0))
        assert found["east.payments", 1][0] == 0
        assert "all is read: the end of the log" in found["east.payments", 1][1]
        assert run("apply", path, "--execute", "--create", at=other.bootstrap_servers)[0] == 0
        assert committed(other.bootstrap_servers, "copy")[TopicPartition("east.orders", 1)].metadata == "note"
        status, report = run(*words[:6], at=other.bootstrap_servers)
        assert (status, report["changes"]) == (1, [])
        assert {one["error"] for one in report["problems"]} == {"UNKNOWN_TOPIC_OR_PARTITION"}


def test_what_a_clone_cannot_translate_is_left_out_and_said(run: Run, servers: str, tmp_path: Path) -> None:
    records = {"east.orders": [10, 20], "east.emptied": [3], "east.never": [2]}
    with BackgroundBroker(properties=SETTINGS) as other:
        at = other.bootstrap_servers
        asyncio.run(set_up(Stage("there", records), at, tmp_path))
        words = ["plan", "clone", "billing", "copy", "--from-bootstrap-server", servers, "--topic-prefix", "east."]
        status, report = run(*words, "--topic", "orders", at=at)
        assert (status, report["changes"]) == (1, [])
        (problem,) = report["problems"]  # of the topic once, though three partitions are committed
        assert (problem["topic"], problem["partition"]) == ("east.orders", None)
        assert "the topic has 3 partitions in the source and 2 in the target" in problem["message"]
        # Those who know that records keep their partitions may say so.
        status, report = run(*words, "--topic", "orders:0,1", at=at)
        assert (status, [row["after"] for row in report["changes"]]) == (0, [4, 12])
        assert [(row["skipped"], row["replayed"]) for row in report["changes"]] == [(0, 0), (0, 0)]

        # Of logs without records no time is known.
        group = {"late": {("emptied", 0): OffsetAndMetadata(3), ("never", 0): OffsetAndMetadata(0)}}
        stage = Stage("more", {"emptied": [3], "never": [0]}, {("emptied", 0): 3}, group)
        asyncio.run(set_up(stage, servers, tmp_path))
        status, report = run("plan", "clone", "late", *words[3:], at=at)
        assert (status, [(row["topic"], row["after"], row["skipped"]) for row in report["changes"]]) == (
            1,
            [("east.never", 0, 0)],
        )
        (problem,) = report["problems"]
        assert (problem["topic"], problem["message"]) == (
            "east.emptied",
            "the source's log is empty up to its end at offset 3",
        )
        status, report = run("plan", "clone", "late", *words[3:], "--if-no-record", "skip", at=at)
        assert (status, len(report["changes"])) == (0, 1)
        assert "copy east.emptied-0 is skipped: the source's log is empty up to its end at offset 3" in report["notes"]
