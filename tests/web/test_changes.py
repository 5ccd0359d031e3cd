"""Changes from pages: planned, applied, read back and undone on a broker, by whom they may be."""

import asyncio
import json
import re
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.acts import member
from tests.live.stage import NOW_MS, ORDERS, arrange, commit
from tests.unit.live.views import row, snapshot, view
from tests.web.asking import Browser
from tests.web.site import ALICE, BOB, EVE, GRANTS, TOKENS, apply, site_of

from groupkeeper.broker.authorizer import Operation, ResourceType, RuleAuthorizer
from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.live.alerts import FiringAlert, Key
from groupkeeper.live.archive import Archive
from groupkeeper.live.model import Wait
from groupkeeper.live.rules import Silence
from groupkeeper.operations.plans.changes import ApplyResult
from groupkeeper.operations.selection import Choice, Names
from groupkeeper.shell import way_of_servers
from groupkeeper.testing.background import BackgroundBroker
from groupkeeper.web.access.people import Access, Proxy, networks_of
from groupkeeper.web.access.roles import Roles, grants_of
from groupkeeper.web.app import Site as Served
from groupkeeper.web.app import application
from groupkeeper.web.exporter import Choices, Exporter
from groupkeeper.web.pages.alerts import AlertsNow
from groupkeeper.web.pages.search import search_page


