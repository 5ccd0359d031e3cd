"""All routes: what they tell whom, and that links and docs lead to each."""

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from html import escape, unescape
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from fastapi import FastAPI
from starlette.datastructures import QueryParams
from starlette.routing import Mount, Route
from tests import acts
from tests.live.stage import arrange, commit
from tests.unit.live.views import described, member, row, snapshot, view
from tests.unit.web.test_pages import Page
from tests.unit.web.test_words import unexplained_labels
from tests.web.asking import Answer, Browser
from tests.web.site import ALICE, BOB, GRANTS, TOKENS, Site, apply, site_of

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, Node, TopicPartition
from groupkeeper.html import markup
from groupkeeper.live.alerts import FiringAlert, Key
from groupkeeper.live.model import ClusterSnapshot, Polls, Scope, Wait
from groupkeeper.operations.plans.journal import Journal
from groupkeeper.operations.problems import Problem
from groupkeeper.operations.selection import ALL
from groupkeeper.testing.background import BackgroundBroker
from groupkeeper.web.access.people import Access
from groupkeeper.web.access.roles import Roles, grants_of
from groupkeeper.web.app import Site as Served
from groupkeeper.web.pages.alerts import AlertsNow
from groupkeeper.web.pages.order import ASCENDING_FIRST
from groupkeeper.web.refusals import ActionRefused

OPEN = {"/style.css", "/words", "/live.js", "/plots.js", "/healthz", "/readyz", "/login"}
"""Files, and the state of the server."""
HOSTILE = '<b onload="x">\'&/?#%00 y=1'
ORDER = ("sort", "order", "page")
"""Parameters of the order of lists."""
SERVE = Path(__file__).resolve().parents[2] / "docs" / "serve.md"
FLOWS = Path(__file__).resolve().parents[1] / "browser" / "test_flows.py"


@pytest.fixture
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker(properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        arrange(broker.bootstrap_servers)
        yield broker


class Walked(NamedTuple):
    """A route. `known`: the parameters that it takes; None: any."""

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
            assert "{" not in route.path, f"{route.path}: pages take `?cluster=`; only the API has parameters in paths"
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


async def with_member(broker: BackgroundBroker, folder: Path, group: str, client: str, cluster: str = "prod") -> Site:
    """One with a group that has a member and a topic of its own, none of which bob may see."""
    access = Access(Roles(grants_of({"role": GRANTS}), changes=True), TOKENS, None, is_open=False)
    site = await site_of(broker, folder, access, cluster=cluster)
    async with Admin(site.servers) as admin:
        (await admin.create_topics([NewTopic("hidden-topic", 1, 1)])).all()
        await commit(admin, group, "hidden-topic", 0)
        await commit(admin, group, "orders", 0)
    consumer = await asyncio.to_thread(acts.member, site.servers, group, "hidden-topic", client={"client.id": client})
    await site.poll()
    await asyncio.to_thread(consumer.close)
    return site


FILTERS = [
    {"cluster": "prod", "status": "ok"},
    {"cluster": "prod", "type": "Classic", "state": "Stable"},
    {"q": "idden", "cluster": "prod", "sort": "lag", "order": "down", "page": "1"},
    {"cluster": "prod", "limit": "9", "cursor": "WyJjIl0="},  # what follows the group c
    {"q": "idden"},
    {"cluster": "prod", "topic": "hidden-topic", "sort": "lag", "order": "down", "page": "1"},
    {"cluster": "prod", "group": "hidden-group", "sort": "lag", "order": "down", "page": "1"},
]
"""Wishes that find what is hidden, for who may see it: each parameter that a page reads is in one for that page."""
HIDDEN = {"hidden-group", "hidden-topic", "hidden-client"}
with_hidden = partial(with_member, group="hidden-group", client="hidden-client")


def links_of(answer: Answer) -> list[str]:
    return [unescape(each) for each in re.findall(r'href="(/[^"]*)"', answer.text)]


def forms_of(answer: Answer) -> dict[str, list[tuple[str, str]]]:
    """The hidden fields of forms that look for something, by their addresses."""
    forms = re.findall(r'<form method="get" action="([^"]*)"[^>]*>(.*?)</form>', answer.text, re.DOTALL)
    hidden = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)"')
    return {action: [(name, unescape(value)) for name, value in hidden.findall(form)] for action, form in forms}


