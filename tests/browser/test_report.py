"""The report as a browser shows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.browser.opened import AXE, WHY_NOT, expect, hindrances, opened
from tests.fleet_tables import EVIL, fleet, write

from groupkeeper.pipeline.report import page as pages
from groupkeeper.pipeline.report.reading import read_report
from groupkeeper.pipeline.report.sections import anchor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT), pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    tables = write(folder / "tables", fleet(30))
    file = folder / "report.html"
    file.write_text(pages.page(read_report(str(tables), hours=24, top=10)))
    return file.as_uri()


def column(number: int) -> str:
    """The texts of a column of the table of groups, from top to bottom."""
    return f"[...document.querySelectorAll('#table-groups tbody tr')].map((row) => row.cells[{number}].textContent)"


def test_it_is_shown_sorted_and_narrowed_down(url: str, browser: Browser) -> None:
    with opened(browser) as (page, complaints, requests):
        page.goto(url)
        assert page.evaluate("document.querySelectorAll('svg.plot path.curve').length") >= 10
        assert page.evaluate("document.querySelectorAll('svg.plot rect.bar').length") > 50
        assert page.evaluate("document.querySelector('svg.plot').getBoundingClientRect().width") > 200
        texts = page.evaluate(column(1))
        assert len(texts) == 30
        (evil,) = [each for each in texts if "alert(1)" in each]
        assert evil == EVIL.replace("\u202e", "\\u202e").replace("\x1b", "\\x1b")
        for number, kind in ((3, int), (1, str)):
            before = page.evaluate(column(number))
            orders = []
            for _ in range(2):
                page.evaluate(f"document.querySelector('#table-groups th:nth-child({number + 1}) button').click()")
                found = page.evaluate(column(number))
                assert sorted(found) == sorted(before)
                orders.append(
                    [int(each.replace(",", "").replace("—", "-1")) for each in found] if kind is int else found
                )
            if kind is int:
                assert orders == [sorted(orders[0], reverse=True), sorted(orders[0])]
            else:
                assert orders == [sorted(orders[0], key=str.lower), sorted(orders[0], key=str.lower, reverse=True)]
        sorting = "document.querySelector('#table-groups th[aria-sort]').textContent"
        assert page.evaluate(sorting) == "group"
        page.evaluate(
            "const field = document.querySelector('.filter'); field.value = 'BILLING-0017';"
            "field.dispatchEvent(new Event('input'))"
        )
        assert page.evaluate("document.querySelectorAll('#table-groups tbody tr:not([hidden])').length") == 1
        assert complaints == []
        assert requests == [url]


@pytest.mark.parametrize(
    ("width", "is_dark", "medium"), [(390, True, "screen"), (1280, False, "screen"), (760, True, "print")]
)
def test_it_fits_the_screen_and_can_be_read(url: str, browser: Browser, width: int, is_dark: bool, medium: str) -> None:
    """WCAG AA: a contrast of at least 4.5 between text and what is behind it, on paper too."""
    with opened(browser, width=width, is_dark=is_dark) as (page, complaints, _):
        page.emulate_media(media=medium)
        page.goto(url)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        poor = page.evaluate(
            """(() => {
  const light = (text) => {
    const parts = text.match(/[\\d.]+/g).slice(0, 3).map((each) => each / 255);
    const [r, g, b] = parts.map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
  };
  const poor = new Set();
  for (const each of document.querySelectorAll("h1,h2,h3,p,dt,dd,a,li,span,th,td,figcaption,footer")) {
    const [one, two] = [light(getComputedStyle(each).color), light(behind(each))].sort((a, b) => b - a);
    const isShown = getComputedStyle(each).display !== "none";
    if (isShown && (one + 0.05) / (two + 0.05) < 4.5) poor.add(each.tagName + "." + each.className);
  }
  return [...poor];
})()"""
        )
        assert poor == []
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (medium == "print")
        assert complaints == []


SIZES = {
    "light": {"width": 1280}, "dark": {"width": 1280, "is_dark": True}, "phone": {"width": 390},
    "phone in the dark": {"width": 390, "is_dark": True}, "at 200 %": {"width": 640, "height": 450, "scale": 2},
}  # fmt: skip
OPEN_ALL = "document.querySelectorAll('main details').forEach((each) => { each.open = true; })"
CUT = """[...document.querySelectorAll('main *')].filter((each) => each.checkVisibility() && each.clientWidth
  && each.scrollWidth > each.clientWidth + 1).map((each) => each.outerHTML.slice(0, 200))"""


@pytest.mark.skipif(AXE is None, reason="no axe-core: 'make browser' gets it")
@pytest.mark.parametrize("size", SIZES)
def test_nothing_keeps_people_from_reading_it(url: str, browser: Browser, size: str) -> None:
    """By the rules of axe-core, as it is first and with all that is folded open."""
    with opened(browser, **SIZES[size]) as (page, complaints, _):  # type: ignore[arg-type]
        page.goto(url)
        assert hindrances(page) == []
        page.evaluate(OPEN_ALL)
        expect(page.locator(".values table").first).to_be_visible()
        assert hindrances(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
        assert complaints == []


@pytest.mark.parametrize("has_scripts", [True, False])
def test_on_paper_all_is_open_and_nothing_is_cut_off(url: str, browser: Browser, has_scripts: bool) -> None:
    """A4 is 210 mm wide, with 12 mm on each side 703 pixels."""
    with opened(browser, width=703, has_scripts=has_scripts) as (page, _, _):
        page.goto(url)
        page.emulate_media(media="print")
        folded = "[...document.querySelectorAll('main details:not(.values) > :not(.filter)')]"
        hidden = f"{folded}.filter((each) => !each.checkVisibility({{contentVisibilityAuto: true}})).length"
        assert page.evaluate(hidden) == 0
        assert page.evaluate(CUT) == []
        assert page.locator(".group .wide tbody tr").count() > 60
    with opened(browser, width=390, has_scripts=has_scripts) as (page, _, _):
        page.goto(url)
        before = page.locator("main details[open]").count()
        pages = page.pdf(format="A4").count(b"/Type /Page\n")
        assert pages > 15, "with the sections of 30 groups"
        assert page.locator("main details[open]").count() == before


def test_plots_have_axes_and_give_their_values_to_a_pointer_and_to_the_keyboard(url: str, browser: Browser) -> None:
    with opened(browser) as (page, complaints, _):
        page.goto(url)
        chart = page.locator("#lag .chart").first
        values = [each.split(":") for each in (chart.get_attribute("data-values") or "").split()]
        frame, readout = chart.locator(".frame"), chart.locator(".readout")
        assert chart.locator(".scale span").first.inner_text() == "records to read"
        assert chart.locator(".axis .zone").inner_text() == "UTC"
        marks = chart.locator(".axis span:not(.zone)").all_inner_texts()
        assert (marks[0], marks[-1], len(marks)) == ("09:00", "12:00", 5)
        top, half, zero = chart.locator(".y span").all_inner_texts()
        assert zero == "0"
        assert float(top.split()[0]) == pytest.approx(2 * float(half.split()[0]), rel=0.01)

        plot = chart.locator("svg.plot")
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        assert box
        page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 20)
        last = f"{int(values[-1][1]):,} records to read"
        expect(readout).to_have_text(f"2026-03-01 12:00:30 UTC: {last}")
        page.mouse.move(box["x"] + 1, box["y"] + 20)
        expect(readout).to_have_text("2026-03-01 09:00:00 UTC: 0 records to read")
        now = plot.bounding_box()
        assert now
        assert now["y"] == pytest.approx(box["y"]), "it stays where it is under the pointer"
        page.mouse.move(5, 5)
        expect(readout).to_have_text("")

        frame.focus()
        expect(frame).to_have_attribute("aria-valuetext", f"2026-03-01 12:00:30 UTC: {last}")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        said = frame.get_attribute("aria-valuetext") or ""
        before = values[-3][1]
        assert said.endswith(f": {int(before):,} records to read" if before else ": not known")
        expect(readout).to_have_text(said)
        page.keyboard.press("Home")
        expect(readout).to_have_text("2026-03-01 09:00:00 UTC: 0 records to read")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"

        page.get_by_role("button", name="the last 1 h").click()
        expect(page.get_by_role("button", name="the last 1 h")).to_have_attribute("aria-pressed", "true")
        assert chart.locator(".axis span:not(.zone)").all_inner_texts()[0].startswith("11:00")
        frame.focus()
        page.keyboard.press("Home")
        assert (frame.get_attribute("aria-valuetext") or "") > "2026-03-01 10:55"
        chart.locator(".values summary").click()
        shown = chart.locator(".values tbody tr")
        expect(shown.first).to_contain_text(f"{int(values[-1][1]):,}")
        assert 0 < shown.count() < len(values)
        assert complaints == []


def test_on_a_phone_sections_are_folded_and_open_by_a_touch_or_a_link(url: str, browser: Browser) -> None:
    with opened(browser, width=390, height=800) as (page, complaints, _):
        page.goto(url)
        assert page.locator("details.fold").count() == 8
        assert page.locator("details.fold[open]").count() == 0
        page.locator("#rewinds summary").first.click()
        expect(page.locator("#table-rewinds")).to_be_visible()
        page.locator("nav a[href='#stale']").click()
        expect(page.locator("#table-stale")).to_be_visible()
        page.locator(".finding a").first.click()
        name = page.evaluate("location.hash.slice(1)")
        expect(page.locator(f"#{name}[open]")).to_be_visible()
        assert page.evaluate("document.activeElement.parentElement.id") == name
        top = page.evaluate(f"document.getElementById('{name}').getBoundingClientRect().top")
        assert -2 < top < 100
        assert complaints == []


def test_who_looks_sees_the_worst_first_and_what_is_not_known(url: str, browser: Browser) -> None:
    with opened(browser) as (page, _, _):
        page.goto(url)
        first = page.evaluate("document.querySelector('.finding li').getBoundingClientRect().bottom")
        assert first < 400
        shown = page.evaluate("[...document.querySelectorAll('.finding h2')].map((each) => each.textContent)")
        assert shown == [
            "12 Records are not read, or nothing is committed",
            "1 Rebalance storms that are over", "1 Held up by transactions",
            "6 Unused: to clean up, or to keep from expiring",
        ]  # fmt: skip
        assert page.evaluate("document.querySelectorAll('.finding:not(:has(code))').length") == 0
        # Where a line is dashed a shade lies behind it, as wide as the line is.
        widths = page.evaluate(
            "[...document.querySelectorAll('svg.plot:has(.least)')].map((each) => ["
            "each.querySelector('.least').getBoundingClientRect().right,"
            "each.querySelector('.dim').getBoundingClientRect().right])"
        )
        assert len(widths) == 10
        assert all(abs(line - shade) < 3 for line, shade in widths)
        clipped = page.evaluate(
            "[...document.querySelectorAll('dd, .axis span, h3, .finding h2, .finding span')]"
            ".filter((each) => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1)"
            ".map((each) => each.outerHTML)"
        )
        assert clipped == []


def test_a_group_of_a_large_fleet_opens_by_its_name(tmp_path: Path, browser: Browser) -> None:
    """Its row and its section are packed until they are asked for."""
    tables = write(tmp_path / "tables", fleet(700))
    file = tmp_path / "report.html"
    report = read_report(str(tables), hours=24, top=10)
    file.write_text(pages.page(report))
    last = next(each for each in reversed(report.groups) if len(each.group_id) < 30 and each.group_id.isascii())
    name = anchor(last.cluster, last.group_id)
    with opened(browser) as (page, complaints, requests):
        page.goto(file.as_uri())
        assert page.evaluate("document.querySelectorAll('#table-groups tbody tr').length") < 700
        assert page.evaluate(f"document.getElementById('{name}')") is None
        page.locator("#table-groups").locator("xpath=..").locator("xpath=..").locator("input").fill(last.group_id)
        link = page.locator(f"#table-groups a[href='#{name}']")
        link.click()
        section = page.locator(f"#{name}[open]")
        section.wait_for(timeout=10_000)
        assert last.group_id in section.inner_text()
        page.goto(f"{file.as_uri()}?again#{name}")
        page.locator(f"#{name}[open]").wait_for(timeout=10_000)
        assert complaints == []
        assert [each for each in requests if not each.startswith(file.as_uri())] == []


def test_it_is_readable_without_javascript(url: str, browser: Browser) -> None:
    with opened(browser, has_scripts=False) as (page, _, _):
        page.goto(url)
        assert page.evaluate("document.querySelectorAll('#table-groups tbody tr').length") == 30
        assert page.evaluate("document.querySelectorAll('button').length") == 0
        assert page.evaluate("document.querySelector('#table-groups th').textContent") == "status"
