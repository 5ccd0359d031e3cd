"""What a browser does: it logs in, gets pages, and sends their forms."""

import time
from collections.abc import Mapping
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

from tests.rig.judges.exporter import PATIENCE_S


class Form(HTMLParser):
    """The fields of the last form that goes to an address."""

    def __init__(self, html: str, action: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._action = action
        self._is_in = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self._is_in = given.get("action") == self._action
        elif tag == "input" and self._is_in and given.get("type") == "hidden":
            self.fields[given.get("name") or ""] = given.get("value") or ""


class Browser:
    """Somebody who has logged in."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()))
        self.post("/login", {"token": token, "target": "/"})

    def get(self, path: str, **parameters: str) -> str:
        return _found(path, *self.ask(f"{path}?{urlencode(parameters)}"))

    def post(self, path: str, fields: Mapping[str, str]) -> str:
        return _found(path, *self.ask(path, fields))

    def ask(self, path: str, fields: Mapping[str, str] | None = None) -> tuple[int, str]:
        """The status and the text of any answer."""
        body = None if fields is None else urlencode(fields).encode()
        try:
            with self._opener.open(f"http://{self._address}{path}", body, timeout=PATIENCE_S) as answer:
                return 200, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    def wait_for(self, path: str, text: str = "", **parameters: str) -> str:
        """A page that is there, and has a text, once a poll has found what it is about."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            status, page = self.ask(f"{path}?{urlencode(parameters)}")
            if status == 200 and text in page:
                return page
            assert time.monotonic() < deadline, f"{path} {parameters} has no {text!r}: {status} {page[-700:]}"
            time.sleep(0.3)


def _found(path: str, status: int, page: str) -> str:
    if status != 200:
        raise AssertionError(f"{path} gave {status}: {page[-700:]}")
    return page
