"""The pages of `groupkeeper serve` as a browser shows them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser.chromium import COMMAND, Chromium
from tests.live.stage import arrange, commit
from tests.web.serving import Served, serving

from groupkeeper.client.admin import Admin
from groupkeeper.testing.background import BackgroundBroker

pytestmark = [
    pytest.mark.skipif(COMMAND is None, reason="no Chromium: 'make browser' installs one, $CHROMIUM names one"),
    pytest.mark.timeout(180),
]

PATHS = ("/", "/cluster?cluster=prod", "/group?cluster=prod&group=search", "/group?cluster=prod&group=nobody")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with BackgroundBroker() as broker:
        arrange(broker.bootstrap_servers)
        where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--bootstrap-server", "dr=127.0.0.1:1")
        with serving(*where, "--timeout", "300ms") as served:
            served.until_ready()
            yield served


@pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (390, True)])
def test_pages_keep_within_the_window_and_ask_for_nothing_else(
    served: Served, tmp_path: Path, width: int, is_dark: bool
) -> None:
    with Chromium(tmp_path, width=width, is_dark=is_dark) as browser:
        for path in PATHS:
            browser.open(f"http://{served.address}{path}")
            assert browser.run("document.documentElement.scrollWidth <= innerWidth"), path
            assert browser.run("getComputedStyle(document.querySelector('main')).maxWidth") == "1320px"
        assert [each for each in browser.complaints if "404" not in each] == []
        assert all(each.startswith(f"http://{served.address}/") for each in browser.requests)


def test_one_gets_from_the_fleet_to_a_group_and_the_list_is_sorted_by_links(served: Served, tmp_path: Path) -> None:
    with Chromium(tmp_path) as browser:
        browser.open(f"http://{served.address}/")
        browser.open(browser.run("[...document.links].find((link) => link.textContent === 'prod').href"))
        browser.open(browser.run("[...document.links].find((link) => link.textContent === 'lag').href"))
        groups = "[...document.querySelectorAll('tbody tr')].map((row) => row.cells[1].textContent)"
        assert browser.run(groups) == ["search", "billing", "audit"]
        assert browser.run("document.querySelector('th[aria-sort]').textContent") == "lag ▼"
        browser.open(browser.run("[...document.links].find((link) => link.textContent === 'search').href"))
        assert browser.run("document.querySelector('h1').textContent") == "search"


def test_a_page_is_brought_up_to_date_where_it_stands(tmp_path: Path) -> None:
    async def commit_6(servers: str) -> None:
        async with Admin(servers) as admin:
            await commit(admin, "search", "orders", 6)

    with BackgroundBroker() as broker:
        arrange(broker.bootstrap_servers)
        where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}")
        with serving(*where, "--interval", "500ms") as served, Chromium(tmp_path) as browser:
            served.until_ready()
            browser.open(f"http://{served.address}/cluster?cluster=prod&sort=group")
            browser.run("document.querySelector('input[name=q]').value = 'typed'")
            browser.run("[...document.links].find((link) => link.textContent === 'search').focus()")
            lag = "[...document.querySelectorAll('tbody tr')].map((row) => row.cells[4].textContent).join()"
            assert browser.run(lag) == "0,5,8"
            browser.until("document.getElementById('live').textContent === 'live'")
            asyncio.run(commit_6(broker.bootstrap_servers))
            browser.until(f"{lag} === '0,5,2'")
            # What one does there goes on.
            assert browser.run("document.activeElement.textContent") == "search"
            assert browser.run("document.querySelector('input[name=q]').value") == "typed"
            assert [each for each in browser.complaints if "404" not in each] == []
            served.process.kill()
            browser.until("document.getElementById('live').textContent === 'The server does not answer.'")
