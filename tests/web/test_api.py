"""The HTTP API: what it tells is what pages and commands tell, and a client made from its document changes a group."""

import asyncio
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.live.stage import commit
from tests.unit.live import views
from tests.web.asking import Answer, Browser
from tests.web.serving import serving
from tests.web.site import ALICE, EVE, Site, site_of

from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic
from groupkeeper.testing.background import BackgroundBroker
from groupkeeper.web.access.people import Access
from groupkeeper.web.access.roles import Roles
from groupkeeper.web.api import answers
from groupkeeper.web.api.cursors import WantedPage

HOSTILE = "<script>../%2F?x=1&y='\"\\ ☃ \U0001f984 ‮"


def of(site: Site, token: str = ALICE) -> Browser:
    return Browser(site.app, headers={"authorization": f"Bearer {token}"})


async def read(browser: Browser, path: str, **headers: str) -> Any:
    answer = await browser.get(f"/api/v1{path}", **headers)
    assert answer.status == 200, answer.text
    return json.loads(answer.body)


async def post(browser: Browser, path: str, body: object, **headers: str) -> Answer:
    return await browser.send(f"/api/v1{path}", json.dumps(body).encode(), content_type="application/json", **headers)


@pytest.fixture(scope="module")
def client_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a package that is generated from the document."""
    from groupkeeper.web.api.routes import api_of

    folder = tmp_path_factory.mktemp("generated")
    (folder / "document.json").write_text(json.dumps(api_of(None, None).openapi()))  # type: ignore[arg-type]
    command = [str(Path(sys.executable).with_name("openapi-python-client")), "generate", "--path", "document.json"]
    subprocess.run([*command, "--meta", "none", "--output-path", "generated_client"], cwd=folder, check=True)
    sys.path.insert(0, str(folder))
    yield "generated_client"
    sys.path.remove(str(folder))


class Generated:
    """The functions of the generated package, on an application."""

    def __init__(self, module: str, site: Site) -> None:
        self.models = importlib.import_module(f"{module}.models")
        made = importlib.import_module(f"{module}.client").AuthenticatedClient
        self._module = module
        httpx_args = {"transport": httpx.ASGITransport(app=site.app)}
        self._client = made("http://127.0.0.1/api/v1", token=ALICE, httpx_args=httpx_args)

    async def __call__(self, name: str, *path: str, **fields: Any) -> Any:
        function = importlib.import_module(f"{self._module}.api.default.{name}").asyncio
        return await function(*path, client=self._client, **fields)


async def test_a_generated_client_resets_a_group_and_takes_it_back(
    broker: BackgroundBroker, tmp_path: Path, client_module: str
) -> None:
    site = await site_of(broker, tmp_path)
    ask = Generated(client_module, site)
    models = ask.models
    assert [each.cluster for each in (await ask("list_clusters")).clusters] == ["prod"]
    listed = await ask("list_groups", cluster="prod", q="bill")
    assert [(each.group, each.lag, each.group_status) for each in listed.groups] == [("billing", 5, "lagging")]
    assert (await ask("describe_group", cluster="prod", group="nobody")).status == 404
    wanted = models.PlanRequest("prod", "search", to=models.PlanRequestToType0.LATEST)
    plan = await ask("make_plan", body=wanted)
    assert [(each.topic, each.before, each.after) for each in plan.changes] == [("orders", 0, 8)]
    assert (plan.can_be_applied, plan.stage.value, plan.change_id) == (True, "planned", None)
    assert await site.committed("search") == {"orders-0": 0}
    done = await ask("apply_plan", plan.id, body=models.ApplyRequest())
    assert (done.stage.value, done.applied_by, done.changes[0].result) == ("applied", "alice", "applied")
    assert await site.committed("search") == {"orders-0": 8}
    assert (await ask("apply_plan", plan.id, body=models.ApplyRequest())).change_id == done.change_id  # once
    [change] = (await ask("list_changes", group="search")).changes
    assert (change.id, change.user, change.cluster, change.result) == (done.change_id, "alice", "prod", "applied")
    undo = await ask("plan_undo", change.id, body=models.UndoRequest("prod"))
    undone = await ask("apply_plan", undo.id, body=models.ApplyRequest())
    assert undone.kind == "undo"
    assert await site.committed("search") == {"orders-0": 0}
    assert [each.undone_by for each in (await ask("list_changes")).changes] == [None, undone.change_id]
    [place] = (await ask("show_change", change.id)).changes
    assert (place.before, place.after, place.error) == (0, 8, None)
    assert [each.id for each in (await ask("list_plans")).plans] == [undo.id, plan.id]


async def test_a_plan_that_does_not_fit_any_more_is_not_applied(broker: BackgroundBroker, tmp_path: Path) -> None:
    site = await site_of(broker, tmp_path)
    alice = of(site)
    made = await post(alice, "/plans", {"cluster": "prod", "group": "audit", "to": "earliest"})
    assert made.status == 201, made.text
    async with Admin(site.servers) as admin:
        await commit(admin, "audit", "orders", 7)
    refused = await post(alice, f"/plans/{json.loads(made.body)['id']}/apply", {})
    assert (refused.status, refused.headers["content-type"]) == (409, "application/problem+json")
    told = json.loads(refused.body)
    assert told["detail"] == "Nothing is changed, and the plan cannot be applied now."
    assert [(each["group"], each["topic"]) for each in told["problems"]] == [("audit", "orders")]
    assert await site.committed("audit") == {"orders-0": 7}
    async with Admin(site.servers) as admin:
        await commit(admin, "audit", "orders", 8)


async def test_what_it_tells_is_what_commands_tell(
    broker: BackgroundBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alice = of(await site_of(broker, tmp_path))

    def told(*words: str) -> list[Mapping[str, Any]]:
        assert main(["groups", *words, "--bootstrap-server", broker.bootstrap_servers, "--output", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        return next(value for value in found.values() if isinstance(value, list))

    offsets = await asyncio.to_thread(told, "offsets", "billing")
    sums = await asyncio.to_thread(told, "offsets", "billing", "--sum", "group", "--with-status")
    states = await asyncio.to_thread(told, "describe", "billing", "--view", "state", "--with-status")
    for path, rows in (("offsets", offsets), ("group", sums), ("group", states)):
        found = await read(alice, f"/{path}?cluster=prod&group=billing")
        for one, row in zip(found["offsets"] if path == "offsets" else [found], rows, strict=True):
            common = row.keys() & one.keys() - {"not_judged", "catch_up_ms", "cluster", "reason"}
            assert len(common) >= 10
            assert {key: one[key] for key in common} == {key: row[key] for key in common}


@pytest.mark.parametrize(("made", "kind"), [("lag_row", "offsets"), ("member_row", "members")])
def test_a_row_of_commands_may_name_a_cluster(monkeypatch: pytest.MonkeyPatch, made: str, kind: str) -> None:
    """As it does before columns that were added at the end."""
    original = getattr(answers, made)
    monkeypatch.setattr(answers, made, lambda *values: {**original(*values), "cluster": None})
    group = views.view("g", [views.row("t", 0, 5)], description=views.described("g", views.member("m")))
    nobody: Any = None
    actions: Any = SimpleNamespace(known_group=lambda *_: (views.snapshot(group), group))
    tell = getattr(answers.Answers(actions, nobody, nobody), kind)
    (found,) = getattr(tell(nobody, "prod", "g", WantedPage()), kind)
    assert found.group == "g"


async def test_pages_follow_each_other_by_cursors(broker: BackgroundBroker, tmp_path: Path) -> None:
    alice = of(await site_of(broker, tmp_path))
    for path, kind, name, count in (
        ("/groups?cluster=prod", "groups", "group", 3),
        ("/topics?cluster=prod", "topics", "topic", 2),
        ("/offsets?cluster=prod&group=billing", "offsets", "topic", 2),
    ):
        cursor, found = "", []
        while True:
            joined = "&" if "?" in path else "?"
            page = await read(alice, f"{path}{joined}limit=1" + (f"&cursor={quote(cursor)}" if cursor else ""))
            found += [row[name] for row in page[kind]]
            cursor = page["next"]
            if cursor is None:
                break
        assert found == sorted(found)
        assert len(found) == count
    for cursor in ("x", "WzFd", "bm8=", quote("é"), "W1tdXQ=="):
        answer = await alice.get(f"/api/v1/groups?cluster=prod&cursor={cursor}")
        assert (answer.status, "cursor" in answer.text) == (422, True)


async def test_the_number_of_groups_is_compared_also_of_one(broker: BackgroundBroker, tmp_path: Path) -> None:
    site = await site_of(broker, tmp_path)
    alice = of(site)
    wanted = {"cluster": "prod", "group": "search", "to": "latest"}
    plan_id = json.loads((await post(alice, "/plans", wanted)).body)["id"]
    before = await site.committed("search")
    refused = await post(alice, f"/plans/{plan_id}/apply", {"confirm": 3})
    assert (refused.status, "confirm must be the number of groups, 1" in refused.text) == (422, True)
    assert await site.committed("search") == before
    assert json.loads((await post(alice, f"/plans/{plan_id}/apply", {"confirm": 1})).body)["stage"] == "applied"
    async with Admin(site.servers) as admin:
        await commit(admin, "search", "orders", 0)


REFUSED: list[tuple[str, str, bytes, dict[str, str], int, str]] = [
    ("GET", "/nothing", b"", {}, 404, "There is no GET /api/v1/nothing"),
    ("GET", "/groups", b"", {}, 422, "cluster: Field required"),
    ("GET", "/groups?cluster=prod&limit=0", b"", {}, 422, "limit"),
    ("GET", "/groups?cluster=prod&limit=1001", b"", {}, 422, "limit"),
    ("GET", "/groups?cluster=prod&status=bad", b"", {}, 422, "status"),
    ("GET", "/groups?cluster=prod&stauts=ok&next=x", b"", {}, 422, "next, stauts: not known here; known: cluster"),
    ("GET", "/groups?cluster=east", b"", {}, 404, "There is no cluster 'east' here"),
    ("GET", "/group?cluster=prod&group=nobody", b"", {}, 404, "There is no group 'nobody' in prod now"),
    ("GET", "/plans/nothing", b"", {}, 404, "There is no such plan"),
    ("GET", "/changes/nothing", b"", {}, 404, "The journal has no such change"),
    ("POST", "/groups?cluster=prod", b"{}", {}, 405, "POST /api/v1/groups is not possible"),
    ("POST", "/plans", b"{}", {"content_type": "text/plain"}, 415, "Expected JSON"),
    ("POST", "/plans", b"{}", {"content_type": "application/x-www-form-urlencoded"}, 415, "Expected JSON"),
    ("POST", "/plans", b"{}", {"sec_fetch_site": "cross-site"}, 403, "from another site"),
    ("POST", "/plans", b" " * 70_000, {}, 413, "at most 64 KiB"),
    ("POST", "/plans", b"{", {}, 400, ("The body is no JSON: Expecting property name enclosed in double quotes at "
         "character 1")),
    ("POST", "/plans", b'{"cluster": "prod", "group": "search", "to": "time"}', {}, 422, "time: required with to=time"),
    ("POST", "/plans", b"[" * 60_000, {}, 400, "parsing the body"),
    ("POST", "/plans", b"[]", {}, 422, "body"),
    ("POST", "/plans", b'{"cluster": "prod", "group": "\\ud800"}', {}, 404, "There is no group"),
    ("POST", "/plans", b'{"cluster": "prod", "group": "search", "to": "moon"}', {}, 422, "to:"),
    ("POST", "/plans", b'{"cluster": "prod", "group": "search", "more": 1}', {}, 422, "more"),
    ("POST", "/plans", b'{"cluster": "prod", "group": "search"}', {}, 422, "where to: nothing is chosen"),
    ("POST", "/plans", b'{"cluster": "prod", "group": "search", "to": "ago", "ago": "x"}', {}, 422, "duration"),
    ("POST", "/plans", b'{"cluster": "prod", "group": "search", "to": "latest", "topics": ["a:b"]}', {}, 422,
         "a:b"),
    ("POST", "/sweeps", b'{"cluster": "prod"}', {}, 422, "nothing is chosen"),
    ("POST", "/plans/nothing/apply", b"{}", {}, 404, "There is no such plan"),
    ("POST", "/changes/nothing/undo", b'{"cluster": "prod"}', {}, 404, "The journal has no such change"),
]  # fmt: skip


async def test_what_is_refused_and_why(broker: BackgroundBroker, tmp_path: Path) -> None:
    alice = of(await site_of(broker, tmp_path))
    for method, path, body, headers, status, text in REFUSED:
        whole = f"/api/v1{path}"
        sent = {"content_type": "application/json", **headers}
        answer = await (alice.get(whole) if method == "GET" else alice.send(whole, body, **sent))
        assert answer.headers["content-type"] == "application/problem+json"
        told = json.loads(answer.body)
        assert (answer.status, told["status"], text in told["detail"]) == (status, status, True), (path, told)
        assert told["help"]
        assert told["title"]
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_only_a_token_in_the_header_counts(broker: BackgroundBroker, tmp_path: Path) -> None:
    site = await site_of(broker, tmp_path)
    browser = await site.of(ALICE)
    assert (await browser.get("/cluster?cluster=prod")).status == 200
    for answer in (
        await browser.get("/api/v1/clusters"),
        await post(browser, "/plans", {"cluster": "prod", "group": "search", "to": "latest"}),
        await Browser(site.app, headers={"authorization": "Bearer nothing-that-is-known"}).get("/api/v1/clusters"),
    ):
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert json.loads(answer.body)["about"] == "login"
    assert (await read(of(site, EVE), "/clusters")) == await read(of(site), "/clusters")


async def test_a_server_that_only_shows(broker: BackgroundBroker, tmp_path: Path) -> None:
    access = Access(Roles(None, changes=False), None, None, is_open=True)
    anybody = Browser((await site_of(broker, tmp_path, access, changes=False)).app)
    assert len((await read(anybody, "/groups?cluster=prod"))["groups"]) == 3
    refused = await post(anybody, "/plans", {"cluster": "prod", "group": "search", "to": "latest"})
    assert (refused.status, "without --allow-changes" in refused.text) == (403, True)


async def test_a_group_may_have_any_name(tmp_path: Path) -> None:
    with BackgroundBroker() as broker:
        site = await site_of(broker, tmp_path)
        async with Admin(site.servers) as admin:
            (await admin.create_topics([NewTopic("orders", 1, 1)])).all()
            for name in (HOSTILE, "a/b", "..", " "):
                await commit(admin, name, "orders", 0)
        await site.poll()
        alice = of(site)
        for name in (HOSTILE, "a/b", "..", " "):
            asked = f"cluster=prod&group={quote(name, safe='')}"
            assert (await read(alice, f"/group?{asked}"))["group"] == name
            assert [each["group"] for each in (await read(alice, f"/offsets?{asked}"))["offsets"]] == [name]
            made = await post(alice, "/plans", {"cluster": "prod", "group": name, "to": "latest"})
            assert json.loads(made.body)["names"] == [name]
        cursor = (await read(alice, "/groups?cluster=prod&limit=3"))["next"]
        assert len((await read(alice, f"/groups?cluster=prod&cursor={quote(cursor)}"))["groups"]) == 1


async def test_a_cluster_that_is_away(broker: BackgroundBroker, tmp_path: Path) -> None:
    other = BackgroundBroker()
    with other:
        pass
    site = await site_of(broker, tmp_path, more={"gone": other})
    alice = of(site)
    states = {each["cluster"]: each["state"] for each in (await read(alice, "/clusters"))["clusters"]}
    assert states == {"prod": "up", "gone": "down"}
    wanted = {"cluster": "gone", "group": "search", "to": "latest"}
    for answer in (await alice.get("/api/v1/groups?cluster=gone"), await post(alice, "/plans", wanted)):
        told = json.loads(answer.body)
        assert (answer.status, told["about"]) == (503, "cluster")
        assert "gone cannot be reached now, since 20" in told["detail"]
    deleted = {"cluster": "prod", "group": "audit", "deed": "delete-offsets", "topics": ["orders"]}
    plan_id = json.loads((await post(alice, "/plans", deleted)).body)["id"]
    assert (await post(alice, f"/plans/{plan_id}/apply", {})).status == 200
    change_id = json.loads((await alice.get("/api/v1/changes")).body)["changes"][0]["id"]
    async with Admin(site.servers) as admin:
        await commit(admin, "audit", "orders", 8)
    with BackgroundBroker() as third:
        both = of(await site_of(broker, tmp_path, more={"third": third}))
        refused = await post(both, f"/changes/{change_id}/undo", {"cluster": "third"})
    assert (refused.status, "the plan is for the cluster" in refused.text) == (409, True)


async def test_without_the_library_it_says_what_is_missing(
    broker: BackgroundBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "groupkeeper.web.api.routes", None)
    alice = of(await site_of(broker, tmp_path))
    assert (await alice.get("/api/v1/clusters")).status == 501
    assert (await alice.get("/cluster?cluster=prod")).status == 200


@pytest.mark.timeout(120)
@pytest.mark.skipif(not all(map(shutil.which, ("bash", "curl", "jq"))), reason="needs bash, curl and jq")
def test_the_examples_of_the_guide_run(broker: BackgroundBroker, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"alice {ALICE}\n")
    guide = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    [script] = re.findall(r"^```sh\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    words = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--allow-changes", "--token-file")
    with serving(*words, str(tmp_path / "tokens")) as served:
        served.until_ready()
        script = script.replace("127.0.0.1:8080", served.address)
        env = {**os.environ, "TOKEN": ALICE}
        told = subprocess.run(["bash", "-euo", "pipefail", "-c", script], env=env, capture_output=True, text=True)
        document = json.loads(served.get("/api/v1/openapi.json").text)
    assert told.returncode == 0, told.stderr
    for text in ('"billing"', "Nothing is changed yet. The plan fits", '"after": 8', "Applied by alice and read back"):
        assert text in told.stdout, told.stdout
    for path in re.findall(r"`(?:GET|POST) (/\w+)", guide):
        assert path in document["paths"]