@pytest.fixture
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker(properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        arrange(broker.bootstrap_servers)
        yield broker


async def test_the_first_page_has_the_alerts_that_fire_now() -> None:
    """Rules judge a poll after it has ended: a page that was made in between is not shown again."""
    late = view("late", [row("orders", 0, 40)], [Wait(3_600_000)])
    alerts: list[FiringAlert] = []
    access = Access(Roles(None, changes=False), None, None, is_open=True)
    exporter = Exporter(Choices(), lambda: iter(()))
    served = Served(exporter, lambda: [snapshot(late)], Archive(None), access, alerts=lambda: AlertsNow(alerts))
    browser = Browser(application(served))
    assert "alert:" not in (await browser.get("/")).words
    alerts.append(FiringAlert(Key("behind", "prod", "late"), "warning", "", 0, ("lag 40, limit 1",), False))
    assert "alert: behind" in (await browser.get("/")).words
    assert "warning behind late prod 1970-01-01" in (await browser.get("/alerts")).words


async def test_commands_name_brokers_and_files_only_to_who_sees_all() -> None:
    access = Access(Roles(grants_of({"role": GRANTS}), changes=False), TOKENS, None, is_open=False)
    groups = [view(name, [row("orders", 0, 40)], [Wait(3_600_000)]) for name in ("billing", "search")]
    ways = {"prod": way_of_servers("kafka-1:9092", "/etc/client.properties")}
    exporter = Exporter(Choices(), lambda: iter(()))
    site = Served(exporter, lambda: [snapshot(*groups)], Archive(None), access, ways=ways)
    for token, is_there in ((ALICE, True), (BOB, False)):
        browser = Browser(application(site), headers={"authorization": f"Bearer {token}"})
        for path in ("/", "/group?cluster=prod&group=billing"):
            words = (await browser.get(path)).words
            assert ("kafka-1" in words, "client.properties" in words) == (is_there, is_there), (path, token)
            assert ("groupkeeper groups why --bootstrap-server HOST:PORT billing" in words) is not is_there


async def test_alerts_and_silences_are_shown_to_those_who_may_see_their_groups() -> None:
    names = ("billing", "search", "", "console-consumer-7")
    keys = [Key("a rule" if name else "down", "prod", name) for name in names]
    firing = [FiringAlert(key, "critical", "a team", 0, ("<i>worse</i>",), key.group == "search", to)
              for key, to in zip(keys, (("chat", "post"), (), (), ()), strict=True)]  # fmt: skip
    silence = Silence(Names(()), Names(["prod"]), Names(["sea*"]), 0, None, "a reload")
    access = Access(Roles(grants_of({"role": GRANTS}), changes=False), TOKENS, None, is_open=False)
    now = AlertsNow(firing, [silence, silence._replace(until_ms=1), silence._replace(from_ms=4 * 10**12)])
    left = [view(name, [row("orders", 0, 40)], [Wait(3_600_000)])._replace(is_old=True)
            for name in ("billing", "console-consumer-7")]  # fmt: skip
    exporter = Exporter(Choices(), lambda: iter(()))
    site = Served(exporter, lambda: [snapshot(*left)], Archive(None), access, alerts=lambda: now)
    page = await Browser(application(site), headers={"authorization": f"Bearer {ALICE}"}).get("/alerts")
    assert re.findall(r"critical (?:a rule|down) (\S+) prod", page.words) == [
        "search", "—", "billing", "console-consumer-7"
    ]  # fmt: skip
    assert re.findall(r"a team (silenced|no webhook|sent to chat, post)", page.words) == [
        "silenced", "no webhook", "sent to chat, post", "no webhook"
    ]  # fmt: skip
    assert "1 alert of groups without members severity" in page.words
    assert "<i>" not in page.text
    assert re.findall(r"(holds|over|to come) all prod sea\*", page.words) == ["holds", "over", "to come"]
    page = await Browser(application(site), headers={"authorization": f"Bearer {BOB}"}).get("/alerts")
    assert re.findall(r"critical (?:a rule|down) (\S+) prod", page.words) == ["—", "billing"]
    assert ("search" in page.words, "sea*" in page.words) == (False, False)


async def test_a_group_that_is_left_out_is_not_changed(broker: BackgroundBroker, tmp_path: Path) -> None:
    first = await site_of(broker, tmp_path)
    alice = await first.of(ALICE)
    done = await apply(alice, await first.plan(alice, deed="reset", to="latest", scope="all"))

    site = await site_of(broker, tmp_path, watched=Choice(Names(["billing", "bill-*"]), Names([])))
    alice = await site.of(ALICE)
    assert "the target must be one of them" in (await alice.get("/change?cluster=prod&group=billing")).words
    clone = partial(site.plan, alice, "billing", deed="clone", scope="all")
    refused = await clone(**{"to-group": "search"})
    assert refused.status == 403
    assert "this server leaves out search (--group, --except-group)" in refused.words
    assert f"groupkeeper plan clone --all-topics --bootstrap-server {site.servers} billing search" in refused.words
    assert "Nothing is changed yet" in (await clone(**{"to-group": "bill-2"})).words
    change = done.field("change")
    page = await alice.get(f"/journal/change?id={change}")
    assert f"The undo is a command: groupkeeper undo --bootstrap-server {site.servers} {change}" in page.words
    form = {"seal": await alice.seal("/"), "cluster": "prod", "change": change}
    assert (await alice.post("/undo", form)).status == 403
    assert await site.committed("search") == {"orders-0": 8}


async def test_a_reset_is_planned_applied_and_undone(broker: BackgroundBroker, tmp_path: Path) -> None:
    site = await site_of(broker, tmp_path)
    alice = await site.of(ALICE)
    planned = await site.plan(alice, deed="reset", to="ago", ago="4h30m", scope="all")
    assert "Nothing is changed yet" in planned.words
    after = next(number for number, time_ms in enumerate(ORDERS) if time_ms >= NOW_MS - 4.5 * 3600_000)
    assert f"orders 0 0 {after} {after} 0 " in planned.words  # before, after, skipped, read again
    assert time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(ORDERS[after] / 1000)) in planned.words
    assert await site.committed("search") == {"orders-0": 0}

    done = await apply(alice, planned)
    assert "Applied by alice and read back: 1 partition" in done.words
    assert await site.committed("search") == {"orders-0": after}
    recorded = site.journal.load(done.field("change"))
    assert recorded is not None
    assert (recorded.head.user, recorded.head.through, recorded.result) == ("alice", "groupkeeper serve", "applied")

    undo = await alice.post("/undo", {name: done.field(name) for name in ("seal", "cluster", "change")})
    assert f"orders 0 {after} 0 0 {after} " in undo.words
    assert "Applied by alice" in (await apply(alice, undo)).words
    assert await site.committed("search") == {"orders-0": 0}
    assert [one.undone_by is not None for one in site.journal.summaries()[0]] == [True, False]
    # Another change does the same, so that the first one can be undone once more.
    await apply(alice, await site.plan(alice, deed="reset", to="ago", ago="4h30m", scope="all"))
    again = await alice.post("/undo", {name: done.field(name) for name in ("seal", "cluster", "change")})
    assert f"{done.field('change')} was undone already by alice" in again.words
    assert site.told == ["prod"] * 3  # so that the cluster is polled again


