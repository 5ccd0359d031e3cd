"""Sending notices to webhooks until they take them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPMessage
from typing import IO, Any

from groupkeeper.live.alerts import AlertKind, Notice
from groupkeeper.live.mail import TIMEOUT_S, send_mail
from groupkeeper.live.outbox import NotSent, Outbox
from groupkeeper.live.rules import Webhook
from groupkeeper.live.webhooks import request_of, title

_LAST_S = 6.0
"""The time for requests under way as the program ends."""

_MOST_AT_ONCE = 256
"""The most requests to all webhooks together; each has `AT_ONCE`. Threads are started as needed."""

_TRY_AGAIN = frozenset({408, 425, 429})
_UNCERTAIN = frozenset({408, 500, 502, 504})
"""HTTP statuses after which the receiver, or one behind it, may have taken the notice."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a redirected POST would become a GET without the notice."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Returns None, so that the redirect is an error."""


_OPENER = urllib.request.build_opener(_NoRedirects)


def post(url: str, document: Any) -> NotSent | None:
    """Posts the document, or sends the mail. None: it was accepted. The failure's text doesn't have the address, which
    may be a secret.
    """
    if isinstance(document, EmailMessage):
        return send_mail(url, document)
    content = json.dumps(document).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "groupkeeper"}
    try:
        request = urllib.request.Request(url, content, headers, method="POST")
        with _OPENER.open(request, timeout=TIMEOUT_S):
            return None
    except urllib.error.HTTPError as error:
        error.close()
        text = f"HTTP status {error.code}"
        return NotSent(
            text,
            f"{text}: give the address that it redirects to" if 300 <= error.code < 400 else text,
            is_final=error.code < 500 and error.code not in _TRY_AGAIN,
            may_be_taken=error.code in _UNCERTAIN,
            retry_after_ms=_retry_after_ms(error.headers.get("Retry-After")),
        )
    except urllib.error.URLError as error:
        is_refused = isinstance(error.reason, (ConnectionRefusedError, socket.gaierror))
        return NotSent("not reached", f"not reached: {error.reason}", may_be_taken=not is_refused)
    except (OSError, HTTPException, ValueError) as error:
        return NotSent("no answer", f"no answer: {type(error).__name__}", may_be_taken=True)


def _retry_after_ms(text: str | None) -> int | None:
    """The pause in ms from a header with seconds or a date; None: it is neither."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return int(text[:9]) * 1000
    try:
        return max(0, int((parsedate_to_datetime(text).timestamp() - time.time()) * 1000))
    except ValueError:
        return None


