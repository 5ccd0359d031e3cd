"""Telling webhooks: what they are sent, and sending it until they take it."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any

from groupkeeper.live.alerts import Kind, Notice
from groupkeeper.live.rules import Template, Webhook

_TIMEOUT_S = 5.0
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_MOST_WAITING = 1000
"""Of one webhook: when it takes nothing for long, the oldest go."""

_TRIES = 20
_ALERTMANAGER_PATH = "/api/v2/alerts"
_LEASE = 5
"""Alertmanager resolves an alert that was not repeated for this number of intervals, for example after this program
ended.
"""


def title(notice: Notice) -> str:
    """One line."""
    rule, cluster, group = notice.key
    what = f"{cluster}: {group}" if group else cluster
    is_over = notice.kind is Kind.RESOLVED
    return f"{'Resolved' if is_over else notice.severity.capitalize()}: {what}: {rule}"


def request_of(notice: Notice, webhook: Webhook) -> tuple[str, Any]:
    """The address, and the document to send there as JSON."""
    if webhook.template is Template.SLACK:
        return webhook.url, _slack(notice)
    if webhook.template is Template.ALERTMANAGER:
        url = webhook.url.rstrip("/")
        return url if url.endswith(_ALERTMANAGER_PATH) else url + _ALERTMANAGER_PATH, [_alertmanager(notice, webhook)]
    return webhook.url, {
        "schema": "alert/1",
        "status": notice.kind.value,
        "rule": notice.key.rule,
        "cluster": notice.key.cluster,
        "group": notice.key.group or None,
        "severity": notice.severity,
        "owner": notice.owner or None,
        "since": _time(notice.since_ms),
        "at": _time(notice.at_ms),
        "texts": list(notice.texts),
        "command": notice.command or None,
        "repeated": notice.is_repeat,
    }


def _slack(notice: Notice) -> Any:
    lines = [f"*{_escaped(title(notice))}*{' (still)' if notice.is_repeat else ''}", *map(_escaped, notice.texts)]
    if notice.owner:
        lines.append(f"Owner: {_escaped(notice.owner)}")
    if notice.command:
        lines.append(f"`{_escaped(notice.command).replace('`', chr(39))}`")
    lines.append(f"since {_time(notice.since_ms)}")
    return {
        "text": _escaped(title(notice)),
        "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)[:2900]}}],
    }


def _escaped(text: str) -> str:
    """In Slack's format: otherwise a group's name could notify all members of a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _alertmanager(notice: Notice, webhook: Webhook) -> Any:
    rule, cluster, group = notice.key
    labels = {"alertname": rule, "cluster": cluster, "severity": notice.severity, "source": "groupkeeper"}
    labels |= {"group": group} if group else {}
    labels |= {"owner": notice.owner} if notice.owner else {}
    annotations = {"summary": title(notice), "description": "; ".join(notice.texts)}
    annotations |= {"command": notice.command} if notice.command else {}
    lease_ms = _LEASE * (webhook.repeat_ms or 24 * 3600_000)
    ends_ms = notice.at_ms if notice.kind is Kind.RESOLVED else notice.at_ms + lease_ms
    return {"labels": labels, "annotations": annotations, "startsAt": _time(notice.since_ms), "endsAt": _time(ends_ms)}


def _time(ms: int) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(ms / 1000))}.{ms % 1000:03}Z"


class Refused(Exception):
    """The webhook did not take a notice. ``is_final``: it never will."""

    def __init__(self, text: str, *, is_final: bool) -> None:
        super().__init__(text)
        self.is_final = is_final


def post(url: str, document: Any) -> None:
    """Post the document. Raises Refused; its text doesn't have the address, which may be a secret."""
    content = json.dumps(document).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "groupkeeper"}
    try:
        request = urllib.request.Request(url, content, headers, method="POST")
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            answer.read(1000)
    except urllib.error.HTTPError as error:
        is_final = 400 <= error.code < 500 and error.code not in (408, 425, 429)
        raise Refused(f"HTTP status {error.code}", is_final=is_final) from None
    except urllib.error.URLError as error:
        raise Refused(f"not reached: {error.reason}", is_final=False) from None
    except (OSError, HTTPException, ValueError) as error:
        raise Refused(f"not reached: {type(error).__name__}", is_final=False) from None


class Courier:
    """Sends notices to webhooks, to each independently: a hanging one doesn't delay the others.

    Attributes:
        counts: notices by webhook and outcome: sent, failed (given up), dropped (too many waited).
    """

    def __init__(self, webhooks: Mapping[str, Webhook], tell: Callable[[str], None]) -> None:
        """``tell`` is called with failures."""
        self.counts: Counter[tuple[str, str]] = Counter()
        self._webhooks = webhooks
        self._tell = tell
        self._waiting: dict[str, asyncio.Queue[Notice]] = {name: asyncio.Queue(_MOST_WAITING) for name in webhooks}

    def take(self, notice: Notice) -> None:
        """Send the notice to its webhooks."""
        for name in notice.to:
            queue = self._waiting[name]
            if queue.full():
                queue.get_nowait()
                self.counts[name, "dropped"] += 1
            queue.put_nowait(notice)

    async def run(self) -> None:
        """Bring what comes, without end."""
        async with asyncio.TaskGroup() as group:
            for name in self._webhooks:
                group.create_task(self._serve(name))

    async def _serve(self, name: str) -> None:
        while True:
            notice = await self._waiting[name].get()
            outcome = "sent" if await self._bring(notice, self._webhooks[name]) else "failed"
            self.counts[name, outcome] += 1

    async def _bring(self, notice: Notice, webhook: Webhook) -> bool:
        url, document = request_of(notice, webhook)
        pause_s = _FIRST_PAUSE_S
        for number in range(_TRIES):
            try:
                await asyncio.to_thread(post, url, document)
                return True
            except Refused as refusal:
                is_last = refusal.is_final or number + 1 == _TRIES
                if number == 0 or is_last:
                    end = "given up" if is_last else "retrying"
                    self._tell(f"webhook {webhook.name}: {refusal}; {end}")
                if is_last:
                    return False
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        return False