async def test_a_share_group_is_reset_and_that_undone(broker: BackgroundBroker, tmp_path: Path) -> None:
    tp = TopicPartition("orders", 0)
    async with Admin(broker.bootstrap_servers) as admin:
        (await admin.alter_share_group_offsets("queue", {tp: 6})).all()

        async def start() -> int | None:
            found = (await admin.list_share_group_offsets({"queue": None})).result("queue").done[tp]
            return None if found is None else found.start_offset

        site = await site_of(broker, tmp_path)
        alice = await site.of(ALICE)
        time_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ORDERS[2] / 1000))
        planned = await site.plan(alice, "queue", deed="reset", to="time", time=time_text, scope="all")
        assert "Nothing is changed yet. The plan fits the cluster." in planned.words
        assert "orders 0 6 2 0 4 " in planned.words  # before, after, skipped, read again
        assert f"--group queue --all-topics --to-datetime {time_text}.000 --dry-run" in planned.words
        assert await start() == 6

        done = await apply(alice, planned)
        assert "Applied by alice and read back: 1 partition" in done.words
        assert await start() == 2
        recorded = site.journal.load(done.field("change"))
        assert recorded is not None
        assert (recorded.head.kind, recorded.head.user, recorded.result) == ("share-reset", "alice", "applied")

        undo = await alice.post("/undo", {name: done.field(name) for name in ("seal", "cluster", "change")})
        assert "Applied by alice" in (await apply(alice, undo)).words
        assert await start() == 6
        for wish in ({"deed": "reset", "to": "shift", "shift": "1"}, {"deed": "clone"}, {"deed": "delete"}):
            assert (await site.plan(alice, "queue", scope="all", **wish)).status == 400


