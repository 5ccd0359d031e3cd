"""The report as a browser shows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.browser.opened import WHY_NOT, opened
from tests.fleet_tables import EVIL, fleet, write

from groupkeeper.pipeline.report import page as pages
from groupkeeper.pipeline.report.reading import read_report
from groupkeeper.pipeline.report.sections import anchor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT),
    pytest.mark.timeout(180),
]


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


def test_who_looks_sees_the_worst_first_and_what_is_not_known(url: str, browser: Browser) -> None:
    with opened(browser) as (page, _, _):
        page.goto(url)
        first = page.evaluate("document.querySelector('.finding li').getBoundingClientRect().bottom")
        assert first < 400
        shown = page.evaluate("[...document.querySelectorAll('.finding h3')].map((each) => each.textContent)")
        assert shown == [
            "9 Records will be lost", "6 Fall further behind, or catch up late", "6 Stopped or stalled",
            "1 Rebalance storms", "1 Held up by transactions", "6 Unused",
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
            "[...document.querySelectorAll('dd, .axis span, h3, .finding span')]"
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
