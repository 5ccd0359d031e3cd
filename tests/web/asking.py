"""Requests to the application itself, without a server: as a browser sends them, one session each."""

import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.types import ASGIApp, Message


class Answer(NamedTuple):
    """`headers` have lower-case names. `path`: what was answered, after redirects."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    path: str

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def words(self) -> str:
        """What a reader sees."""
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", self.text)).split())

    def field(self, name: str) -> str:
        """The value of a hidden field."""
        found = re.search(rf'name="{name}" value="([^"]*)"', self.text)
        assert found is not None, self.words
        return unescape(found[1])

    def parameter(self, name: str) -> str:
        return parse_qs(urlsplit(self.path).query)[name][0]


class Browser:
    """Keeps cookies and follows redirects. `peer`: whose connection it is; `headers`: sent with everything."""

    def __init__(self, app: ASGIApp, *, peer: str = "127.0.0.1", headers: Mapping[str, str] = {}) -> None:
        self.cookies: dict[str, str] = {}
        self._app = app
        self._peer = peer
        self._headers = headers

    async def get(self, path: str, **headers: str) -> Answer:
        return await self._follow("GET", path, b"", headers)

    async def post(self, path: str, form: Mapping[str, str | Sequence[str]], **headers: str) -> Answer:
        kind = {"content_type": "application/x-www-form-urlencoded"}
        return await self._follow("POST", path, urlencode(form, doseq=True).encode(), {**kind, **headers})

    async def send(self, path: str, body: bytes, **headers: str) -> Answer:
        """A body of any kind."""
        return await self._follow("POST", path, body, headers)

    async def log_in(self, token: str) -> Answer:
        return await self.post("/login", {"token": token, "target": "/"})

    async def seal(self, path: str) -> str:
        return (await self.get(path)).field("seal")

    async def _follow(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        answer = await self._ask(method, path, body, headers)
        if answer.status == 303:
            return await self._follow("GET", answer.headers["location"], b"", {})
        return answer

    async def _ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        parts = urlsplit(path)
        given = {"host": "127.0.0.1", **self._headers, **{key.replace("_", "-"): text for key, text in headers.items()}}
        if self.cookies:
            given["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        scope: dict[str, Any] = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": parts.path, "raw_path": parts.path.encode(), "query_string": parts.query.encode(), "root_path": "",
            "headers": [(key.encode(), text.encode("latin-1")) for key, text in given.items()],
            "client": (self._peer, 40000), "server": ("127.0.0.1", 8080),
        }  # fmt: skip
        sent: list[Message] = []
        unread = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            return unread.pop() if unread else {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        found: dict[str, str] = {}
        for key, text in sent[0]["headers"]:
            found[key.decode()] = text.decode("latin-1")
            if key == b"set-cookie":
                name, _, value = text.decode().partition(";")[0].partition("=")
                self.cookies[name] = value
        whole = b"".join(each.get("body", b"") for each in sent[1:])
        return Answer(sent[0]["status"], found, whole, path)