async def test_the_plan_is_that_of_the_command_it_names(
    broker: BackgroundBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = await site_of(broker, tmp_path)
    alice = await site.of(ALICE)
    wishes: list[Mapping[str, str | list[str]]] = [
        {"to": "time", "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ORDERS[4] / 1000))},
        {"to": "shift", "shift": "-2", "scope": "some", "topic": ["orders"]},
        {"to": "offset", "offset": "7", "scope": "some", "more": "orders:0, payments"},
        {"to": "offset", "offset": "99", "if-out-of-range": "skip"},
        {"to": "earliest"},
        {"to": "latest"},
        {"to": "current"},
    ]
    for wish in wishes:
        page = await site.plan(alice, "billing", deed="reset", **{"scope": "all", **wish})
        own = json.loads((await alice.get(f"/plan.json?id={page.parameter('id')}")).text)
        await asyncio.to_thread(main, [*own["command"][1:], "--save", "-"])
        theirs = json.loads(capsys.readouterr().out or "{}")
        differing = ("made", "command", "principal")
        if own["groups"]:
            assert {key: own[key] for key in own if key not in differing} == {
                key: theirs[key] for key in theirs if key not in differing
            }, wish
        else:
            assert theirs == {}


async def test_offsets_and_groups_are_deleted_and_come_back(broker: BackgroundBroker, tmp_path: Path) -> None:
    site = await site_of(broker, tmp_path)
    alice = await site.of(ALICE)
    page = await apply(alice, await site.plan(alice, "billing", deed="delete-offsets", scope="some", more="payments:0"))
    assert await site.committed("billing") == {"orders-0": 3}
    page = await apply(alice, await site.plan(alice, "billing", deed="delete"))
    assert "Deleted by alice, with 1 offset" in page.words
    async with Admin(site.servers) as admin:
        assert "billing" not in (await admin.list_groups()).groups
    assert "There is no such group" not in page.words
    again = await alice.post("/undo", {name: page.field(name) for name in ("seal", "cluster", "change")})
    await apply(alice, again)
    assert await site.committed("billing") == {"orders-0": 3}


async def test_a_plan_is_stale_when_the_group_has_committed_since(broker: BackgroundBroker, tmp_path: Path) -> None:
    site = await site_of(broker, tmp_path)
    alice = await site.of(ALICE)
    planned = await site.plan(alice, deed="reset", to="latest", scope="all")
    async with Admin(site.servers) as admin:
        await commit(admin, "search", "orders", 6)
    refused = await apply(alice, planned)
    assert "it was committed at 0 when the plan was made, and is committed at 6 now" in refused.words
    assert "the plan cannot be applied now" in refused.words
    assert await site.committed("search") == {"orders-0": 6}
    assert site.journal.summaries() == ([], 0)


async def test_members_are_named_and_keep_a_plan_from_being_applied(broker: BackgroundBroker, tmp_path: Path) -> None:
    client = {"client.id": "reader-7"}
    consumer = await asyncio.to_thread(member, broker.bootstrap_servers, "search", "orders", client=client)
    site = await site_of(broker, tmp_path)
    alice = await site.of(ALICE)
    choose = await alice.get("/change?cluster=prod&group=search")
    assert choose.words.count("held by reader-7 on") == 2  # before all forms, and instead of that which deletes
    assert 'value="delete"' not in choose.text
    planned = await site.plan(alice, deed="reset", to="latest", scope="all")
    assert "the group is active (Stable), held by reader-7 on" in planned.words
    assert '<button type="submit" class="main" disabled' in planned.text
    await apply(alice, planned)
    assert await site.committed("search") == {"orders-0": 0}
    await asyncio.to_thread(consumer.close)
    form = {"seal": planned.field("seal"), "id": planned.parameter("id")}
    assert "Nothing is changed yet" in (await alice.post("/plan/compare", form)).words
    await apply(alice, planned)
    assert await site.committed("search") == {"orders-0": 8}


async def test_a_plan_is_applied_once_and_a_journal_that_fails_changes_nothing(
    broker: BackgroundBroker, tmp_path: Path
) -> None:
    site = await site_of(broker, tmp_path)
    alice = await site.of(ALICE)
    planned = await site.plan(alice, deed="reset", to="latest", scope="all")
    (tmp_path / "journal.jsonl").mkdir()
    refused = await apply(alice, planned)
    assert (refused.status, "nothing was changed, as the journal cannot be written" in refused.words) == (503, True)
    assert await site.committed("search") == {"orders-0": 0}
    (tmp_path / "journal.jsonl").rmdir()
    await asyncio.gather(*(apply(alice, planned) for _ in range(5)))
    assert [one.result for one in site.journal.summaries()[0]] == [ApplyResult.APPLIED]
    assert await site.committed("search") == {"orders-0": 8}


async def test_forms_of_other_sites_and_other_people_change_nothing(broker: BackgroundBroker, tmp_path: Path) -> None:
    site = await site_of(broker, tmp_path)
    alice, bob = await site.of(ALICE), await site.of(BOB)
    planned = await site.plan(alice, deed="reset", to="latest", scope="all")
    form = {"seal": planned.field("seal"), "id": planned.parameter("id")}
    outcomes = [
        await alice.post("/plan/apply", {**form, "seal": ""}),
        await alice.post("/plan/apply", {**form, "seal": "\N{SNOWMAN}"}),
        await bob.post("/plan/apply", form),  # with a seal of alice
        await alice.post("/plan/apply", form, sec_fetch_site="cross-site"),
        await alice.post("/plan/apply", form, sec_fetch_site="same-site"),
        await Browser(site.app).post("/plan/apply", form),
        await alice.post("/plan/apply", form, content_type="text/plain"),
        await alice.post("/plan/apply", {**form, "filler": "x" * 70_000}),
        await alice.post("/plan/apply", {**form, **{str(number): "" for number in range(2000)}}),
        await alice.get(f"/plan/apply?id={form['id']}&seal={form['seal']}"),
    ]
    assert [each.status for each in outcomes] == [403, 403, 403, 403, 403, 401, 415, 413, 400, 405]
    assert await site.committed("search") == {"orders-0": 0}
    assert not (tmp_path / "journal.jsonl").exists()
    seal = planned.field("seal")
    await alice.post("/logout", {"seal": seal})
    assert (await alice.post("/plan/apply", form)).status == 401


async def test_roles_say_what_is_seen_and_what_is_changed(broker: BackgroundBroker, tmp_path: Path) -> None:
    access = Access(Roles(grants_of({"role": GRANTS}), changes=True), TOKENS, None, is_open=False)
    site = await site_of(broker, tmp_path, access)
    async with Admin(site.servers) as admin:
        await commit(admin, "backup", "orders", 1)
    await site.poll()
    bob, eve = await site.of(BOB), await site.of(EVE)
    listed = (await bob.get("/groups.csv?cluster=prod")).text
    assert [row.split(",")[1] for row in listed.splitlines()[1:]] == ["backup", "billing"]
    assert "2 groups" in (await bob.get("/cluster?cluster=prod")).words
    for path in ("/group?cluster=prod&group=search", "/change?cluster=prod&group=search"):
        assert (await bob.get(path)).status == 404
    assert "bob has no role that may change this group" in (await bob.get("/change?cluster=prod&group=backup")).words
    assert (await bob.get("/metrics")).status == 403
    topics = await bob.get("/topic?cluster=prod&topic=orders")
    assert ("billing" in topics.words, "search" in topics.words) == (True, False)
    found = (await bob.get("/search?q=Ll")).words
    assert ("1 group and 0 topics" in found, "billing" in found) == (True, True)
    assert "0 groups and 0 topics" in (await bob.get("/search?q=search")).words
    assert "audit" in (await (await site.of(ALICE)).get("/search?q=aud")).words
    assert (await bob.get("/search?q=+")).path == "/"
    assert (await bob.get("/readyz")).text == "ready\n"
    # What bob may not see he cannot change by its name, nor what alice has planned.
    alice = await site.of(ALICE)
    planned = await site.plan(alice, deed="reset", to="latest", scope="all")
    seal = await bob.seal("/change?cluster=prod&group=billing")
    reset = {"seal": seal, "cluster": "prod", "deed": "reset", "to": "latest", "scope": "all"}
    for fields, path in (
        ({"group": "search"}, "/plan"),
        ({"group": "backup"}, "/plan"),
        ({"id": planned.parameter("id")}, "/plan/apply"),
    ):
        assert (await bob.post(path, {**reset, **fields})).status in (403, 404)
    assert (await bob.get(f"/plan?id={planned.parameter('id')}")).status == 404
    assert "There are none" in (await bob.get("/plans")).words
    await apply(alice, await site.plan(alice, "audit", deed="reset", to="earliest", scope="all"))
    assert "0 changes" in (await bob.get("/journal")).words
    assert "1 change" in (await alice.get("/journal")).words
    assert "Applied by bob" in (await apply(bob, await site.plan(bob, "billing", **reset))).words
    # eve has a token and no role.
    assert "Your roles give you access to no group" in (await eve.get("/")).words
    assert (await eve.get("/cluster?cluster=prod")).status == 404
    assert await site.committed("search") == {"orders-0": 0}


async def test_a_search_leaves_the_event_loop_its_turns(
    broker: BackgroundBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = await site_of(broker, tmp_path)
    alice = await site.of(ALICE)
    loops: list[bool] = []

    def watched(*given: Any) -> str:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            loops.append(False)
        else:
            loops.append(True)
        return search_page(*given)

    monkeypatch.setattr("groupkeeper.web.app.search_page", watched)
    await asyncio.gather(*(alice.get("/search?q=aud") for _ in range(3)))
    assert loops == [False]  # and once for all of them


async def test_a_proxy_says_who_asks_only_where_it_is_trusted(broker: BackgroundBroker, tmp_path: Path) -> None:
    proxy = Proxy("X-User", networks_of(["10.1.0.0/16"]))
    site = await site_of(broker, tmp_path, Access(Roles(None, changes=True), None, proxy, is_open=False))
    carol = Browser(site.app, peer="10.1.2.3", headers={"x-user": "carol"})
    assert "Applied by carol" in (await apply(carol, await site.plan(carol, deed="reset", to="latest"))).words
    for peer, headers in (
        ("10.2.0.1", {"x-user": "carol"}),
        ("127.0.0.1", {"x-user": "carol", "x-forwarded-for": "10.1.2.3"}),
        ("10.1.2.3", {}),
        ("10.1.2.3", {"x-user": ""}),
        ("10.1.2.3", {"x-user": "carol\x07"}),
        ("10.1.2.3", {"x-user": "c" * 300}),
        ("not an address", {"x-user": "carol"}),
    ):
        answer = await Browser(site.app, peer=peer, headers=headers).get("/")
        assert (answer.status, "did not name a user" in answer.words) == (401, True)
    assert (await Browser(site.app).get("/healthz")).status == 200


async def test_a_server_that_only_shows(broker: BackgroundBroker, tmp_path: Path) -> None:
    access = Access(Roles(None, changes=False), None, None, is_open=True)
    site = await site_of(broker, tmp_path, access, changes=False)
    anybody = Browser(site.app)
    page = await anybody.get("/change?cluster=prod&group=search")
    assert "started without --allow-changes" in page.words
    for path in ("/plan", "/plan/apply", "/plan/compare", "/undo"):
        assert (await anybody.post(path, {"cluster": "prod", "group": "search", "deed": "delete"})).status == 403
    assert (await anybody.get("/login")).status == 404
    assert "prod: up" in (await anybody.get("/readyz")).text


async def test_a_login_leads_back_and_never_elsewhere(broker: BackgroundBroker, tmp_path: Path) -> None:
    site = await site_of(broker, tmp_path)
    browser = Browser(site.app)
    asked = await browser.get("/cluster?cluster=prod&sort=lag")
    assert (asked.status, asked.field("target")) == (401, "/cluster?cluster=prod&sort=lag")
    wrong = await browser.post("/login", {"token": ALICE[:-1], "target": "/"})
    assert (wrong.status, browser.cookies) == (403, {})
    for target in ("//evil.example/", "https://evil.example/", "/\\evil.example", "/\r\nX-Evil: 1", ""):
        answer = await browser.post("/login", {"token": ALICE, "target": target})
        assert (answer.status, answer.path) == (200, "/")
    assert (await Browser(site.app, headers={"authorization": f"Bearer {BOB}"}).get("/metrics")).status == 200
    assert (await Browser(site.app, headers={"authorization": "Bearer no"}).get("/metrics")).status == 401


async def test_the_journal_has_what_commands_did_and_takes_it_back(broker: BackgroundBroker, tmp_path: Path) -> None:
    site = await site_of(broker, tmp_path)
    alice = await site.of(ALICE)
    await apply(alice, await site.plan(alice, deed="reset", to="latest", scope="all"))
    listed = await alice.get("/journal?group=search")
    assert "1 change" in listed.words
    assert "reset search prod alice applied" in listed.words
    assert "Resets and deletions" in (await alice.get("/group?cluster=prod&group=search")).words
    assert "Resets and deletions" not in (await alice.get("/group?cluster=prod&group=audit")).words
    change = await alice.get(re.search(r"/journal/change\?id=[\w-]+", listed.text)[0])  # type: ignore[index]
    assert "By alice through groupkeeper serve on " in change.words
    undo = await alice.post("/undo", {name: change.field(name) for name in ("seal", "cluster", "change")})
    assert "as before" in (await apply(alice, undo)).words
    assert await site.committed("search") == {"orders-0": 0}
    assert (await alice.get("/plans")).words.count("applied") == 2
    assert (await alice.get("/journal/change?id=nothing")).status == 404
    assert (await alice.get("/topic?cluster=prod&topic=nothing")).status == 404
    assert "Readers" in (await alice.get("/topic?cluster=prod&topic=orders")).words
    assert "2 topics" in (await alice.get("/topics?cluster=prod")).words


async def test_a_right_that_is_missing_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    authorizer = RuleAuthorizer(allows_without_rules=True)
    with BackgroundBroker(authorizer=authorizer) as broker:
        await asyncio.to_thread(arrange, broker.bootstrap_servers)
        site = await site_of(broker, tmp_path)
        alice = await site.of(ALICE)
        planned = await site.plan(alice, deed="delete-offsets", scope="all")
        authorizer.allow(Operation.READ, ResourceType.GROUP, "search")  # and now nothing else
        refused = await apply(alice, planned)
        assert "Refused: nothing was changed for alice" in refused.words
        assert "missing ACL: DELETE on group search" in refused.words
        assert await site.committed("search") == {"orders-0": 0}
        assert [one.result for one in site.journal.summaries()[0]] == [ApplyResult.REFUSED]
        authorizer.deny(Operation.DESCRIBE, ResourceType.GROUP, "audit")
        planned = await site.plan(alice, "audit", deed="reset", to="earliest", scope="all")
        assert "There is nothing that can be changed. audit: missing ACL: READ on group audit" in planned.words
        assert '<button type="submit" class="main" disabled' in planned.text


async def test_a_broker_that_does_not_answer_holds_up_nobody_else(broker: BackgroundBroker, tmp_path: Path) -> None:
    site = await site_of(broker, tmp_path)
    alice = await site.of(ALICE)
    planned = await site.plan(alice, deed="reset", to="latest", scope="all")
    with broker.faults.drop("OffsetCommit", executes=True) as fault:
        applying = asyncio.create_task(apply(alice, planned))
        await asyncio.to_thread(fault.wait_for_hits)
        assert "The plan is being applied" in (await alice.get(f"/plan?id={planned.parameter('id')}")).words
        assert "search" in (await alice.get("/cluster?cluster=prod")).words
        assert not applying.done()
        page = await applying
    assert "No reply came for a part of the change: it may or may not have been made" in page.words
    assert [one.result for one in site.journal.summaries()[0]] == [ApplyResult.PARTLY]  # it may be done: it is, in fact
    assert await site.committed("search") == {"orders-0": 8}
    undo = await alice.post("/undo", {name: page.field(name) for name in ("seal", "cluster", "change")})
    assert "Applied by alice" in (await apply(alice, undo)).words
    assert await site.committed("search") == {"orders-0": 0}