def lost_parameters(path: str, fields: Mapping[str, str], answers: Sequence[Answer]) -> set[str]:
    """Those that are not in links to the same list in another order."""
    queries = [urlsplit(link).query for answer in answers for link in links_of(answer) if urlsplit(link).path == path]
    kept = [{*parse_qsl(query)} for query in queries if "sort=" in query]
    return {name for name, value in fields.items() for own in kept if (name, value) not in own} - {*ORDER}


def offered_parameters(path: str, fields: Mapping[str, str], answers: Sequence[Answer]) -> set[str]:
    """Those that a person can give a list: in a field of its form, or by a link where they were not given."""
    text = "".join(answer.text for answer in answers)
    forms = re.findall(rf'<form method="get" action="{path}"[^>]*>(.*?)</form>', text, re.DOTALL)
    inputs = [re.sub(r'<input type="hidden"[^>]*>', "", form) for form in forms]
    links = [urlsplit(link) for answer in answers for link in links_of(answer)]
    linked = {name for link in links if link.path == path for name, _ in parse_qsl(link.query)} - {*fields}
    return linked | {*re.findall(r' name="([^"]*)"', "".join(inputs))}


def note_reads(monkeypatch: pytest.MonkeyPatch, now: Callable[[], str]) -> dict[str, set[str]]:
    """The parameters that routes read from now on, with their paths. `now`: which is asked."""
    read: dict[str, set[str]] = defaultdict(set)

    def noting(parameters: QueryParams, name: str) -> str:
        read[name].add(now())
        return parameters._dict[name]

    def noting_all(parameters: QueryParams, name: str) -> list[str]:
        read[name].add(now())
        return [value for key, value in parameters._list if key == name]

    monkeypatch.setattr(QueryParams, "__getitem__", noting)
    monkeypatch.setattr(QueryParams, "getlist", noting_all)
    return read


async def show_hostile_values(browser: Browser, paths_by_parameter: Mapping[str, set[str]]) -> None:
    """Whatever a parameter is, pages show it as text, and not all of a long one."""
    usual, long = {"cluster": "prod", "group": "billing", "topic": "orders"}, HOSTILE * 99
    for name, paths in [*paths_by_parameter.items()]:
        for path in [*paths]:
            answer = await browser.get(f"{path}?{urlencode({**usual, name: long})}")
            if "html" in answer.headers.get("content-type", ""):
                Page(answer.text)
                assert escape(long) not in answer.text, f"{path} shows all of a long {name}"


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
    read = note_reads(monkeypatch, lambda: path)
    finds: dict[str, set[str]] = defaultdict(set)
    # All pages of this test are kept, to its end.
    monkeypatch.setattr("groupkeeper.web.app._MOST_KEPT", 10_000)
    monkeypatch.setattr("groupkeeper.web.app._KEPT_S", 600.0)
    told, answered, told_alice, lost, offered = [], 0, set(), set[tuple[str, str]](), set[tuple[str, str]]()
    for route in walked(site):
        path = route.path
        for fields in wishes if path != "/events" else ():  # which has no end, and names clusters only
            seen = await asked(site, ALICE, route, fields, posts=False)
            lost |= {(path, name) for name in lost_parameters(path, fields, seen) if path in read.get(name, ())}
            offered |= {(path, name) for name in offered_parameters(path, fields, seen)}
            if any(name in answer.text for answer in seen for name in HIDDEN - {*fields.values()}):
                told_alice.add(path)
                for name in fields:
                    finds[name].add(path)
            for answer in await asked(site, BOB, route, fields, posts=True):
                answered += answer.status == 200
                told += [(path, fields, name) for name in HIDDEN - {*fields.values()} if name in answer.text]
    assert told == [], (
        "routes told bob, who may see only groups b*, of others: show snapshots of `_actions.clusters(viewer.person)` "
        "or `_cluster`; what is kept needs its viewer"
    )
    assert (answered > 40, len(told_alice) > 20) == (True, True)  # so that most routes had something to tell
    unwished = {
        (path, name) for name, paths in read.items() for path in paths - finds[name]
        if name not in wishes[0] and (not finds[name] or not path.startswith("/api/"))
    }  # fmt: skip
    assert unwished == set(), (
        "routes read these parameters: add them to FILTERS, with values that find what is hidden; if the page shows no "
        "group, topic or client, add to HIDDEN what it shows of hidden-group"
    )
    assert lost == set(), "links to another order of a list lose these parameters, so they show other rows"
    lists = {path for path in read["sort"] if not path.endswith(".csv")}
    filters = {(path, name) for name in read.keys() - {*ORDER, *wishes[0], *wishes[1]} for path in read[name] & lists}
    assert filters - offered == set(), "only a URL sets these: the list's form has a field of this `name`, or a link"
    await show_hostile_values(alice, read)


