"""A headless Chromium, driven by Playwright."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["AXE", "WHY_NOT", "Opened", "aside", "chromium", "expect", "hindrances", "opened"]

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_COMMAND = os.environ.get("CHROMIUM") or next((found for name in _NAMES if (found := shutil.which(name))), None)
_PATIENCE_MS = 60_000

WHY_NOT = (
    "no Chromium: 'make browser' installs one, $CHROMIUM names one" if _COMMAND is None
    else "no Playwright: 'make browser' installs it" if find_spec("playwright") is None
    else ""
)  # fmt: skip
"""Why there is no browser here; empty: there is one."""

AXE = next(iter((Path(__file__).parents[2] / "build").glob("axe-core-*/axe.min.js")), None)
"""axe-core, where it is there."""

T = TypeVar("T")


class Opened(NamedTuple):
    """A page in a profile of its own. `complaints`: what the browser reported as an error or a warning; `requests`:
    the addresses that were requested.
    """

    page: Page
    complaints: list[str]
    requests: list[str]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser. As long as it runs, this thread has a running event loop: see `aside`."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=_PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_COMMAND, args=["--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(
    browser: Browser,
    *,
    width: int = 1280,
    height: int = 900,
    is_dark: bool = False,
    scale: int = 1,
    has_scripts: bool = True,
) -> Iterator[Opened]:
    """An empty page. Less than 600 wide is a phone."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        device_scale_factor=scale,
        is_mobile=width < 600,
        color_scheme="dark" if is_dark else "light",
        java_script_enabled=has_scripts,
    )
    context.set_default_timeout(_PATIENCE_MS)
    page = context.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("request", lambda request: requests.append(request.url))
    try:
        yield Opened(page, complaints, requests)
    finally:
        context.close()


def hindrances(page: Page) -> list[str]:
    """What keeps people from using the page as it is now, by the rules of axe-core, which must be there."""
    assert AXE is not None
    page.evaluate(f"{AXE.read_text()};0")
    result: Any = json.loads(page.evaluate("axe.run().then((found) => JSON.stringify(found.violations))"))
    assert page.evaluate("axe.version")
    return [f"{each['id']}: {[node['html'][:160] for node in each['nodes'][:2]]}" for each in result]


def expect(what: Any) -> Any:
    """Playwright's: it is only there where a browser is."""
    from playwright.sync_api import expect

    return expect(what)


def aside(work: Callable[[], T]) -> T:
    """The result of work that has an event loop of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()
