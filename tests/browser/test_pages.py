"""The pages of `groupkeeper serve` as a browser shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.acts import commit
from tests.browser.opened import WHY_NOT, aside, expect, opened
from tests.live.stage import arrange
from tests.web.serving import Served, serving

from groupkeeper.testing.background import BackgroundBroker

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

pytestmark = [pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT), pytest.mark.timeout(180)]

PATHS = ("/", "/cluster?cluster=prod", "/group?cluster=prod&group=search", "/group?cluster=prod&group=nobody")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with BackgroundBroker() as broker:
        aside(lambda: arrange(broker.bootstrap_servers))
        where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--bootstrap-server", "dr=127.0.0.1:1")
        with serving(*where, "--timeout", "3s") as served:
            served.until_ready()
            yield served


@pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (390, True)])
def test_pages_keep_within_the_window_and_ask_for_nothing_else(
    served: Served, browser: Browser, width: int, is_dark: bool
) -> None:
    with opened(browser, width=width, is_dark=is_dark) as (page, complaints, requests):
        for path in PATHS:
            page.goto(f"http://{served.address}{path}")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            assert page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") == "1320px"
        assert [each for each in complaints if "404" not in each] == []
        assert all(each.startswith(f"http://{served.address}/") for each in requests)


def test_tables_that_are_too_wide_for_a_phone_show_that_and_scroll_by_keyboard(
    served: Served, browser: Browser
) -> None:
    with opened(browser, width=390) as (page, _, _):
        for path in PATHS[2:3]:
            page.goto(f"http://{served.address}{path}")
            hidden = """() => [...document.querySelectorAll("*")].filter((each) =>
                each.scrollWidth > each.clientWidth && getComputedStyle(each).overflowX === "auto")
                .map((each) => [each.role || each.getAttribute("role"), each.tabIndex, each.getAttribute("aria-label"),
                    getComputedStyle(each).backgroundAttachment])"""
            for role, tab_index, name, attachment in (found := page.evaluate(hidden)):
                assert (role, tab_index, bool(name)) == ("group", 0, True)
                # Shades at both edges stay, and what covers them at the ends moves with the table.
                assert attachment == "local, local, scroll, scroll, scroll"
            assert found
            table = page.locator("[role=group]").first
            table.focus()
            page.keyboard.press("ArrowRight")
            page.evaluate("""() => new Promise((done) => {
                const look = () => document.activeElement.scrollLeft > 0 ? done() : requestAnimationFrame(look);
                look();
            })""")


def test_on_a_phone_each_group_of_a_list_is_a_card_that_names_its_figures(served: Served, browser: Browser) -> None:
    with opened(browser, width=390) as (page, _, _):
        for path in ("/cluster?cluster=prod", "/search?q=s"):
            page.goto(f"http://{served.address}{path}")
            assert page.locator("[role=group]").evaluate("(each) => each.scrollWidth <= each.clientWidth"), path
            cell = page.locator("tbody td.n").first
            assert cell.evaluate("(each) => getComputedStyle(each, '::before').content") == '"lag"'
        page.goto(f"http://{served.address}/cluster?cluster=prod")
        page.locator("th a", has_text="members").click()
        expect(page.locator("th[aria-sort]")).to_have_text("members ▼")


def test_one_gets_from_the_fleet_to_a_group_and_the_list_is_sorted_by_links(served: Served, browser: Browser) -> None:
    with opened(browser) as (page, _, _):
        page.goto(f"http://{served.address}/")
        page.goto(page.evaluate("[...document.links].find((link) => link.textContent === 'prod').href"))
        page.goto(page.evaluate("[...document.links].find((link) => link.textContent === 'lag').href"))
        groups = "[...document.querySelectorAll('tbody tr')].map((row) => row.cells[1].textContent)"
        assert page.evaluate(groups) == ["search", "billing", "audit"]
        assert page.evaluate("document.querySelector('th[aria-sort]').textContent") == "lag ▼"
        page.goto(page.evaluate("[...document.links].find((link) => link.textContent === 'search').href"))
        assert page.evaluate("document.querySelector('h1').textContent") == "search"


def test_a_poll_between_a_page_and_its_stream_is_not_missed(browser: Browser) -> None:
    def write_before_the_poll(route: Route) -> None:
        written = route.fetch()
        route.fulfill(response=written, body=written.text().replace("search", "from before"))

    with BackgroundBroker() as broker:
        aside(lambda: arrange(broker.bootstrap_servers))
        with serving("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--interval", "1h") as served:
            served.until_ready()
            with opened(browser) as (page, _, _):
                page.route("**/cluster?*", write_before_the_poll, times=1)
                page.goto(f"http://{served.address}/cluster?cluster=prod&sort=group")
                expect(page.locator("tbody tr").last).to_contain_text("search")


def test_a_page_is_brought_up_to_date_where_it_stands(browser: Browser) -> None:
    with BackgroundBroker() as broker:
        aside(lambda: arrange(broker.bootstrap_servers))
        where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}")
        with serving(*where, "--interval", "500ms") as served, opened(browser) as (page, complaints, _):
            served.until_ready()
            page.goto(f"http://{served.address}/cluster?cluster=prod&sort=group")
            page.evaluate("document.querySelector('input[name=q]').value = 'typed'")
            page.evaluate("[...document.links].find((link) => link.textContent === 'search').focus()")
            lag = page.locator("tbody tr td:nth-child(3)")
            assert lag.all_text_contents() == ["0", "5", "8"]
            expect(page.locator("#live")).to_have_text("live")
            aside(lambda: commit(broker.bootstrap_servers, "search", {("orders", 0): 6}))
            expect(lag).to_have_text(["0", "5", "2"])
            # What one does there goes on.
            assert page.evaluate("document.activeElement.textContent") == "search"
            assert page.evaluate("document.querySelector('input[name=q]').value") == "typed"
            assert [each for each in complaints if "404" not in each] == []
            served.process.kill()
            expect(page.locator("#live")).to_have_text("The server does not answer.")
            aside(lambda: commit(broker.bootstrap_servers, "search", {("orders", 0): 7}))
            # Another one at its place: the page is of its first poll, though no other will come.
            with serving(*where, "--interval", "1h", "--port", str(served.port)):
                expect(lag).to_have_text(["0", "5", "1"])
                expect(page.locator("#live")).to_have_text("live")


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_on_the_first_page_covers_anything_else(served: Served, browser: Browser, width: int) -> None:
    with opened(browser, width=width) as (page, _, _):
        page.goto(f"http://{served.address}/")
        expect(page.locator(".needs .name")).to_have_text(["search"])
        page.locator("#left summary").click()
        covered = page.evaluate("""() => {
            const seen = [...document.querySelectorAll("main *")].filter((each) =>
                !each.closest("table,svg,select")
                && [...each.childNodes].some((one) => one.nodeType === 3 && one.data.trim()));
            const boxes = seen.flatMap((each) => [...each.getClientRects()].map((box) => [each, box]));
            const meet = (one, two) => one.left < two.right - 1 && two.left < one.right - 1
                && one.top < two.bottom - 4 && two.top < one.bottom - 4;
            return boxes.flatMap(([one, box], at) => boxes.slice(at + 1)
                .filter(([two, other]) => !one.contains(two) && !two.contains(one) && meet(box, other))
                .map(([two]) => `${one.textContent} / ${two.textContent}`));
        }""")
        assert covered == []
        page.locator(".needs code").first.click()
        assert page.evaluate("getSelection().toString()").startswith("groupkeeper groups why --bootstrap-server 127")


def test_what_was_opened_stays_open_and_keeps_the_focus(browser: Browser) -> None:
    with BackgroundBroker() as broker:
        aside(lambda: arrange(broker.bootstrap_servers))
        where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--interval", "500ms")
        with serving(*where) as served, opened(browser) as (page, _, _):
            served.until_ready()
            page.goto(f"http://{served.address}/")
            expect(page.locator("#live")).to_have_text("live")
            page.locator("#left summary").focus()
            page.keyboard.press("Enter")
            expect(page.locator("#left table")).to_be_visible()
            aside(lambda: commit(broker.bootstrap_servers, "search", {("orders", 0): 8}))
            expect(page.locator(".needs")).to_have_count(0)  # the row of search is gone
            assert page.evaluate("document.getElementById('left').open")
            assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
