"""The alerts that fire, and the silences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from groupkeeper.live.alerts import FiringAlert
from groupkeeper.live.rules import Silence
from groupkeeper.operations.selection import Names
from groupkeeper.pipeline.report import words
from groupkeeper.rules.urgency import Urgency
from groupkeeper.web.access.people import Person
from groupkeeper.web.access.roles import Role
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.parts import ANONYMOUS, PageCell, Viewer

_MOST = 500
_RANKS = {each: rank for rank, each in enumerate(Urgency)}

Firing = Mapping[tuple[str, str], Sequence[str]]
"""By cluster and group the names of the rules with firing alerts."""


class AlertsNow(NamedTuple):
    """``firing``: the earliest first. ``silences``: of any time."""

    firing: Sequence[FiringAlert] = ()
    silences: Sequence[Silence] = ()

    def by_group(self) -> Firing:
        """The names of rules, for lists of groups."""
        found: dict[tuple[str, str], list[str]] = {}
        for alert in self.firing:
            found.setdefault(alert.key[1:], []).append(alert.key.rule)
        return found

    def seen_by(self, person: Person | None) -> AlertsNow:
        """What a user may see; None: nothing. Names in silences are for those who may see all."""
        if person is None:
            return AlertsNow()
        if person.rights.sees_all:
            return self
        rights = person.rights
        firing = [
            alert
            for alert in self.firing
            if (rights.may(Role.VIEW, *alert.key[1:]) if alert.key.group else rights.sees(alert.key.cluster))
        ]
        return AlertsNow(firing, ())


_TITLES = ("severity", "rule", "", "cluster", "since", "", "owner", "notices")
_HEADS = ("severity", "rule", "group", "cluster", "since", "why", "owner", "notices")


def alerts_page(
    alerts: AlertsNow,
    now_ms: int,
    viewer: Viewer = ANONYMOUS,
    note: str = "",
    urgencies: Mapping[tuple[str, str], Urgency] = MappingProxyType({}),
) -> str:
    """``alerts``: those that the viewer may see. ``urgencies``: by cluster and group; those of groups that were left by
    their members are folded.
    """
    left = [each for each in alerts.firing if urgencies.get(each.key[1:]) is Urgency.LEFT]
    others = [each for each in alerts.firing if urgencies.get(each.key[1:]) is not Urgency.LEFT]
    others.sort(key=lambda each: _RANKS.get(urgencies.get(each.key[1:], Urgency.EXPIRING), 0))
    body = note + (
        _table(others, now_ms, "firing alerts") if others else '<p class="soft">No alert fires.</p>' if not left else ""
    )
    if left:
        title = f"{words.counted(len(left), 'alert')} of groups without members"
        body += (
            f'<details id="left" class="card"><summary><b>{title}</b></summary>{_table(left, now_ms, title)}</details>'
        )
    if alerts.silences:
        heads = [parts.head(name) for name in ("now", "rules", "clusters", "groups", "from", "until", "why")]
        rows = (_silence(each, now_ms) for each in alerts.silences)
        titles = ("", "rules", "clusters", "groups", "from", "until", "")
        body += f"<h2>Silences</h2>{parts.table(heads, rows, 'silences', titles)}"
    return parts.page("Alerts", parts.live("alerts", body), [("Consumer groups", "/")], viewer, follows=parts.EVERY)


def _table(firing: Sequence[FiringAlert], now_ms: int, caption: str) -> str:
    heads = [parts.head(name) for name in _HEADS]
    more = f'<p class="note">and {len(firing) - _MOST:,} more</p>' if len(firing) > _MOST else ""
    return parts.table(heads, (_cells(each, now_ms) for each in firing[:_MOST]), caption, _TITLES) + more


def _cells(alert: FiringAlert, now_ms: int) -> Sequence[PageCell]:
    rule, cluster, group = alert.key
    page = parts.url("/group", cluster=cluster, group=group)
    to = ", ".join(map(parts.text, alert.to))
    return (
        PageCell(parts.text(alert.severity)),
        PageCell(parts.text(rule), "label"),
        PageCell(f'<a href="{page}">{parts.text(group)}</a>' if group else "—", "name"),
        PageCell(f'<a href="{parts.url("/cluster", cluster=cluster)}">{parts.text(cluster)}</a>', "label"),
        PageCell(f"{parts.moment(alert.since_ms)} <small>{parts.ago(alert.since_ms, now_ms)}</small>", "t"),
        PageCell(parts.sentence("; ".join(alert.texts)), "why"),
        PageCell(parts.text(alert.owner or None), "label"),
        PageCell("silenced" if alert.is_silenced else f"sent to {to}" if to else "no webhook", "label"),
    )


def _silence(silence: Silence, now_ms: int) -> Sequence[PageCell]:
    is_over = silence.until_ms is not None and silence.until_ms <= now_ms
    return (
        PageCell("holds" if silence.holds(now_ms) else "over" if is_over else "to come"),
        *(PageCell(_names(names), "name") for names in (silence.rules, silence.clusters, silence.groups)),
        PageCell(parts.moment(silence.from_ms) if silence.from_ms else "—", "t"),
        PageCell("—" if silence.until_ms is None else parts.moment(silence.until_ms), "t"),
        PageCell(parts.sentence(silence.why), "why"),
    )


def _names(names: Names) -> str:
    typed: Iterable[str] = (*names.exact, *names.patterns)
    return ", ".join(map(parts.text, typed)) or "all"
