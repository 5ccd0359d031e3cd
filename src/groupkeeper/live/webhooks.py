"""What webhooks are sent."""

from __future__ import annotations

from typing import Any

from groupkeeper.live.alerts import AlertKind, Notice
from groupkeeper.live.rules import Template, Webhook
from groupkeeper.operations.times import utc_text

_ALERTMANAGER_PATH = "/api/v2/alerts"
_LEASE = 5
"""Alertmanager resolves an alert that was not repeated for this number of intervals, for example after this program
ended.
"""


def title(notice: Notice) -> str:
    """One line."""
    rule, cluster, group = notice.key
    what = f"{cluster}: {group}" if group else cluster
    is_over = notice.kind is AlertKind.RESOLVED
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
        "since": utc_text(notice.since_ms),
        "at": utc_text(notice.at_ms),
        "texts": list(notice.texts),
        "command": notice.command or None,
        "repeated": notice.is_repeat,
    }


def _slack(notice: Notice) -> Any:
    lines = [f"*{_escaped(title(notice))}*{' (still)' if notice.is_repeat else ''}", *map(_escaped, notice.texts)]
    if notice.owner:
        lines.append(f"Owner: {_escaped(notice.owner)}")
    if notice.command:
        lines.append(_code(notice.command))
    lines.append(f"since {utc_text(notice.since_ms)}")
    return {
        "text": _escaped(title(notice)),
        "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)[:2900]}}],
    }


def _code(command: str) -> str:
    """In Slack's format. What ends code ends neither kind of it there."""
    mark = next((mark for mark in ("`", "```") if mark not in command), None)
    return "its command cannot be shown here" if mark is None else f"{mark}{_escaped(command)}{mark}"


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
    ends_ms = notice.at_ms if notice.kind is AlertKind.RESOLVED else notice.at_ms + lease_ms
    starts, ends = utc_text(notice.since_ms), utc_text(ends_ms)
    return {"labels": labels, "annotations": annotations, "startsAt": starts, "endsAt": ends}