class Courier:
    """Sends notices to webhooks. No notice waits for another webhook or another alert."""

    def __init__(
        self, webhooks: Mapping[str, Webhook], tell: Callable[[str], None], rules: Collection[str] = (), kept: str = ""
    ) -> None:
        """`tell` is called with failures. `rules`: the names of all rules. `kept`: `state` before a restart."""
        self._webhooks = webhooks
        self._tell = tell
        self._began_ms = time.time_ns() // 1_000_000 - time.monotonic_ns() // 1_000_000
        before = json.loads(kept or "{}")
        self.outboxes = {name: Outbox(_of_known(before.get(name), rules), self._now_ms()) for name in webhooks}
        self._news = {name: asyncio.Event() for name in webhooks}
        self._pool = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="groupkeeper-webhook")
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._failing: set[str] = set()
        self.changed = asyncio.Event()
        self._mistake: asyncio.Future[None]

    def _now_ms(self) -> int:
        """The time of a clock that is never set."""
        return self._began_ms + time.monotonic_ns() // 1_000_000

    def state(self) -> str:
        """The state to keep for a restart."""
        return json.dumps({name: outbox.state() for name, outbox in self.outboxes.items()})

    def ages_ms(self) -> Iterator[tuple[str, int]]:
        """How long the oldest notice of each webhook waits."""
        return ((name, outbox.age_ms(self._now_ms())) for name, outbox in self.outboxes.items())

    def take(self, notice: Notice) -> None:
        """Queues the notice for its webhooks."""
        for name in notice.to:
            outbox = self.outboxes[name]
            was_dropping = outbox.counts["dropped"] > 0
            outbox.take(notice._replace(to=(name,)), self._now_ms())
            if outbox.counts["dropped"] and not was_dropping:
                self._tell(f"webhook {name}: too many notices wait; the oldest are dropped")
            self._news[name].set()
            self.changed.set()

    async def run(self, *, is_kept: bool) -> None:
        """Sends notices until it is cancelled, even without webhooks; then ends requests under way. `is_kept`:
        waiting notices are sent after a restart; otherwise each is tried once more.

        Raises errors of requests: these are bugs of ours, as failures of webhooks are results.
        """
        self._mistake = asyncio.get_running_loop().create_future()
        self._serve_all()
        try:
            await self._mistake
        finally:
            for each in self._serving.values():
                each.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_S):
                    await self._end(is_kept)
            for each in self._under_way:
                each.cancel()
            self._pool.shutdown(wait=False, cancel_futures=True)
            for name in () if is_kept else self.outboxes:
                self._say_lost(name, "are lost as there is no history")

    def replace(self, webhooks: Mapping[str, Webhook]) -> None:
        """Uses other webhooks from now on. Notices for one stay for its new version of that name; call while it
        runs.
        """
        for name in self.outboxes.keys() - webhooks.keys():
            self._serving.pop(name).cancel()
            self._say_lost(name, "are lost as it is gone")
            del self.outboxes[name], self._news[name]
            self._failing.discard(name)
        for name in webhooks.keys() - self.outboxes.keys():
            self.outboxes[name], self._news[name] = Outbox(None, self._now_ms()), asyncio.Event()
        self._webhooks = webhooks
        self._serve_all()
        self.changed.set()

    def _serve_all(self) -> None:
        for name in self._webhooks.keys() - self._serving.keys():
            task = self._serving[name] = asyncio.create_task(self._serve(name))
            task.add_done_callback(self._note_mistake)

    async def _serve(self, name: str) -> None:
        outbox, news = self.outboxes[name], self._news[name]
        while True:
            news.clear()
            self._begin(name)
            pause_ms = outbox.pause_ms(self._now_ms())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if pause_ms is None else pause_ms / 1000):
                    await news.wait()

    def _begin(self, name: str) -> None:
        """Starts all requests that are due."""
        while (notice := self.outboxes[name].next(self._now_ms())) is not None:
            task = asyncio.create_task(self._bring(self._webhooks[name], notice))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
            task.add_done_callback(self._note_mistake)

    def _note_mistake(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (mistake := task.exception()) is not None and not self._mistake.done():
            self._mistake.set_exception(mistake)

    async def _bring(self, webhook: Webhook, notice: Notice) -> None:
        name, outbox = webhook.name, self.outboxes[webhook.name]
        failure = await asyncio.get_running_loop().run_in_executor(self._pool, post, *request_of(notice, webhook))
        if self.outboxes.get(name) is not outbox:
            return  # the webhook is gone
        if failure is None:
            outbox.succeeded(notice.key, self._now_ms())
        elif outbox.failed(notice.key, failure, self._now_ms()):
            self._tell(f"webhook {name}: {failure.text}; given up: {title(notice)}")
        elif name not in self._failing:
            self._failing.add(name)
            self._tell(f"webhook {name}: {failure.text}; retrying")
        if name in self._failing and not outbox.is_failing:
            self._failing.discard(name)
            self._tell(f"webhook {name}: no notice waits for a retry now")
        self._news[name].set()
        self.changed.set()

    async def _end(self, is_kept: bool) -> None:
        if not is_kept:
            for outbox in self.outboxes.values():
                outbox.hurry(self._now_ms())
        while True:
            if not is_kept:
                for name in self._webhooks:
                    self._begin(name)
            if not self._under_way:
                return
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)

    def _say_lost(self, name: str, why: str) -> None:
        if pending := self.outboxes[name].pending:
            self._tell(f"webhook {name}: {pending} notices were not delivered, and {why}")


def _of_known(kept: Any, rules: Collection[str]) -> Any:
    """The kept state without alerts of removed rules, which would never be resolved."""
    if not kept:
        return None
    waiting = [each for each in kept["waiting"] if each[0][0] in rules or each[-1][-1][0] == AlertKind.RESOLVED]
    return {"waiting": waiting, "missed": [key for key in kept["missed"] if key[0] in rules]}
