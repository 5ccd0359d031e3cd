"""All routes: what they tell whom, and that links and docs lead to each."""

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest
from confluent_kafka import Consumer
from fastapi import FastAPI
from starlette.datastructures import QueryParams
from starlette.routing import Mount, Route
from tests.live.stage import arrange, commit
from tests.unit.web.test_pages import Page
from tests.unit.web.test_words import unexplained_labels
from tests.web.asking import Answer, Browser
from tests.web.site import ALICE, BOB, GRANTS, TOKENS, Site, apply, site_of

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic
from groupkeeper.testing.background import BackgroundBroker
from groupkeeper.web.access.people import Access
from groupkeeper.web.access.roles import Roles, grants_of
from groupkeeper.web.app import Site as Served

OPEN = {"/style.css", "/words", "/live.js", "/plots.js", "/healthz", "/readyz", "/login"}
"""Files, and the state of the server."""
HOSTILE = '<b onload="x">\'&/?#%00 y=1'
SERVE = Path(__file__).resolve().parents[2] / "docs" / "serve.md"


@pytest.fixture
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker(properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        arrange(broker.bootstrap_servers)
        yield broker


class Walked(NamedTuple):
    """A route. ``known``: the parameters that it takes; None: any."""

    path: str
    methods: Collection[str]
    known: Collection[str] | None = None


def walked(site: Site) -> list[Walked]:
    """All routes, those of the API among them."""
    found: list[Walked] = []
    for route in site.served.routes():
        if isinstance(route, Mount):
            assert isinstance(route.app, FastAPI)
            for path, own in route.app.openapi()["paths"].items():
                known = [each["name"] for method in own.values() for each in method.get("parameters", ())]
                found.append(Walked(route.path + path, [*map(str.upper, own)], known))
        elif isinstance(route, Route):
            found.append(Walked(route.path, route.methods or ()))
    assert sum(each.path.startswith("/api/v1/") for each in found) > 12
    return found


async def asked(site: Site, token: str, route: Walked, fields: Mapping[str, str], *, posts: bool) -> list[Answer]:
    """What a user is answered, in a session or by a token as pages and API take it."""
    at = re.sub(r"{\w+}", fields.get("id", "nothing"), route.path)
    query = urlencode({name: value for name, value in fields.items() if route.known is None or name in route.known})
    is_api = route.path.startswith("/api/")
    browser = Browser(site.app, headers={"authorization": f"Bearer {token}"}) if is_api else await site.of(token)
    answers = [await browser.get(f"{at}?{query}")] if "GET" in route.methods else []
    if "POST" not in route.methods or not posts:
        return answers
    if not is_api:
        seal = await browser.seal("/change?cluster=prod&group=billing")
        return [*answers, await browser.post(at, {**fields, "seal": seal})]
    reset = {"to": "latest", "cluster": "prod", "group": fields.get("group", "")}
    for body in ({}, {"cluster": "prod"}, reset, {"cluster": "prod", "idle": "1s"}):
        answers.append(await browser.send(at, json.dumps(body).encode(), content_type="application/json"))
    return answers


async def with_member(broker: BackgroundBroker, folder: Path, group: str, client: str) -> Site:
    """One with a group that has a member and a topic of its own, none of which bob may see."""
    access = Access(Roles(grants_of({"role": GRANTS}), changes=True), TOKENS, None, is_open=False)
    site = await site_of(broker, folder, access)
    async with Admin(site.servers) as admin:
        (await admin.create_topics([NewTopic("hidden-topic", 1, 1)])).all()
        await commit(admin, group, "hidden-topic", 0)
        await commit(admin, group, "orders", 0)
    consumer = Consumer({"bootstrap.servers": site.servers, "group.id": group, "client.id": client})
    consumer.subscribe(["hidden-topic"])
    while not consumer.assignment():
        await asyncio.to_thread(consumer.poll, 0.1)
    await site.poll()
    await asyncio.to_thread(consumer.close)
    return site


FILTERS = [
    {"cluster": "prod", "status": "ok"},
    {"cluster": "prod", "type": "classic", "state": "Stable"},
    {"q": "idden", "cluster": "prod", "sort": "lag", "order": "down", "page": "1"},
    {"cluster": "prod", "limit": "9", "cursor": "WyJjIl0="},  # what follows the group c
    {"q": "idden"},
]
"""Wishes that find hidden-group, for who may see it: each parameter that a page reads is in one."""
HIDDEN = {"hidden-group", "hidden-topic", "hidden-client"}
with_hidden = partial(with_member, group="hidden-group", client="hidden-client")


async def show_hostile_values(browser: Browser, paths_by_parameter: Mapping[str, set[str]]) -> None:
    """Whatever a parameter is, pages show it as text."""
    usual = {"cluster": "prod", "group": "billing", "topic": "orders"}
    for name, paths in [*paths_by_parameter.items()]:
        for path in [*paths]:
            answer = await browser.get(f"{path}?{urlencode({**usual, name: HOSTILE})}")
            if "html" in answer.headers.get("content-type", ""):
                Page(answer.text)


async def test_no_route_tells_of_what_the_viewer_may_not_see(
    broker: BackgroundBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor what was made for one who may see it just before, of the same address."""
    site = await with_hidden(broker, tmp_path)
    alice = await site.of(ALICE)
    reset = partial(site.plan, alice, "hidden-group", deed="reset", scope="all")
    done = await apply(alice, await reset(to="latest"))
    change = {"cluster": "prod", "change": done.field("change")}
    wishes = [
        {**change, "group": "hidden-group", "id": (await reset(to="earliest")).parameter("id")},
        {**change, "group": "billing", "topic": "orders", "id": change["change"]},
        {"cluster": "prod", "topic": "hidden-topic"},
        {"cluster": "prod"},
        *FILTERS,
        {},
    ]
    read: dict[str, set[str]] = defaultdict(set)
    finds: dict[str, set[str]] = defaultdict(set)

    def noting(parameters: QueryParams, name: str) -> str:
        read[name].add(path)
        return parameters._dict[name]

    def noting_all(parameters: QueryParams, name: str) -> list[str]:
        read[name].add(path)
        return [value for key, value in parameters._list if key == name]

    monkeypatch.setattr(QueryParams, "__getitem__", noting)
    monkeypatch.setattr(QueryParams, "getlist", noting_all)
    # All pages of this test are kept, to its end.
    monkeypatch.setattr("groupkeeper.web.app._MOST_KEPT", 10_000)
    monkeypatch.setattr("groupkeeper.web.app._KEPT_S", 600.0)
    told, answered, told_alice = [], 0, set()
    for route in walked(site):
        path = route.path
        for fields in wishes if path != "/events" else ():  # which has no end, and names clusters only
            seen = await asked(site, ALICE, route, fields, posts=False)
            if any(name in answer.text for answer in seen for name in HIDDEN - {*fields.values()}):
                told_alice.add(path)
                for name in fields:
                    finds[name].add(path)
            for answer in await asked(site, BOB, route, fields, posts=True):
                answered += answer.status == 200
                told += [(path, fields, name) for name in HIDDEN - {*fields.values()} if name in answer.text]
    assert told == [], (
        "routes told bob, who may see only groups b*, of others: pass `viewer.seen(...)`; what is kept needs its viewer"
    )
    assert (answered > 40, len(told_alice) > 20) == (True, True)  # so that most routes had something to tell
    unwished = {name: paths for name, paths in read.items() if not paths & finds[name]}
    assert unwished == {}, "routes read these parameters: add them to `wishes`, with a value that finds hidden-group"
    await show_hostile_values(alice, read)


async def test_what_is_hidden_counts_nowhere(
    broker: BackgroundBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of a viewer are the same where there are no other groups than the viewer's."""
    site = await with_hidden(broker, tmp_path)
    bob = await site.of(BOB)
    every = site.snapshots()
    assert every[0].groups["hidden-group"].members == 1
    own = [each._replace(groups={name: of for name, of in each.groups.items() if name[0] == "b"}) for each in every]
    of_group = "cluster=prod&group=billing&topic=orders"
    monkeypatch.setattr("groupkeeper.web.app._now_ms", lambda: every[0].at_ms + 1000)
    told: dict[str, list[str]] = defaultdict(list)
    for snapshots in (every, own):
        monkeypatch.setattr(site.served, "_snapshots", lambda snapshots=snapshots: snapshots)
        site.served._kept.clear()
        site.served.forget("prod")
        for route in walked(site):
            if "GET" not in route.methods or route.path.startswith(("/api/", "/events")):
                continue
            for query in ("cluster=prod", of_group, "q=i", "", *map(urlencode, FILTERS)):
                told[f"{route.path}?{query}"].append((await bob.get(f"{route.path}?{query}")).text)
    differ = [path for path, (first, second) in told.items() if first != second]
    assert differ == [], "what bob is told counts groups that he may not see: pass `viewer.seen(...)`"


NO_PAGES = OPEN | {"/events", "/metrics", "/grafana-dashboard.json", "/prometheus-rules.yaml"}


async def test_links_lead_to_each_page_and_none_elsewhere(broker: BackgroundBroker, tmp_path: Path) -> None:
    """Each page also shows hostile names as text, and has no labels but those of the glossary."""
    site = await with_member(broker, tmp_path, HOSTILE, HOSTILE)
    alice = await site.of(ALICE)
    await apply(alice, await site.plan(alice, "billing", deed="reset", to="latest", scope="all"))
    todo, seen, dead, unexplained, unnamed = ["/"], set[str](), [], set[str](), set[str]()
    while todo:
        at = re.sub(r"&(sort|order|page)=[^&]*", "", todo.pop())
        if at in seen:
            continue
        seen.add(at)
        answer = await alice.get(at)
        if answer.status != 200:
            dead.append(at)
        if "html" in answer.headers["content-type"]:
            Page(answer.text)
            unnamed |= {urlsplit(at).path} if ">alice " not in answer.text else set()
            todo += [unescape(each) for each in re.findall(r'href="(/[^"]*)"', answer.text)]
            seen |= {*re.findall(r'method="get" action="([^"?]*)', answer.text)}
            unexplained |= unexplained_labels(answer.text)
    assert dead == [], "links that lead nowhere"
    assert unnamed <= OPEN, "these do not say who is logged in: pass `viewer` to parts.page"
    assert unexplained == set(), "labels that are not in docs/glossary.md"
    paths = {each.path for each in walked(site) if "GET" in each.methods and not each.path.startswith("/api/")}
    assert paths - {urlsplit(at).path for at in seen} <= NO_PAGES, "no page has a link to these"
    text = SERVE.read_text()
    assert {path for path in paths - OPEN if f"`{path}" not in text} == set(), "docs/serve.md does not name these"


@pytest.mark.parametrize("forgets", [False, True])
async def test_no_route_tells_strangers_of_groups(
    broker: BackgroundBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, forgets: bool
) -> None:
    """Each route asks who it is, but for OPEN. ``forgets``: one that does not ask still tells of no group."""
    if forgets:
        monkeypatch.setattr(Served, "_for_known", lambda _, answer: answer)
    site = await site_of(broker, tmp_path, Access(Roles(None, changes=True), None, None, is_open=False))
    stranger, answered = Browser(site.app), set()
    for path, methods, _ in walked(site):
        at = re.sub(r"{\w+}", "nothing", path)
        for query in ("cluster=prod&group=billing&topic=orders", "cluster=prod", "q=illin", ""):
            form = {"cluster": "prod", "group": "billing"}
            if "GET" in methods:
                answer = await stranger.get(f"{at}?{query}")
            elif path.startswith("/api/"):
                answer = await stranger.send(at, json.dumps(form).encode(), content_type="application/json")
            else:
                answer = await stranger.post(at, form)
            assert not {"billing", "audit"} & set(re.findall(r"\w+", answer.text)), path
            if answer.status != 401:
                answered.add(path)
    assert forgets or answered == OPEN, "a page is among `pages` in web/app.py; what strangers may read is in OPEN"
