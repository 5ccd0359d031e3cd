"""The requests to webhooks, in their formats."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from groupkeeper.live.alerts import AlertKind, Notice
from groupkeeper.live.rules import Template, Webhook
from groupkeeper.operations.times import utc_text

_ALERTMANAGER_PATH = "/api/v2/alerts"
_LEASE = 5
"""Alertmanager resolves an alert that is not repeated for this many intervals, for example after this program ended."""


def title(notice: Notice) -> str:
    """The title of a notice, in one line."""
    rule, cluster, group = notice.key
    what = f"{cluster}: {group}" if group else cluster
    is_over = notice.kind is AlertKind.RESOLVED
    return f"{'Resolved' if is_over else notice.severity.capitalize()}: {what}: {rule}"


def request_of(notice: Notice, webhook: Webhook) -> tuple[str, Any]:
    """The address, and the document to send there as JSON, or as a message of mail."""
    if webhook.template is Template.SLACK:
        return webhook.url, _slack(notice)
    if webhook.template is Template.TEAMS:
        return webhook.url, _teams(notice)
    if webhook.template is Template.PAGERDUTY:
        return webhook.url, _pagerduty(notice, webhook.key)
    if webhook.template is Template.MAIL:
        return webhook.url, _mail(notice, webhook)
    if webhook.template is Template.ALERTMANAGER:
        url = webhook.url.rstrip("/")
        return url if url.endswith(_ALERTMANAGER_PATH) else url + _ALERTMANAGER_PATH, [_alertmanager(notice, webhook)]
    return webhook.url, _facts(notice)


def _facts(notice: Notice) -> dict[str, Any]:
    return {
        "schema": "alert/1",
        "status": notice.kind.value,
        "rule": notice.key.rule,
        "cluster": notice.key.cluster,
        "group": notice.key.group or None,
        "severity": notice.severity,
        "owner": notice.owner or None,
        "since": utc_text(notice.since_ms),
        "at": utc_text(notice.at_ms),
        "texts": list(notice.texts),
        "command": notice.command or None,
        "repeated": notice.is_repeat,
    }


def _slack(notice: Notice) -> Any:
    head = f"*{_escaped(title(notice))}*{' (still)' if notice.is_repeat else ''}"
    lines = [head, *_lines(notice, _escaped, _code)]
    return {
        "text": _escaped(title(notice)),
        "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)[:2900]}}],
    }


def _code(command: str) -> str:
    """A command as code in Slack's format; one with both marks of code in it cannot be shown."""
    mark = next((mark for mark in ("`", "```") if mark not in command), None)
    return "its command cannot be shown here" if mark is None else f"{mark}{_escaped(command)}{mark}"


def _escaped(text: str) -> str:
    """Escapes text for Slack: otherwise a group's name could notify all members of a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _lines(notice: Notice, text: Callable[[str], str] = str, code: Callable[[str], str] = str) -> list[str]:
    """The lines of a notice below its title. `text`, `code`: how they are written."""
    owner = [text(f"Owner: {notice.owner}")] if notice.owner else []
    command = [code(notice.command)] if notice.command else []
    return [*map(text, notice.texts), *owner, *command, f"since {utc_text(notice.since_ms)}"]


def _teams(notice: Notice) -> Any:
    """An adaptive card. Runs of text have no markup, so that a group's name is shown as it is."""
    head = title(notice) + (" (still)" if notice.is_repeat else "")
    texts = [{"type": "TextRun", "text": head, "weight": "Bolder"}]
    texts += [{"type": "TextRun", "text": line} for line in _lines(notice)]
    body = [{"type": "RichTextBlock", "inlines": [text]} for text in texts]
    card = {"type": "AdaptiveCard", "version": "1.4", "body": body}
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [content]}


_PAGERDUTY_SEVERITIES = frozenset({"critical", "error", "warning", "info"})


def _pagerduty(notice: Notice, key: str) -> Any:
    """An event of version 2. Events with the same key are one incident, which the last of them resolves."""
    rule, cluster, group = notice.key
    dedup = hashlib.sha256("\0".join(notice.key).encode("utf-8", "surrogatepass")).hexdigest()
    event = {"routing_key": key, "dedup_key": f"groupkeeper-{dedup}"}
    if notice.kind is AlertKind.RESOLVED:
        return event | {"event_action": "resolve"}
    severity = notice.severity if notice.severity in _PAGERDUTY_SEVERITIES else "warning"
    payload = {
        "summary": f"{title(notice)}: {'; '.join(notice.texts)}"[:1024],
        "source": cluster,
        "severity": severity,
        "timestamp": utc_text(notice.since_ms),
        "component": group or cluster,
        "class": rule,
        "custom_details": _facts(notice),
    }
    return event | {"event_action": "trigger", "client": "groupkeeper", "payload": payload}


def _mail(notice: Notice, webhook: Webhook) -> EmailMessage:
    """A message of mail. Replies and later notices of an alert are in one thread."""
    message = EmailMessage()
    message["From"], message["To"] = webhook.sender, ", ".join(webhook.recipients)
    subject = title(notice) + (" (still)" if notice.is_repeat else "")
    # A group's name may look like an encoded header, which some versions of Python decode, with ends of lines in it.
    message["Subject"] = "".join(each if each.isprintable() else "\ufffd" for each in subject).replace("=?", "=\ufffd")
    message["Date"] = format_datetime(datetime.fromtimestamp(notice.at_ms / 1000, UTC))
    thread = hashlib.sha256("\0".join((*notice.key, str(notice.since_ms))).encode("utf-8", "surrogatepass")).hexdigest()
    message["References"] = f"<{thread[:32]}@groupkeeper>"
    message.set_content("\n".join(_lines(notice)).encode("utf-8", "replace").decode() + "\n")
    return message


def _alertmanager(notice: Notice, webhook: Webhook) -> Any:
    rule, cluster, group = notice.key
    labels = {"alertname": rule, "cluster": cluster, "severity": notice.severity, "source": "groupkeeper"}
    labels |= {"group": group} if group else {}
    labels |= {"owner": notice.owner} if notice.owner else {}
    annotations = {"summary": title(notice), "description": "; ".join(notice.texts)}
    annotations |= {"command": notice.command} if notice.command else {}
    lease_ms = _LEASE * (webhook.repeat_ms or 24 * 3600_000)
    ends_ms = notice.at_ms if notice.kind is AlertKind.RESOLVED else notice.at_ms + lease_ms
    starts, ends = utc_text(notice.since_ms), utc_text(ends_ms)
    return {"labels": labels, "annotations": annotations, "startsAt": starts, "endsAt": ends}