async def test_what_is_hidden_counts_nowhere(
    broker: BackgroundBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of a viewer are the same where there are no other groups than the viewer's."""
    site = await with_hidden(broker, tmp_path)
    alice, bob = await site.of(ALICE), await site.of(BOB)
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
                if snapshots is every:
                    await alice.get(f"{route.path}?{query}")  # what is kept of hers is not for bob
                told[f"{route.path}?{query}"].append((await bob.get(f"{route.path}?{query}")).text)
    differ = [path for path, (first, second) in told.items() if first != second]
    assert differ == [], (
        "what bob is told counts groups that he may not see: show snapshots of `_actions.clusters(viewer.person)` "
        "or `_cluster`; what is kept needs its viewer"
    )


async def test_kept_pages_are_those_of_now(
    broker: BackgroundBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever has changed without a poll."""
    monkeypatch.setattr("groupkeeper.web.app._KEPT_S", 600.0)
    site = await site_of(broker, tmp_path)
    served, alice, stale = site.served, await site.of(ALICE), set[str]()
    left = [view(name, [row("orders", 0, 40)], [Wait(3_600_000)])._replace(is_old=True) for name in ("billing", "idle")]
    site.watched["prod"].snapshot = snapshot(*left, cluster="prod", at_ms=1000)
    monkeypatch.setattr("groupkeeper.web.app._now_ms", lambda: 2000)
    firing = [FiringAlert(Key("behind", "prod", "idle"), "warning", "", 0, (), False)]  # ranks it above others
    members = described("billing", member("m", TopicPartition("orders", 0)))
    newer = snapshot(view("billing", [row("orders", 0, 90)], None, members), left[1], cluster="prod", at_ms=1500)
    changes: list[tuple[object, str, object]] = [
        (served, "_alerts", lambda: AlertsNow(firing)),
        (served, "_notes", lambda: ["a note"]),
        (served._archive, "problem", "the disk is full"),
        (site.record, "_failure", "it is gone"),
        (site.watched["prod"], "snapshot", newer._replace(polls=Polls(2, 0, 1500))),
    ]
    paths = {each.path for each in walked(site) if "GET" in each.methods and not each.path.startswith("/api/")}
    pages = [f"{path}?cluster=prod&group=billing&topic=orders&q=i&sort=status" for path in sorted(paths - NO_PAGES)]
    for change in [None, *changes]:
        for at in pages:
            await alice.get(at)
        if change is None:
            await apply(alice, await site.plan(alice, "billing", deed="reset", to="latest", scope="all"))
        else:
            monkeypatch.setattr(*change)
        kept = [(await alice.get(at)).text for at in pages]
        served._kept.clear()
        stale |= {at for at, text in zip(pages, kept, strict=True) if (await alice.get(at)).text != text}
    assert stale == set(), (
        "pass the snapshots that are shown to `_shared`; what these show beside snapshots and alerts is in its `more`, "
        "or they are not kept"
    )


NO_PAGES = OPEN | {"/events", "/metrics", "/grafana-dashboard.json", "/prometheus-rules.yaml"}


async def crawled(browser: Browser) -> dict[str, Answer | None]:
    """What links lead to from the first page, by address without the order of lists. None: a form leads there."""
    todo, found = ["/"], dict[str, Answer | None]()
    while todo:
        at = re.sub(rf"&({'|'.join(ORDER)})=[^&]*", "", todo.pop())
        if found.get(at) is not None:
            continue
        found[at] = answer = await browser.get(at)
        if "html" in answer.headers["content-type"]:
            todo += links_of(answer)
            found |= {each: found.get(each) for each in re.findall(r'method="get" action="([^"?]*)', answer.text)}
    return found


async def test_links_lead_to_each_page_and_none_elsewhere(broker: BackgroundBroker, tmp_path: Path) -> None:
    """Each page also shows hostile names as text, and has no labels but those of the glossary."""
    site = await with_member(broker, tmp_path, HOSTILE, HOSTILE, HOSTILE)
    alice = await site.of(ALICE)
    await apply(alice, await site.plan(alice, "billing", deed="reset", to="latest", scope="all"))
    seen, dead, unexplained, unnamed = await crawled(alice), [], set[str](), set[str]()
    for at, answer in seen.items():
        if answer is not None and answer.status != 200:
            dead.append(at)
        if answer is not None and "html" in answer.headers["content-type"]:
            Page(answer.text)
            unnamed |= {urlsplit(at).path} if ">alice " not in answer.text else set()
            unexplained |= unexplained_labels(answer.text)
    assert dead == [], "links that lead nowhere"
    assert unnamed <= OPEN, "these do not say who is logged in: pass `viewer` to parts.page"
    assert unexplained == set(), "labels that are not in docs/glossary.md (`make docs` copies it)"
    paths = {each.path for each in walked(site) if "GET" in each.methods and not each.path.startswith("/api/")}
    assert paths - {urlsplit(at).path for at in seen} <= NO_PAGES, "no page has a link to these"
    pages = {urlsplit(at).path for at, answer in seen.items() if answer and "html" in answer.headers["content-type"]}
    listed = "".join(re.findall(r"^ +paths \+?= .*?\]$", FLOWS.read_text(), re.MULTILINE | re.DOTALL))
    untested = {path for path in pages if not re.search(rf'"{path}["?]', listed)} - {"/plan", "/journal/change"}
    assert untested == set(), "add these to `paths` of `stage` in tests/browser/test_flows.py"
    text = SERVE.read_text()
    assert {path for path in paths - OPEN if f"`{path}" not in text} == set(), "docs/serve.md does not name these"


def states() -> dict[str, ClusterSnapshot]:
    """A cluster whose names are all hostile, in each state that it can have for pages."""
    reader = described(HOSTILE, member(HOSTILE, TopicPartition(HOSTILE, 0))._replace(host=HOSTILE))
    reader = reader._replace(coordinator=Node(1, HOSTILE, 9092))
    group = view(HOSTILE, [row(HOSTILE, 0, 40)], [Wait(1000)], reader)
    up = snapshot(group, cluster=HOSTILE)._replace(scope=Scope(left_out=("other",)))
    down = snapshot(cluster=HOSTILE, at_ms=None, problems=(Problem("CALL_TIMED_OUT", HOSTILE),))
    noted = group._replace(rows=(), waits=(), topics={}, description=None, noted_members=1)
    last = up._replace(is_partial=True, groups={HOSTILE: noted})
    return {"up": up, "down": down, "old": down._replace(last=up), "from the history": down._replace(last=last)}


OF_ALL_CLUSTERS, OF_SOME_GROUPS = {"/", "/search"}, {"/group", "/search"}
"""Pages that name what is down beside the rest, and that do not show all groups of a cluster."""
OF_HISTORY = {"/", "/cluster", "/search"}
"""Pages whose lists come from the history, too."""
NO_LISTS = {"/"}
"""A page of cards."""


async def test_the_only_cluster_needs_no_name(broker: BackgroundBroker, tmp_path: Path) -> None:
    named = ["/cluster", "/groups.csv", "/topics", "/sweep", "/topic?topic=orders", "/api/v1/groups?cluster="]
    named += [f"/{each}?group=billing" for each in ("group", "partitions.csv", "change")]
    one, two = await site_of(broker, tmp_path), await site_of(broker, tmp_path, more={"dr": broker})
    for path in named:
        for site, status in (one, 200), (two, 400):
            headers = {"authorization": f"Bearer {ALICE}"} if "/api/" in path else {}
            browser = Browser(site.app, headers=headers) if headers else await site.of(ALICE)
            answer = await browser.get(path)
            assert (answer.status, "Name one of the clusters, cluster=NAME: prod, dr." in answer.text) == (
                status, site is two), path  # fmt: skip
    missing = await (await one.of(ALICE)).get("/group?group=nobody")
    assert (missing.status, "in prod now" in missing.text) == (404, True)


async def test_pages_say_how_well_they_know_what_they_show(tmp_path: Path) -> None:
    access = Access(Roles(None, changes=True), TOKENS, None, is_open=False)
    site = Site({HOSTILE: "127.0.0.1:1"}, access, Journal(tmp_path / "journal"), changes=True, watched=ALL)
    paths = {each.path for each in walked(site) if "GET" in each.methods and not each.path.startswith("/api/")}
    paths -= {*NO_PAGES, "/alerts", *(path for _, path, _ in site.served._changes.answers())}
    alice, wrong, lists = await site.of(ALICE), [], dict[str, int]()
    of_all = {"group": HOSTILE, "topic": HOSTILE, "q": HOSTILE}
    for state, site.watched[HOSTILE].snapshot in states().items():
        site.served._kept.clear()
        site.served.forget(HOSTILE)
        for path, wish in product(paths, ({**of_all, "cluster": HOSTILE}, of_all)):
            answer = await alice.get(at := f"{path}?{urlencode(wish)}")
            if "html" not in answer.headers["content-type"] or (wish is of_all and answer.status != 200):
                continue
            page, is_up = Page(answer.text), state == "up"
            lists.setdefault(at, len(page.tables))
            rules = {
                "a list has a row in `states` (NO_LISTS: no page of a list)": not is_up
                or bool(page.tables) != (path in NO_LISTS),
                "a list is in parts.live": all(" live-" in f" {' '.join(each)}" for each in page.tables),
                "parts.page gets `follows`": not lists[at] or answer.status != 200 or "data-events" in answer.text,
                "parts.page gets the viewer": ">alice " in answer.text,
                "parts.page gets its crumbs: parts.way_to": path in ("/", "/cluster", "/search")
                or answer.status != 200
                or f'href="/cluster?{escape(urlencode({"cluster": HOSTILE}))}"' in answer.text,
                "groups that are left out are counted: scope.left_out": not is_up
                or path in OF_SOME_GROUPS
                or "1 other group of the cluster is left out" in page.text,
                "a cluster that is down is named: parts.when": is_up or "cannot be reached" in page.text,
                "nothing is told of a cluster of which nothing is known (OF_ALL_CLUSTERS: but of others)": state
                != "down"
                or path in OF_ALL_CLUSTERS
                or not (page.tables or re.search(r"\b(0|No) ", page.text)),
                "what was known last is shown: snapshot.known": state != "old" or len(page.tables) == lists[at],
                "old numbers are in parts.old": is_up or all("old" in each for each in page.tables),
                "what the history lacks is said: is_partial (OF_HISTORY: it lacks nothing)": state != "from the history"
                or path in OF_HISTORY
                or answer.status != 200
                or "not in the history" in page.text,
                "what the history lacks is not counted: is_partial": state != "from the history"
                or path in OF_HISTORY
                or not re.search(r"\b(0|No) (?!change of)[a-z]", page.text),
                "forms keep the cluster, in a hidden field (OF_ALL_CLUSTERS: but of others)": all(
                    action in OF_ALL_CLUSTERS or wish is of_all or ("cluster", HOSTILE) in fields
                    for action, fields in forms_of(answer).items()
                    if action == path
                ),
            }
            wrong += [(state, path, [*wish], what) for what, holds in rules.items() if not holds]
    assert not wrong, "\n".join(map(str, wrong))


def with_long_lists(folder: Path) -> tuple[Site, list[str]]:
    """One with much of all, and the addresses of its pages."""
    access = Access(Roles(None, changes=True), TOKENS, None, is_open=False)
    site = Site({"prod": "127.0.0.1:1"}, access, Journal(folder / "journal"), changes=True, watched=ALL)
    names = [f"name-{number}" for number in range(150)]
    rows = [[row(names[0], 0, number % 90)] for number in range(150)]
    rows[0] = [row(name, 0, number % 90) for number, name in enumerate(names)]
    members = [member(name, TopicPartition(name, 0))._replace(host=name) for name in names]
    groups = (
        view(
            name,
            rows[number],
            [Wait(1000)] * len(rows[number]),
            described(name, *members[number:])._replace(coordinator=Node(number, name, 9092)),
        )
        for number, name in enumerate(names)
    )
    site.watched["prod"].snapshot = snapshot(*groups, cluster="prod")
    paths = {each.path for each in walked(site) if "GET" in each.methods} - NO_PAGES
    return site, [f"{path}?cluster=prod&group=name-0&topic=name-0&q=name" for path in sorted(paths)]


async def test_headings_sort_their_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, pages = with_long_lists(tmp_path)
    alice, table = await site.of(ALICE), markup.table
    values: dict[str, list[Any]] = {}

    def noting(columns: Sequence[markup.PageColumn[Any]], rows: Sequence[Any], *more: Any, **options: Any) -> str:
        values.update({each.key: [each.by(one) for one in rows] for each in columns if each.key and each.by})
        return table(columns, rows, *more, **options)

    async def heads(at: str) -> dict[str, str]:
        """Where headings lead, by what they sort; `values` has the rows that are shown."""
        site.served._kept.clear()
        values.clear()
        links = map(unescape, re.findall(r'<th[^>]*><a href="([^"]*)', (await alice.get(at)).text))
        return {dict(parse_qsl(urlsplit(each).query))["sort"]: each for each in links}

    monkeypatch.setattr(markup, "table", noting)
    for at in pages:
        links, differ = await heads(at), False
        if at.startswith("/search?"):  # it has columns of another page
            continue
        assert links.keys() == values.keys(), (
            f"{at}: a list gets order.heads of its columns, and has rows in `with_long_lists`"
        )
        for key, link in links.items():
            if any(isinstance(each, str) for each in values[key]):
                assert key in ASCENDING_FIRST, f"{at}: {key!r} has texts: ASCENDING_FIRST of web/pages/order.py"
            for where in (link, (await heads(link))[key]):
                await heads(where)
                known = [each for each in values[key] if each is not None]
                right = sorted(known, reverse="order=down" in where) + [None] * values[key].count(None)
                assert values[key] == right, f"{where}: a list shows rows that are `ordered`"
                differ |= len({*known}) > 1
        assert differ or not links, f"{at}: no column of it differs in `with_long_lists`"


async def test_long_lists_are_cut_and_lead_to_their_next_page(tmp_path: Path) -> None:
    site, pages = with_long_lists(tmp_path)
    alice, wrong = await site.of(ALICE), dict[str, int]()
    for at in pages:
        path, text = urlsplit(at).path, (await alice.get(at)).text
        if path == "/group":
            continue
        rows_shown = text.count("<tr") - 1
        if rows_shown > 100 or (rows_shown == 100 and "page=2" not in text and path != "/search"):
            wrong[path] = rows_shown
        for sort in set(re.findall(r"[?&;]sort=(\w+)&amp;order=", text)) if "page=2" in text else ():
            lead = [
                {*parse_qsl(urlsplit(each).query)} for each in links_of(await alice.get(f"{at}&sort={sort}&order=up"))
            ]
            if not any({("sort", sort), ("order", "up"), ("page", "2")} <= fields for fields in lead):
                wrong[f"{path} by {sort}"] = rows_shown
    assert wrong == {}, "a list shows order.cut of its rows, and links to the others in its order: order.turning"


@pytest.mark.parametrize("forgets", [False, True])
async def test_no_route_tells_strangers_of_groups(
    broker: BackgroundBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, forgets: bool
) -> None:
    """Each route asks who it is, but for OPEN. `forgets`: one that does not ask still tells of no group."""
    if forgets:
        monkeypatch.setattr(Served, "_for_known", lambda _, answer: answer)
    site = await site_of(broker, tmp_path, Access(Roles(None, changes=True), None, None, is_open=False))
    stranger, answered = Browser(site.app), set()
    for path, methods, _ in walked(site):
        at = re.sub(r"{\w+}", "nothing", path)
        for query in ("cluster=prod&group=billing&topic=orders", "cluster=prod", "q=illin", ""):
            form = {"cluster": "prod", "group": "billing"}
            if "GET" in methods:
                try:
                    answer = await stranger.get(f"{at}?{query}")
                except ActionRefused:  # by a page that no `_for_known` is around
                    answered.add(path)
                    continue
            elif path.startswith("/api/"):
                answer = await stranger.send(at, json.dumps(form).encode(), content_type="application/json")
            else:
                answer = await stranger.post(at, form)
            told = answer.text.replace('value="billing"', "")  # the field that repeats what was asked for
            assert not {"billing", "audit"} & set(re.findall(r"\w+", told)), path
            if answer.status != 401:
                answered.add(path)
    assert forgets or answered == OPEN, "a page is among `pages` in web/app.py; what strangers may read is in OPEN"
